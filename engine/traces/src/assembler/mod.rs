//! Makes I/Os of the block layer's events, whichever format they came in.
//!
//! Events pass through four stages, each bounded: they are put in order ([`TimeOrder`]); one device's are chosen; what a row is gets
//! decided by whether the trace has queue events; and they are paired ([`pairing`]) into rows, which come out in the order in
//! which the I/Os began ([`rows`]).

mod bios;
mod complete;
mod devices;
mod few;
mod finish;
mod flushes;
mod issue;
mod pairing;
mod requests;
mod rows;
mod verdict;

use crate::event::{BlockEvent, EventKind};
use crate::format::{Decoded, Events, Sink};
use crate::options::Options;
use crate::time_order::TimeOrder;
use crate::{Place, TraceError};
use devices::Devices;
use pairing::Pairing;
use rows::RowWindow;
use std::path::Path;

/// How much is held back at most.
#[derive(Clone, Copy, Debug)]
pub struct AssemblerLimits {
    /// Events held to be put in order.
    pub order_events: usize,
    /// Events looked at to find out whether the trace has queue events.
    pub lookahead_events: usize,
    /// Rows held so that they come out in the order in which their I/Os began.
    pub row_window: usize,
    /// I/Os under way, queued or issued; beyond, the older half is recorded as not completed.
    pub pending_max: usize,
}

impl Default for AssemblerLimits {
    fn default() -> Self {
        AssemblerLimits {
            order_events: 4096,
            lookahead_events: 65_536,
            row_window: 262_144,
            pending_max: 1_048_576,
        }
    }
}

enum Stage<'s> {
    /// Nothing says yet whether the trace has queue events.
    Undecided(RowWindow<'s>, Vec<BlockEvent>),
    Pairing(Box<Pairing<'s>>),
    /// Between the two; never seen from outside.
    Moving,
}

/// Takes events and hands rows to a sink.
pub struct Assembler<'s> {
    order: TimeOrder<BlockEvent>,
    devices: Devices,
    stage: Stage<'s>,
    limits: AssemblerLimits,
    wanted: Option<Events>,
}

impl<'s> Assembler<'s> {
    /// An assembler that chooses device and events as `options` say.
    pub fn new(options: &Options, limits: AssemblerLimits, sink: &'s mut dyn Sink) -> Assembler<'s> {
        let rows = RowWindow::new(sink, limits.row_window);
        let stage = match options.events {
            Some(events) => Stage::Pairing(Box::new(Pairing::new(events, rows, limits.pending_max))),
            None => Stage::Undecided(rows, Vec::new()),
        };
        Assembler {
            order: TimeOrder::new(limits.order_events),
            devices: Devices::new(options.device),
            stage,
            limits,
            wanted: options.events,
        }
    }

    /// Sets the time zero of the rows to the whole seconds of a time, instead of those of the first I/O: recordings that are made
    /// together then share it. To be called before the first event.
    pub fn begin_at(&mut self, time_ns: i64) {
        if let Some(rows) = self.rows() {
            rows.begin(time_ns);
        }
    }

    /// Hands the rows to the sink that are closed and not yet handed out, however few: for sources that may pause for long.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn hand_out(&mut self) -> Result<(), TraceError> {
        self.rows().map_or(Ok(()), RowWindow::hand_out_closed)
    }

    fn rows(&mut self) -> Option<&mut RowWindow<'s>> {
        match &mut self.stage {
            Stage::Undecided(rows, _) => Some(rows),
            Stage::Pairing(pairing) => Some(&mut pairing.rows),
            Stage::Moving => None,
        }
    }

    /// Takes an event that stands at `place` of `path`.
    ///
    /// # Errors
    /// When time goes back by more than the window can mend, or the sink fails.
    pub fn push(&mut self, event: BlockEvent, path: &Path, place: Place) -> Result<(), TraceError> {
        if let Stage::Pairing(pairing) = &mut self.stage {
            if self.order.passes(&event) {
                return if self.devices.admit(&event) { pairing.push(&event) } else { Ok(()) };
            }
        }
        let is_full = self.order.push(event).map_err(|late| TraceError::OutOfOrder {
            path: path.to_path_buf(),
            place,
            back_ns: late.latest_ns.saturating_sub(event.time_ns),
            latest_ns: late.latest_ns,
            time_ns: event.time_ns,
            window: self.order.window(),
        })?;
        if is_full {
            self.take_first()?;
        }
        Ok(())
    }

    /// Takes the earliest event that is held; false where there is none.
    fn take_first(&mut self) -> Result<bool, TraceError> {
        if let (Stage::Pairing(pairing), Some(event)) = (&mut self.stage, self.order.front()) {
            let taken = if self.devices.admit(event) { pairing.push(event) } else { Ok(()) };
            self.order.pop();
            return taken.map(|()| true);
        }
        match self.order.pop() {
            Some(event) => self.look_at(event).map(|()| true),
            None => Ok(false),
        }
    }

    /// Tells the sink how far the input was read.
    ///
    /// # Errors
    /// When the sink wants decoding to end.
    pub fn progress(&mut self, bytes_read: u64, bytes_total: u64) -> Result<(), TraceError> {
        let Some(rows) = self.rows() else { return Ok(()) };
        rows.sink().progress(bytes_read, bytes_total).map_err(TraceError::Sink)
    }

    /// Hands out the last rows, and says what became of the events in `decoded`.
    ///
    /// # Errors
    /// When there were no I/Os, none of the chosen device, or those of several without a choice; or when the sink fails.
    pub fn finish(mut self, first_path: &Path, decoded: &mut Decoded) -> Result<(), TraceError> {
        while self.take_first()? {}
        let device = self.devices.chosen(first_path)?;
        self.decide(Events::Issued)?;
        let Stage::Pairing(mut pairing) = self.stage else { return Ok(()) };
        pairing.tally.completions_without_issue += self.devices.completions_before();
        if self.wanted == Some(Events::Queued) && pairing.tally.queue_events == 0 {
            return Err(TraceError::NoIos {
                path: first_path.to_path_buf(),
                reason: "it has no queue events: leave --events out, or say --events issued".into(),
            });
        }
        pairing.finish()?;
        decoded.device = Some(device);
        verdict::describe(&pairing, first_path, decoded)
    }

    /// Takes an event while it is open what a row is.
    fn look_at(&mut self, event: BlockEvent) -> Result<(), TraceError> {
        let Stage::Undecided(_, held) = &mut self.stage else { return Ok(()) };
        if !self.devices.admit(&event) {
            return Ok(());
        }
        held.push(event);
        if matches!(event.kind, EventKind::Queue | EventKind::Remap { .. }) {
            self.decide(Events::Queued)
        } else if held.len() >= self.limits.lookahead_events {
            self.decide(Events::Issued)
        } else {
            Ok(())
        }
    }

    /// Decides what a row is, if that is open still, and passes on what was held.
    fn decide(&mut self, events: Events) -> Result<(), TraceError> {
        if !matches!(self.stage, Stage::Undecided(..)) {
            return Ok(());
        }
        if let Stage::Undecided(rows, held) = std::mem::replace(&mut self.stage, Stage::Moving) {
            let mut pairing = Box::new(Pairing::new(events, rows, self.limits.pending_max));
            for event in &held {
                pairing.push(event)?;
            }
            self.stage = Stage::Pairing(pairing);
        }
        Ok(())
    }
}
