//! Where data is written next: the open superblock, and in it the units that are being gathered.

use super::geometry::Geometry;
use serde::{Deserialize, Serialize};

/// A superblock that is being filled, unit by unit.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Frontier {
    /// None before the first unit.
    superblock: Option<u32>,
    units_given: u32,
}

impl Frontier {
    /// The first slot of the next unit, or `None` where a new superblock is needed.
    pub(crate) fn next_unit(&mut self, geometry: &Geometry) -> Option<u32> {
        let superblock = self.superblock.filter(|_| self.units_given < geometry.superblock_units)?;
        let slot = superblock * geometry.superblock_slots + self.units_given * geometry.unit_slots;
        self.units_given += 1;
        Some(slot)
    }

    /// Units of the superblock that are not given yet; of none, as many as of a whole one.
    pub(crate) fn units_left(&self, geometry: &Geometry) -> u32 {
        match geometry.superblock_units - self.units_given {
            0 => geometry.superblock_units,
            left => left,
        }
    }

    /// Goes on in another superblock.
    pub(crate) fn go_on_in(&mut self, superblock: u32) {
        *self = Frontier { superblock: Some(superblock), units_given: 0 };
    }
}

/// A unit that is being gathered, while it has a first slot.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OpenUnit {
    pub(crate) first_slot: Option<u32>,
    pub(crate) pages: u32,
    /// What they take, in parts of a page.
    pub(crate) parts: u32,
}

impl OpenUnit {
    /// Takes a page of so many parts in; true where the next might not fit any more.
    #[inline]
    pub(crate) fn is_full_with(&mut self, parts: u32, geometry: &Geometry) -> bool {
        self.pages += 1;
        self.parts += parts;
        self.parts + geometry.whole > geometry.unit_parts()
    }
}

/// A unit that is gathered: to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedUnit {
    /// Its place, counted over all superblocks.
    pub unit: u32,
    /// Pages in it; the rest of it is left unused.
    pub pages: u32,
    /// Whether it lies in the SLC cache.
    pub cached: bool,
}
