//! Rows in the order of issue, although they stand in the order of completion.
//!
//! A row group's statistics tell the earliest time in it. Groups are decoded only once the merge reaches that time, so that
//! a single I/O that stalled for minutes costs one more decoded group, and memory stays that of the groups that overlap.

use crate::error::RecordingError;
use crate::reader::{read_group, GroupPlace};
use crate::segment::ROW_GROUP_ROWS;
use crate::selection::Phases;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::PathBuf;
use testdrive_core::IoRecord;

/// Which time orders the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderBy {
    /// `intended_ns`: arrival.
    Intended,
    /// `submit_ns`: issue.
    Submit,
    /// The earlier of both.
    Began,
    /// `submit_ns + latency_ns`: completion. Rows whose completion was not seen are left out; of those that complete at the same
    /// time, the ones that took no time at all come last.
    Completion,
}

impl OrderBy {
    /// The time of a row that this order is by.
    pub fn time_ns(self, row: &IoRecord) -> i64 {
        match self {
            OrderBy::Intended => row.intended_ns,
            OrderBy::Submit => row.submit_ns,
            OrderBy::Began => row.intended_ns.min(row.submit_ns),
            OrderBy::Completion => row.submit_ns.saturating_add(row.latency_ns.max(0)),
        }
    }

    /// The least time that a row can have whose times are at least these.
    pub(crate) fn bound_ns(self, intended_ns: i64, submit_ns: i64, latency_ns: i64) -> i64 {
        match self {
            OrderBy::Intended => intended_ns,
            OrderBy::Submit => submit_ns,
            OrderBy::Began => intended_ns.min(submit_ns),
            OrderBy::Completion => submit_ns.saturating_add(latency_ns.max(0)),
        }
    }

    fn key(self, row: &IoRecord) -> (i64, bool) {
        (self.time_ns(row), self == OrderBy::Completion && row.latency_ns == 0)
    }

    fn has(self, row: &IoRecord) -> bool {
        self != OrderBy::Completion || row.latency_ns >= 0
    }
}

/// The most rows that are held at once: about 1 GiB. Row groups of runs overlap by a few.
const HELD_ROWS_MAX: usize = 140 * ROW_GROUP_ROWS;
/// Groups with fewer rows left than this are not worth moving.
const FEW_ROWS: usize = 1024;

/// Segment and row group: the order in which rows stand in the files.
type FilePosition = (usize, usize);

/// A decoded row group, sorted; `next` is the row to hand out next.
struct OpenGroup {
    rows: Vec<IoRecord>,
    next: usize,
}

impl OpenGroup {
    /// Gives up the rows that were handed out, once they are half of those that are held. A group stays open for as long as its
    /// latest row, which may have stalled for minutes; that must not hold all the others in memory.
    fn shrink(&mut self) -> usize {
        if self.next < FEW_ROWS || self.next < self.rows.len() / 2 {
            return 0;
        }
        let given_up = self.next;
        self.rows.drain(..self.next);
        self.rows.shrink_to_fit();
        self.next = 0;
        given_up
    }
}

/// Every row of a recording in the order of issue; equal times keep their order in the files.
pub struct OrderedRows {
    segments: Vec<PathBuf>,
    order: OrderBy,
    phases: Phases,
    /// Groups not yet decoded, the earliest last.
    waiting: Vec<GroupPlace>,
    open: HashMap<FilePosition, OpenGroup>,
    /// The next row of each open group; the position breaks ties, so that equal times stay in file order.
    heap: BinaryHeap<Reverse<((i64, bool), FilePosition)>>,
    /// In all open groups.
    held_rows: usize,
    failed: bool,
}

impl OrderedRows {
    pub(crate) fn new(
        segments: Vec<PathBuf>,
        mut places: Vec<GroupPlace>,
        order: OrderBy,
        phases: Phases,
    ) -> OrderedRows {
        // Later places first among equal times, since the vector is used from its end.
        places.sort_by_key(|place| Reverse((place.first_ns, place.segment, place.group)));
        OrderedRows {
            segments,
            order,
            phases,
            waiting: places,
            open: HashMap::new(),
            heap: BinaryHeap::new(),
            held_rows: 0,
            failed: false,
        }
    }

    /// Decodes every group that may hold a row at or before the earliest open one.
    fn open_due_groups(&mut self) -> Result<(), RecordingError> {
        while let Some(place) = self.waiting.last() {
            let due = self.heap.peek().is_none_or(|Reverse(((time_ns, _), _))| place.first_ns <= *time_ns);
            if !due {
                break;
            }
            if self.held_rows >= HELD_ROWS_MAX {
                return Err(RecordingError::Unordered { path: self.segments[place.segment].clone() });
            }
            let place = self.waiting.pop().expect("the vector was not empty above");
            let mut rows = read_group(&self.segments[place.segment], place.group)?;
            rows.retain(|row| self.phases.contains(row) && self.order.has(row));
            rows.sort_by_key(|row| self.order.key(row));
            let Some(first) = rows.first() else { continue };
            let position = (place.segment, place.group);
            self.heap.push(Reverse((self.order.key(first), position)));
            self.held_rows += rows.len();
            self.open.insert(position, OpenGroup { rows, next: 0 });
        }
        Ok(())
    }

    fn advance(&mut self) -> Option<IoRecord> {
        let Reverse((_, position)) = self.heap.pop()?;
        let group = self.open.get_mut(&position).expect("a group in the heap is open");
        let row = group.rows[group.next];
        group.next += 1;
        match group.rows.get(group.next) {
            Some(next) => {
                self.heap.push(Reverse((self.order.key(next), position)));
                self.held_rows -= group.shrink();
            }
            None => {
                self.held_rows -= group.rows.len();
                self.open.remove(&position);
            }
        }
        Some(row)
    }
}

impl Iterator for OrderedRows {
    type Item = Result<IoRecord, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if let Err(error) = self.open_due_groups() {
            self.failed = true;
            return Some(Err(error));
        }
        self.advance().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Manifest, Recording, RecordingKind, RecordingWriter, Status, WriterLimits};
    use testdrive_core::{Flags, Opcode};

    #[test]
    fn an_io_that_takes_long_does_not_hold_its_row_group_in_memory() {
        const GROUPS: i64 = 30;
        const ROWS: i64 = 5000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rec");
        let limits = WriterLimits { segment_rows: ROWS as usize, ..WriterLimits::default() };
        let manifest = Manifest::new(RecordingKind::Import, "trace");
        let mut writer = RecordingWriter::create(&path, manifest, limits).unwrap();
        for index in 0..GROUPS * ROWS {
            // One I/O of each group ends after all others of the recording.
            let latency_ns = if index % ROWS == 7 { GROUPS * ROWS * 2 } else { 3 };
            writer
                .append(&[IoRecord {
                    intended_ns: index,
                    submit_ns: index,
                    latency_ns,
                    offset_bytes: 0,
                    length_bytes: 4096,
                    stream: 0,
                    status: 0,
                    phase: 0,
                    opcode: Opcode::Read,
                    flags: Flags::NONE,
                }])
                .unwrap();
        }
        writer.finish(Status::Complete, None).unwrap();
        let mut rows = Recording::open(&path).unwrap().ordered_rows(OrderBy::Completion).unwrap();
        let (mut count, mut held_max) = (0, 0);
        while let Some(row) = rows.next() {
            row.unwrap();
            count += 1;
            held_max = held_max.max(rows.held_rows);
        }
        assert_eq!((count, rows.held_rows), (GROUPS * ROWS, 0));
        let few = ROWS as usize * 2 + GROUPS as usize * FEW_ROWS * 2;
        assert!(held_max < few.min((GROUPS * ROWS) as usize / 2), "{held_max} rows were held");
    }
}
