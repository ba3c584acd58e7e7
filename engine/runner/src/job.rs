//! The job: what the control plane asks for. Documented in `docs/job.md`.

use crate::error::RunError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use testdrive_core::{LbaMode, Opcode};

/// The greatest job version that this engine takes.
pub const JOB_VERSION: u64 = 1;

/// A whole run on one drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// At most [`JOB_VERSION`].
    pub version: u64,
    /// The drive, and the consent to write to it.
    pub drive: DriveChoice,
    /// The recording to make.
    pub output: PathBuf,
    /// False measures without keeping rows.
    #[serde(default = "yes")]
    pub record: bool,
    /// How long an I/O may take before the drive counts as silent.
    #[serde(default = "default_io_timeout_s")]
    pub io_timeout_s: f64,
    /// What an I/O error does.
    #[serde(default)]
    pub on_error: OnError,
    /// How old a segment of the recording gets: the most that a crash can lose.
    #[serde(default = "default_segment_s")]
    pub segment_s: f64,
    /// What to do, in order.
    pub phases: Vec<PhaseJob>,
}

/// Which drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveChoice {
    /// As the user named it.
    pub uri: String,
    /// Consent to write.
    #[serde(default)]
    pub erase: Option<String>,
    /// Consent to overwrite signatures.
    #[serde(default)]
    pub erase_signatures: bool,
}

/// What an I/O error does to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Ends it.
    #[default]
    Stop,
    /// Is recorded, and the run goes on.
    Continue,
}

/// One phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PhaseJob {
    /// Brings the drive into a defined state.
    Prepare(PrepareJob),
    /// Replays a recording.
    Replay(ReplayJob),
    /// Generates I/Os in a closed loop.
    Synthetic(SyntheticJob),
}

/// What writes carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Random bytes.
    #[default]
    Incompressible,
    /// Zeroes.
    Zero,
    /// This share of each 4 KiB is zeroes.
    CompressibleShare(f64),
}

/// How a drive is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrepareMethod {
    /// Every byte is written once, in order.
    Sequential,
}

/// A `prepare` phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareJob {
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
    /// How.
    pub method: PrepareMethod,
    /// Length of each write.
    #[serde(default = "default_prepare_block_bytes")]
    pub block_bytes: u64,
    /// Writes in flight.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// What they carry.
    #[serde(default)]
    pub data: Data,
    /// Whether metrics are over its rows.
    #[serde(default)]
    pub measured: bool,
}

/// Which time of the source schedules an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Events {
    /// Its arrival, `intended_ns`.
    #[default]
    Queued,
    /// Its issue, `submit_ns`.
    Issued,
}

/// What decides when an I/O is issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The source's times.
    #[default]
    Timed,
    /// As fast as `depth` I/Os in flight go.
    Asap,
    /// The source's own concurrency and think times.
    Depth,
}

/// How many submitters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// One.
    #[default]
    One,
    /// The source's submitting streams, kept apart.
    Source,
}

/// A `replay` phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayJob {
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
    /// What to replay.
    pub recording: PathBuf,
    /// Which times.
    #[serde(default)]
    pub events: Events,
    /// When.
    #[serde(default)]
    pub pace: Pace,
    /// Divides the source's times.
    #[serde(default = "default_speed")]
    pub speed: f64,
    /// I/Os in flight, for `asap`.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// Where.
    #[serde(default)]
    pub lba: LbaMode,
    /// Where the window of the source begins.
    #[serde(default)]
    pub from_ns: i64,
    /// Where it ends.
    #[serde(default)]
    pub to_ns: Option<i64>,
    /// How many times.
    #[serde(default, rename = "loop")]
    pub loops: Option<u32>,
    /// At most how long.
    #[serde(default)]
    pub duration_ns: Option<i64>,
    /// Opcodes kept; empty keeps all.
    #[serde(default)]
    pub only: Vec<Opcode>,
    /// Opcodes left out.
    #[serde(default)]
    pub without: Vec<Opcode>,
    /// How many submitters.
    #[serde(default)]
    pub streams: Streams,
    /// What writes carry.
    #[serde(default)]
    pub data: Data,
    /// Outstanding I/Os beyond which further ones wait.
    #[serde(default = "default_max_in_flight")]
    pub max_in_flight: u32,
    /// Whether metrics are over its rows.
    #[serde(default = "yes")]
    pub measured: bool,
}

/// Where generated I/Os go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Uniformly anywhere.
    #[default]
    Random,
    /// One after the other, from the start again at the end.
    Sequential,
}

/// A `synthetic` phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticJob {
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
    /// Where.
    #[serde(default)]
    pub pattern: Pattern,
    /// Share of reads; the rest are writes.
    #[serde(default = "default_read_share")]
    pub read_share: f64,
    /// Length of each I/O.
    #[serde(default = "default_synthetic_block_bytes")]
    pub block_bytes: u64,
    /// I/Os in flight.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// How many I/Os.
    #[serde(default)]
    pub ios: Option<u64>,
    /// How long.
    #[serde(default)]
    pub duration_ns: Option<i64>,
    /// From the drive's start; the whole drive by default.
    #[serde(default)]
    pub span_bytes: Option<u64>,
    /// Of the offsets and the mix.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// What writes carry.
    #[serde(default)]
    pub data: Data,
    /// Whether metrics are over its rows.
    #[serde(default = "yes")]
    pub measured: bool,
}

fn yes() -> bool {
    true
}
fn default_io_timeout_s() -> f64 {
    30.0
}
fn default_segment_s() -> f64 {
    30.0
}
fn default_prepare_block_bytes() -> u64 {
    128 << 10
}
fn default_synthetic_block_bytes() -> u64 {
    4 << 10
}
fn default_depth() -> u32 {
    32
}
fn default_speed() -> f64 {
    1.0
}
fn default_max_in_flight() -> u32 {
    4096
}
fn default_read_share() -> f64 {
    1.0
}
fn default_seed() -> u64 {
    1
}

/// The most slots of a queue: the ring of completions is twice as long, and the kernel allows 65,536.
const DEPTH_MAX: u32 = 16_384;

impl Job {
    /// Reads and checks a job.
    ///
    /// # Errors
    /// When it is not JSON, has an unknown key or version, or a value that makes no sense.
    pub fn parse(text: &str) -> Result<Job, RunError> {
        let job: Job = serde_json::from_str(text)
            .map_err(|error| RunError::usage(format!("the job is not valid: {error}")))?;
        if job.version > JOB_VERSION {
            let message = format!(
                "the job has version {}, and this engine takes up to {JOB_VERSION}: use a newer engine",
                job.version
            );
            return Err(RunError::usage(message));
        }
        if job.phases.is_empty() {
            return Err(RunError::usage("the job has no phases: name at least one".into()));
        }
        check(
            job.io_timeout_s > 0.0 && job.io_timeout_s.is_finite(),
            "io_timeout_s",
            job.io_timeout_s,
            "a time above 0",
        )?;
        check(
            job.segment_s > 0.0 && job.segment_s.is_finite(),
            "segment_s",
            job.segment_s,
            "a time above 0",
        )?;
        job.phases.iter().try_for_each(PhaseJob::validate)?;
        Ok(job)
    }
}

fn check(valid: bool, key: &str, value: impl std::fmt::Display, wanted: &str) -> Result<(), RunError> {
    if valid {
        Ok(())
    } else {
        Err(RunError::usage(format!("{key} is {value}: give {wanted}")))
    }
}

impl PhaseJob {
    fn validate(&self) -> Result<(), RunError> {
        let depth_wanted = format!("a number from 1 to {DEPTH_MAX}");
        let depth_check = |key, depth| check((1..=DEPTH_MAX).contains(&depth), key, depth, &depth_wanted);
        let block_check = |block_bytes: u64| {
            let valid = block_bytes > 0 && block_bytes.is_multiple_of(512) && block_bytes <= 1 << 30;
            check(valid, "block_bytes", block_bytes, "a multiple of 512, at most 1 GiB")
        };
        if let Data::CompressibleShare(share) = self.data() {
            check((0.0..=1.0).contains(&share), "compressible_share", share, "a share from 0 to 1")?;
        }
        match self {
            PhaseJob::Prepare(job) => {
                depth_check("depth", job.depth)?;
                block_check(job.block_bytes)
            }
            PhaseJob::Synthetic(job) => {
                depth_check("depth", job.depth)?;
                block_check(job.block_bytes)?;
                check(
                    (0.0..=1.0).contains(&job.read_share),
                    "read_share",
                    job.read_share,
                    "a share from 0 to 1",
                )?;
                let bounded = job.ios.is_some() || job.duration_ns.is_some();
                check(
                    bounded,
                    "ios and duration_ns",
                    "absent",
                    "at least one of them, so that the phase ends",
                )
            }
            PhaseJob::Replay(job) => {
                depth_check("depth", job.depth)?;
                depth_check("max_in_flight", job.max_in_flight)?;
                let speed_valid = job.speed.is_finite() && job.speed > 0.0;
                check(speed_valid, "speed", job.speed, "a factor above 0")?;
                check(job.loops != Some(0), "loop", 0, "at least 1")?;
                let window_valid = job.to_ns.is_none_or(|to_ns| to_ns > job.from_ns);
                check(window_valid, "to_ns", job.to_ns.unwrap_or(0), "a time after from_ns")?;
                let one_submitter = job.pace != Pace::Depth || job.streams == Streams::One;
                check(
                    one_submitter,
                    "streams",
                    "source",
                    "'one' with pace 'depth', which counts completions over all I/Os",
                )
            }
        }
    }

    /// For people: as given, or the kind.
    pub fn name(&self) -> &str {
        let (name, kind) = match self {
            PhaseJob::Prepare(job) => (&job.name, "prepare"),
            PhaseJob::Replay(job) => (&job.name, "replay"),
            PhaseJob::Synthetic(job) => (&job.name, "synthetic"),
        };
        name.as_deref().unwrap_or(kind)
    }

    /// What writes carry.
    pub fn data(&self) -> Data {
        match self {
            PhaseJob::Prepare(job) => job.data,
            PhaseJob::Replay(job) => job.data,
            PhaseJob::Synthetic(job) => job.data,
        }
    }

    /// Whether metrics are over its rows.
    pub fn measured(&self) -> bool {
        match self {
            PhaseJob::Prepare(job) => job.measured,
            PhaseJob::Replay(job) => job.measured,
            PhaseJob::Synthetic(job) => job.measured,
        }
    }
}

impl ReplayJob {
    /// Whether an opcode is replayed.
    pub fn keeps(&self, opcode: Opcode) -> bool {
        (self.only.is_empty() || self.only.contains(&opcode)) && !self.without.contains(&opcode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(phases: &str) -> String {
        let text =
            format!(r#"{{"version":1,"drive":{{"uri":"null:"}},"output":"a.rec","phases":[{phases}]}}"#);
        Job::parse(&text).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_minimal_job_has_the_documented_defaults() {
        let text = r#"{"version":1,"drive":{"uri":"null:"},"output":"a.rec","phases":[{"kind":"replay","recording":"b.rec"}]}"#;
        let job = Job::parse(text).unwrap();
        assert_eq!((job.record, job.io_timeout_s, job.on_error), (true, 30.0, OnError::Stop));
        let PhaseJob::Replay(replay) = &job.phases[0] else { panic!("not a replay") };
        assert_eq!((replay.pace, replay.lba, replay.speed), (Pace::Timed, LbaMode::Skip, 1.0));
        assert_eq!((replay.depth, replay.max_in_flight, replay.measured), (32, 4096, true));
        assert_eq!(job.phases[0].name(), "replay");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_key_and_the_value() {
        let synthetic = |rest: &str| message(&format!(r#"{{"kind":"synthetic",{rest}}}"#));
        assert!(message("").contains("no phases"));
        assert!(message(r#"{"kind":"dance"}"#).contains("dance"));
        assert!(message(r#"{"kind":"replay","recording":"b","sped":2}"#).contains("sped"));
        assert!(message(r#"{"kind":"replay","recording":"b","speed":0}"#).contains("speed is 0"));
        assert!(message(r#"{"kind":"replay","recording":"b","from_ns":5,"to_ns":5}"#).contains("to_ns is 5"));
        assert!(message(r#"{"kind":"replay","recording":"b","pace":"depth","streams":"source"}"#)
            .contains("streams"));
        assert!(synthetic(r#""ios":1,"depth":0"#).contains("depth is 0"));
        assert!(synthetic(r#""ios":1,"block_bytes":1000"#).contains("block_bytes is 1000"));
        assert!(synthetic(r#""depth":1"#).contains("ios and duration_ns"));
        assert!(synthetic(r#""ios":1,"data":{"compressible_share":2}"#).contains("compressible_share is 2"));
        assert_eq!(synthetic(r#""ios":1"#), "");
    }

    #[test]
    fn a_newer_job_is_refused() {
        let text = r#"{"version":2,"drive":{"uri":"null:"},"output":"a","phases":[]}"#;
        assert!(Job::parse(text).unwrap_err().to_string().contains("version 2"));
    }
}
