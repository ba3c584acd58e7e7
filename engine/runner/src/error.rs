//! Why a run could not be done, with the exit status that says so.

use testdrive_drives::TargetError;
use testdrive_recording::RecordingError;

/// Which of the documented outcomes an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The job or its input is wrong.
    Usage,
    /// The drive must not be written.
    Refused,
    /// The drive failed or cannot be opened.
    Drive,
    /// The recording cannot be made.
    Recording,
    /// The engine itself failed.
    Internal,
}

impl ErrorKind {
    /// The name in progress lines.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::Refused => "refused",
            ErrorKind::Drive => "drive",
            ErrorKind::Recording => "recording",
            ErrorKind::Internal => "internal",
        }
    }

    /// The process's exit status.
    pub fn exit_status(self) -> u8 {
        match self {
            ErrorKind::Usage => 2,
            ErrorKind::Refused => 3,
            ErrorKind::Drive | ErrorKind::Recording => 4,
            ErrorKind::Internal => 70,
        }
    }
}

/// An error that ends a run before or outside its I/Os; what a drive does during a run is recorded instead.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// Which outcome.
    pub kind: ErrorKind,
    /// What failed, the value, and what to do.
    pub message: String,
}

impl RunError {
    /// The job or its input is wrong.
    pub fn usage(message: String) -> RunError {
        RunError { kind: ErrorKind::Usage, message }
    }

    /// The drive must not be written.
    pub fn refused(message: String) -> RunError {
        RunError { kind: ErrorKind::Refused, message }
    }

    /// The drive failed or cannot be opened.
    pub fn drive(message: String) -> RunError {
        RunError { kind: ErrorKind::Drive, message }
    }

    /// The engine itself failed.
    pub fn internal(message: String) -> RunError {
        RunError { kind: ErrorKind::Internal, message }
    }

    /// The same, and in which phase.
    #[must_use]
    pub fn in_phase(self, name: &str) -> RunError {
        RunError { message: format!("phase '{name}': {}", self.message), ..self }
    }
}

impl From<RecordingError> for RunError {
    fn from(error: RecordingError) -> RunError {
        let kind = if error.is_bad_input() { ErrorKind::Usage } else { ErrorKind::Recording };
        RunError { kind, message: error.to_string() }
    }
}

impl From<TargetError> for RunError {
    fn from(error: TargetError) -> RunError {
        let kind = match &error {
            TargetError::Usage(_) => ErrorKind::Usage,
            TargetError::Refused(_) => ErrorKind::Refused,
            TargetError::Drive(_) => ErrorKind::Drive,
        };
        RunError { kind, message: error.to_string() }
    }
}
