//! Writes a recording: rows into rotating segments, and a manifest that is true at every moment.

use crate::closing::Closing;
use crate::error::RecordingError;
use crate::interval_segment;
use crate::lock::WriterLock;
use crate::long_run::{LongRun, PhaseStarts};
use crate::manifest::{Counts, Manifest, Status};
use crate::manifest_file::sync_folder;
use crate::process::this_writer;
use crate::reader::{next_segment, Recording, IOS_FOLDER, SLOWEST_FOLDER};
use crate::recover::count_again;
use crate::reserve::Reserve;
use crate::segment::Segment;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
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
    closing: Closing,
    /// Where not every row is kept.
    long_run: Option<LongRun>,
    starts: PhaseStarts,
    _lock: WriterLock,
    next_segment: u32,
    /// Whether something that was counted did not get to the disk.
    has_lost_rows: bool,
    closed_bytes: u64,
    span: Option<(i64, i64)>,
}

impl RecordingWriter {
    /// Creates the directory and its manifest with status `running`. What the manifest says in `kept` is what is kept.
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
        let folders: &[&str] = match manifest.kept {
            None => &[IOS_FOLDER],
            Some(_) => &[SLOWEST_FOLDER, interval_segment::FOLDER],
        };
        for folder in folders.iter().map(|folder| directory.join(folder)) {
            fs::create_dir_all(&folder).map_err(RecordingError::io("create", &folder))?;
        }
        let prepared =
            WriterLock::take(directory).map_err(RecordingError::io("lock", directory)).and_then(|lock| {
                let reserve = Reserve::take(directory, limits.reserve_bytes)
                    .map_err(RecordingError::io("hold disk space in", directory))?;
                manifest.write(directory)?;
                // Else a power failure could take the whole recording, however well its files are synced.
                match sync_folder(directory.parent().unwrap_or(Path::new(""))) {
                    // A folder that may be written in and not be read cannot be synced.
                    Err(RecordingError::Io { source, .. })
                        if source.kind() == ErrorKind::PermissionDenied => {}
                    result => result?,
                }
                Ok((lock, reserve))
            });
        let (lock, reserve) = prepared.inspect_err(|_| {
            // Nothing was recorded yet: a second try must not find the remains of the first.
            let _ = fs::remove_dir_all(directory);
        })?;
        Ok(RecordingWriter::begun(directory, manifest, limits, (lock, reserve), (0, 0)))
    }

    /// Goes on with a recording whose writer ended before its plan did: what is there stays as it is, byte for byte, and new segments
    /// follow. The manifest is the recording's own, as it is to be from now on; its status, writer and counts are set here.
    ///
    /// # Errors
    /// When somebody else writes it, what is there cannot be read, or the system refuses. The recording is then as it was.
    pub fn resume(
        directory: &Path,
        mut manifest: Manifest,
        limits: WriterLimits,
    ) -> Result<Self, RecordingError> {
        let recording = Recording::open(directory)?;
        let lock = WriterLock::take(directory).map_err(RecordingError::io("lock", directory))?;
        let (counts, span) = count_again(&recording).inspect_err(|_| WriterLock::remove(directory))?;
        manifest.counts = counts;
        (manifest.status, manifest.status_reason) = (Status::Running, None);
        manifest.writer = this_writer();
        let prepared = Reserve::take(directory, limits.reserve_bytes)
            .map_err(RecordingError::io("hold disk space in", directory))
            .and_then(|reserve| {
                let rows_folder = if manifest.kept.is_some() { SLOWEST_FOLDER } else { IOS_FOLDER };
                let next_rows = next_segment(directory, rows_folder)?;
                let next_intervals = match manifest.kept {
                    Some(_) => next_segment(directory, interval_segment::FOLDER)?,
                    None => 0,
                };
                manifest.write(directory)?;
                Ok((reserve, next_rows, next_intervals))
            });
        let (reserve, next_segment, next_intervals) = prepared.inspect_err(|_| {
            let _ = fs::remove_file(directory.join("reserve"));
            WriterLock::remove(directory);
        })?;
        let held = (lock, reserve);
        let writer =
            RecordingWriter::begun(directory, manifest, limits, held, (next_segment, next_intervals));
        Ok(RecordingWriter { span, ..writer })
    }

    /// A writer of a directory that it holds, with the numbers of the first segments of rows and of histograms.
    fn begun(
        directory: &Path,
        manifest: Manifest,
        limits: WriterLimits,
        (lock, reserve): (WriterLock, Reserve),
        (next_segment, next_intervals): (u32, u32),
    ) -> RecordingWriter {
        let starts = PhaseStarts::default();
        let long_run =
            manifest.kept.map(|kept| LongRun::new(kept, starts.clone()).numbered_from(next_intervals));
        RecordingWriter {
            directory: directory.to_path_buf(),
            manifest,
            limits,
            reserve,
            segment: None,
            closing: Closing::default(),
            long_run,
            starts,
            _lock: lock,
            next_segment,
            has_lost_rows: false,
            closed_bytes: 0,
            span: None,
        }
    }

    /// The manifest as it stands.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it is written.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The manifest, to be filled in until [`RecordingWriter::finish`]; `counts` are kept by the writer.
    pub fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Where the start of each phase is told, from which its seconds are counted where not every row is kept.
    pub fn phase_starts(&self) -> PhaseStarts {
        self.starts.clone()
    }

    /// I/Os taken so far.
    pub fn rows(&self) -> u64 {
        self.manifest.counts.ios
    }

    /// Bytes of rows on disk so far: less than there will be by the rows that wait for their row group.
    pub fn bytes(&self) -> u64 {
        let histograms = self.long_run.as_ref().map_or(0, LongRun::bytes);
        self.closed_bytes + histograms + self.segment.as_ref().map_or(0, |(segment, _)| segment.bytes())
    }

    /// A flag that turns true when the disk ran full: stop the run, then [`RecordingWriter::finish`].
    pub fn disk_full_flag(&self) -> Arc<AtomicBool> {
        self.reserve.spent_flag()
    }

    /// Writes rows, or what is kept of them.
    ///
    /// # Errors
    /// When the disk is full beyond the reserve, or the system refuses.
    pub fn append(&mut self, rows: &[IoRecord]) -> Result<(), RecordingError> {
        if rows.is_empty() {
            return Ok(());
        }
        let appended = self.append_rows(rows);
        self.has_lost_rows |= appended.is_err();
        appended
    }

    fn append_rows(&mut self, rows: &[IoRecord]) -> Result<(), RecordingError> {
        count_rows(&mut self.manifest.counts, &mut self.span, rows);
        let (folder, rows) = match &mut self.long_run {
            None => (IOS_FOLDER, rows),
            Some(long_run) => {
                long_run.choose(rows);
                long_run.write_ready(&self.directory, &self.reserve)?;
                (SLOWEST_FOLDER, long_run.chosen())
            }
        };
        if rows.is_empty() {
            return Ok(());
        }
        if self.segment.is_none() {
            let segment = Segment::create(&self.directory, folder, self.next_segment, &self.reserve)?;
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
        let rotated = self.rotate();
        self.has_lost_rows |= rotated.is_err();
        rotated
    }

    fn rotate(&mut self) -> Result<(), RecordingError> {
        if let Some(long_run) = &mut self.long_run {
            long_run.rotate_if_old(&self.directory, &self.reserve, self.limits.segment_age)?;
        }
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
        let closed = self.close_all();
        self.manifest.status = status;
        self.manifest.status_reason = reason;
        if let Err(error) = &closed {
            self.manifest.status = Status::Failed;
            self.manifest.status_reason.get_or_insert_with(|| error.to_string());
        }
        if closed.is_err() || self.has_lost_rows {
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
        self.closing.begin(sealed)
    }

    fn close_all(&mut self) -> Result<(), RecordingError> {
        let rows = self.close_segment().and_then(|()| self.closing.wait());
        let histograms = match &mut self.long_run {
            Some(long_run) => long_run.finish(&self.directory, &self.reserve),
            None => Ok(()),
        };
        rows.and(histograms)
    }

    /// Counts what really is in closed segments, after one of them was lost.
    fn recount(&mut self) {
        let counted = Recording::open(&self.directory).and_then(|recording| count_again(&recording));
        if let Ok((counts, _)) = counted {
            self.manifest.counts = counts;
        }
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
