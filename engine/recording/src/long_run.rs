//! The writer's part for a run that does not keep every row: seconds become entries of `intervals/`, the slowest rows pass through.

use crate::closing::Closing;
use crate::error::RecordingError;
use crate::interval_segment::IntervalSegment;
use crate::intervals::{Intervals, Kept};
use crate::reserve::Reserve;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use testdrive_core::IoRecord;

/// Entries that are handed over at once.
const READY_ENTRIES: usize = 8_192;

/// When each phase began, told by whoever starts it before its first row is handed over. Clones share what they hold.
#[derive(Clone, Debug, Default)]
pub struct PhaseStarts(Arc<Mutex<Vec<PhaseStart>>>);

/// When a phase began, and its streams that are kept apart.
#[derive(Clone, Copy, Debug)]
struct PhaseStart {
    phase: u16,
    start_ns: i64,
    streams: u16,
}

impl PhaseStarts {
    /// Tells a phase's start, on the recording's clock, and how many streams its histograms keep apart (0: none); what was told first
    /// stands.
    pub fn tell(&self, phase: u16, start_ns: i64, streams: u16) {
        let mut starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !starts.iter().any(|known| known.phase == phase) {
            starts.push(PhaseStart { phase, start_ns, streams });
        }
    }

    fn of(&self, phase: u16) -> Option<PhaseStart> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        starts.iter().find(|known| known.phase == phase).copied()
    }
}

/// What turns rows into histograms.
pub(crate) struct LongRun {
    intervals: Intervals,
    starts: PhaseStarts,
    chosen: Vec<IoRecord>,
    segment: Option<(IntervalSegment, Instant)>,
    next_segment: u32,
    closing: Closing,
    closed_bytes: u64,
}

impl LongRun {
    /// For a recording that keeps so much.
    pub(crate) fn new(kept: Kept, starts: PhaseStarts) -> LongRun {
        LongRun {
            intervals: Intervals::new(kept),
            starts,
            chosen: Vec::new(),
            segment: None,
            next_segment: 0,
            closing: Closing::default(),
            closed_bytes: 0,
        }
    }

    /// The same, with its first segment having this number.
    pub(crate) fn numbered_from(self, next_segment: u32) -> LongRun {
        LongRun { next_segment, ..self }
    }

    /// Bytes on disk so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.closed_bytes + self.segment.as_ref().map_or(0, |(segment, _)| segment.bytes())
    }

    /// Adds rows to their seconds, and chooses those that are to be kept.
    pub(crate) fn choose(&mut self, rows: &[IoRecord]) {
        self.chosen.clear();
        for row in rows {
            if !self.intervals.knows(row.phase) {
                // A phase whose start nobody told is counted from its first row.
                let start = self.starts.of(row.phase);
                let (start_ns, streams) =
                    start.map_or((row.submit_ns, 0), |start| (start.start_ns, start.streams));
                self.intervals.begin_phase(row.phase, start_ns, streams);
            }
            if self.intervals.add(row) {
                self.chosen.push(*row);
            }
        }
    }

    /// The rows that were chosen last.
    pub(crate) fn chosen(&self) -> &[IoRecord] {
        &self.chosen
    }

    /// Writes the seconds that were closed, once they are enough to be worth it.
    pub(crate) fn write_ready(&mut self, directory: &Path, reserve: &Reserve) -> Result<(), RecordingError> {
        if self.intervals.ready() < READY_ENTRIES {
            return Ok(());
        }
        self.write(directory, reserve)
    }

    fn write(&mut self, directory: &Path, reserve: &Reserve) -> Result<(), RecordingError> {
        let ready = self.intervals.take_ready();
        if ready.is_empty() {
            return Ok(());
        }
        if self.segment.is_none() {
            let segment = IntervalSegment::create(directory, self.next_segment, reserve)?;
            self.next_segment += 1;
            self.segment = Some((segment, Instant::now()));
        }
        let (segment, _) = self.segment.as_mut().expect("a segment was opened above");
        segment.append(&ready)
    }

    /// Closes the open segment once it is old enough.
    pub(crate) fn rotate_if_old(
        &mut self,
        directory: &Path,
        reserve: &Reserve,
        age: Duration,
    ) -> Result<(), RecordingError> {
        if self.segment.as_ref().is_none_or(|(_, opened)| opened.elapsed() < age) {
            // Seconds with few I/Os wait for each other, but no longer than a segment may be open.
            return if self.segment.is_none() { self.write(directory, reserve) } else { Ok(()) };
        }
        self.write(directory, reserve)?;
        self.close_segment()
    }

    fn close_segment(&mut self) -> Result<(), RecordingError> {
        let Some((segment, _)) = self.segment.take() else { return Ok(()) };
        let sealed = segment.seal()?;
        self.closed_bytes += sealed.bytes();
        self.closing.begin(sealed)
    }

    /// Closes every second and the last segment.
    pub(crate) fn finish(&mut self, directory: &Path, reserve: &Reserve) -> Result<(), RecordingError> {
        self.intervals.finish();
        self.write(directory, reserve)?;
        self.close_segment()?;
        self.closing.wait()
    }
}
