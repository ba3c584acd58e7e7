//! What a run too long to keep every row keeps instead: histograms of each second, and the rows of the slowest I/Os.
//!
//! Whether a row is kept is decided when it comes, against a threshold that was settled before the first I/O of its second completed.
//! So the rows of a second are exactly those of at least that latency, and the recording says which it was: nobody has to guess what is
//! missing.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use testdrive_core::{Bucket, IntervalHistogram, IoRecord, Opcode, NS_PER_S};

const OPCODES: usize = Opcode::ALL.len();

/// Seconds that stay open for I/Os that a slower queue still holds; what comes later makes a second entry of its second.
const OPEN_SECONDS: usize = 3;
/// Seconds whose thresholds are remembered; an I/O that comes later still is kept.
const REMEMBERED_SECONDS: usize = 120;

/// What a recording keeps that does not keep every row; the manifest's `kept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The length of an interval.
    pub interval_ns: i64,
    /// About so many I/Os of each opcode and second (and stream, where a phase has several) are kept: the slowest.
    pub slowest_per_second: u64,
    /// Over so many seconds before it, the threshold of a second is taken.
    pub window_s: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Kept { interval_ns: NS_PER_S, slowest_per_second: 1_000, window_s: 10 }
    }
}

/// Which of an I/O's times a histogram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Completion - submission.
    Service,
    /// Completion - intended time; only of intervals in which an I/O was late.
    Response,
}

/// One row of `intervals/NNNNN.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalRow {
    /// Where the interval begins, on the recording's clock: whole intervals from the phase's start.
    pub start_ns: i64,
    /// The largest latency that falls in the bucket; -1 for I/Os that failed or were never answered, which are in no bucket.
    pub latency_ceiling_ns: i64,
    /// Rows of this interval and opcode are kept from this latency on.
    pub kept_from_ns: i64,
    /// What fell in.
    pub bucket: Bucket,
    /// Which time.
    pub quantity: Quantity,
    /// Of which operation.
    pub opcode: Opcode,
    /// Of which stream of a phase that has several; -1 of other phases.
    pub stream: i32,
    /// Of which phase.
    pub phase: u16,
}

/// One opcode's share of one second, of one stream where a phase has several.
#[derive(Default)]
struct Cell {
    service: IntervalHistogram,
    response: IntervalHistogram,
    /// Whether an I/O was late, so that response times are another thing than service times.
    is_late: bool,
    failed: Bucket,
}

impl Cell {
    fn clear(&mut self) {
        self.service.clear();
        self.response.clear();
        self.is_late = false;
        self.failed = Bucket::default();
    }
}

/// A second that I/Os are still added to.
struct Second {
    index: i64,
    /// For each lane.
    kept_from_ns: Vec<i64>,
    cells: Vec<Option<Cell>>,
}

/// A second's distribution as the thresholds of later ones need it: for each lane the buckets' ceilings and counts.
type Shape = Vec<Vec<(u64, u64)>>;

/// The seconds of one phase.
struct PhaseIntervals {
    phase: u16,
    start_ns: i64,
    /// The streams that are kept apart, or 0. Each has a lane for every opcode; without, all share those.
    streams: u16,
    open: VecDeque<Second>,
    /// Thresholds of the seconds that were closed, in case one of their I/Os comes late.
    thresholds: BTreeMap<i64, Vec<i64>>,
    recent: VecDeque<(i64, Shape)>,
}

/// Takes every row of a run and hands on what is kept.
pub struct Intervals {
    kept: Kept,
    phases: Vec<PhaseIntervals>,
    spare: Vec<Cell>,
    ready: Vec<IntervalRow>,
}

impl Intervals {
    /// Nothing seen yet.
    pub fn new(kept: Kept) -> Intervals {
        Intervals { kept, phases: Vec::new(), spare: Vec::new(), ready: Vec::new() }
    }

    /// Whether the rows of a phase were seen already.
    pub fn knows(&self, phase: u16) -> bool {
        self.phases.iter().any(|known| known.phase == phase)
    }

    /// Tells where the seconds of a phase are counted from, and how many streams are kept apart (0: none). Phases before the one before
    /// it are closed.
    pub fn begin_phase(&mut self, phase: u16, start_ns: i64, streams: u16) {
        while self.phases.len() >= 2 {
            let past = self.phases.remove(0);
            self.close_all(past);
        }
        let (open, thresholds, recent) = Default::default();
        self.phases.push(PhaseIntervals { phase, start_ns, streams, open, thresholds, recent });
    }

    /// Adds a row of a phase that was begun; true where the row itself is to be kept.
    ///
    /// # Panics
    /// When the phase was not begun.
    #[inline]
    pub fn add(&mut self, row: &IoRecord) -> bool {
        let end_ns = row.submit_ns.saturating_add(row.latency_ns.max(0));
        let known = self.phases.iter_mut().rev().find(|known| known.phase == row.phase);
        let seconds = known.expect("a phase is begun before its rows come");
        let index = (end_ns - seconds.start_ns).div_euclid(self.kept.interval_ns);
        let lane = seconds.lane(row);
        match seconds.open.iter_mut().rev().find(|second| second.index == index) {
            Some(second) => add_to(second, lane, &mut self.spare, row),
            None => self.add_to_another(row, index),
        }
    }

    #[cold]
    fn add_to_another(&mut self, row: &IoRecord, index: i64) -> bool {
        let Intervals { kept, phases, spare, ready } = self;
        let seconds = phases.iter_mut().find(|known| known.phase == row.phase).expect("add found it");
        seconds.open_second(index, *kept);
        let lane = seconds.lane(row);
        let second = seconds.open.iter_mut().find(|second| second.index == index);
        let is_kept = add_to(second.expect("it was opened just now"), lane, spare, row);
        while seconds.open.len() > OPEN_SECONDS {
            let second = seconds.open.pop_front().expect("there are several");
            seconds.close_second(second, *kept, spare, ready);
        }
        is_kept
    }

    /// The entries of the seconds that were closed since they were last taken.
    pub fn take_ready(&mut self) -> Vec<IntervalRow> {
        std::mem::take(&mut self.ready)
    }

    /// How many entries wait to be taken.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Closes every second, at the end of the run.
    pub fn finish(&mut self) {
        for past in std::mem::take(&mut self.phases) {
            self.close_all(past);
        }
    }

    fn close_all(&mut self, mut past: PhaseIntervals) {
        while let Some(second) = past.open.pop_front() {
            past.close_second(second, self.kept, &mut self.spare, &mut self.ready);
        }
    }
}

#[inline]
fn add_to(second: &mut Second, lane: usize, spare: &mut Vec<Cell>, row: &IoRecord) -> bool {
    let cell = second.cells[lane].get_or_insert_with(|| spare.pop().unwrap_or_default());
    let bytes = row.length_bytes.max(0) as u64;
    if row.status != 0 || row.latency_ns < 0 {
        cell.failed.count += 1;
        cell.failed.bytes = cell.failed.bytes.saturating_add(bytes);
        return true;
    }
    cell.service.add(row.latency_ns as u64, bytes);
    let lateness_ns = row.submit_ns.saturating_sub(row.intended_ns).max(0);
    cell.is_late |= lateness_ns > 0;
    cell.response.add(row.latency_ns.saturating_add(lateness_ns) as u64, bytes);
    row.latency_ns >= second.kept_from_ns[lane]
}

impl PhaseIntervals {
    fn lanes(&self) -> usize {
        usize::from(self.streams.max(1)) * OPCODES
    }

    /// Where a row belongs.
    #[inline]
    fn lane(&self, row: &IoRecord) -> usize {
        let last = i32::from(self.streams.max(1)) - 1;
        row.stream.clamp(0, last) as usize * OPCODES + row.opcode as usize
    }

    /// Opens a second, with the thresholds that it had before or those that follow from the seconds behind it.
    fn open_second(&mut self, index: i64, kept: Kept) {
        let kept_from_ns = match self.thresholds.get(&index) {
            Some(thresholds) => thresholds.clone(),
            // So late that nobody remembers: kept, whatever it is.
            None if self.thresholds.last_key_value().is_some_and(|(last, _)| *last > index) => {
                vec![0; self.lanes()]
            }
            None => self.next_thresholds(index, kept),
        };
        self.thresholds.insert(index, kept_from_ns.clone());
        while self.thresholds.len() > REMEMBERED_SECONDS {
            self.thresholds.pop_first();
        }
        let place = self.open.partition_point(|second| second.index < index);
        let cells = kept_from_ns.iter().map(|_| None).collect();
        self.open.insert(place, Second { index, kept_from_ns, cells });
    }

    /// For each lane the least latency that about the wanted number of I/Os a second reach, as the seconds before `index` had them.
    fn next_thresholds(&mut self, index: i64, kept: Kept) -> Vec<i64> {
        let first = index.saturating_sub(kept.window_s as i64);
        let mut shapes: Vec<Shape> = self.open.iter_mut().map(shape_of).collect();
        shapes.extend(self.recent.iter().filter(|(past, _)| *past >= first).map(|(_, shape)| shape.clone()));
        let wanted = kept.slowest_per_second * shapes.len() as u64;
        let threshold = |lane: usize| {
            let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
            for (ceiling_ns, count) in shapes.iter().flat_map(|shape| &shape[lane]) {
                *counts.entry(*ceiling_ns).or_default() += count;
            }
            let mut above = 0;
            let full = counts.into_iter().rev().find(|(_, count)| {
                above += count;
                above > wanted
            });
            // The first latency beyond the bucket with which there would be too many.
            full.map_or(0, |(ceiling_ns, _)| i64::try_from(ceiling_ns.saturating_add(1)).unwrap_or(i64::MAX))
        };
        (0..self.lanes()).map(threshold).collect()
    }

    fn close_second(
        &mut self,
        mut second: Second,
        kept: Kept,
        spare: &mut Vec<Cell>,
        ready: &mut Vec<IntervalRow>,
    ) {
        self.recent.push_back((second.index, shape_of(&mut second)));
        while self.recent.len() > kept.window_s as usize {
            self.recent.pop_front();
        }
        let start_ns = self.start_ns + second.index * kept.interval_ns;
        for (lane, kept_from_ns) in second.kept_from_ns.into_iter().enumerate() {
            let Some(mut cell) = second.cells[lane].take() else { continue };
            let opcode = Opcode::ALL[lane % OPCODES];
            let stream = if self.streams == 0 { -1 } else { (lane / OPCODES) as i32 };
            let entry = |quantity, latency_ceiling_ns, bucket| IntervalRow {
                start_ns,
                latency_ceiling_ns,
                kept_from_ns,
                bucket,
                quantity,
                opcode,
                stream,
                phase: self.phase,
            };
            if cell.failed.count > 0 {
                ready.push(entry(Quantity::Service, -1, cell.failed));
            }
            let ceiling = |ceiling_ns| i64::try_from(ceiling_ns).unwrap_or(i64::MAX);
            let service = cell.service.buckets();
            ready.extend(service.map(|(edge, bucket)| entry(Quantity::Service, ceiling(edge), bucket)));
            if cell.is_late {
                let response = cell.response.buckets();
                ready.extend(response.map(|(edge, bucket)| entry(Quantity::Response, ceiling(edge), bucket)));
            }
            cell.clear();
            spare.push(cell);
        }
    }
}

fn shape_of(second: &mut Second) -> Shape {
    let shape = |cell: &mut Option<Cell>| {
        cell.as_mut().map_or_else(Vec::new, |cell| {
            cell.service.buckets().map(|(ceiling_ns, bucket)| (ceiling_ns, bucket.count)).collect()
        })
    };
    second.cells.iter_mut().map(shape).collect()
}
