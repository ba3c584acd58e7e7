//! The way of a write: into the buffer, from there to the NAND, and what waits for that.

use super::{SimulatedDrive, Stage, NOBODY};
use crate::command::{whole_pages, written_pages};
use crate::log::EventKind;
use crate::nand::Work;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use testdrive_core::Flags;

/// A write that waits for places in the buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WaitingWrite {
    slot: u32,
    pages: Range<u32>,
    /// Whether it was noted that it found no place.
    waited: bool,
}

/// A command that waits until so many units were programmed without a gap.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Barrier {
    units: u64,
    slot: u32,
    then: AfterBarrier,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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

    /// Reads what a write leaves of units of the mapping that it does not cover, and then lets it into the buffer.
    fn buffer_write(&mut self, slot: u32) {
        let command = self.command(slot).command;
        let unit_bytes = self.model.parameters().indirection_unit_bytes;
        let pages = written_pages(&command, unit_bytes);
        // Nobody waits for the mapping: it is changed once it is there.
        self.look_up(&pages, true, NOBODY);
        let covered = whole_pages(&command);
        if covered == pages {
            return self.queue_write(slot);
        }
        let kept = pages.filter(|page| !covered.contains(page));
        let groups = self.read_pages(slot, kept);
        if groups == 0 {
            self.queue_write(slot);
        } else {
            self.await_groups(slot, Stage::Merge, groups);
        }
    }

    pub(super) fn queue_write(&mut self, slot: u32) {
        let pages =
            written_pages(&self.command(slot).command, self.model.parameters().indirection_unit_bytes);
        self.waiting_writes.push_back(WaitingWrite { slot, pages, waited: false });
        self.fill_buffer();
        self.note_write();
    }

    /// Gives places in the buffer to waiting writes, in their order, as far as there is room.
    fn fill_buffer(&mut self) {
        while let Some(write) = self.waiting_writes.front_mut() {
            if !write.pages.is_empty() && !self.buffer.has_room() {
                if !std::mem::replace(&mut write.waited, true) {
                    self.log.extend(EventKind::WriteBufferFull, self.now_ns, 1);
                }
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
        if let Some(contents) = &mut self.contents {
            contents.write(page);
        }
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
        if !closed.cached {
            self.overhead.owe_for_host();
            if self.translation.has_cache() {
                self.log.extend(EventKind::SlcFull, self.now_ns, u64::from(closed.pages));
            }
        }
        self.do_reclaim_steps();
        let number = self.buffer.close_unit(closed.unit, closed.pages);
        if let Some(contents) = &mut self.contents {
            contents.close_unit();
        }
        let work = if closed.cached { Work::HostCached(number) } else { Work::Host(number) };
        self.nand.work(self.now_ns, self.placement.die_of(closed.unit), work, &mut self.events);
    }

    pub(super) fn work_done(&mut self, die: u32) {
        let done = self.nand.work_done(self.now_ns, die, &mut self.events);
        self.note_power_waits();
        let unit = match done {
            Some(Work::Host(unit) | Work::HostCached(unit)) => unit,
            Some(Work::Moved) => return self.log.end(EventKind::GarbageCollection, self.now_ns),
            Some(Work::Folded) => return self.log.end(EventKind::SlcFolding, self.now_ns),
            Some(Work::Overhead | Work::Erase | Work::Housekeeping) | None => return,
        };
        self.buffer.programmed(unit);
        if let Some(contents) = &mut self.contents {
            contents.programmed(unit);
        }
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
