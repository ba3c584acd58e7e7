//! Superblocks: how much valid data each holds, in parts of a page, which are empty, and which is the best to reclaim.

use super::geometry::Geometry;
use super::initial::Initial;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Keeps a superblock out of the search for a victim.
const NOT_A_CANDIDATE: u32 = u32::MAX;
const CANDIDATE: u32 = 0;

/// All superblocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Superblocks {
    valid: Vec<u32>,
    /// Per superblock `CANDIDATE` if it was filled and may be reclaimed, else `NOT_A_CANDIDATE`: or-ed with the valid pages in one
    /// pass over both.
    mask: Vec<u32>,
    /// Units of each opened superblock that are still to be gathered.
    units_left: Vec<u32>,
    superblock_units: u32,
    /// Empty ones. The one that was emptied first is filled first, so that all wear alike.
    free: VecDeque<u32>,
}

impl Superblocks {
    pub(crate) fn new(geometry: &Geometry, initial: &Initial) -> Superblocks {
        let valid: Vec<u32> =
            (0..geometry.superblocks).map(|at| initial.pages_in(at) * geometry.whole).collect();
        let filled = initial.superblocks();
        let mask = (0..geometry.superblocks)
            .map(|at| if at < filled { CANDIDATE } else { NOT_A_CANDIDATE })
            .collect();
        let units_left = vec![0; geometry.superblocks as usize];
        let superblock_units = geometry.superblock_units;
        Superblocks {
            valid,
            mask,
            units_left,
            superblock_units,
            free: (filled..geometry.superblocks).collect(),
        }
    }

    /// Empty superblocks.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes an empty superblock to fill it.
    ///
    /// # Panics
    /// When none is empty.
    pub(crate) fn open(&mut self) -> u32 {
        let superblock = self.free.pop_front().expect("reclaiming keeps a superblock empty");
        self.units_left[superblock as usize] = self.superblock_units;
        superblock
    }

    /// Notes that a unit of the superblock was gathered; once all are, it may be reclaimed.
    pub(crate) fn close_unit(&mut self, superblock: u32) {
        let left = &mut self.units_left[superblock as usize];
        *left -= 1;
        if *left == 0 {
            self.mask[superblock as usize] = CANDIDATE;
        }
    }

    /// The filled superblock with the fewest valid pages, the first of several, which is then no candidate any more.
    pub(crate) fn take_victim(&mut self) -> Option<u32> {
        let keys = self.valid.iter().zip(&self.mask).map(|(valid, mask)| valid | mask);
        // Two passes, each of which the compiler turns into wide instructions.
        let least = keys.clone().min().filter(|least| *least != NOT_A_CANDIDATE)?;
        let victim = keys.into_iter().position(|key| key == least)? as u32;
        self.mask[victim as usize] = NOT_A_CANDIDATE;
        Some(victim)
    }

    /// Notes that a superblock was emptied.
    ///
    /// # Panics
    /// When it still holds valid pages.
    pub(crate) fn release(&mut self, superblock: u32) {
        assert_eq!(self.valid[superblock as usize], 0, "superblock {superblock} was erased with valid pages");
        self.free.push_back(superblock);
    }

    #[inline]
    pub(crate) fn valid(&self, superblock: u32) -> u32 {
        self.valid[superblock as usize]
    }

    #[inline]
    pub(crate) fn add_valid(&mut self, superblock: u32, parts: u32) {
        self.valid[superblock as usize] += parts;
    }

    #[inline]
    pub(crate) fn remove_valid(&mut self, superblock: u32, parts: u32) {
        self.valid[superblock as usize] -= parts;
    }

    /// Valid data over all superblocks, in parts of a page.
    pub(crate) fn all_valid(&self) -> u64 {
        self.valid.iter().map(|valid| u64::from(*valid)).sum()
    }
}
