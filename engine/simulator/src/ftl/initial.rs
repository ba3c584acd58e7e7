//! What a drive holds before its first command, as functions instead of tables: a drive of a terabyte is ready at once.

use super::geometry::Geometry;
use crate::parameters::{InitialState, Parameters, Translation};
use crate::thermal::exp_of_minus;
use serde::{Deserialize, Serialize};
use testdrive_core::Permutation;

/// Where every page lies at first. Superblocks are filled from the first on, each from its first slot on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Initial {
    /// Pages that lie in the superblocks before each, and at its end all.
    before: Vec<u32>,
    /// For each span of pages, the superblock of its first: where to begin to look.
    hints: Vec<u32>,
    hint_shift: u32,
    unit_pages: u32,
    unit_slots: u32,
    superblock_slots: u32,
    order: Option<Permutation>,
}

impl Initial {
    pub(crate) fn new(parameters: &Parameters, geometry: &Geometry) -> Initial {
        // Where pages have places of their own, any writing leaves the same.
        let shuffled = parameters.initial_state == InitialState::Steady
            && parameters.translation == Translation::PageMapped;
        let filled = match parameters.initial_state {
            InitialState::Empty => Vec::new(),
            InitialState::Steady if shuffled => steadily_filled(geometry),
            InitialState::Written | InitialState::Steady => sequentially_filled(geometry),
        };
        let mut before = Vec::with_capacity(filled.len() + 1);
        before.push(0);
        for pages in filled {
            before.push(before[before.len() - 1] + pages);
        }
        let pages = before[before.len() - 1];
        let order = shuffled.then(|| Permutation::new(u64::from(pages), parameters.seed));
        let mut initial = Initial {
            before,
            hints: Vec::new(),
            hint_shift: (32 - pages.leading_zeros()).saturating_sub(12),
            unit_pages: geometry.unit_pages,
            unit_slots: geometry.unit_slots,
            superblock_slots: geometry.superblock_slots,
            order,
        };
        let spans = (pages >> initial.hint_shift) + 1;
        initial.hints = (0..spans)
            .map(|span| {
                let page = span << initial.hint_shift;
                initial.before.partition_point(|before| *before <= page).saturating_sub(1) as u32
            })
            .collect();
        initial
    }

    /// Pages that a superblock holds.
    pub(crate) fn pages_in(&self, superblock: u32) -> u32 {
        let at = superblock as usize;
        if at + 1 < self.before.len() {
            self.before[at + 1] - self.before[at]
        } else {
            0
        }
    }

    /// Superblocks that were written.
    pub(crate) fn superblocks(&self) -> u32 {
        self.before.len() as u32 - 1
    }

    /// The slot of a page, if it holds data.
    #[inline]
    pub(crate) fn slot_of(&self, page: u32) -> Option<u32> {
        let pages = self.before[self.before.len() - 1];
        if page >= pages {
            return None;
        }
        let index = match &self.order {
            Some(order) => order.forward(u64::from(page)) as u32,
            None => page,
        };
        let mut superblock = self.hints[(index >> self.hint_shift) as usize] as usize;
        while self.before[superblock + 1] <= index {
            superblock += 1;
        }
        let within = index - self.before[superblock];
        // On a drive that compresses, whole pages leave some slots of each unit unused.
        let slot = if self.unit_slots == self.unit_pages {
            within
        } else {
            within / self.unit_pages * self.unit_slots + within % self.unit_pages
        };
        Some(superblock as u32 * self.superblock_slots + slot)
    }

    /// The page whose data a slot holds, if it holds any.
    #[inline]
    pub(crate) fn page_of(&self, slot: u32) -> Option<u32> {
        let superblock = slot / self.superblock_slots;
        let mut within = slot - superblock * self.superblock_slots;
        if self.unit_slots != self.unit_pages {
            let (unit, slot) = (within / self.unit_slots, within % self.unit_slots);
            if slot >= self.unit_pages {
                return None;
            }
            within = unit * self.unit_pages + slot;
        }
        if within >= self.pages_in(superblock) {
            return None;
        }
        let index = self.before[superblock as usize] + within;
        Some(match &self.order {
            Some(order) => order.backward(u64::from(index)) as u32,
            None => index,
        })
    }
}

/// Every page once, in order.
fn sequentially_filled(geometry: &Geometry) -> Vec<u32> {
    let Geometry { user_pages, superblock_pages, .. } = *geometry;
    let mut filled = vec![superblock_pages; (user_pages / superblock_pages) as usize];
    filled.extend(Some(user_pages % superblock_pages).filter(|rest| *rest > 0));
    filled
}

/// What uniform random writes leave after long: of superblocks by age, from the fullest to the one to be reclaimed next, each holds
/// e^(-x a / WA) of its pages at age x from 0 to 1, since every write hits each page alike.
fn steadily_filled(geometry: &Geometry) -> Vec<u32> {
    let count = geometry.data_superblocks;
    let ratio = f64::from(count) * f64::from(geometry.superblock_pages) / f64::from(geometry.user_pages);
    let decay = ratio / closed_form_write_amplification(ratio);
    let capacity = f64::from(geometry.superblock_pages);
    let mut placed = 0_u32;
    // Sums are rounded, not the numbers, so that all pages have a place in the end.
    let share_below = |x: f64| (1.0 - exp_of_minus(decay * x)) / (1.0 - exp_of_minus(decay));
    let mut filled: Vec<u32> = (1..=count)
        .map(|rank| {
            let below = f64::from(geometry.user_pages) * share_below(f64::from(rank) / f64::from(count));
            let pages = (below.round() as u32).saturating_sub(placed).min(capacity as u32);
            placed += pages;
            pages
        })
        .collect();
    // What a full superblock could not take goes to the next that can.
    let mut left = geometry.user_pages - placed;
    for pages in &mut filled {
        let more = left.min(geometry.superblock_pages - *pages);
        *pages += more;
        left -= more;
    }
    filled
}

/// Pages programmed for each page written, of uniform random writes to large blocks that are reclaimed greedily, where the NAND is
/// `ratio` times what the host sees: a / (a + W(-a e^-a)) with Lambert's W on its principal branch.
///
/// Source: Desnoyers, "Analytic models of SSD write performance", ACM Transactions on Storage 10 (2014).
pub fn closed_form_write_amplification(ratio: f64) -> f64 {
    assert!(ratio > 1.0, "without spare there is nothing to reclaim");
    // 1 - 1/WA = e^(-a/WA): the share that is still valid when a superblock is reclaimed. Its only root above 1 lies below that of
    // the linear bound, and halving an interval needs no care near a = 1, where Newton's steps do.
    let excess = |amplification: f64| 1.0 - 1.0 / amplification - exp_of_minus(ratio / amplification);
    let (mut low, mut high) = (1.0, 2.0 + 2.0 / (ratio - 1.0));
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if excess(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}
