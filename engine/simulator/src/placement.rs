//! Which die and plane a slot of the mapping lies on.

use crate::ftl::{unit_slots, Divisor};
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// The layout of slots: units go to the dies in turn, over channels first, and within a unit NAND pages go over the die's planes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Placement {
    unit_pages: u32,
    unit_slots: u32,
    nand_page_pages: Divisor,
    by_unit: Divisor,
    by_dies: Divisor,
    dies: u32,
    planes_per_die: u32,
    /// Where the slots and the units of the SLC cache begin, and what one of its units holds.
    cache: Option<(u32, u32)>,
    cache_unit_pages: u32,
    by_cache_unit: Divisor,
}

impl Placement {
    /// `cache`: the first slot and the first unit of the SLC cache, if there is one.
    pub(crate) fn new(parameters: &Parameters, cache: Option<(u32, u32)>) -> Placement {
        let (unit_pages, unit_slots) = (parameters.unit_pages(), unit_slots(parameters));
        let dies = parameters.dies();
        Placement {
            unit_pages,
            unit_slots,
            nand_page_pages: Divisor::new((parameters.nand_page_bytes / crate::PAGE_BYTES) as u32),
            by_unit: Divisor::new(unit_slots),
            by_dies: Divisor::new(dies),
            dies,
            planes_per_die: parameters.planes_per_die,
            cache,
            cache_unit_pages: parameters.slc_unit_pages(),
            by_cache_unit: Divisor::new(parameters.slc_unit_pages()),
        }
    }

    /// The NAND page of a slot, counted over all of the NAND: what is read together.
    #[inline]
    pub(crate) fn nand_page_of(&self, slot: u32) -> u64 {
        let (unit, nand_page) = self.locate(slot);
        // Numbers that no other unit has: a unit has fewer NAND pages than slots.
        u64::from(unit) * u64::from(self.unit_slots.max(self.cache_unit_pages)) + u64::from(nand_page)
    }

    /// The unit of a slot, and its NAND page within.
    #[inline]
    fn locate(&self, slot: u32) -> (u32, u32) {
        let (unit, within) = match self.cache {
            Some((first_slot, first_unit)) if slot >= first_slot => {
                let cached = self.by_cache_unit.divide(slot - first_slot);
                (first_unit + cached, slot - first_slot - cached * self.cache_unit_pages)
            }
            _ => {
                let unit = self.by_unit.divide(slot);
                let within = slot - unit * self.unit_slots;
                // Pages that are compressed lie closer; how close is not kept, so that they are taken as evenly spread.
                let spread = self.unit_slots != self.unit_pages;
                (unit, if spread { within * self.unit_pages / self.unit_slots } else { within })
            }
        };
        (unit, self.nand_page_pages.divide(within))
    }

    /// The die of a unit.
    #[inline]
    pub(crate) fn die_of(&self, unit: u32) -> u32 {
        unit - self.by_dies.divide(unit) * self.dies
    }

    /// The plane of a slot, counted over all dies.
    #[inline]
    pub(crate) fn plane_of(&self, slot: u32) -> u32 {
        let (unit, nand_page) = self.locate(slot);
        self.die_of(unit) * self.planes_per_die + nand_page % self.planes_per_die
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn slots_go_over_planes_within_a_unit_and_units_over_dies() {
        let model = Model::builtin("enterprise-mixed").unwrap();
        let placement = Placement::new(model.parameters(), None);
        // 16 x 4 dies of 4 planes, units of 48 pages, NAND pages of 4.
        let planes: Vec<u32> = (0..48).step_by(4).map(|slot| placement.plane_of(slot)).collect();
        assert_eq!(planes, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!((placement.plane_of(3), placement.plane_of(48)), (0, 4));
        assert_eq!(placement.plane_of(64 * 48 + 5), 1);
        assert_eq!((placement.die_of(63), placement.die_of(64)), (63, 0));
        assert_eq!(placement.nand_page_of(44), placement.nand_page_of(47));
        assert_ne!(placement.nand_page_of(47), placement.nand_page_of(48));
    }
}
