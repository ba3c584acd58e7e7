//! A device's recording, written by a thread of its own: the thread that reads the kernel's buffers waits for no disk.

use crate::error::CaptureError;
use crate::politeness::Politeness;
use crossbeam_channel::{bounded, Receiver, RecvTimeoutError, Sender};
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use testdrive_core::IoRecord;
use testdrive_recording::{Manifest, RecordingError, RecordingWriter, WriterLimits};
use testdrive_traces::Sink;

/// Portions of rows that may wait for the disk, of at most 8,192 rows: some 32 MiB. Beyond, the kernel's buffers fill, and what they
/// lose is counted.
const WAITING_MAX: usize = 64;
/// Between two looks at whether a segment is old enough to be closed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a recorder tells while it works.
#[derive(Debug, Default)]
pub struct RecorderState {
    bytes: AtomicU64,
    failed: AtomicBool,
}

impl RecorderState {
    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it cannot go on.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// A recording being written.
pub struct Recorder {
    thread: JoinHandle<Recorded>,
    state: Arc<RecorderState>,
}

/// What a recorder leaves: the recording to be finished, and why it could not take all rows.
pub struct Recorded {
    /// To be described and finished.
    pub writer: RecordingWriter,
    /// Why it ended early.
    pub error: Option<RecordingError>,
}

/// The way into a recording.
pub struct RowSender {
    rows: Sender<Vec<IoRecord>>,
}

impl Recorder {
    /// Makes a recording and starts its thread.
    ///
    /// # Errors
    /// When the recording is there already, or the system refuses.
    pub fn start(directory: &Path, manifest: Manifest) -> Result<(Recorder, RowSender), CaptureError> {
        let writer = RecordingWriter::create(directory, manifest, WriterLimits::default())?;
        let (sender, receiver) = bounded(WAITING_MAX);
        let state = Arc::new(RecorderState::default());
        let shared = Arc::clone(&state);
        let thread =
            Builder::new().name("recorder".into()).spawn(move || write_all(writer, &receiver, &shared));
        let thread = thread.map_err(|error| {
            let _ = std::fs::remove_dir_all(directory);
            CaptureError::Unavailable(format!("no thread for the recording: {error}; end other programs"))
        })?;
        Ok((Recorder { thread, state }, RowSender { rows: sender }))
    }

    /// How it is doing.
    pub fn state(&self) -> &RecorderState {
        &self.state
    }

    /// Waits until all rows are written; the sender must be gone.
    pub fn end(self) -> Recorded {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write_all(mut writer: RecordingWriter, rows: &Receiver<Vec<IoRecord>>, state: &RecorderState) -> Recorded {
    let full = writer.disk_full_flag();
    let mut politeness = Politeness::of_this_thread();
    loop {
        politeness.adapt(rows.len() as f64 / WAITING_MAX as f64);
        let written = match rows.recv_timeout(LOOK_EVERY) {
            Ok(rows) => writer.append(&rows).and_then(|()| writer.rotate_if_old()),
            Err(RecvTimeoutError::Timeout) => writer.rotate_if_old(),
            Err(RecvTimeoutError::Disconnected) => return Recorded { writer, error: None },
        };
        state.bytes.store(writer.bytes(), Ordering::Relaxed);
        if full.load(Ordering::Acquire) {
            state.failed.store(true, Ordering::Relaxed);
        }
        if let Err(error) = written {
            state.failed.store(true, Ordering::Relaxed);
            return Recorded { writer, error: Some(error) };
        }
    }
}

/// The recorder has failed, and says why when it is ended.
#[derive(Debug, thiserror::Error)]
#[error("the recording cannot be written")]
pub struct RecorderGone;

impl Sink for RowSender {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.rows.send(rows.to_vec()).map_err(|_| Box::from(RecorderGone))
    }

    fn progress(&mut self, _: u64, _: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_recording::{RecordingKind, Status};

    #[test]
    fn rows_are_written_by_the_thread_and_the_recording_is_left_to_finish() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rec");
        let manifest = Manifest::new(RecordingKind::Capture, "clock_monotonic");
        let (recorder, mut sender) = Recorder::start(&path, manifest).unwrap();
        let row = IoRecord {
            intended_ns: 1,
            submit_ns: 2,
            latency_ns: 3,
            offset_bytes: 0,
            length_bytes: 4096,
            stream: 0,
            status: 0,
            phase: 0,
            opcode: testdrive_core::Opcode::Read,
            flags: testdrive_core::Flags::NONE,
        };
        for _ in 0..100 {
            sender.rows(&[row; 1000]).unwrap();
        }
        drop(sender);
        assert!(!recorder.state().has_failed());
        let recorded = recorder.end();
        assert!(recorded.error.is_none());
        let manifest = recorded.writer.finish(Status::Complete, None).unwrap();
        assert_eq!(manifest.counts.ios, 100_000);
    }
}
