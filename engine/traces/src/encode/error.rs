//! What can go wrong with an export, each with what to do about it.

/// Why a recording could not be written as a trace.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// Nothing to write.
    #[error("there is no I/O in the phases to export: choose others with --phases, or --phases all")]
    NoIos,
    /// An option or a source that does not fit the format.
    #[error("{0}")]
    Usage(String),
    /// The rows could not be read.
    #[error("{0}")]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The trace could not be written.
    #[error("cannot write the trace: {0}")]
    Write(#[from] std::io::Error),
}
