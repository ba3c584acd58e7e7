//! Why the controller could not be driven.

use std::io;
use std::time::Duration;
use testdrive_nvme::Status;

/// Why a controller could not be started, reset or asked. All but `Unsupported` are failures of the drive or the host.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// It can do less, or has more, than this driver knows to handle.
    #[error("{0}")]
    Unsupported(String),
    /// It did not become ready, or did not stop.
    #[error("the controller did not {what} within {limit:?}, the time that it names itself: switch the drive off and on")]
    NotReady {
        /// What was waited for.
        what: &'static str,
        /// How long.
        limit: Duration,
    },
    /// It says that it failed.
    #[error("the controller says that it failed (CSTS.CFS) {0}: switch the drive off and on")]
    Fatal(&'static str),
    /// Its registers read as all ones.
    #[error("the controller is gone: its registers do not answer")]
    Gone,
    /// The host asked for it.
    #[error("the host wants the drive back, as when it is taken out of its slot")]
    WantedBack,
    /// It was given up before.
    #[error("the controller did not come back from a reset: switch the drive off and on")]
    Lost,
    /// A command of the admin queue failed.
    #[error("the drive refused to {what}: {status}")]
    Refused {
        /// What it was asked.
        what: &'static str,
        /// What it answered.
        status: Status,
    },
    /// A command of the admin queue got no answer.
    #[error("the drive was asked to {what}, and has not answered for {limit:?}")]
    Silent {
        /// What it was asked.
        what: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It was reset before it answered a command of the admin queue.
    #[error("the controller was reset while it was asked to {0}")]
    Interrupted(&'static str),
    /// All of its queue pairs are taken.
    #[error("the drive has {0} queue pairs, and all are in use: run with fewer threads")]
    NoQueue(u16),
    /// The host refused, or the controller answered nonsense.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<ControllerError> for io::Error {
    fn from(error: ControllerError) -> io::Error {
        match error {
            ControllerError::Io(error) => error,
            error => io::Error::other(error.to_string()),
        }
    }
}
