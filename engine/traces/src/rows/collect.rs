//! Rows on their way to the sink: one time zero, each volume by itself, and no more out of order than a recording bears.

use super::files::Run;
use super::volumes::Volumes;
use super::Row;
use crate::format::{Sink, Volume};
use crate::{Place, TraceError};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::path::Path;
use testdrive_core::{IoRecord, NS_PER_S};

/// Rows of a volume handed to the sink at once.
const BATCH_ROWS: usize = 4096;
/// Rows that are looked at before the time zero is set: the first need not be the earliest.
const HELD_ROWS: usize = 1 << 18;
/// Recordings sort their rows in groups of so many.
const GROUP_ROWS: usize = 1 << 17;
/// How many groups a row may come late. A reader of the recording holds as many more groups at once.
const LATE_GROUPS: usize = 8;
/// Volumes that are written at once: each holds a group of rows.
const VOLUMES_MAX: usize = 64;
/// Rows that are counted to tell which volumes are busy, when there are too many.
const COUNTED_ROWS: u64 = 10_000_000;
/// How many volumes a message names.
const NAMED_MAX: usize = 16;

/// A volume whose rows are handed out.
struct Stream {
    volume: u32,
    batch: Vec<IoRecord>,
    /// The latest time of a row.
    latest_ns: i64,
    /// The latest time at the end of each of the last groups.
    group_ends: VecDeque<i64>,
    in_group: usize,
    /// A row that began earlier comes too late.
    floor_ns: i64,
}

impl Stream {
    fn new(volume: u32, zero_ns: i64) -> Stream {
        Stream {
            volume,
            batch: Vec::with_capacity(BATCH_ROWS),
            latest_ns: i64::MIN,
            group_ends: VecDeque::new(),
            in_group: 0,
            floor_ns: zero_ns,
        }
    }

    /// Takes a row; false when it comes too late, or is before the time zero.
    fn take(&mut self, row: &Row, zero_ns: i64, in_order_of_ends: bool) -> bool {
        let time_ns = row.order_ns(in_order_of_ends);
        if time_ns.is_some_and(|time_ns| time_ns < self.floor_ns) || row.time_ns() < zero_ns {
            return false;
        }
        self.latest_ns = self.latest_ns.max(time_ns.unwrap_or(self.latest_ns));
        self.in_group += 1;
        if self.in_group == GROUP_ROWS {
            self.end_group();
        }
        let record = &row.record;
        self.batch.push(IoRecord {
            intended_ns: record.intended_ns - zero_ns,
            submit_ns: record.submit_ns - zero_ns,
            ..*record
        });
        true
    }

    fn end_group(&mut self) {
        self.in_group = 0;
        self.group_ends.push_back(self.latest_ns);
        if self.group_ends.len() > LATE_GROUPS {
            if let Some(floor_ns) = self.group_ends.pop_front() {
                self.floor_ns = floor_ns;
            }
        }
    }
}

/// A volume that was seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    rows: u64,
    /// Its stream, where its rows are handed out.
    stream: Option<u32>,
}

/// Takes rows and hands them to the sink.
pub(crate) struct Collector<'s> {
    sink: &'s mut dyn Sink,
    has_volumes: bool,
    chosen: Option<String>,
    seen: Vec<Seen>,
    streams: Vec<Stream>,
    /// Whether there are more volumes than are written at once.
    too_many: bool,
    rows_read: u64,
    /// Until the time zero is set.
    held: Vec<Row>,
    earliest_ns: i64,
    zero_ns: Option<i64>,
}

impl<'s> Collector<'s> {
    pub fn new(sink: &'s mut dyn Sink, chosen: Option<String>, has_volumes: bool) -> Collector<'s> {
        Collector {
            sink,
            has_volumes,
            chosen,
            seen: Vec::new(),
            streams: Vec::new(),
            too_many: false,
            rows_read: 0,
            held: Vec::new(),
            earliest_ns: i64::MAX,
            zero_ns: None,
        }
    }

    pub fn progress(&mut self, bytes_read: u64, bytes_total: u64) -> Result<(), TraceError> {
        self.sink.progress(bytes_read, bytes_total).map_err(TraceError::Sink)
    }

    /// Takes rows of a file.
    pub fn take(&mut self, run: Run<'_>, volumes: &Volumes) -> Result<(), TraceError> {
        self.rows_read += run.rows.len() as u64;
        let Some(zero_ns) = self.zero_ns else {
            let earliest_ns = run.rows.iter().map(Row::time_ns).min();
            self.earliest_ns = self.earliest_ns.min(earliest_ns.unwrap_or(i64::MAX));
            self.held.extend_from_slice(run.rows);
            return if self.held.len() >= HELD_ROWS { self.set_zero(run.path, volumes) } else { Ok(()) };
        };
        for row in run.rows {
            if !self.row(row, zero_ns, volumes, run.in_order_of_ends)? {
                return Err(self.out_of_order(run.path, run.place(row), row, run.in_order_of_ends));
            }
        }
        if self.too_many && self.rows_read >= COUNTED_ROWS {
            return Err(self.several_volumes(volumes));
        }
        Ok(())
    }

    /// Hands out the rest; gives the time zero.
    pub fn finish(&mut self, path: &Path, volumes: &Volumes) -> Result<i64, TraceError> {
        if self.rows_read == 0 {
            let reason = "there is no line or record of one".to_string();
            return Err(TraceError::NoIos { path: path.to_path_buf(), reason });
        }
        if self.zero_ns.is_none() {
            self.set_zero(path, volumes)?;
        }
        if self.too_many {
            return Err(self.several_volumes(volumes));
        }
        for index in 0..self.streams.len() {
            self.send(index, volumes)?;
        }
        match self.chosen.take() {
            Some(volume) if self.streams.is_empty() => {
                let (count, busiest) = self.busiest(volumes);
                Err(TraceError::NoSuchVolume { volume, count, busiest })
            }
            _ => Ok(self.zero_ns.unwrap_or(0)),
        }
    }

    /// Sets the time zero to the whole second of the earliest row, and hands out what was held.
    fn set_zero(&mut self, path: &Path, volumes: &Volumes) -> Result<(), TraceError> {
        let zero_ns = self.earliest_ns.div_euclid(NS_PER_S) * NS_PER_S;
        self.zero_ns = Some(zero_ns);
        for row in std::mem::take(&mut self.held) {
            // None of these can come too late, so that where they stand is not needed any more.
            if !self.row(&row, zero_ns, volumes, false)? {
                return Err(self.out_of_order(path, Place::Line(0), &row, false));
            }
        }
        Ok(())
    }

    /// Takes a row; false when it comes too late.
    fn row(
        &mut self,
        row: &Row,
        zero_ns: i64,
        volumes: &Volumes,
        in_order_of_ends: bool,
    ) -> Result<bool, TraceError> {
        let number = row.volume as usize;
        if self.seen.get(number).is_none_or(|seen| seen.rows == 0) {
            self.begin_volume(row.volume, zero_ns, volumes);
        }
        let seen = &mut self.seen[number];
        seen.rows += 1;
        let Some(index) = seen.stream else { return Ok(true) };
        let stream = &mut self.streams[index as usize];
        if !stream.take(row, zero_ns, in_order_of_ends) {
            return Ok(false);
        }
        if stream.batch.len() >= BATCH_ROWS {
            self.send(index as usize, volumes)?;
        }
        Ok(true)
    }

    #[cold]
    fn out_of_order(&self, path: &Path, place: Place, row: &Row, in_order_of_ends: bool) -> TraceError {
        let stream = self.seen[row.volume as usize].stream.map(|index| &self.streams[index as usize]);
        let time_ns = row.order_ns(in_order_of_ends).unwrap_or(row.time_ns());
        let latest_ns = stream.map_or(time_ns, |stream| stream.latest_ns);
        let few = stream.is_none_or(|stream| stream.group_ends.len() < LATE_GROUPS);
        TraceError::OutOfOrder {
            path: path.to_path_buf(),
            place,
            back_ns: latest_ns.saturating_sub(time_ns),
            latest_ns,
            time_ns,
            window: if few { HELD_ROWS } else { LATE_GROUPS * GROUP_ROWS },
        }
    }

    #[cold]
    fn begin_volume(&mut self, volume: u32, zero_ns: i64, volumes: &Volumes) {
        let number = volume as usize;
        if self.seen.len() <= number {
            self.seen.resize(number + 1, Seen::default());
        }
        if self.chosen.as_ref().is_some_and(|chosen| chosen != volumes.name(volume)) {
            return;
        }
        if self.streams.len() >= VOLUMES_MAX {
            self.too_many = true;
            return;
        }
        self.seen[number].stream = Some(self.streams.len() as u32);
        self.streams.push(Stream::new(volume, zero_ns));
    }

    fn send(&mut self, index: usize, volumes: &Volumes) -> Result<(), TraceError> {
        let stream = &mut self.streams[index];
        if !stream.batch.is_empty() && !self.too_many {
            let sent = if self.has_volumes {
                let volume = Volume { index: stream.volume as usize, name: volumes.name(stream.volume) };
                self.sink.volume_rows(volume, &stream.batch)
            } else {
                self.sink.rows(&stream.batch)
            };
            sent.map_err(TraceError::Sink)?;
        }
        stream.batch.clear();
        Ok(())
    }

    fn several_volumes(&self, volumes: &Volumes) -> TraceError {
        let (_, busiest) = self.busiest(volumes);
        TraceError::SeveralVolumes { limit: VOLUMES_MAX, rows_read: self.rows_read, busiest }
    }

    /// How many volumes there are, and those with the most I/Os.
    fn busiest(&self, volumes: &Volumes) -> (usize, Vec<(String, u64)>) {
        let mut seen: Vec<(u64, usize)> = self
            .seen
            .iter()
            .enumerate()
            .filter(|(_, seen)| seen.rows > 0)
            .map(|(number, seen)| (seen.rows, number))
            .collect();
        seen.sort_by_key(|&(rows, number)| (Reverse(rows), number));
        let named = seen.iter().take(NAMED_MAX);
        let busiest = named.map(|&(rows, number)| (volumes.name(number as u32).to_string(), rows)).collect();
        (seen.len(), busiest)
    }
}
