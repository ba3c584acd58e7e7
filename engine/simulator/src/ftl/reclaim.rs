//! Garbage collection: which superblock is emptied, and how fast.

use super::geometry::SUPERBLOCKS_HELD_BACK;
use super::{ReclaimStep, TranslationLayer, Writer};
use serde::{Deserialize, Serialize};

/// A superblock that is being emptied.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Victim {
    superblock: u32,
    /// The next slot to look at.
    next_slot: u32,
    /// What each part of a page that is given to the host pays towards moving, and what moving a part costs. The superblock in
    /// front has room for what is moved and for so much of the host's that the two end together.
    earned_per_part: u64,
    cost_per_part: u64,
    earned: u64,
}

/// How many slots are looked at together: their entries are asked for first, so that memory answers all of them at once.
const BATCH_SLOTS: usize = 32;

impl TranslationLayer {
    /// Chooses a victim if so few superblocks are empty that the next must come from reclaiming.
    pub(super) fn choose_victim(&mut self) {
        if self.victim.is_some() || self.superblocks.free() > SUPERBLOCKS_HELD_BACK as usize {
            return;
        }
        let Some(superblock) = self.superblocks.take_victim() else { return };
        let valid = self.superblocks.valid(superblock);
        // Of the superblock in front some may be used already, if the victim before was emptied late.
        let room = self.host_frontier.units_left(&self.geometry) * self.geometry.unit_parts();
        let invalid = room.saturating_sub(valid);
        self.victim = Some(Victim {
            superblock,
            next_slot: superblock * self.geometry.superblock_slots,
            earned_per_part: u64::from(valid),
            cost_per_part: u64::from(invalid.max(1)),
            earned: 0,
        });
    }

    /// Moves as much as a unit that was given to the host pays for, full or not.
    pub(super) fn reclaim_for_unit(&mut self) {
        self.choose_victim();
        let Some(victim) = &mut self.victim else { return };
        victim.earned += u64::from(self.geometry.unit_parts()) * victim.earned_per_part;
        let parts = victim.earned / victim.cost_per_part;
        victim.earned -= parts * victim.cost_per_part;
        self.move_pages(parts);
    }

    /// Empties victims until the host may open a superblock and reclaiming still has one to move to.
    pub(super) fn make_room(&mut self) {
        while self.superblocks.free() < 2 {
            self.choose_victim();
            assert!(self.victim.is_some(), "nothing to reclaim, though there is more NAND than data");
            self.move_pages(u64::MAX);
        }
    }

    /// Empties the victim if it may need what is left of the superblock in front: there is none behind that.
    pub(super) fn keep_room_for_victim(&mut self) {
        if self.superblocks.free() == 0 {
            self.move_pages(u64::MAX);
        }
    }

    /// Moves so much of what is valid of the victim, and what of a page is beyond that.
    fn move_pages(&mut self, most: u64) {
        let Some(Victim { superblock, next_slot: mut slot, .. }) = self.victim else { return };
        let mut left = most.min(u64::from(self.superblocks.valid(superblock))) as u32;
        let mut moved_parts = 0;
        let end = (superblock + 1) * self.geometry.superblock_slots;
        let mut batch = [(0, 0); BATCH_SLOTS];
        while left > 0 {
            assert!(slot < end, "superblock {superblock} holds less than was counted, by {left}");
            let mut count = 0;
            for slot in slot..(slot + BATCH_SLOTS as u32).min(end) {
                if let Some(page) = self.map.page_of(slot) {
                    self.map.prefetch_page(page);
                    batch[count] = (slot, page);
                    count += 1;
                }
            }
            slot = (slot + BATCH_SLOTS as u32).min(end);
            for &(from, page) in &batch[..count] {
                if self.map.slot_of(page) == Some(from) {
                    let parts = self.move_page(page);
                    moved_parts += parts;
                    left = left.saturating_sub(parts);
                    if left == 0 {
                        slot = from + 1;
                        break;
                    }
                }
            }
        }
        self.superblocks.remove_valid(superblock, moved_parts);
        if self.superblocks.valid(superblock) == 0 {
            self.finish_victim();
        } else if let Some(victim) = &mut self.victim {
            victim.next_slot = slot;
        }
    }

    /// Returns what it takes, in parts of a page.
    #[inline]
    fn move_page(&mut self, page: u32) -> u32 {
        let first_slot = match self.moved_unit.first_slot {
            Some(slot) => slot,
            None => self.open_unit(Writer::Reclaim),
        };
        let parts = self.parts_of(page);
        self.map.place(page, first_slot + self.moved_unit.pages);
        self.superblocks.add_valid(self.geometry.superblock_of(first_slot), parts);
        self.counters.moved_pages += 1;
        self.counters.saved_parts += u64::from(self.geometry.whole - parts);
        if self.moved_unit.is_full_with(parts, &self.geometry) {
            let closed = self.close(Writer::Reclaim).expect("a full unit is open");
            self.steps.push(ReclaimStep::Program(closed));
        }
        parts
    }

    fn finish_victim(&mut self) {
        if let Some(victim) = self.victim.take() {
            self.superblocks.release(victim.superblock);
            self.counters.reclaimed_superblocks += 1;
            self.steps.push(ReclaimStep::Erase);
        }
    }
}
