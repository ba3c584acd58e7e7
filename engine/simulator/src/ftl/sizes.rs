//! How much of a page is stored, on a drive that compresses.

use super::lazy_array::LazyArray;
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// In so many parts of a page its stored size is counted.
pub(crate) const PARTS: u32 = 64;

/// The stored size of every page, in parts of a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sizes {
    /// Four pages a number, a byte each: what is less than a whole page.
    saved: LazyArray,
    least: u32,
    /// Of what is written next.
    next: u32,
}

impl Sizes {
    /// `None` where the drive stores what it is given.
    pub(crate) fn new(parameters: &Parameters) -> Option<Sizes> {
        (parameters.compresses_to < 1.0).then(|| Sizes {
            saved: LazyArray::new(parameters.pages().div_ceil(4) as usize),
            least: least_parts(parameters),
            next: PARTS,
        })
    }

    /// Lets so much be left of what is written from now on, as far as the drive can compress.
    pub(crate) fn set_stored_share(&mut self, share: f64) {
        let parts = (share.clamp(0.0, 1.0) * f64::from(PARTS)).ceil() as u32;
        self.next = parts.clamp(self.least, PARTS);
    }

    /// The size of what is written next.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    #[inline]
    pub(crate) fn of(&self, page: u32) -> u32 {
        PARTS - (self.saved[(page / 4) as usize] >> (page % 4 * 8) & 0xff)
    }

    #[inline]
    pub(crate) fn set(&mut self, page: u32, parts: u32) {
        let shift = page % 4 * 8;
        let saved = &mut self.saved[(page / 4) as usize];
        *saved = *saved & !(0xff << shift) | (PARTS - parts) << shift;
    }
}

/// The least that a page is compressed to.
pub(crate) fn least_parts(parameters: &Parameters) -> u32 {
    ((parameters.compresses_to * f64::from(PARTS)).round() as u32).clamp(1, PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn pages_keep_their_own_sizes_and_are_whole_at_first() {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        model.set_all([("compresses_to", "0.14"), ("capacity", "64GiB")]).unwrap();
        let mut sizes = Sizes::new(model.parameters()).unwrap();
        for page in 0..8 {
            assert_eq!(sizes.of(page), PARTS);
            sizes.set(page, page + 10);
        }
        sizes.set(3, 64);
        assert_eq!((0..8).map(|page| sizes.of(page)).collect::<Vec<_>>(), [10, 11, 12, 64, 14, 15, 16, 17]);
        for (share, parts) in [(0.0, 9), (0.14, 9), (0.5, 32), (1.0, 64), (7.0, 64)] {
            sizes.set_stored_share(share);
            assert_eq!(sizes.next(), parts);
        }
    }
}
