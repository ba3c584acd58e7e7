//! I/Os that came in and did not go out yet, handed out in the order in which they came.

use crate::format::Decoded;
use crate::rows::{Block, Gather};
use std::collections::{HashMap, VecDeque};
use testdrive_core::{IoRecord, Opcode};

/// More are not held: then the earliest is handed out as it is.
const PENDING_MAX: usize = 1 << 19;

/// An I/O, and where it stands in the trace.
pub(super) struct Waiting {
    /// Its sequence number.
    pub number: i64,
    pub place: u64,
    pub volume: u32,
    pub is_complete: bool,
    pub record: IoRecord,
}

#[derive(Default)]
pub(super) struct Pending {
    waiting: VecDeque<Waiting>,
    /// How many were handed out: the place of the first that waits.
    first: u64,
    /// Where I/Os stand that are not complete, by sequence number.
    open: HashMap<i64, u64>,
    given_up: u64,
}

impl Pending {
    /// Whether no I/O came in yet.
    pub fn is_new(&self) -> bool {
        self.first == 0 && self.waiting.is_empty()
    }

    /// Takes an I/O that came in.
    pub fn begin(&mut self, waiting: Waiting, block: &mut Block, gather: &mut Gather) {
        if !waiting.is_complete {
            self.open.insert(waiting.number, self.first + self.waiting.len() as u64);
        }
        self.waiting.push_back(waiting);
        if self.waiting.len() > PENDING_MAX {
            if let Some(earliest) = self.waiting.front_mut() {
                self.open.remove(&earliest.number);
                self.given_up += u64::from(!earliest.is_complete);
                earliest.is_complete = true;
            }
        }
        self.release(block, gather);
    }

    /// Takes the end of an I/O.
    pub fn complete(
        &mut self,
        number: i64,
        opcode: Opcode,
        latency_ns: i64,
        block: &mut Block,
        gather: &mut Gather,
    ) {
        let place =
            self.open.get(&number).and_then(|place| usize::try_from(place.checked_sub(self.first)?).ok());
        match place.and_then(|place| self.waiting.get_mut(place)) {
            Some(waiting) if waiting.record.opcode == opcode => {
                waiting.record.latency_ns = latency_ns;
                waiting.is_complete = true;
                self.open.remove(&number);
                self.release(block, gather);
            }
            _ => gather.drop("completions of I/Os that were not seen to come in"),
        }
    }

    /// Hands out what is complete, up to the first that is not.
    fn release(&mut self, block: &mut Block, gather: &mut Gather) {
        while self.waiting.front().is_some_and(|waiting| waiting.is_complete) {
            let Some(waiting) = self.waiting.pop_front() else { return };
            self.first += 1;
            block.push_from(waiting.place, gather, waiting.volume, waiting.record);
        }
    }

    /// Hands out all.
    pub fn finish(&mut self, block: &mut Block, gather: &mut Gather) {
        for waiting in &mut self.waiting {
            waiting.is_complete = true;
        }
        self.open.clear();
        self.release(block, gather);
    }

    pub fn describe(&self, decoded: &mut Decoded) {
        if self.given_up > 0 {
            decoded.warn(
                "too_many_under_way",
                format!(
                    "{} I/Os had not gone out when {PENDING_MAX} more had come in: their completions are not known",
                    self.given_up
                ),
                "sort the trace by time, so that I/Os go out near where they came in",
            );
        }
    }
}
