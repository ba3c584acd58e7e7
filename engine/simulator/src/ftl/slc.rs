//! The SLC cache: a ring of units that are programmed fast, in front of the rest of the NAND, and folded into it later.

use super::geometry::{Divisor, Geometry};
use super::{ReclaimStep, TranslationLayer, Writer};
use crate::parameters::{Parameters, SlcWhenFull};
use serde::{Deserialize, Serialize};

/// The ring. Its slots come behind those of the superblocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SlcCache {
    pub(crate) first_slot: u32,
    pub(crate) first_unit: u32,
    unit_pages: u32,
    by_unit: Divisor,
    /// The most that it can grow to.
    units: u32,
    static_units: u32,
    /// Units for each page of the host's that holds nothing, in 2^32ths: free NAND lends its cells.
    dynamic_per_free_page: u64,
    when_full: SlcWhenFull,
    next: u32,
    oldest: u32,
    used: u32,
    valid_pages: u64,
}

impl SlcCache {
    /// `None` where there is no cache.
    pub(crate) fn new(parameters: &Parameters, geometry: &Geometry) -> Option<SlcCache> {
        let unit_pages = parameters.slc_unit_pages();
        let static_pages = parameters.slc_static_share * f64::from(geometry.user_pages);
        let static_units = (static_pages / f64::from(unit_pages)).round() as u64;
        // A cell lent as SLC holds one bit instead of all that it could.
        let cells = parameters.slc_unit_bytes as f64 / parameters.program_unit_bytes as f64;
        let per_page = parameters.slc_dynamic_share * cells / f64::from(unit_pages);
        let dynamic_units = (per_page * f64::from(geometry.user_pages)) as u64;
        let units = (static_units + dynamic_units) as u32;
        (units > 0).then(|| SlcCache {
            first_slot: geometry.slots() as u32,
            first_unit: geometry.superblocks * geometry.superblock_units,
            unit_pages,
            by_unit: Divisor::new(unit_pages),
            units,
            static_units: static_units as u32,
            dynamic_per_free_page: (per_page * (1_u64 << 32) as f64) as u64,
            when_full: parameters.slc_when_full,
            next: 0,
            oldest: 0,
            used: 0,
            valid_pages: 0,
        })
    }

    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    pub(crate) fn slots(&self) -> usize {
        self.units as usize * self.unit_pages as usize
    }

    pub(crate) fn unit_pages(&self) -> u32 {
        self.unit_pages
    }

    pub(crate) fn used_units(&self) -> u32 {
        self.used
    }

    pub(crate) fn valid_pages(&self) -> u64 {
        self.valid_pages
    }

    /// The unit of a slot of the ring, counted over all of the NAND.
    #[inline]
    pub(crate) fn unit_of(&self, slot: u32) -> u32 {
        self.first_unit + self.by_unit.divide(slot - self.first_slot)
    }

    #[inline]
    pub(crate) fn add_valid(&mut self) {
        self.valid_pages += 1;
    }

    #[inline]
    pub(crate) fn remove_valid(&mut self) {
        self.valid_pages -= 1;
    }

    /// Whether another unit may be written, with so many pages of the host's that hold nothing.
    fn has_room(&self, free_pages: u64) -> bool {
        let dynamic = ((u128::from(free_pages) * u128::from(self.dynamic_per_free_page)) >> 32) as u64;
        u64::from(self.used) < (u64::from(self.static_units) + dynamic).min(u64::from(self.units))
    }

    /// The first slot of the next unit.
    fn take_unit(&mut self) -> u32 {
        let slot = self.first_slot + self.next * self.unit_pages;
        self.next = (self.next + 1) % self.units;
        self.used += 1;
        slot
    }
}

impl TranslationLayer {
    /// A unit of the cache for the host, unless there is none to be had.
    pub(super) fn next_cached_unit(&mut self) -> Option<u32> {
        loop {
            let free_pages = u64::from(self.geometry.user_pages) - self.mapped_pages;
            let cache = self.slc.as_mut()?;
            if cache.has_room(free_pages) {
                return Some(cache.take_unit());
            }
            // A cache that has shrunk to nothing has nothing to fold either.
            if cache.when_full == SlcWhenFull::Direct || cache.used == 0 {
                return None;
            }
            self.fold_unit();
        }
    }

    /// Moves what is valid in the oldest unit of the cache to where data stays; false where the cache is empty.
    pub fn fold_unit(&mut self) -> bool {
        let Some(cache) = self.slc.as_ref().filter(|cache| cache.used > 0) else { return false };
        let first = cache.first_slot + cache.oldest * cache.unit_pages;
        if self.host_unit.first_slot == Some(first) {
            return false;
        }
        for slot in first..first + cache.unit_pages {
            let Some(page) = self.map.page_of(slot) else { continue };
            if self.map.slot_of(page) == Some(slot) {
                self.fold_page(page);
            }
        }
        let cache = self.slc.as_mut().expect("there is a cache");
        cache.oldest = (cache.oldest + 1) % cache.units;
        cache.used -= 1;
        self.steps.push(ReclaimStep::EraseCached);
        true
    }

    fn fold_page(&mut self, page: u32) {
        let first_slot = match self.folded_unit.first_slot {
            Some(slot) => slot,
            None => self.open_unit(Writer::Fold),
        };
        self.slc.as_mut().expect("there is a cache").remove_valid();
        self.map.place(page, first_slot + self.folded_unit.pages);
        self.superblocks.add_valid(self.geometry.superblock_of(first_slot), 1);
        self.counters.folded_pages += 1;
        if self.folded_unit.is_full_with(1, &self.geometry) {
            let closed = self.close(Writer::Fold).expect("a full unit is open");
            self.reclaim_for_unit();
            self.steps.push(ReclaimStep::Fold(closed));
        }
    }
}
