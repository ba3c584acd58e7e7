//! What can go wrong with a recording, each with what to do about it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why a recording could not be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The output is there already.
    #[error("{path} exists already: give another output, or remove it first")]
    Exists {
        /// The output named.
        path: PathBuf,
    },
    /// The path is not a recording.
    #[error("{path} is not a recording: {reason}; give a directory made by testdrive, or import a foreign trace with 'testdrive import'")]
    NotARecording {
        /// The path named.
        path: PathBuf,
        /// What is missing or strange.
        reason: String,
    },
    /// Written by a later version.
    #[error("{path} has recording format version {version}, and this testdrive reads up to {supported}: use a newer testdrive")]
    Newer {
        /// The recording.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// The greatest version that can be read.
        supported: u64,
    },
    /// A file of it cannot be read as what it should be.
    #[error("{path} is damaged: {reason}; {remedy}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What can be done.
        remedy: String,
    },
    /// Its rows stand too far from the order of their times.
    #[error("{path} cannot be read in the order of its times in bounded memory: sort the source by time and import it again")]
    Unordered {
        /// The segment.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}{}", remedy(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Parquet could not be written.
    #[error("cannot write {path}: {source}")]
    Encode {
        /// The segment.
        path: PathBuf,
        /// The library's answer.
        source: parquet::errors::ParquetError,
    },
}

impl RecordingError {
    /// An error of the system on a path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::Io { action, path, source }
    }

    /// An error while encoding a segment.
    pub(crate) fn encode(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::Encode { path, source }
    }

    /// A file whose content is not what it should be.
    pub(crate) fn damaged(path: &Path, reason: impl std::fmt::Display) -> RecordingError {
        let name = path.file_name().unwrap_or_default().display();
        let remedy = if path.extension().is_some_and(|extension| extension == "parquet") {
            format!("restore it from a copy, or rename it to {name}.damaged to do without its rows")
        } else {
            "restore it from a copy of the recording".into()
        };
        RecordingError::Damaged { path: path.to_path_buf(), reason: reason.to_string(), remedy }
    }

    /// Whether what was given is at fault, and not the disk.
    pub fn is_bad_input(&self) -> bool {
        match self {
            RecordingError::Io { action: "open" | "read" | "list", source, .. } => matches!(
                source.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::NotADirectory
                    | ErrorKind::IsADirectory
            ),
            RecordingError::Io { .. } | RecordingError::Encode { .. } => false,
            RecordingError::Exists { .. }
            | RecordingError::NotARecording { .. }
            | RecordingError::Newer { .. }
            | RecordingError::Unordered { .. }
            | RecordingError::Damaged { .. } => true,
        }
    }
}

/// What to do about an answer of the system.
fn remedy(source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::PermissionDenied => "; let this user read and write it, or be another user",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free some space on that disk, or use another",
        ErrorKind::ReadOnlyFilesystem => "; give a place that can be written to",
        _ => "",
    }
}
