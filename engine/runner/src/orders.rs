//! What a submitting loop is told, what it shares with the others, and what it reports.

use crate::gates::DepthMeter;
use crate::job::OnError;
use crate::job_streams::MaxLag;
use crate::rounds::Tally;
use crate::stop::Stop;
use crate::throttle::Limits;
use serde_json::{json, Value};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::Mutex;
use testdrive_core::OpcodeCounts;
use testdrive_recording::PhaseStarts;

/// What decides when the next I/O goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At its own time from the phase's start.
    Timed,
    /// Once enough have completed, and after its think time.
    Gated,
    /// As soon as fewer than this are in flight.
    Closed(usize),
}

/// What every worker of a phase shares.
pub struct Shared {
    /// When to stop.
    pub stop: Stop,
    /// The greatest sequence number submitted so far, plus one.
    pub sequence_max: AtomicU64,
    /// For the progress: the drive's clock, I/Os done, bytes done, errors, in flight.
    pub now_ns: AtomicI64,
    /// Completed I/Os.
    pub ios: AtomicU64,
    /// Completed bytes.
    pub bytes: AtomicU64,
    /// Failed I/Os.
    pub errors: AtomicU64,
    /// Outstanding I/Os of the last worker that said so.
    pub in_flight: AtomicU64,
    /// When each phase began, for a recorder that counts by the second.
    pub phase_starts: PhaseStarts,
    /// What the phase's streams are called, for messages.
    pub stream_names: Mutex<Vec<String>>,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            stop: Stop::default(),
            sequence_max: AtomicU64::new(0),
            now_ns: AtomicI64::new(0),
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            phase_starts: PhaseStarts::default(),
            stream_names: Mutex::default(),
        }
    }
}

/// What a worker is told.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// When to issue.
    pub pacing: Pacing,
    /// Slots.
    pub depth: usize,
    /// Several workers share the source's order.
    pub shared_order: bool,
    /// The phase's start on the drive's clock.
    pub start_ns: i64,
    /// Stop submitting then.
    pub end_ns: Option<i64>,
    /// What holds a closed loop back.
    pub limits: Limits,
    /// How late an I/O may be before the run is given up.
    pub max_lag: MaxLag,
    /// Whether the source is told of completions.
    pub tells_completions: bool,
    /// Whether I/Os whose time came before the end, but that did not go, are counted here: a replay's feeder counts its own.
    pub counts_overdue: bool,
    /// A drive that is silent for so long is dead.
    pub io_timeout_ns: i64,
    /// What an error does.
    pub on_error: OnError,
    /// The rows' phase.
    pub phase: u16,
}

/// When and why a worker found that the drive cannot keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp {
    /// The stream of the I/O that was late.
    pub stream: i32,
    /// When, from the phase's start.
    pub at_ns: i64,
    /// How late it was.
    pub lag_ns: i64,
    /// How late it might have been.
    pub max_lag_ns: i64,
}

impl GaveUp {
    /// As the accounting has it, with what the phase calls its streams.
    pub fn to_json(self, names: &[String]) -> Value {
        let GaveUp { stream, at_ns, lag_ns, max_lag_ns } = self;
        let name = usize::try_from(stream).ok().and_then(|stream| names.get(stream));
        json!({"stream": name, "at_ns": at_ns, "lag_ns": lag_ns, "max_lag_ns": max_lag_ns})
    }
}

/// What a worker did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Handed to the drive.
    pub issued: OpcodeCounts,
    /// What completed without an error.
    pub completed: Tally,
    /// In-flight depth.
    pub depth: DepthMeter,
    /// Submissions before one that stands earlier in the source.
    pub order_inversions: u64,
    /// First and last scheduled time.
    pub intended_ns: Option<(i64, i64)>,
    /// First and last submission.
    pub submitted_ns: Option<(i64, i64)>,
    /// I/Os that were given up: the kernel still has them.
    pub unanswered: u64,
    /// I/Os of an open loop whose time came, but that did not go before the phase ended.
    pub overdue: u64,
    /// When the source had nothing decoded though it had not ended.
    pub starved: u64,
    /// When the recorder's queue was full, so that the loop had to wait.
    pub recorder_waits: u64,
    /// That the drive cannot keep up.
    pub gave_up: Option<GaveUp>,
}
