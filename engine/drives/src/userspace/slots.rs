//! What is known of the run's commands in flight.

use testdrive_core::Command;

/// A command of the run in flight.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Pieces that were not answered yet.
    left: usize,
    /// The first failure's, or 0.
    status: i32,
    /// The write that follows once a flush is done, and its buffer.
    after_flush: Option<(Command, usize)>,
}

/// All of them, by slot.
pub(super) struct Slots {
    slots: Vec<Slot>,
    busy: usize,
    /// Slots of which no piece is left, with their status.
    done: Vec<(u32, i32)>,
}

impl Slots {
    pub(super) fn new(depth: usize) -> Slots {
        Slots { slots: vec![Slot::default(); depth], busy: 0, done: Vec::new() }
    }

    /// How many commands are in flight.
    pub(super) fn busy(&self) -> usize {
        self.busy
    }

    pub(super) fn is_full(&self) -> bool {
        self.busy >= self.slots.len()
    }

    /// A command begins, which is so many pieces. `after_flush` is the write that follows where these are a flush.
    pub(super) fn begin(&mut self, slot: u32, pieces: usize, after_flush: Option<(Command, usize)>) {
        self.slots[slot as usize] = Slot { left: pieces, status: 0, after_flush };
        self.busy += 1;
    }

    /// A command is done without the drive.
    pub(super) fn end_at_once(&mut self, slot: u32, status: i32) {
        self.done.push((slot, status));
    }

    /// A piece of a slot was answered, or will never be.
    pub(super) fn answered(&mut self, slot: u32, status: i32) {
        let state = &mut self.slots[slot as usize];
        state.left -= 1;
        if state.status == 0 {
            state.status = status;
        }
        if state.left == 0 {
            self.done.push((slot, state.status));
        }
    }

    /// Everything of which a piece was not answered ends with this, or with the failure that it has already.
    pub(super) fn end_all(&mut self, status: i32) {
        for (index, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.left > 0) {
            let status = if slot.status == 0 { status } else { slot.status };
            (slot.left, slot.after_flush) = (0, None);
            self.done.push((index as u32, status));
        }
    }

    /// Takes a slot of which no piece is left, with its status.
    pub(super) fn take_done(&mut self) -> Option<(u32, i32)> {
        self.done.pop()
    }

    /// Whether [`Slots::take_done`] has one.
    pub(super) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// The write that follows a flush that is done.
    pub(super) fn take_after_flush(&mut self, slot: u32) -> Option<(Command, usize)> {
        self.slots[slot as usize].after_flush.take()
    }

    /// A slot goes on with so many more pieces.
    pub(super) fn goes_on(&mut self, slot: u32, pieces: usize) {
        self.slots[slot as usize].left = pieces;
    }

    /// A slot is free.
    pub(super) fn free(&mut self, slot: u32) {
        self.slots[slot as usize] = Slot::default();
        self.busy -= 1;
    }
}
