//! Why a capture could not be made, each with what to do about it.

use testdrive_recording::RecordingError;

/// Why a capture ended without a recording, or with a part of one.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// What was asked for makes no sense here: a device that is none, an option that does not fit.
    #[error("{0}")]
    Usage(String),
    /// This host does not let us watch, or not as it is now.
    #[error("{0}")]
    Unavailable(String),
    /// The kernel's trace failed while it was read.
    #[error("{0}")]
    Trace(String),
    /// A recording could not be made or written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl CaptureError {
    /// The name in progress lines.
    pub fn kind(&self) -> &'static str {
        match self {
            CaptureError::Usage(_) | CaptureError::Recording(RecordingError::Exists { .. }) => "usage",
            CaptureError::Unavailable(_) => "unavailable",
            CaptureError::Trace(_) => "trace",
            CaptureError::Recording(_) => "recording",
        }
    }

    /// The process's exit status.
    pub fn exit_status(&self) -> u8 {
        match self {
            CaptureError::Usage(_)
            | CaptureError::Unavailable(_)
            | CaptureError::Recording(RecordingError::Exists { .. }) => 2,
            CaptureError::Trace(_) | CaptureError::Recording(_) => 4,
        }
    }
}
