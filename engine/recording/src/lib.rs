//! The recording: a directory of Parquet segments and a manifest, written so that a crash loses only the open segment.
//!
//! The format is documented to the column in `docs/recording-format.md`.

mod clock_text;
mod closing;
mod completeness;
mod contained;
mod drive_account;
mod error;
mod footer;
mod interval_segment;
mod intervals;
mod lock;
mod long_run;
mod manifest;
mod manifest_file;
mod merge;
mod opening;
mod pages;
mod process;
mod reader;
mod recover;
mod reserve;
mod segment;
mod selection;
mod table;
mod telemetry;
mod writer;

pub use clock_text::rfc3339_now;
pub use drive_account::{
    DriveCounters, DriveEvent, DriveEvents, DriveEventsSummary, DroppedDriveEvents, PhaseCounters,
};
pub use error::RecordingError;
pub use intervals::{IntervalRow, Intervals, Kept, Quantity};
pub use long_run::PhaseStarts;
pub use manifest::{
    Clock, Counts, DriveIdentity, Dropped, Host, Manifest, Phase, PhaseKind, RecordingKind, Status, Tool,
    Warning, Writer as WriterIdentity, FORMAT, VERSION,
};
pub use merge::{OrderBy, OrderedRows};
pub use process::this_host;
pub use reader::Recording;
pub use selection::Phases;
pub use table::{COLUMN_NAMES, INTERVAL_COLUMN_NAMES};
pub use telemetry::{DriveSample, TelemetryRow, TelemetrySummary, TelemetryWriter};
pub use writer::{RecordingWriter, WriterLimits};
