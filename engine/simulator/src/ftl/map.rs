//! Where each page lies and which page each slot was last written with. A slot is valid if both say the same.

use super::geometry::Geometry;
use super::initial::Initial;
use super::lazy_array::LazyArray;
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// An entry that was never changed: the initial state says what it is.
const UNTOUCHED: u32 = 0;
const NOTHING: u32 = 1;
/// Added to a number so that it is neither of the above.
const FIRST: u32 = 2;
/// Slots or pages that a drive can have.
pub(crate) const ENTRIES_MAX: u64 = (u32::MAX - FIRST) as u64;

/// Both directions of the mapping.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PageMap {
    slot_of_page: LazyArray,
    page_of_slot: LazyArray,
    initial: Initial,
}

impl PageMap {
    pub(crate) fn new(parameters: &Parameters, geometry: &Geometry, slots: usize) -> PageMap {
        PageMap {
            slot_of_page: LazyArray::new(geometry.user_pages as usize),
            page_of_slot: LazyArray::new(slots),
            initial: Initial::new(parameters, geometry),
        }
    }

    pub(crate) fn initial(&self) -> &Initial {
        &self.initial
    }

    /// Where the newest data of a page lies.
    #[inline]
    pub(crate) fn slot_of(&self, page: u32) -> Option<u32> {
        match self.slot_of_page[page as usize] {
            UNTOUCHED => self.initial.slot_of(page),
            NOTHING => None,
            entry => Some(entry - FIRST),
        }
    }

    /// The page that a slot was last written with.
    #[inline]
    pub(crate) fn page_of(&self, slot: u32) -> Option<u32> {
        match self.page_of_slot[slot as usize] {
            UNTOUCHED => self.initial.page_of(slot),
            NOTHING => None,
            entry => Some(entry - FIRST),
        }
    }

    /// Lets the page's newest data lie in this slot.
    #[inline]
    pub(crate) fn place(&mut self, page: u32, slot: u32) {
        self.slot_of_page[page as usize] = slot + FIRST;
        self.page_of_slot[slot as usize] = page + FIRST;
    }

    /// Lets the page hold nothing.
    #[inline]
    pub(crate) fn forget(&mut self, page: u32) {
        self.slot_of_page[page as usize] = NOTHING;
    }

    /// Lets a slot hold nothing, which was left unused.
    pub(crate) fn leave_unused(&mut self, slot: u32) {
        self.page_of_slot[slot as usize] = NOTHING;
    }

    /// Says that a page will be asked for.
    #[inline]
    pub(crate) fn prefetch_page(&self, page: u32) {
        self.slot_of_page.prefetch(page as usize);
    }
}
