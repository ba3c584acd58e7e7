//! Rows in the order of issue, although they stand in the order of completion.
//!
//! A row group's statistics tell the earliest time in it. Groups are decoded only once the merge reaches that time, so that
//! a single I/O that stalled for minutes costs one more decoded group, and memory stays that of the groups that overlap.

use crate::error::RecordingError;
use crate::reader::{read_group, GroupPlace};
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

/// The most row groups that are decoded at once: about 1 GiB. Recordings of runs overlap by a few.
const OPEN_GROUPS_MAX: usize = 140;

/// Segment and row group: the order in which rows stand in the files.
type FilePosition = (usize, usize);

/// A decoded row group, sorted; `next` is the row to hand out next.
struct OpenGroup {
    rows: Vec<IoRecord>,
    next: usize,
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
            if self.open.len() == OPEN_GROUPS_MAX {
                return Err(RecordingError::Unordered { path: self.segments[place.segment].clone() });
            }
            let place = self.waiting.pop().expect("the vector was not empty above");
            let mut rows = read_group(&self.segments[place.segment], place.group)?;
            rows.retain(|row| self.phases.contains(row) && self.order.has(row));
            rows.sort_by_key(|row| self.order.key(row));
            let Some(first) = rows.first() else { continue };
            let position = (place.segment, place.group);
            self.heap.push(Reverse((self.order.key(first), position)));
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
            Some(next) => self.heap.push(Reverse((self.order.key(next), position))),
            None => {
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
