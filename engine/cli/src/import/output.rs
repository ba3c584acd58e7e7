//! Rows on their way from the decoder into recordings, which a thread of its own writes.

use super::recordings::Recordings;
use crate::lines::tell_line;
use crate::signals::Stopped;
use serde_json::json;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testdrive_core::IoRecord;
use testdrive_recording::RecordingError;
use testdrive_traces::{Sink, Volume};

/// Between two progress lines.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Batches of some thousand rows that may wait for the writer.
const BATCHES_WAITING: usize = 16;

type SinkError = Box<dyn Error + Send + Sync>;

/// Rows of a volume, or of a trace without volumes.
struct Batch {
    number: usize,
    /// With a volume's first rows.
    name: Option<String>,
    rows: Vec<IoRecord>,
}

/// What the writer ends with: the recordings, and whether they could be written.
type Written = (Recordings, Result<(), RecordingError>);

/// Takes the decoder's rows. Encoding them takes as long as decoding them, so that each has a thread.
pub struct Output {
    batches: Option<SyncSender<Batch>>,
    used: Receiver<Vec<IoRecord>>,
    writer: Option<JoinHandle<Written>>,
    named: Vec<bool>,
    rows: u64,
    told: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Output {
    /// Begins the recordings of an import.
    pub fn begin(path: &Path, has_volumes: bool, stop: Arc<AtomicBool>) -> Result<Output, RecordingError> {
        let recordings = Recordings::begin(path, has_volumes)?;
        let (batches, received) = sync_channel(BATCHES_WAITING);
        let (give_back, used) = sync_channel(BATCHES_WAITING + 2);
        let writer = thread::spawn(move || write(recordings, &received, &give_back));
        Ok(Output {
            batches: Some(batches),
            used,
            writer: Some(writer),
            named: Vec::new(),
            rows: 0,
            told: None,
            stop,
        })
    }

    /// Waits for the writer; gives what it wrote.
    pub fn close(mut self) -> Written {
        self.batches = None;
        let writer = self.writer.take().expect("the writer is joined once");
        writer.join().expect("the writer does not panic")
    }

    fn send(&mut self, volume: Option<Volume<'_>>, rows: &[IoRecord]) -> Result<(), SinkError> {
        self.check_stop()?;
        let mut batch = self.used.try_recv().unwrap_or_default();
        batch.clear();
        batch.extend_from_slice(rows);
        self.rows += rows.len() as u64;
        let number = volume.map_or(0, |volume| volume.index);
        let name = volume.filter(|_| self.is_new(number)).map(|volume| volume.name.to_string());
        let batches = self.batches.as_ref().expect("there is a writer until the output is closed");
        // What the writer failed with is told when it is closed.
        batches.send(Batch { number, name, rows: batch }).map_err(|_| Box::new(WriterEnded) as SinkError)
    }

    fn is_new(&mut self, number: usize) -> bool {
        if self.named.len() <= number {
            self.named.resize(number + 1, false);
        }
        !std::mem::replace(&mut self.named[number], true)
    }

    fn check_stop(&self) -> Result<(), SinkError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Box::new(Stopped));
        }
        Ok(())
    }
}

/// The recordings could not be written; closing the output tells why.
#[derive(Debug)]
struct WriterEnded;

impl fmt::Display for WriterEnded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the recording cannot be written")
    }
}

impl Error for WriterEnded {}

fn write(
    mut recordings: Recordings,
    batches: &Receiver<Batch>,
    give_back: &SyncSender<Vec<IoRecord>>,
) -> Written {
    for batch in batches {
        if let Err(error) = recordings.append(batch.number, batch.name.as_deref(), &batch.rows) {
            return (recordings, Err(error));
        }
        let _ = give_back.try_send(batch.rows);
    }
    (recordings, Ok(()))
}

impl Sink for Output {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), SinkError> {
        self.send(None, rows)
    }

    fn volume_rows(&mut self, volume: Volume<'_>, rows: &[IoRecord]) -> Result<(), SinkError> {
        self.send(Some(volume), rows)
    }

    fn progress(&mut self, bytes_read: u64, bytes_total: u64) -> Result<(), SinkError> {
        self.check_stop()?;
        let due = self.told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) || bytes_read >= bytes_total;
        if due {
            self.told = Some(Instant::now());
            tell_line(&json!({
                "event": "progress",
                "rows": self.rows,
                "bytes_read": bytes_read,
                "bytes_total": bytes_total,
            }));
        }
        Ok(())
    }
}
