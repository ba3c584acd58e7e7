//! The one place where a run is told to end, and why: the first reason stands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use testdrive_recording::Status;

/// Why a run ended before its plan did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReason {
    /// `Interrupted` or `Failed`.
    pub status: Status,
    /// In a sentence.
    pub message: String,
}

/// Shared by all threads of a run.
#[derive(Default)]
pub struct Stop {
    requested: AtomicBool,
    reason: Mutex<Option<StopReason>>,
}

impl Stop {
    /// Asks every submitter to stop.
    pub fn request(&self, status: Status, message: impl Into<String>) {
        let mut reason = self.reason.lock().expect("no holder of this lock panics");
        reason.get_or_insert_with(|| StopReason { status, message: message.into() });
        self.requested.store(true, Ordering::Release);
    }

    /// Whether to stop.
    #[inline]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Why, if asked.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.lock().expect("no holder of this lock panics").clone()
    }
}
