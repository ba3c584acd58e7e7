//! The translation layer: pages go where there is room, and what is overwritten is reclaimed.
//!
//! A page-mapped layer with greedy garbage collection. It knows no time: it says which units are programmed and what is erased,
//! and the drive lets that take its time. Reclaiming is paced: for each page that the host writes, so many pages are moved
//! that the victim is empty when the superblock in front is full.

mod counters;
mod frontier;
mod geometry;
mod initial;
mod lazy_array;
mod map;
mod reclaim;
mod sizes;
mod slc;
mod superblocks;
mod units;

pub use counters::PageCounters;
pub use frontier::ClosedUnit;
pub(crate) use geometry::{unit_slots, Divisor};
pub use initial::closed_form_write_amplification;
pub(crate) use lazy_array::LazyArray;
pub(crate) use map::ENTRIES_MAX;
pub(crate) use sizes::PARTS;

use crate::parameters::{Parameters, Translation};
use frontier::{Frontier, OpenUnit};
use geometry::Geometry;
use map::PageMap;
use reclaim::Victim;
use serde::{Deserialize, Serialize};
use sizes::Sizes;
use slc::SlcCache;
use std::ops::Range;
use superblocks::Superblocks;
use units::Writer;

/// What reclaiming asks of the NAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReclaimStep {
    /// A unit of moved pages was gathered: it is to be programmed.
    Program(ClosedUnit),
    /// A superblock was emptied: it is to be erased.
    Erase,
    /// A unit of pages from the SLC cache was gathered: it is to be programmed.
    Fold(ClosedUnit),
    /// A unit of the SLC cache was emptied: it is to be erased with its neighbours.
    EraseCached,
}

/// The translation layer of a drive, without time.
///
/// On its own it is for questions that need none, such as write amplification: write pages, close each unit that is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TranslationLayer {
    geometry: Geometry,
    map: PageMap,
    superblocks: Superblocks,
    host_frontier: Frontier,
    /// Of moved pages, where they are kept apart from the host's.
    moved_frontier: Option<Frontier>,
    host_unit: OpenUnit,
    moved_unit: OpenUnit,
    folded_unit: OpenUnit,
    slc: Option<SlcCache>,
    victim: Option<Victim>,
    in_place: bool,
    /// On a drive that compresses.
    sizes: Option<Sizes>,
    mapped_pages: u64,
    /// What they take, in parts of a page.
    mapped_parts: u64,
    steps: Vec<ReclaimStep>,
    counters: PageCounters,
}

impl TranslationLayer {
    /// The layer of a drive with these parameters, in its initial state.
    pub fn new(parameters: &Parameters) -> TranslationLayer {
        let geometry = Geometry::new(parameters);
        let slc = SlcCache::new(parameters, &geometry);
        let slots = geometry.slots() + slc.as_ref().map_or(0, SlcCache::slots);
        let map = PageMap::new(parameters, &geometry, slots);
        let superblocks = Superblocks::new(&geometry, map.initial());
        TranslationLayer {
            mapped_pages: superblocks.all_valid() / u64::from(geometry.whole),
            mapped_parts: superblocks.all_valid(),
            sizes: Sizes::new(parameters),
            geometry,
            map,
            superblocks,
            host_frontier: Frontier::default(),
            moved_frontier: parameters.separate_moved_data.then(Frontier::default),
            host_unit: OpenUnit::default(),
            moved_unit: OpenUnit::default(),
            folded_unit: OpenUnit::default(),
            slc,
            victim: None,
            in_place: parameters.translation == Translation::InPlace,
            steps: Vec::new(),
            counters: PageCounters::default(),
        }
    }

    /// What the host sees, in pages.
    pub fn user_pages(&self) -> u32 {
        self.geometry.user_pages
    }

    /// Slots over what the host sees, over all superblocks but those that reclaiming works with.
    pub fn physical_ratio(&self) -> f64 {
        let Geometry { data_superblocks, superblock_pages, user_pages, .. } = self.geometry;
        f64::from(data_superblocks) * f64::from(superblock_pages) / f64::from(user_pages)
    }

    /// Units over all superblocks.
    pub(crate) fn units(&self) -> usize {
        let cached = self.slc.as_ref().map_or(0, |slc| slc.units() as usize);
        self.geometry.superblocks as usize * self.geometry.superblock_units as usize + cached
    }

    /// Units of a superblock.
    pub(crate) fn superblock_units(&self) -> u32 {
        self.geometry.superblock_units
    }

    /// What was done so far.
    pub fn counters(&self) -> PageCounters {
        self.counters
    }

    /// Pages that hold data.
    pub fn mapped_pages(&self) -> u64 {
        self.mapped_pages
    }

    /// Whether a page holds data.
    pub fn is_mapped(&self, page: u32) -> bool {
        self.map.slot_of(page).is_some()
    }

    /// Where a page's data lies.
    #[inline]
    pub(crate) fn slot_of(&self, page: u32) -> Option<u32> {
        self.map.slot_of(page)
    }

    /// The unit of a slot.
    #[inline]
    pub(crate) fn unit_of(&self, slot: u32) -> u32 {
        match &self.slc {
            Some(slc) if slot >= slc.first_slot => slc.unit_of(slot),
            _ => self.geometry.unit_of(slot),
        }
    }

    /// The first slot and the first unit of the SLC cache, if there is one.
    pub(crate) fn cache_start(&self) -> Option<(u32, u32)> {
        self.slc.as_ref().map(|slc| (slc.first_slot, slc.first_unit))
    }

    /// Whether there is an SLC cache, with or without room.
    pub(crate) fn has_cache(&self) -> bool {
        self.slc.is_some()
    }

    /// Units of the SLC cache that hold data, or did before it was written over.
    pub fn cached_units(&self) -> u32 {
        self.slc.as_ref().map_or(0, SlcCache::used_units)
    }

    /// Says that a page will be written or read soon: its entry is then at hand.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.map.prefetch_page(page);
    }

    /// Takes a page of the host into the unit that is being gathered; true where that fills it, and it is to be closed.
    ///
    /// # Panics
    /// When the page is beyond what the host sees.
    #[inline]
    pub fn write(&mut self, page: u32) -> bool {
        // First of all, since to open a unit may move the page's old data.
        let first_slot = match self.host_unit.first_slot {
            Some(slot) => slot,
            None if self.in_place => {
                self.host_unit.first_slot = Some(page);
                page
            }
            None => self.open_unit(Writer::Host),
        };
        match self.map.slot_of(page) {
            Some(slot) => self.remove_valid(page, slot),
            None => self.mapped_pages += 1,
        }
        self.counters.host_pages += 1;
        self.map.place(page, first_slot + self.host_unit.pages);
        let parts = match &mut self.sizes {
            None => 1,
            Some(sizes) => {
                sizes.set(page, sizes.next());
                self.counters.saved_parts += u64::from(PARTS - sizes.next());
                sizes.next()
            }
        };
        self.mapped_parts += u64::from(parts);
        match &mut self.slc {
            Some(slc) if first_slot >= slc.first_slot => {
                slc.add_valid();
                self.host_unit.pages += 1;
                self.host_unit.pages == slc.unit_pages()
            }
            _ => {
                self.superblocks.add_valid(self.geometry.superblock_of(first_slot), parts);
                self.host_unit.is_full_with(parts, &self.geometry)
            }
        }
    }

    /// Lets so much be left of what is written from now on once it is compressed, if the drive does that: 0 of zeroes, 1 of random
    /// data.
    pub fn set_stored_share(&mut self, share: f64) {
        if let Some(sizes) = &mut self.sizes {
            sizes.set_stored_share(share);
        }
    }

    /// What a page takes where it is stored, in parts of a page.
    #[inline]
    fn parts_of(&self, page: u32) -> u32 {
        self.sizes.as_ref().map_or(1, |sizes| sizes.of(page))
    }

    /// Takes a page's data at its old place out of the count of what is valid.
    #[inline]
    fn remove_valid(&mut self, page: u32, slot: u32) {
        let parts = self.parts_of(page);
        self.mapped_parts -= u64::from(parts);
        match &mut self.slc {
            Some(slc) if slot >= slc.first_slot => slc.remove_valid(),
            _ => self.superblocks.remove_valid(self.geometry.superblock_of(slot), parts),
        }
    }

    /// The unit that is being gathered for the host, if one is.
    #[inline]
    pub(crate) fn open_host_unit(&self) -> Option<u32> {
        self.host_unit.first_slot.map(|slot| self.unit_of(slot))
    }

    /// Closes the host's unit, full or not, and reclaims as much as that asks for; `None` where nothing was gathered.
    ///
    /// What reclaiming did is in [`TranslationLayer::steps`], to be done before the unit is programmed.
    pub fn close_unit(&mut self) -> Option<ClosedUnit> {
        let closed = self.close(Writer::Host)?;
        if !closed.cached && !self.in_place {
            self.reclaim_for_unit();
        }
        Some(closed)
    }

    /// What reclaiming asks of the NAND next, in order.
    pub fn steps(&mut self) -> std::vec::Drain<'_, ReclaimStep> {
        self.steps.drain(..)
    }

    /// Lets pages hold nothing; returns how many of them held data.
    ///
    /// # Panics
    /// When they reach beyond what the host sees.
    pub fn unmap(&mut self, pages: Range<u32>) -> u64 {
        assert!(pages.end <= self.geometry.user_pages, "pages {pages:?} of {}", self.geometry.user_pages);
        let before = self.mapped_pages;
        for page in pages {
            if let Some(slot) = self.map.slot_of(page) {
                self.remove_valid(page, slot);
                self.map.forget(page);
                self.mapped_pages -= 1;
            }
        }
        before - self.mapped_pages
    }

    /// Whether what is valid over all superblocks and the cache is what all pages take: a law of conservation.
    pub fn is_conserved(&self) -> bool {
        self.superblocks.all_valid() + self.slc.as_ref().map_or(0, SlcCache::valid_pages) == self.mapped_parts
    }
}

#[cfg(test)]
mod tests;
