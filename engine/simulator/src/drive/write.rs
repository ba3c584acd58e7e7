//! The way of a write: into the buffer, from there to the NAND, and what waits for that.

use super::SimulatedDrive;
use crate::command::touched_pages;
use crate::ftl::{ReclaimStep, TranslationLayer};
use crate::log::EventKind;
use crate::nand::Work;
use crate::parameters::Parameters;
use std::ops::Range;
use testdrive_core::Flags;

/// A write that waits for places in the buffer.
#[derive(Clone, Debug)]
pub(super) struct WaitingWrite {
    slot: u32,
    pages: Range<u32>,
}

/// A command that waits until so many units were programmed without a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    units: u64,
    slot: u32,
    then: AfterBarrier,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum AfterBarrier {
    Acknowledge,
    /// A write with PREFLUSH goes to the buffer only now.
    Write,
}

impl SimulatedDrive {
    pub(super) fn write_arrived(&mut self, slot: u32) {
        if self.command(slot).command.flags.contains(Flags::PREFLUSH) {
            self.await_durability(slot, AfterBarrier::Write);
        } else {
            self.buffer_write(slot);
        }
    }

    fn buffer_write(&mut self, slot: u32) {
        let pages = touched_pages(&self.command(slot).command);
        self.waiting_writes.push_back(WaitingWrite { slot, pages });
        self.fill_buffer();
    }

    /// Gives places in the buffer to waiting writes, in their order, as far as there is room.
    fn fill_buffer(&mut self) {
        while let Some(write) = self.waiting_writes.front_mut() {
            if !write.pages.is_empty() && !self.buffer.has_room() {
                return;
            }
            let slot = write.slot;
            match write.pages.next() {
                Some(page) => self.buffer_page(page),
                None => {
                    self.waiting_writes.pop_front();
                    self.write_buffered(slot);
                }
            }
        }
    }

    #[inline]
    fn buffer_page(&mut self, page: u32) {
        let full = self.translation.write(page);
        self.buffer.take_in();
        if let Some(unit) = self.translation.open_host_unit() {
            self.buffer.gather(unit);
        }
        if full {
            self.program_unit();
        }
    }

    fn write_buffered(&mut self, slot: u32) {
        if self.command(slot).command.flags.contains(Flags::FUA) {
            self.await_durability(slot, AfterBarrier::Acknowledge);
        } else {
            self.acknowledge(slot);
        }
    }

    /// Sends what was gathered to the NAND, behind what reclaiming has to program first to make room for it.
    fn program_unit(&mut self) {
        let Some(closed) = self.translation.close_unit() else { return };
        let (nand, events) = (&mut self.nand, &mut self.events);
        for step in self.translation.steps() {
            match step {
                ReclaimStep::Program(moved) => {
                    self.log.begin(EventKind::GarbageCollection, self.now_ns);
                    self.log.extend(EventKind::GarbageCollection, self.now_ns, u64::from(moved.pages));
                    nand.work(self.now_ns, self.placement.die_of(moved.unit), Work::Moved, events);
                    self.overhead.owe_for_moved();
                }
                ReclaimStep::Erase => self.overhead.owe_for_erase(),
            }
        }
        self.overhead.owe_for_host();
        if let Some(die) = self.overhead.next_erase(nand.dies()) {
            nand.work(self.now_ns, die, Work::Erase, events);
        }
        while let Some(die) = self.overhead.next_program(nand.dies()) {
            nand.work(self.now_ns, die, Work::Overhead, events);
        }
        let number = self.buffer.close_unit(closed.unit, closed.pages);
        nand.work(self.now_ns, self.placement.die_of(closed.unit), Work::Host(number), events);
    }

    pub(super) fn work_done(&mut self, die: u32) {
        let unit = match self.nand.work_done(self.now_ns, die, &mut self.events) {
            Work::Host(unit) => unit,
            Work::Moved => return self.log.end(EventKind::GarbageCollection, self.now_ns),
            Work::Overhead | Work::Erase => return,
        };
        self.buffer.programmed(unit);
        while let Some(barrier) = self.barriers.front().copied() {
            if barrier.units > self.buffer.durable_units() {
                break;
            }
            self.barriers.pop_front();
            self.pass_barrier(barrier.slot, barrier.then);
        }
        self.fill_buffer();
    }

    /// Lets a command wait until all that the buffer took in is durable: on a drive without power-loss protection, until it
    /// is programmed, for which a unit is closed before it is full.
    pub(super) fn await_durability(&mut self, slot: u32, then: AfterBarrier) {
        if self.model.parameters().power_loss_protection {
            return self.pass_barrier(slot, then);
        }
        self.program_unit();
        let units = self.buffer.closed_units();
        if units == self.buffer.durable_units() {
            self.pass_barrier(slot, then);
        } else {
            self.barriers.push_back(Barrier { units, slot, then });
        }
    }

    fn pass_barrier(&mut self, slot: u32, then: AfterBarrier) {
        match then {
            AfterBarrier::Acknowledge => self.acknowledge(slot),
            AfterBarrier::Write => self.buffer_write(slot),
        }
    }
}

/// One, in the fractions of a unit or a block in which overhead is kept.
const WHOLE: u64 = 1 << 32;

/// What the NAND has to do beyond pages: programs of parity and of the drive's own tables, and erases.
///
/// Both are kept as fractions, so that they come as often as they should on a drive of any size: a superblock of a drive that
/// is scaled down is smaller than the blocks that it stands for.
#[derive(Clone, Debug)]
pub(super) struct Overhead {
    per_host_unit: u64,
    per_moved_unit: u64,
    blocks_per_superblock: u64,
    owed_units: u64,
    owed_blocks: u64,
    next_die: u32,
}

impl Overhead {
    pub(super) fn new(parameters: &Parameters, translation: &TranslationLayer) -> Overhead {
        let fraction = |programs: f64| ((programs - 1.0) * WHOLE as f64).round() as u64;
        let block_units = parameters.erase_block_bytes / parameters.program_unit_bytes;
        Overhead {
            per_host_unit: fraction(parameters.programs_per_host_page),
            per_moved_unit: fraction(parameters.programs_per_moved_page),
            blocks_per_superblock: u64::from(translation.superblock_units()) * WHOLE / block_units,
            owed_units: 0,
            owed_blocks: 0,
            next_die: 0,
        }
    }

    fn owe_for_host(&mut self) {
        self.owed_units += self.per_host_unit;
    }

    fn owe_for_moved(&mut self) {
        self.owed_units += self.per_moved_unit;
    }

    fn owe_for_erase(&mut self) {
        self.owed_blocks += self.blocks_per_superblock;
    }

    /// The die that is to erase a block next, asked once for each unit of the host, so that erases do not come all at once.
    fn next_erase(&mut self, dies: u32) -> Option<u32> {
        self.owed_blocks = self.owed_blocks.checked_sub(WHOLE)?;
        Some(self.take_turn(dies))
    }

    /// The die that is to program overhead next, if any is due.
    fn next_program(&mut self, dies: u32) -> Option<u32> {
        self.owed_units = self.owed_units.checked_sub(WHOLE)?;
        Some(self.take_turn(dies))
    }

    fn take_turn(&mut self, dies: u32) -> u32 {
        let die = self.next_die;
        self.next_die = (die + 1) % dies;
        die
    }
}
