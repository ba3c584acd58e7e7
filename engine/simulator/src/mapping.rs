//! Which pages hold data, where they lie, and what writing one costs.
//!
//! The first version keeps one bit for each page. A page-mapped translation layer with garbage collection will take this
//! module's place: placement and cost are asked for here only.

use crate::parameters::{InitialState, Parameters};
use crate::PAGE_BYTES;
use std::ops::Range;
use testdrive_core::SplitMix64;

/// The state of every page.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    /// One bit a page: whether it is no longer as it was at first. All zero at first whatever that was, so that memory for a
    /// large drive is only taken where something happened.
    changed: Vec<u64>,
    initially_mapped: bool,
    pages: u64,
    placement_seed: u64,
    planes: u64,
    pages_per_nand_page: u64,
}

impl Mapping {
    pub(crate) fn new(parameters: &Parameters) -> Mapping {
        let pages = parameters.capacity_bytes.div_ceil(PAGE_BYTES);
        Mapping {
            changed: vec![0; pages.div_ceil(64) as usize],
            initially_mapped: parameters.initial_state == InitialState::Written,
            pages,
            placement_seed: SplitMix64::new(parameters.seed).next_u64(),
            planes: u64::from(parameters.planes()),
            pages_per_nand_page: parameters.nand_page_bytes / PAGE_BYTES,
        }
    }

    /// Whether the page holds data.
    #[inline]
    pub(crate) fn is_mapped(&self, page: u64) -> bool {
        let changed = self.changed[(page / 64) as usize] >> (page % 64) & 1 == 1;
        changed != self.initially_mapped
    }

    /// Notes that the page was written; returns whether it held data before.
    #[inline]
    pub(crate) fn map(&mut self, page: u64) -> bool {
        let was_mapped = self.is_mapped(page);
        if !was_mapped {
            self.changed[(page / 64) as usize] ^= 1 << (page % 64);
        }
        was_mapped
    }

    /// Notes that these pages hold nothing any more.
    pub(crate) fn unmap(&mut self, pages: Range<u64>) {
        assert!(pages.end <= self.pages, "pages {pages:?} of a drive of {} pages", self.pages);
        let mut page = pages.start;
        while page < pages.end {
            let (word, bit) = ((page / 64) as usize, page % 64);
            let count = (64 - bit).min(pages.end - page);
            let mask = (u64::MAX >> (64 - count)) << bit;
            if self.initially_mapped {
                self.changed[word] |= mask;
            } else {
                self.changed[word] &= !mask;
            }
            page += count;
        }
    }

    /// The group of pages that are read together: those of one NAND page.
    #[inline]
    pub(crate) fn nand_page_of(&self, page: u64) -> u64 {
        page / self.pages_per_nand_page
    }

    /// The plane that a NAND page lies on, spread evenly by a hash.
    ///
    /// A real drive lays data out in the order of writing, which after random writes is as good as a hash. What it differs
    /// for is sequential data, whose neighbours then lie on different planes without collisions.
    #[inline]
    pub(crate) fn plane_of(&self, nand_page: u64) -> u32 {
        let mut bits = SplitMix64::new(nand_page ^ self.placement_seed);
        bits.below(self.planes) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn mapping(initial_state: &str, pages: u64) -> Mapping {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        model.set("initial_state", initial_state).unwrap();
        model.set("capacity_bytes", &(pages * PAGE_BYTES).to_string()).unwrap();
        Mapping::new(model.parameters())
    }

    proptest! {
        #[test]
        fn the_bits_agree_with_a_set_of_pages(
            written_at_first in any::<bool>(),
            steps in prop::collection::vec((any::<bool>(), 0_u64..300, 1_u64..200), 0..40),
        ) {
            let mut mapping = mapping(if written_at_first { "written" } else { "empty" }, 300);
            let mut oracle: BTreeSet<u64> = if written_at_first { (0..300).collect() } else { BTreeSet::new() };
            for (write, first, count) in steps {
                let end = (first + count).min(300);
                if write {
                    prop_assert_eq!(mapping.map(first), !oracle.insert(first));
                } else {
                    mapping.unmap(first..end);
                    oracle.retain(|page| !(first..end).contains(page));
                }
            }
            for page in 0..300 {
                prop_assert_eq!(mapping.is_mapped(page), oracle.contains(&page), "page {}", page);
            }
        }
    }

    #[test]
    fn placement_is_even_over_the_planes() {
        let mapping = mapping("written", 1 << 20);
        let mut counts = vec![0_u64; mapping.planes as usize];
        let per_plane = 1000;
        for nand_page in 0..per_plane * mapping.planes {
            counts[mapping.plane_of(nand_page) as usize] += 1;
        }
        // Six standard deviations of a binomial with this mean.
        let spread = 6 * (per_plane as f64).sqrt() as u64;
        assert!(counts.iter().all(|&count| count.abs_diff(per_plane) < spread), "{counts:?}");
    }
}
