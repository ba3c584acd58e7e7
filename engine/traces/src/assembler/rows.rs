//! Rows in the order in which their I/Os began, as far as a bounded window allows.

use crate::begin_order::BeginOrder;
pub(crate) use crate::begin_order::BeginPlace as RowPlace;
use crate::format::Sink;
use crate::TraceError;
use testdrive_core::{IoRecord, NO_COMPLETION, NS_PER_S};

/// Rows handed to the sink at once.
const BATCH_ROWS: usize = 8192;

/// Opens a row when an I/O begins and hands it out when it and all before it are closed.
///
/// A row that stays open while the window fills does not hold up the others for longer: it comes out of order, when it closes.
pub(crate) struct RowWindow<'s> {
    sink: &'s mut dyn Sink,
    order: BeginOrder<IoRecord>,
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
            order: BeginOrder::new(window),
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
        let place = self.order.open();
        self.release()?;
        Ok(place)
    }

    /// Closes a row with times on the trace's clock.
    pub fn close(&mut self, place: RowPlace, row: IoRecord) -> Result<(), TraceError> {
        if let Some(late) = self.order.close(place, row) {
            self.hand_out(late)?;
        }
        self.release()
    }

    /// Gives up a row.
    pub fn cancel(&mut self, place: RowPlace) -> Result<(), TraceError> {
        self.order.cancel(place);
        self.release()
    }

    /// Hands out every row that is closed with all before it, without waiting for a batch: all that is left, once every row was
    /// closed or cancelled.
    pub fn hand_out_closed(&mut self) -> Result<(), TraceError> {
        self.release()?;
        self.send()
    }

    fn release(&mut self) -> Result<(), TraceError> {
        while let Some(row) = self.order.next() {
            self.hand_out(row)?;
        }
        Ok(())
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
