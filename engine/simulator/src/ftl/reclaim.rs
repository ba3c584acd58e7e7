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
    /// What each page of the host pays towards moving, and what moving a page costs. The superblock in front has room for the moved
    /// pages and for so many of the host's that the two end together.
    earned_per_page: u64,
    cost_per_move: u64,
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
        let invalid = self.geometry.superblock_pages - valid;
        self.victim = Some(Victim {
            superblock,
            next_slot: superblock * self.geometry.superblock_pages,
            earned_per_page: u64::from(valid),
            cost_per_move: u64::from(invalid.max(1)),
            earned: 0,
        });
    }

    /// Moves as many pages as so many of the host's pay for.
    pub(super) fn reclaim_for(&mut self, host_pages: u32) {
        self.choose_victim();
        let Some(victim) = &mut self.victim else { return };
        victim.earned += u64::from(host_pages) * victim.earned_per_page;
        let moves = victim.earned / victim.cost_per_move;
        victim.earned -= moves * victim.cost_per_move;
        self.move_pages(moves);
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

    /// Moves up to so many valid pages of the victim.
    fn move_pages(&mut self, most: u64) {
        let Some(Victim { superblock, next_slot: mut slot, .. }) = self.victim else { return };
        let mut left = most.min(u64::from(self.superblocks.valid(superblock))) as u32;
        let ends = left == self.superblocks.valid(superblock);
        self.counters.moved_pages += u64::from(left);
        self.superblocks.remove_valid(superblock, left);
        let end = (superblock + 1) * self.geometry.superblock_pages;
        let mut batch = [(0, 0); BATCH_SLOTS];
        while left > 0 {
            assert!(slot < end, "superblock {superblock} has {left} valid pages fewer than were counted");
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
                    self.move_page(page);
                    left -= 1;
                    if left == 0 {
                        slot = from + 1;
                        break;
                    }
                }
            }
        }
        if ends {
            self.finish_victim();
        } else if let Some(victim) = &mut self.victim {
            victim.next_slot = slot;
        }
    }

    #[inline]
    fn move_page(&mut self, page: u32) {
        let first_slot = match self.moved_unit.first_slot {
            Some(slot) => slot,
            None => self.open_unit(Writer::Reclaim),
        };
        self.map.place(page, first_slot + self.moved_unit.pages);
        self.superblocks.add_valid(self.geometry.superblock_of(first_slot), 1);
        self.moved_unit.pages += 1;
        if self.moved_unit.pages == self.geometry.unit_pages {
            let closed = self.close(Writer::Reclaim).expect("a full unit is open");
            self.steps.push(ReclaimStep::Program(closed));
        }
    }

    fn finish_victim(&mut self) {
        if let Some(victim) = self.victim.take() {
            self.superblocks.release(victim.superblock);
            self.counters.reclaimed_superblocks += 1;
            self.steps.push(ReclaimStep::Erase);
        }
    }
}
