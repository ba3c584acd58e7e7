//! How the NAND is divided: slots of a page each, units that are programmed at once, superblocks that are erased at once.

use super::sizes::{least_parts, PARTS};
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// Superblocks that garbage collection keeps empty for itself, beyond the over-provisioning.
pub(crate) const SUPERBLOCKS_HELD_BACK: u32 = 3;

/// Division by a number that is known once: the compiler's trick, at run time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

impl Divisor {
    pub(crate) fn new(divisor: u32) -> Divisor {
        assert!(divisor > 0, "a division by 0");
        Divisor { divisor, reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    #[inline]
    pub(crate) fn divide(self, number: u32) -> u32 {
        // Of 1 the reciprocal does not fit. Else it is exact for 32 bits: Granlund and Montgomery, PLDI 1994.
        if self.divisor == 1 {
            return number;
        }
        ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u32
    }
}

/// Numbers of pages, units and superblocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Geometry {
    /// What the host sees.
    pub(crate) user_pages: u32,
    /// Programmed at once.
    pub(crate) unit_pages: u32,
    /// Units of a superblock.
    pub(crate) superblock_units: u32,
    /// Whole pages of a superblock.
    pub(crate) superblock_pages: u32,
    /// In how many parts the stored size of a page is counted: 1 on a drive that does not compress.
    pub(crate) whole: u32,
    /// Pages of a unit if all of them are compressed best.
    pub(crate) unit_slots: u32,
    /// The same of a superblock.
    pub(crate) superblock_slots: u32,
    /// Superblocks that hold the host's pages and the over-provisioning.
    pub(crate) data_superblocks: u32,
    /// All, with those that garbage collection works with.
    pub(crate) superblocks: u32,
    by_superblock: Divisor,
    by_unit: Divisor,
}

/// Pages of a unit if all of them are compressed best.
pub(crate) fn unit_slots(parameters: &Parameters) -> u32 {
    let pages = parameters.unit_pages();
    if parameters.compresses_to < 1.0 {
        pages * PARTS / least_parts(parameters)
    } else {
        pages
    }
}

impl Geometry {
    /// As near to the wanted number of superblocks as whole units allow.
    pub(crate) fn new(parameters: &Parameters) -> Geometry {
        let user_pages = parameters.pages();
        let unit_pages = parameters.unit_pages();
        let physical = f64::from(user_pages) * (1.0 + parameters.over_provisioning);
        let units = (physical / f64::from(unit_pages)).ceil();
        let superblock_units = (units / f64::from(parameters.superblocks)).round().max(1.0) as u32;
        let superblock_pages = superblock_units * unit_pages;
        let whole = if parameters.compresses_to < 1.0 { PARTS } else { 1 };
        let unit_slots = unit_slots(parameters);
        let superblock_slots = superblock_units * unit_slots;
        // One more than the host's pages need, so that there is always something to reclaim.
        let least = user_pages.div_ceil(superblock_pages) + 1;
        let data_superblocks = ((physical / f64::from(superblock_pages)).round() as u32).max(least);
        let open = if parameters.separate_moved_data { 2 } else { 1 };
        Geometry {
            user_pages,
            unit_pages,
            superblock_units,
            superblock_pages,
            whole,
            unit_slots,
            superblock_slots,
            data_superblocks,
            superblocks: data_superblocks + open + SUPERBLOCKS_HELD_BACK,
            by_superblock: Divisor::new(superblock_slots),
            by_unit: Divisor::new(unit_slots),
        }
    }

    /// All slots.
    pub(crate) fn slots(&self) -> usize {
        self.superblocks as usize * self.superblock_slots as usize
    }

    /// What a unit holds, in parts of a page.
    #[inline]
    pub(crate) fn unit_parts(&self) -> u32 {
        self.unit_pages * self.whole
    }

    /// The superblock of a slot.
    #[inline]
    pub(crate) fn superblock_of(&self, slot: u32) -> u32 {
        self.by_superblock.divide(slot)
    }

    /// The unit of a slot, counted over all superblocks.
    #[inline]
    pub(crate) fn unit_of(&self, slot: u32) -> u32 {
        self.by_unit.divide(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_divisor_divides(number in any::<u32>(), divisor in 1_u32..) {
            prop_assert_eq!(Divisor::new(divisor).divide(number), number / divisor);
        }
    }

    #[test]
    fn a_divisor_is_exact_at_the_edges() {
        for divisor in [1, 2, 3, 48, 7_919, u32::MAX - 1, u32::MAX] {
            for number in [0, 1, divisor - 1, divisor, divisor.saturating_add(1), u32::MAX] {
                assert_eq!(Divisor::new(divisor).divide(number), number / divisor);
            }
        }
    }
}
