//! Progress, one JSON object a line. Documented in `docs/job.md`.

use crate::error::RunError;
use crate::job::PhaseJob;
use crate::job_generated::Measure;
use crate::rounds::SteadyProgress;
use crate::steady_state::Fit;
use serde::Serialize;
use serde_json::{Map, Value};
use testdrive_recording::{Counts, DriveIdentity, Status, Warning};

/// What the engine tells while it runs.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The drive is open and the recording made.
    Started {
        /// The recording.
        output: String,
        /// The drive.
        drive: DriveIdentity,
        /// The phases to come.
        phases: Vec<PlannedPhase>,
        /// Phases of the plan before them, which are complete.
        phases_before: usize,
    },
    /// A phase begins.
    Phase {
        /// Its index.
        index: u16,
        /// What it is.
        #[serde(flatten)]
        phase: PhaseName,
        /// Its start on the drive's clock.
        start_ns: i64,
        /// I/Os to come, where they are known.
        planned_ios: Option<u64>,
        /// Time to come, where it is known.
        planned_ns: Option<i64>,
    },
    /// How far a phase is.
    Progress(Progress),
    /// A round of a group of phases is over.
    Round(RoundOver),
    /// Something that makes the figures less valid than they look.
    Warning(Warning),
    /// The recording is closed.
    Finished {
        /// How.
        status: Status,
        /// Why, where not complete.
        reason: Option<String>,
        /// The recording.
        output: String,
        /// What it holds.
        counts: Counts,
        /// Of each phase.
        accounting: Vec<Map<String, Value>>,
    },
    /// Nothing was run, or the run could not be recorded.
    Error {
        /// Which outcome.
        kind: &'static str,
        /// What failed, and what to do.
        message: String,
        /// Of the process.
        exit_status: u8,
    },
}

/// A phase, for people.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseName {
    /// Its name.
    pub name: String,
    /// `prepare`, `replay` or `synthetic`.
    pub kind: &'static str,
    /// The round that it belongs to, of a phase of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RoundPosition>,
}

/// Which round of a group a phase belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundPosition {
    /// The group's name.
    pub name: String,
    /// From 0.
    pub round: u32,
    /// Rounds at most.
    pub rounds_max: u32,
}

/// What a round of a group came to.
#[derive(Clone, Debug, Serialize)]
pub struct RoundOver {
    /// Which.
    #[serde(flatten)]
    pub position: RoundPosition,
    /// Whether the last window is steady in all that is tracked: then no round follows.
    pub achieved: bool,
    /// What is tracked.
    pub tracked: Vec<TrackedOver>,
}

/// What is tracked, at the end of a round.
#[derive(Clone, Debug, Serialize)]
pub struct TrackedOver {
    /// The phase's name.
    pub phase: String,
    /// What of it.
    pub measure: Measure,
    /// In this round; absent where it has none.
    pub value: Option<f64>,
    /// Of the last window, once there is one.
    pub fit: Option<Fit>,
    /// Whether that window is steady.
    pub achieved: bool,
}

/// A phase to come.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedPhase {
    /// What it is.
    #[serde(flatten)]
    pub phase: PhaseName,
    /// I/Os to come, where they are known.
    pub planned_ios: Option<u64>,
    /// Time to come, where it is known.
    pub planned_ns: Option<i64>,
}

impl PhaseName {
    /// Of a phase of the job, and the round that it is run in.
    pub fn of(job: &PhaseJob, rounds: Option<RoundPosition>) -> PhaseName {
        let kind = match job {
            PhaseJob::Prepare(_) => "prepare",
            PhaseJob::Replay(_) => "replay",
            PhaseJob::Synthetic(_) => "synthetic",
        };
        PhaseName { name: job.name().into(), kind, rounds }
    }
}

/// Figures of a phase so far; latencies and rates are of the last interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Progress {
    /// Index of the phase.
    pub phase: u16,
    /// Since its start, on the drive's clock.
    pub elapsed_ns: i64,
    /// Done, from 0 to 1, where it can be told.
    pub done_share: Option<f64>,
    /// Completed I/Os.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Failed I/Os.
    pub errors: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub throughput_bytes_per_s: f64,
    /// Median latency.
    pub latency_p50_ns: Option<u64>,
    /// 99th percentile of latency.
    pub latency_p99_ns: Option<u64>,
    /// Greatest latency.
    pub latency_max_ns: Option<u64>,
    /// Outstanding I/Os.
    pub in_flight: u64,
    /// The latest that an I/O was issued after its time.
    pub lateness_max_ns: i64,
    /// The way to a steady state, of a phase that is to end with one and has had a round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyProgress>,
}

impl From<&RunError> for Event {
    fn from(error: &RunError) -> Event {
        Event::Error {
            kind: error.kind.name(),
            message: error.message.clone(),
            exit_status: error.kind.exit_status(),
        }
    }
}
