//! Rows in the order of issue, although they stand in the order of completion.
//!
//! A row group's statistics tell the earliest time in it. Groups are decoded only once the merge reaches that time, so that
//! a single I/O that stalled for minutes costs one more decoded group, and memory stays that of the groups that overlap.

use crate::error::RecordingError;
use crate::reader::{group_places, read_group, GroupPlace};
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
}

impl OrderBy {
    pub(crate) fn column(self) -> usize {
        match self {
            OrderBy::Intended => 0,
            OrderBy::Submit => 1,
        }
    }

    /// The time of a row that this order is by.
    pub fn time_ns(self, row: &IoRecord) -> i64 {
        match self {
            OrderBy::Intended => row.intended_ns,
            OrderBy::Submit => row.submit_ns,
        }
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
    /// Groups not yet decoded, the earliest last.
    waiting: Vec<GroupPlace>,
    open: HashMap<FilePosition, OpenGroup>,
    /// The next row of each open group; the position breaks ties, so that equal times stay in file order.
    heap: BinaryHeap<Reverse<(i64, FilePosition)>>,
    failed: bool,
}

impl OrderedRows {
    pub(crate) fn new(segments: Vec<PathBuf>, order: OrderBy) -> Result<OrderedRows, RecordingError> {
        let mut places = Vec::new();
        for (segment, path) in segments.iter().enumerate() {
            places.extend(group_places(segment, path, order)?);
        }
        places.retain(|place| place.rows > 0);
        // Later places first among equal times, since the vector is used from its end.
        places.sort_by_key(|place| Reverse((place.first_ns, place.segment, place.group)));
        let open = HashMap::new();
        Ok(OrderedRows { segments, order, waiting: places, open, heap: BinaryHeap::new(), failed: false })
    }

    /// Decodes every group that may hold a row at or before the earliest open one.
    fn open_due_groups(&mut self) -> Result<(), RecordingError> {
        while let Some(place) = self.waiting.last() {
            let due = self.heap.peek().is_none_or(|Reverse((time_ns, _))| place.first_ns <= *time_ns);
            if !due {
                break;
            }
            if self.open.len() == OPEN_GROUPS_MAX {
                return Err(RecordingError::Unordered { path: self.segments[place.segment].clone() });
            }
            let place = self.waiting.pop().expect("the vector was not empty above");
            let mut rows = read_group(&self.segments[place.segment], place.group)?;
            rows.sort_by_key(|row| self.order.time_ns(row));
            let first_ns = self.order.time_ns(&rows[0]);
            let position = (place.segment, place.group);
            self.heap.push(Reverse((first_ns, position)));
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
            Some(next) => self.heap.push(Reverse((self.order.time_ns(next), position))),
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
