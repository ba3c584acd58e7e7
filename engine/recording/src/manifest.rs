//! `manifest.json`: what a recording is and how it was made.

use crate::drive_account::{DriveEventsSummary, PhaseCounters};
use crate::intervals::Kept;
use crate::telemetry::TelemetrySummary;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use testdrive_core::OpcodeCounts;

/// The manifest's `format`.
pub const FORMAT: &str = "testdrive-recording";
/// The version that this crate writes, and the greatest that it reads.
pub const VERSION: u64 = 1;

/// Where the I/Os came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingKind {
    /// Watched on a running system.
    Capture,
    /// Decoded from a foreign trace.
    Import,
    /// Issued by the engine.
    Run,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Being written, or its writer crashed.
    Running,
    /// Ended as planned.
    Complete,
    /// Stopped or crashed before its end; what was recorded is kept.
    Interrupted,
    /// The drive or the recording's disk failed; what was recorded is kept.
    Failed,
}

/// The program that wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
}

/// The process that writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Which boot of the host.
    pub boot_id: String,
}

/// The machine it was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub cpu_model: String,
    /// Logical CPUs that the process may use.
    pub cpus: u64,
    /// Memory.
    pub memory_bytes: u64,
}

/// A drive, as far as its path can tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveIdentity {
    /// As given on the command line.
    pub uri: String,
    /// `io_uring`, `sync`, `null`, `sim` or `trace`.
    pub path: String,
    /// Model name, empty where there is none.
    pub model: String,
    /// Serial number, empty where there is none.
    pub serial: String,
    /// Firmware revision, empty where there is none.
    pub firmware: String,
    /// Capacity.
    pub capacity_bytes: u64,
    /// The smallest unit that can be addressed.
    pub logical_block_bytes: u64,
    /// The smallest unit that is written without a read first, as the drive says.
    pub physical_block_bytes: u64,
    /// Whether it is a model in virtual time.
    pub modelled: bool,
    /// What the path did: registered buffers, polled completions, asynchronous discard; a model's parameters.
    pub settings: Map<String, Value>,
}

/// Which clock the times are of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `tsc`, `clock_monotonic`, `trace` or `virtual`.
    pub source: String,
    /// What was subtracted from the source's times: whole seconds.
    pub shift_ns: i64,
}

/// What a phase did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// A foreign trace.
    Import,
    /// Watched on a running system.
    Capture,
    /// Brought the drive into a defined state.
    Prepare,
    /// Replayed a recording.
    Replay,
    /// Generated I/Os.
    Synthetic,
}

/// A stretch of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What rows carry in `phase`.
    pub index: u16,
    /// For people.
    pub name: String,
    /// What it did.
    pub kind: PhaseKind,
    /// Whether metrics are over its rows.
    pub measured: bool,
    /// When it began, on the recording's clock.
    pub start_ns: i64,
    /// When it ended; the start until then.
    pub end_ns: i64,
    /// What it was asked to do.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// What became of every I/O of its source.
    #[serde(default)]
    pub accounting: Map<String, Value>,
    /// What the drive counted of itself around it, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_counters: Option<PhaseCounters>,
}

/// Rows, counted as they were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows.
    pub ios: u64,
    /// Sum of `length_bytes`.
    pub bytes: u64,
    /// Rows with a status other than 0.
    pub errors: u64,
    /// Rows whose completion was not seen.
    pub no_completion: u64,
    /// From the first intended or submit time to the last completion or submit.
    pub span_ns: i64,
    /// The largest `offset_bytes + length_bytes`: the least capacity that the I/Os need.
    #[serde(default)]
    pub end_max_bytes: u64,
    /// By opcode.
    pub by_opcode: OpcodeCounts,
}

/// Events of the source that did not become rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// What they were and why they were dropped.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// Something that makes the figures less valid than they look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name.
    pub code: String,
    /// What is so.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Warning {
    /// A warning of this stable name.
    pub fn new(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Warning {
        Warning { code: code.into(), message: message.into(), remedy: remedy.into() }
    }
}

/// The whole of `manifest.json`. Keys that this version does not know are kept when it is rewritten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`] or less.
    pub version: u64,
    /// Where the I/Os came from.
    pub kind: RecordingKind,
    /// How it ended.
    pub status: Status,
    /// Why it ended so, in a sentence.
    pub status_reason: Option<String>,
    /// When it was begun, by the wall clock.
    pub created: String,
    /// What wrote it.
    pub tool: Tool,
    /// Which process wrote it.
    pub writer: Writer,
    /// The trace or recording it was made from.
    pub source: Map<String, Value>,
    /// The drive, where it is known.
    pub drive: Option<DriveIdentity>,
    /// The machine.
    pub host: Host,
    /// The clock.
    pub clock: Clock,
    /// Its stretches.
    pub phases: Vec<Phase>,
    /// Columns that hold fillers because the source had none.
    pub absent_columns: Vec<String>,
    /// What it holds.
    pub counts: Counts,
    /// What it lost.
    pub dropped: Vec<Dropped>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
    /// What the drive logged of itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_events: Option<DriveEventsSummary>,
    /// What it measured of itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetrySummary>,
    /// The plan that was run, as the control plane calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Map<String, Value>>,
    /// What is kept where not every row is: histograms of each second, and the slowest I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Manifest {
    /// A manifest for a recording that this process begins now.
    pub fn new(kind: RecordingKind, clock_source: &str) -> Manifest {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            kind,
            status: Status::Running,
            status_reason: None,
            created: crate::rfc3339_now(),
            tool: Tool {
                name: "testdrive-engine".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                build: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
            },
            writer: crate::process::this_writer(),
            source: Map::new(),
            drive: None,
            host: crate::this_host(),
            clock: Clock { source: clock_source.into(), shift_ns: 0 },
            phases: Vec::new(),
            absent_columns: Vec::new(),
            counts: Counts::default(),
            dropped: Vec::new(),
            warnings: Vec::new(),
            drive_events: None,
            telemetry: None,
            plan: None,
            kept: None,
            other: Map::new(),
        }
    }
}
