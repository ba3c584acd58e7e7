//! Whether a job makes sense: what can be told before anything is opened.

use crate::error::RunError;
use crate::job::{Data, Job, Pace, PhaseJob, ReplayJob, Step, Streams, JOB_VERSION};
use crate::job_check_generated::{check_prepare, check_synthetic, check_time};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use testdrive_core::SplitMix64;

/// The most slots of a queue: the ring of completions is twice as long, and the kernel allows 65,536.
const DEPTH_MAX: u32 = 16_384;
/// The most phases of a run: the manifest, which is written anew with each, has them all.
const RUNS_MAX: usize = 4_000;
/// The longest time that a job may name, a year: sums of such times stay far from overflowing.
pub const TIME_MAX_NS: i64 = 365 * 86_400 * 1_000_000_000;
const TIME_MAX_S: f64 = TIME_MAX_NS as f64 / 1e9;

impl Job {
    /// Reads and checks a job.
    ///
    /// # Errors
    /// When it is not JSON, has an unknown key or version, or a value that makes no sense.
    pub fn parse(text: &str) -> Result<Job, RunError> {
        let not_valid = |error| RunError::usage(format!("the job is not valid: {error}"));
        let mut content: Value = serde_json::from_str(text).map_err(not_valid)?;
        read_phases(&content)?;
        give_seeds(&mut content);
        let job: Job = serde_json::from_value(content).map_err(not_valid)?;
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
        let runs_max = job.phases.iter().fold(0, |runs: usize, step| runs.saturating_add(step.runs_max()));
        let wanted = "at most 4000, with each phase of a group in each of its rounds";
        check(runs_max <= RUNS_MAX, "the number of phases", runs_max, wanted)?;
        check_seconds("io_timeout_s", job.io_timeout_s)?;
        check_seconds("segment_s", job.segment_s)?;
        for (index, step) in job.phases.iter().enumerate() {
            check_step(step).map_err(|error| in_phase(index, Some(step.name()), &error))?;
        }
        Ok(job)
    }
}

/// Gives each phase that names no seed one of its own, by its name and how many before it have the same. With the same one a load would come
/// to the places that the phase before it wrote in the very order in which they were written, which no workload does. Not by its number: a
/// plan leaves out what a drive does not support, and the others stay comparable.
fn give_seeds(content: &mut Value) {
    let phases = content.get_mut("phases").and_then(Value::as_array_mut);
    let mut of_name: HashMap<String, u64> = HashMap::new();
    for (index, phase) in phases.into_iter().flatten().enumerate() {
        let name = phase.get("name").filter(|name| name.is_string()).or(phase.get("kind"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_string();
        let nth = of_name.entry(name.clone()).or_default();
        *nth += 1;
        // The first phase has the default.
        if index == 0 {
            continue;
        }
        // Readers of JSON that have floating-point numbers only still read it exactly.
        let seed = (1..*nth).fold(drawn_of(&name), |drawn, _| SplitMix64::new(drawn).next_u64()) >> 11;
        give_seed(phase, seed);
        // The phases of a group are told apart by their turns.
        let members = phase.get_mut("phases").and_then(Value::as_array_mut);
        members.into_iter().flatten().for_each(|member| give_seed(member, seed));
    }
}

/// A number that follows from a name.
pub(crate) fn drawn_of(name: &str) -> u64 {
    name.bytes().fold(1, |drawn, byte| SplitMix64::new(drawn ^ u64::from(byte)).next_u64())
}

fn give_seed(phase: &mut Value, seed: u64) {
    if let Some(keys) = phase.as_object_mut() {
        if keys.get("kind").is_some_and(|kind| kind == "prepare" || kind == "synthetic") {
            keys.entry("seed").or_insert_with(|| seed.into());
        }
    }
}

/// Reads each phase by itself, so that the message about a wrong one says which it is.
fn read_phases(content: &Value) -> Result<(), RunError> {
    let phases = content.get("phases").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, phase) in phases.iter().enumerate() {
        let name = phase.get("name").or(phase.get("kind")).and_then(Value::as_str);
        Step::deserialize(phase).map_err(|error| in_phase(index, name, &error))?;
    }
    Ok(())
}

fn in_phase(index: usize, name: Option<&str>, error: &dyn std::fmt::Display) -> RunError {
    let name = name.map(|name| format!(" ('{name}')")).unwrap_or_default();
    RunError::usage(format!("phase {index}{name}: {error}"))
}

pub fn check(valid: bool, key: &str, value: impl std::fmt::Display, wanted: &str) -> Result<(), RunError> {
    if valid {
        Ok(())
    } else {
        Err(RunError::usage(format!("{key} is {value}: give {wanted}")))
    }
}

fn check_seconds(key: &str, value: f64) -> Result<(), RunError> {
    check(value > 0.0 && value <= TIME_MAX_S, key, value, "a time above 0, of at most a year")
}

pub fn check_duration(duration_ns: Option<i64>) -> Result<(), RunError> {
    let valid = duration_ns.is_none_or(|ns| (1..=TIME_MAX_NS).contains(&ns));
    check(valid, "duration_ns", duration_ns.unwrap_or(0), "a time above 0, of at most a year")
}

pub fn check_depth(key: &str, depth: u32) -> Result<(), RunError> {
    check((1..=DEPTH_MAX).contains(&depth), key, depth, &format!("a number from 1 to {DEPTH_MAX}"))
}

fn check_step(step: &Step) -> Result<(), RunError> {
    match step {
        Step::Once(phase) => check_phase(phase),
        Step::Rounds(group) => {
            group.check()?;
            let in_group = |phase: &PhaseJob| {
                check_phase(phase).map_err(|error| RunError::usage(format!("'{}': {error}", phase.name())))
            };
            group.phases.iter().try_for_each(in_group)
        }
    }
}

fn check_phase(phase: &PhaseJob) -> Result<(), RunError> {
    if let Data::CompressibleShare(share) = phase.data() {
        check((0.0..=1.0).contains(&share), "compressible_share", share, "a share from 0 to 1")?;
    }
    match phase {
        PhaseJob::Prepare(job) => check_prepare(job),
        PhaseJob::Synthetic(job) => check_synthetic(job),
        PhaseJob::Replay(job) => check_replay(job),
    }
}

fn check_replay(job: &ReplayJob) -> Result<(), RunError> {
    check_depth("depth", job.depth)?;
    check_depth("max_in_flight", job.max_in_flight)?;
    check_duration(job.duration_ns)?;
    check((1e-6..=1e6).contains(&job.speed), "speed", job.speed, "a factor from 0.000001 to 1000000")?;
    check(
        job.loops.is_none_or(|loops| (1..=1_000_000).contains(&loops)),
        "loop",
        job.loops.unwrap_or(0),
        "a number from 1 to 1000000",
    )?;
    check((0..=TIME_MAX_NS).contains(&job.from_ns), "from_ns", job.from_ns, "a time of at least 0")?;
    let window_valid = job.to_ns.is_none_or(|to_ns| to_ns > job.from_ns && to_ns <= TIME_MAX_NS);
    check(window_valid, "to_ns", job.to_ns.unwrap_or(0), "a time after from_ns")?;
    if let Some(max_lag_ns) = job.max_lag_ns {
        check_time("max_lag_ns", max_lag_ns)?;
        let wanted = "none without pace 'timed': no other has times to be late for";
        check(job.pace == Pace::Timed, "max_lag_ns", max_lag_ns, wanted)?;
    }
    let one_submitter = job.pace != Pace::Depth || job.streams == Streams::One;
    check(
        one_submitter,
        "streams",
        "source",
        "'one' with pace 'depth', which counts completions over all I/Os",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::OnError;
    use testdrive_core::LbaMode;

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
        let Step::Once(PhaseJob::Replay(replay)) = &job.phases[0] else { panic!("not a replay") };
        assert_eq!((replay.pace, replay.lba, replay.speed), (Pace::Timed, LbaMode::Skip, 1.0));
        assert_eq!((replay.depth, replay.max_in_flight, replay.measured), (32, 4096, true));
        assert_eq!(job.phases[0].name(), "replay");
    }

    #[test]
    fn phases_draw_apart_but_where_they_name_the_same_seed() {
        let phases = r#"{"kind":"prepare","method":"random"},{"kind":"synthetic","ios":1},{"kind":"synthetic","ios":1,"seed":1},
            {"kind":"replay","recording":"b"},{"kind":"rounds","name":"r","tracked":[{"phase":"m","measure":"iops"}],"phases":[{"kind":"synthetic","name":"m","ios":1}]}"#;
        let text =
            format!(r#"{{"version":1,"drive":{{"uri":"null:"}},"output":"a.rec","phases":[{phases}]}}"#);
        let seeds: Vec<_> = Job::parse(&text)
            .unwrap()
            .phases
            .iter()
            .filter_map(|step| match step {
                Step::Once(PhaseJob::Prepare(job)) => Some(job.seed),
                Step::Once(PhaseJob::Synthetic(job)) => Some(job.seed),
                Step::Once(PhaseJob::Replay(_)) => None,
                Step::Rounds(group) => match &group.phases[0] {
                    PhaseJob::Synthetic(job) => Some(job.seed),
                    other => panic!("not what was given: {other:?}"),
                },
            })
            .collect();
        assert_eq!((seeds[0], seeds[2]), (1, 1));
        assert!(![seeds[0], seeds[3]].contains(&seeds[1]) && seeds[3] != 1, "{seeds:?}");
    }

    #[test]
    fn phases_of_the_same_name_draw_apart_and_from_those_of_other_names() {
        let names = ["a", "b", "c", "1M write", "2M write"].map(|name| [name; 4]).concat();
        let phases: Vec<String> =
            names.iter().map(|name| format!(r#"{{"kind":"synthetic","name":"{name}","ios":1}}"#)).collect();
        let text = format!(
            r#"{{"version":1,"drive":{{"uri":"null:"}},"output":"a.rec","phases":[{}]}}"#,
            phases.join(",")
        );
        let job = Job::parse(&text).unwrap();
        let seeds: std::collections::HashSet<u64> = job
            .phases
            .iter()
            .map(|step| match step {
                Step::Once(PhaseJob::Synthetic(job)) => job.seed,
                other => panic!("not what was given: {other:?}"),
            })
            .collect();
        assert_eq!(seeds.len(), names.len());
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
        assert!(message(r#"{"kind":"replay","recording":"b","max_lag_ns":0}"#).contains("max_lag_ns is 0"));
        assert!(message(r#"{"kind":"replay","recording":"b","max_lag_ns":5,"pace":"asap"}"#)
            .contains("max_lag_ns is 5: give none without pace 'timed'"));
        assert!(synthetic(r#""ios":1,"depth":0"#).contains("depth is 0"));
        assert!(synthetic(r#""ios":1,"block_bytes":1000"#).contains("block_bytes is 1000"));
        assert!(synthetic(r#""depth":1"#).contains("an end is absent"));
        assert!(synthetic(r#""duration_ns":-1"#).contains("duration_ns is -1"));
        assert!(
            synthetic(r#""duration_ns":9223372036854775807"#).contains("duration_ns is 9223372036854775807")
        );
        assert!(synthetic(r#""ios":1,"span_bytes":1000"#).contains("span_bytes is 1000"));
        assert!(
            message(r#"{"kind":"replay","recording":"b","loop":4000000000}"#).contains("loop is 4000000000")
        );
        assert!(synthetic(r#""ios":1,"data":{"compressible_share":2}"#).contains("compressible_share is 2"));
        assert_eq!(synthetic(r#""ios":1"#), "");
    }

    #[test]
    fn a_newer_job_is_refused() {
        let text = r#"{"version":2,"drive":{"uri":"null:"},"output":"a","phases":[]}"#;
        assert!(Job::parse(text).unwrap_err().to_string().contains("version 2"));
    }
}
