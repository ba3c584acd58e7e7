//! Rows in the order in which their I/Os began, as far as a bounded window allows.

use crate::format::Sink;
use crate::TraceError;
use std::collections::VecDeque;
use testdrive_core::{IoRecord, NO_COMPLETION, NS_PER_S};

/// Rows handed to the sink at once.
const BATCH_ROWS: usize = 8192;

/// A row's place in the order in which rows were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace(u64);

enum Entry {
    /// Its I/O is under way.
    Open,
    /// Its I/O turned out to be none of its own.
    Cancelled,
    Closed(IoRecord),
}

/// Opens a row when an I/O begins and hands it out when it and all before it are closed.
///
/// A row that stays open while the window fills does not hold up the others for longer: it comes out of order, when it closes.
pub(crate) struct RowWindow<'s> {
    sink: &'s mut dyn Sink,
    entries: VecDeque<Entry>,
    /// The place of the first entry.
    first: u64,
    window: usize,
    batch: Vec<IoRecord>,
    shift_ns: Option<i64>,
    /// Rows handed out.
    pub rows: u64,
    /// Rows handed out without a completion.
    pub no_completion: u64,
}

impl<'s> RowWindow<'s> {
    pub fn new(sink: &'s mut dyn Sink, window: usize) -> RowWindow<'s> {
        RowWindow {
            sink,
            entries: VecDeque::new(),
            first: 0,
            window,
            batch: Vec::with_capacity(BATCH_ROWS),
            shift_ns: None,
            rows: 0,
            no_completion: 0,
        }
    }

    pub fn sink(&mut self) -> &mut dyn Sink {
        self.sink
    }

    /// What is subtracted from all times: the whole seconds of the first one that is given here.
    pub fn begin(&mut self, time_ns: i64) {
        self.shift_ns.get_or_insert_with(|| time_ns.div_euclid(NS_PER_S) * NS_PER_S);
    }

    pub fn shift_ns(&self) -> i64 {
        self.shift_ns.unwrap_or(0)
    }

    /// Opens a row after all others.
    pub fn open(&mut self) -> Result<RowPlace, TraceError> {
        if self.entries.len() >= self.window {
            if matches!(self.entries.front(), Some(Entry::Open)) {
                self.entries.pop_front();
                self.first += 1;
            }
            self.release()?;
        }
        self.entries.push_back(Entry::Open);
        Ok(RowPlace(self.first + self.entries.len() as u64 - 1))
    }

    /// Closes a row with times on the trace's clock.
    pub fn close(&mut self, place: RowPlace, row: IoRecord) -> Result<(), TraceError> {
        match self.entry(place) {
            Some(entry) => *entry = Entry::Closed(row),
            None => self.hand_out(row)?,
        }
        self.release()
    }

    /// Gives up a row.
    pub fn cancel(&mut self, place: RowPlace) -> Result<(), TraceError> {
        if let Some(entry) = self.entry(place) {
            *entry = Entry::Cancelled;
        }
        self.release()
    }

    /// Hands out every row that is closed with all before it, without waiting for a batch: all that is left, once every row was
    /// closed or cancelled.
    pub fn hand_out_closed(&mut self) -> Result<(), TraceError> {
        self.release()?;
        self.send()
    }

    fn entry(&mut self, place: RowPlace) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(place.0.checked_sub(self.first)?).ok()?)
    }

    fn release(&mut self) -> Result<(), TraceError> {
        loop {
            match self.entries.front() {
                None | Some(Entry::Open) => return Ok(()),
                Some(Entry::Cancelled) => {}
                Some(&Entry::Closed(row)) => self.hand_out(row)?,
            }
            self.entries.pop_front();
            self.first += 1;
        }
    }

    fn hand_out(&mut self, mut row: IoRecord) -> Result<(), TraceError> {
        self.rows += 1;
        self.no_completion += u64::from(row.latency_ns == NO_COMPLETION);
        row.intended_ns -= self.shift_ns();
        row.submit_ns -= self.shift_ns();
        self.batch.push(row);
        if self.batch.len() >= BATCH_ROWS {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), TraceError> {
        if !self.batch.is_empty() {
            self.sink.rows(&self.batch).map_err(TraceError::Sink)?;
            self.batch.clear();
        }
        Ok(())
    }
}
