//! The job: what the control plane asks for. Documented in `docs/job.md`.

use crate::job_defaults;
use crate::job_generated::SyntheticJob;
use crate::job_prepare::PrepareJob;
use crate::job_rounds::RoundsJob;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use testdrive_core::{LbaMode, Opcode};
use testdrive_drives::FeatureChoice;

/// The greatest job version that this engine takes.
pub const JOB_VERSION: u64 = 1;

/// The longest transfer that is issued: beyond any that a kernel sends to a drive, and buffers of this size can still be had.
pub const TRANSFER_MAX_BYTES: u64 = 256 << 20;

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
    /// Go on with the recording at `output`, of a run of this same job that was interrupted.
    #[serde(default)]
    pub resume: bool,
    /// False measures without keeping rows.
    #[serde(default = "job_defaults::yes")]
    pub record: bool,
    /// What is kept of each I/O.
    #[serde(default)]
    pub keep: Keep,
    /// How long an I/O may take before the drive counts as silent.
    #[serde(default = "default_io_timeout_s")]
    pub io_timeout_s: f64,
    /// What the control plane calls the run: its plan, kept in the manifest as it is.
    #[serde(default)]
    pub plan: Option<Map<String, Value>>,
    /// What an I/O error does.
    #[serde(default)]
    pub on_error: OnError,
    /// Where to save the state of a modelled drive once all phases are complete.
    #[serde(default)]
    pub save_state: Option<PathBuf>,
    /// How old a segment of the recording gets: the most that a crash can lose.
    #[serde(default = "default_segment_s")]
    pub segment_s: f64,
    /// What to do, in order.
    pub phases: Vec<Step>,
}

/// An element of the job's phases.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "StepText")]
pub enum Step {
    /// A phase.
    Once(PhaseJob),
    /// Phases that are run in rounds.
    Rounds(RoundsJob),
}

/// A step as the job has it: all kinds stand beside each other.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StepText {
    Prepare(PrepareJob),
    Replay(ReplayJob),
    Synthetic(Box<SyntheticJob>),
    Rounds(RoundsJob),
}

impl From<StepText> for Step {
    fn from(text: StepText) -> Step {
        match text {
            StepText::Prepare(job) => Step::Once(PhaseJob::Prepare(job)),
            StepText::Replay(job) => Step::Once(PhaseJob::Replay(job)),
            StepText::Synthetic(job) => Step::Once(PhaseJob::Synthetic(job)),
            StepText::Rounds(job) => Step::Rounds(job),
        }
    }
}

impl Step {
    /// For people.
    pub fn name(&self) -> &str {
        match self {
            Step::Once(phase) => phase.name(),
            Step::Rounds(group) => &group.name,
        }
    }

    /// The phase, or those of a round.
    pub fn phases(&self) -> &[PhaseJob] {
        match self {
            Step::Once(phase) => std::slice::from_ref(phase),
            Step::Rounds(group) => &group.phases,
        }
    }

    /// How many phases it comes to, at most.
    pub fn runs_max(&self) -> usize {
        match self {
            Step::Once(_) => 1,
            Step::Rounds(group) => group.phases.len().saturating_mul(group.rounds_max as usize),
        }
    }
}

impl Job {
    /// Every phase, those of a group once.
    pub fn each_phase(&self) -> impl Iterator<Item = &PhaseJob> {
        self.phases.iter().flat_map(Step::phases)
    }
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
    /// Whether the drive's volatile write cache is on during the run.
    #[serde(default)]
    pub volatile_write_cache: Option<bool>,
    /// The drive's power state during the run.
    #[serde(default)]
    pub power_state: Option<u8>,
}

impl DriveChoice {
    /// The features to be set.
    pub fn features(&self) -> FeatureChoice {
        FeatureChoice { volatile_write_cache: self.volatile_write_cache, power_state: self.power_state }
    }
}

/// What a recording keeps of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The row of every I/O.
    #[default]
    Rows,
    /// Histograms of each second and opcode, and the rows of the slowest I/Os: for runs too long to keep every row.
    Slowest,
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
    /// Generates I/Os.
    Synthetic(Box<SyntheticJob>),
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
    #[serde(default = "job_defaults::depth")]
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
    #[serde(default = "job_defaults::max_in_flight")]
    pub max_in_flight: u32,
    /// How far behind its time an I/O of a timed replay may be before the run is given up.
    #[serde(default)]
    pub max_lag_ns: Option<i64>,
    /// Whether metrics are over its rows.
    #[serde(default = "job_defaults::yes")]
    pub measured: bool,
}

fn default_io_timeout_s() -> f64 {
    30.0
}
fn default_segment_s() -> f64 {
    30.0
}
fn default_speed() -> f64 {
    1.0
}

impl PhaseJob {
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

    /// Whether each write gets fresh data.
    pub fn refills(&self) -> bool {
        match self {
            PhaseJob::Prepare(job) => job.refill,
            PhaseJob::Replay(_) => false,
            PhaseJob::Synthetic(job) => job.refill,
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
