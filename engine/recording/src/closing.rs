//! A segment that is made durable beside the writer: the disk may take longer than the queues of rows can wait.

use crate::error::RecordingError;
use crate::segment::SealedSegment;
use std::thread::{self, JoinHandle};

/// At most one segment at a time.
#[derive(Default)]
pub(crate) struct Closing(Option<JoinHandle<Result<(), RecordingError>>>);

impl Closing {
    /// Closes a segment on a thread of its own, after the one before it.
    pub(crate) fn begin(&mut self, sealed: SealedSegment) -> Result<(), RecordingError> {
        self.wait()?;
        self.0 = Some(thread::spawn(move || sealed.close()));
        Ok(())
    }

    /// Waits until the segment is closed.
    pub(crate) fn wait(&mut self) -> Result<(), RecordingError> {
        match self.0.take() {
            Some(closing) => closing.join().expect("closing a segment does not panic"),
            None => Ok(()),
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        // A segment that is being closed is worth waiting for, also when the run is given up.
        let _ = self.wait();
    }
}
