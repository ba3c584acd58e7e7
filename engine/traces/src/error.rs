//! What can be wrong with a trace, each with where it is and what to do about it.

use std::path::{Path, PathBuf};

/// Why a trace could not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file without a byte.
    #[error("{path} is empty: record the trace again, or give the file that holds it")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No format takes the content.
    #[error("{path} is of no format that is known{hint}; the formats are {known}: give another file, or name its format with --format")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it may be, starting with a comma; or nothing.
        hint: String,
        /// Names of the formats.
        known: String,
    },
    /// More than one format takes the content.
    #[error("{path} can be read in several formats, so say which it is with --format NAME:{candidates}")]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// The formats that take it, a line each with what it would mean.
        candidates: String,
    },
    /// A format name that does not exist.
    #[error("there is no trace format '{name}'; the formats are {known}")]
    NoSuchFormat {
        /// The name given.
        name: String,
        /// Names of the formats.
        known: String,
    },
    /// Files of one import that are of different formats.
    #[error("{first} is {first_format} and {second} is {second_format}: import them one at a time")]
    MixedFormats {
        /// A file.
        first: PathBuf,
        /// Its format.
        first_format: &'static str,
        /// Another file.
        second: PathBuf,
        /// Its format.
        second_format: &'static str,
    },
    /// Something in a file cannot be what it should be.
    #[error("{path}, {place}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line or the byte offset.
        place: Place,
        /// What is there, and what to do.
        reason: String,
    },
    /// Time goes back further than the reordering window can mend.
    #[error(
        "{path}, {place}: time goes back by {back_ns} ns, from {latest_ns} ns to {time_ns} ns, past {window} events: \
         sort the trace by time, or import traces that were joined together one at a time"
    )]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// Where the late event stands.
        place: Place,
        /// By how much.
        back_ns: i64,
        /// The latest time that was passed on already.
        latest_ns: i64,
        /// The late event's time.
        time_ns: i64,
        /// How many events are held to be put in order.
        window: usize,
    },
    /// Several devices, and none was chosen.
    #[error("the trace holds I/O of {} devices ({}): choose one with --device MAJ:MIN", devices.len(), list_devices(devices))]
    SeveralDevices {
        /// Each device and its I/Os.
        devices: Vec<(crate::Device, u64)>,
    },
    /// The chosen device has no I/O.
    #[error("the trace holds no I/O of device {device}{}", others(devices))]
    NoSuchDevice {
        /// The device asked for.
        device: crate::Device,
        /// Those that it has, with their I/Os.
        devices: Vec<(crate::Device, u64)>,
    },
    /// More volumes than are written at once, and none was chosen.
    #[error("the trace holds I/O of more than {limit} volumes; the busiest among its first {rows_read} I/Os are {}: choose one with --volume NAME", list_volumes(busiest))]
    SeveralVolumes {
        /// How many are written at once.
        limit: usize,
        /// How many I/Os were looked at.
        rows_read: u64,
        /// The busiest, each with its I/Os.
        busiest: Vec<(String, u64)>,
    },
    /// The chosen volume has no I/O.
    #[error(
        "the trace holds no I/O of volume '{volume}'; the busiest of its {count} volumes are {}",
        list_volumes(busiest)
    )]
    NoSuchVolume {
        /// The volume asked for.
        volume: String,
        /// How many it has.
        count: usize,
        /// The busiest, each with its I/Os.
        busiest: Vec<(String, u64)>,
    },
    /// Nothing to record.
    #[error("{path} holds no I/O: {reason}")]
    NoIos {
        /// The (first) file.
        path: PathBuf,
        /// What was found instead, and what to do.
        reason: String,
    },
    /// An option that does not fit the trace or the format.
    #[error("{0}")]
    Usage(String),
    /// The receiver of the rows failed.
    #[error("{0}")]
    Sink(Box<dyn std::error::Error + Send + Sync>),
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The line, counted from 1.
    Line(u64),
    /// The byte, counted from 0.
    Byte(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Line(line) => write!(formatter, "line {line}"),
            Place::Byte(offset) => write!(formatter, "byte {offset}"),
        }
    }
}

impl TraceError {
    /// An error of the system on a path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> TraceError {
        let path = path.to_path_buf();
        move |source| TraceError::Io { action, path, source }
    }

    /// Something at a place of a file that cannot be what it should be.
    pub(crate) fn damaged(path: &Path, place: Place, reason: impl Into<String>) -> TraceError {
        TraceError::Damaged { path: path.to_path_buf(), place, reason: reason.into() }
    }
}

fn list_devices(devices: &[(crate::Device, u64)]) -> String {
    let parts: Vec<String> =
        devices.iter().map(|(device, ios)| format!("{device} with {ios} I/Os")).collect();
    parts.join(", ")
}

fn list_volumes(volumes: &[(String, u64)]) -> String {
    let parts: Vec<String> =
        volumes.iter().map(|(volume, ios)| format!("'{volume}' with {ios} I/Os")).collect();
    parts.join(", ")
}

fn others(devices: &[(crate::Device, u64)]) -> String {
    if devices.is_empty() {
        return ", nor of any other".into();
    }
    format!("; it has {}: choose one of these with --device MAJ:MIN", list_devices(devices))
}
