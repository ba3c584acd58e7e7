//! Writes a recording: rows into rotating segments, and a manifest that is true at every moment.

use crate::error::RecordingError;
use crate::lock::WriterLock;
use crate::manifest::{Counts, Manifest, Status};
use crate::reader::Recording;
use crate::reserve::Reserve;
use crate::segment::Segment;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testdrive_core::{IoRecord, Opcode};

/// When a segment is closed, and how much disk is held back.
#[derive(Clone, Copy, Debug)]
pub struct WriterLimits {
    /// Rows after which a segment is closed.
    pub segment_rows: usize,
    /// Age at which a segment that holds rows is closed.
    pub segment_age: Duration,
    /// Disk held back for a full disk.
    pub reserve_bytes: u64,
}

impl Default for WriterLimits {
    fn default() -> Self {
        WriterLimits {
            segment_rows: 4_000_000,
            segment_age: Duration::from_secs(30),
            reserve_bytes: 16 << 20,
        }
    }
}

/// A recording being written. Memory does not grow with its length.
pub struct RecordingWriter {
    directory: PathBuf,
    manifest: Manifest,
    limits: WriterLimits,
    reserve: Reserve,
    segment: Option<(Segment, Instant)>,
    /// The segment before, while it is made durable: the disk may take longer than the queues of rows can wait.
    closing: Option<JoinHandle<Result<(), RecordingError>>>,
    _lock: WriterLock,
    next_segment: u32,
    closed_bytes: u64,
    span: Option<(i64, i64)>,
}

impl RecordingWriter {
    /// Creates the directory and its manifest with status `running`.
    ///
    /// # Errors
    /// When the directory exists already, or the system refuses.
    pub fn create(
        directory: &Path,
        manifest: Manifest,
        limits: WriterLimits,
    ) -> Result<Self, RecordingError> {
        if directory.exists() {
            return Err(RecordingError::Exists { path: directory.to_path_buf() });
        }
        let segments = directory.join("ios");
        fs::create_dir_all(&segments).map_err(RecordingError::io("create", &segments))?;
        let prepared =
            WriterLock::take(directory).map_err(RecordingError::io("lock", directory)).and_then(|lock| {
                let reserve = Reserve::take(directory, limits.reserve_bytes)
                    .map_err(RecordingError::io("hold disk space in", directory))?;
                manifest.write(directory)?;
                Ok((lock, reserve))
            });
        let (lock, reserve) = prepared.inspect_err(|_| {
            // Nothing was recorded yet: a second try must not find the remains of the first.
            let _ = fs::remove_dir_all(directory);
        })?;
        Ok(RecordingWriter {
            directory: directory.to_path_buf(),
            manifest,
            limits,
            reserve,
            segment: None,
            closing: None,
            _lock: lock,
            next_segment: 0,
            closed_bytes: 0,
            span: None,
        })
    }

    /// Where it is written.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The manifest, to be filled in until [`RecordingWriter::finish`]; `counts` are kept by the writer.
    pub fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.manifest.counts.ios
    }

    /// Bytes of rows on disk so far: less than there will be by the rows that wait for their row group.
    pub fn bytes(&self) -> u64 {
        self.closed_bytes + self.segment.as_ref().map_or(0, |(segment, _)| segment.bytes())
    }

    /// A flag that turns true when the disk ran full: stop the run, then [`RecordingWriter::finish`].
    pub fn disk_full_flag(&self) -> Arc<AtomicBool> {
        self.reserve.spent_flag()
    }

    /// Writes rows.
    ///
    /// # Errors
    /// When the disk is full beyond the reserve, or the system refuses.
    pub fn append(&mut self, rows: &[IoRecord]) -> Result<(), RecordingError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.count(rows);
        if self.segment.is_none() {
            let segment = Segment::create(&self.directory, self.next_segment, &self.reserve)?;
            self.next_segment += 1;
            self.segment = Some((segment, Instant::now()));
        }
        let (segment, _) = self.segment.as_mut().expect("a segment was opened above");
        segment.append(rows)?;
        if segment.rows() >= self.limits.segment_rows {
            self.close_segment()?;
        }
        Ok(())
    }

    /// Closes the open segment once it is old enough: to be called now and then while no rows come.
    ///
    /// # Errors
    /// As [`RecordingWriter::append`].
    pub fn rotate_if_old(&mut self) -> Result<(), RecordingError> {
        match &self.segment {
            Some((_, opened)) if opened.elapsed() >= self.limits.segment_age => self.close_segment(),
            _ => Ok(()),
        }
    }

    /// Closes the last segment and writes the final manifest.
    ///
    /// # Errors
    /// As [`RecordingWriter::append`]; the segments that were closed before stay readable.
    pub fn finish(mut self, status: Status, reason: Option<String>) -> Result<Manifest, RecordingError> {
        let closed = self.close_segment().and_then(|()| self.wait_for_closing());
        self.manifest.status = status;
        self.manifest.status_reason = reason;
        if let Err(error) = &closed {
            self.manifest.status = Status::Failed;
            self.manifest.status_reason.get_or_insert_with(|| error.to_string());
            self.recount();
        }
        if self.reserve.spent_flag().load(Ordering::Acquire) && status == Status::Complete {
            self.manifest.status = Status::Failed;
            self.manifest.status_reason.get_or_insert_with(|| "the disk under the recording is full".into());
        }
        self.reserve.release();
        self.manifest.write(&self.directory)?;
        WriterLock::remove(&self.directory);
        closed.map(|()| self.manifest.clone())
    }

    fn close_segment(&mut self) -> Result<(), RecordingError> {
        let Some((segment, _)) = self.segment.take() else { return Ok(()) };
        let sealed = segment.seal()?;
        self.closed_bytes += sealed.bytes();
        self.wait_for_closing()?;
        self.closing = Some(thread::spawn(move || sealed.close()));
        Ok(())
    }

    fn wait_for_closing(&mut self) -> Result<(), RecordingError> {
        match self.closing.take() {
            Some(closing) => closing.join().expect("closing a segment does not panic"),
            None => Ok(()),
        }
    }

    /// Counts what really is in closed segments, after one of them was lost.
    fn recount(&mut self) {
        let (mut counts, mut span) = (Counts::default(), None);
        let counted = Recording::open(&self.directory)
            .and_then(|recording| recording.for_each_batch(|rows| count_rows(&mut counts, &mut span, rows)));
        if counted.is_ok() {
            self.manifest.counts = counts;
        }
    }

    fn count(&mut self, rows: &[IoRecord]) {
        let counts = &mut self.manifest.counts;
        count_rows(counts, &mut self.span, rows);
    }
}

impl Drop for RecordingWriter {
    fn drop(&mut self) {
        // A segment that is being closed is worth waiting for, also when the run is given up.
        let _ = self.wait_for_closing();
    }
}

/// Adds rows to a manifest's counts; `span` is from the first intended or submit time to the last completion or submit.
pub(crate) fn count_rows(counts: &mut Counts, span: &mut Option<(i64, i64)>, rows: &[IoRecord]) {
    let (mut first, mut last) = span.unwrap_or((i64::MAX, i64::MIN));
    for row in rows {
        counts.by_opcode.add_record(row);
        counts.no_completion += u64::from(row.latency_ns < 0);
        let end_bytes = row.offset_bytes.max(0).saturating_add(row.length_bytes.max(0));
        counts.end_max_bytes = counts.end_max_bytes.max(end_bytes as u64);
        first = first.min(row.intended_ns).min(row.submit_ns);
        last = last.max(row.submit_ns.saturating_add(row.latency_ns.max(0)));
    }
    let total = counts.by_opcode.total();
    (counts.ios, counts.bytes, counts.errors) = (total.ios, total.bytes, total.errors);
    if first <= last {
        *span = Some((first, last));
        counts.span_ns = last.saturating_sub(first);
    }
    debug_assert_eq!(
        total.ios,
        Opcode::ALL.iter().map(|&opcode| counts.by_opcode.of(opcode).ios).sum::<u64>()
    );
}
