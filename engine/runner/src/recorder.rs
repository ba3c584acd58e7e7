//! The recording thread: takes rows from the submitters' queues, writes them, and keeps the figures of the progress display.

use crate::stop::Stop;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::Ordering;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use testdrive_core::{Flags, Histogram, IoRecord, Opcode};
use testdrive_recording::{RecordingError, RecordingWriter, Status};

/// Rows that a submitter can be ahead of the recorder: 14 MiB.
const QUEUE_ROWS: usize = 262_144;
/// Rows taken from a queue at once.
const CHUNK_ROWS: usize = 8_192;
/// How long the recorder sleeps when no rows come.
const IDLE_SLEEP: Duration = Duration::from_millis(4);

/// A submitter's end: rows go to the recorder, or only into a histogram where the run keeps none.
pub struct RowQueue<'a> {
    producer: Option<Producer<IoRecord>>,
    histogram: Option<Histogram>,
    waits: u64,
    stop: &'a Stop,
}

impl<'a> RowQueue<'a> {
    /// An end that keeps no rows.
    pub fn without_rows(stop: &'a Stop) -> RowQueue<'a> {
        RowQueue { producer: None, histogram: Some(Histogram::default()), waits: 0, stop }
    }

    /// An end that hands rows to the recorder.
    pub fn with_rows(producer: Producer<IoRecord>, stop: &'a Stop) -> RowQueue<'a> {
        RowQueue { producer: Some(producer), histogram: None, waits: 0, stop }
    }

    /// Hands over one row. Waits when the recorder is behind: a row is never dropped, and the wait is counted.
    #[inline]
    pub fn push(&mut self, row: &IoRecord) {
        match (&mut self.producer, &mut self.histogram) {
            (Some(producer), _) => {
                if producer.push(*row).is_err() {
                    self.wait_and_push(row);
                }
            }
            (None, Some(histogram)) => histogram.add(row.latency_ns.max(0) as u64),
            (None, None) => {}
        }
    }

    #[cold]
    fn wait_and_push(&mut self, row: &IoRecord) {
        self.waits += 1;
        let producer = self.producer.as_mut().expect("only called with a recorder");
        while producer.push(*row).is_err() {
            if producer.is_abandoned() {
                // The recorder died, having said why; there is nobody left to hand rows to.
                self.stop.request(Status::Failed, "the recording could not be written");
                return;
            }
            thread::yield_now();
        }
    }

    /// How often the recorder was behind.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// The histogram of an end that keeps no rows.
    pub fn take_histogram(&mut self) -> Option<Histogram> {
        self.histogram.as_mut().map(std::mem::take)
    }

    /// The queue itself, for the next phase.
    pub fn into_producer(self) -> Option<Producer<IoRecord>> {
        self.producer
    }
}

/// A queue of rows whose memory is already touched, so that its first use costs no page faults.
pub fn row_queue() -> (Producer<IoRecord>, Consumer<IoRecord>) {
    let (mut producer, mut consumer) = RingBuffer::new(QUEUE_ROWS);
    let blank = IoRecord {
        intended_ns: 0,
        submit_ns: 0,
        latency_ns: 0,
        offset_bytes: 0,
        length_bytes: 0,
        stream: 0,
        status: 0,
        phase: 0,
        opcode: Opcode::Read,
        flags: Flags::NONE,
    };
    while producer.push(blank).is_ok() {}
    while consumer.pop().is_ok() {}
    (producer, consumer)
}

/// Figures of the I/Os since they were last taken.
#[derive(Default)]
pub struct Live {
    /// Latencies.
    pub latencies: Histogram,
    /// The latest that an I/O was issued after its time.
    pub lateness_max_ns: i64,
}

/// Writes rows until every queue has ended. Where that fails, the run is asked to stop, and the error comes back beside the writer, which
/// can still close what it has.
pub fn record(
    mut writer: RecordingWriter,
    mut queues: Vec<Consumer<IoRecord>>,
    live: &Mutex<Live>,
    stop: &Stop,
) -> (RecordingWriter, Option<RecordingError>) {
    let disk_full = writer.disk_full_flag();
    loop {
        // Looked at before the queues, so that rows pushed just before the end are still taken.
        let ended = queues.iter().all(Consumer::is_abandoned);
        let mut taken = 0;
        for queue in &mut queues {
            let count = queue.slots().min(CHUNK_ROWS);
            if count == 0 {
                continue;
            }
            let chunk = queue.read_chunk(count).expect("the queue holds at least as many rows");
            let (first, second) = chunk.as_slices();
            for rows in [first, second] {
                if let Err(error) = writer.append(rows) {
                    stop.request(Status::Failed, format!("the recording could not be written: {error}"));
                    return (writer, Some(error));
                }
                observe(live, rows);
            }
            chunk.commit_all();
            taken += count;
        }
        if disk_full.load(Ordering::Relaxed) {
            stop.request(
                Status::Failed,
                "the disk under the recording is full: free some space, or record elsewhere",
            );
        }
        if let Err(error) = writer.rotate_if_old() {
            stop.request(Status::Failed, format!("the recording could not be written: {error}"));
            return (writer, Some(error));
        }
        if taken == 0 {
            if ended {
                return (writer, None);
            }
            thread::sleep(IDLE_SLEEP);
        }
    }
}

fn observe(live: &Mutex<Live>, rows: &[IoRecord]) {
    let mut live = live.lock().expect("no holder of this lock panics");
    for row in rows {
        if row.latency_ns >= 0 && row.status == 0 {
            live.latencies.add(row.latency_ns as u64);
        }
        live.lateness_max_ns = live.lateness_max_ns.max(row.submit_ns - row.intended_ns);
    }
}
