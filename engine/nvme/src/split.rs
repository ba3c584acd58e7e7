//! Places of I/Os in logical blocks, and the parts of an I/O that is longer than a command may be.

use crate::command::LbaRange;

/// The most blocks that one command names: the number is 16 bits, 0's based.
pub const NLB_MAX: u32 = 1 << 16;

/// The size of a namespace's logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    shift: u32,
}

/// A range of blocks of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// The first block.
    pub first: u64,
    /// How many.
    pub blocks: u64,
}

impl BlockSize {
    /// Of so many bytes; `None` where that is no power of two from 512 on.
    pub fn new(block_bytes: u32) -> Option<BlockSize> {
        (block_bytes.is_power_of_two() && block_bytes >= 512)
            .then(|| BlockSize { shift: block_bytes.trailing_zeros() })
    }

    /// In bytes.
    pub fn bytes(self) -> u32 {
        1 << self.shift
    }

    /// The blocks of a range of bytes; `None` where it does not begin and end with one.
    #[inline]
    pub fn range(self, offset_bytes: u64, length_bytes: u64) -> Option<BlockRange> {
        let mask = u64::from(self.bytes()) - 1;
        ((offset_bytes | length_bytes) & mask == 0)
            .then(|| BlockRange { first: offset_bytes >> self.shift, blocks: length_bytes >> self.shift })
    }
}

/// The blocks of the longest transfer, of a controller with this MDTS and this smallest memory page (CAP.MPSMIN, 4096 bytes on every
/// drive known). `None` where there is no limit.
pub fn blocks_max_of_mdts(mdts: u8, page_bytes: u64, block: BlockSize) -> Option<u32> {
    if mdts == 0 {
        return None;
    }
    let bytes = page_bytes.checked_shl(mdts.into()).filter(|bytes| bytes >> mdts == page_bytes)?;
    Some(u32::try_from(bytes >> block.shift).unwrap_or(u32::MAX).max(1))
}

/// The parts of a range that are no longer than `blocks_max`, in order; none of an empty range. All but the last have that length.
///
/// An I/O of several parts is complete when its last part is, and its status is that of the first part, in the order of completion, that
/// failed.
///
/// # Panics
/// When `blocks_max` is 0.
pub fn parts(range: BlockRange, blocks_max: u32) -> impl ExactSizeIterator<Item = LbaRange> {
    assert!(blocks_max > 0, "no part fits into 0 blocks");
    let max = u64::from(blocks_max);
    let count = usize::try_from(range.blocks.div_ceil(max)).unwrap_or(usize::MAX);
    (0..count).map(move |index| {
        let done = index as u64 * max;
        LbaRange { first: range.first + done, blocks: (range.blocks - done).min(max) as u32 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_become_blocks_only_where_they_are_whole() {
        let block = BlockSize::new(4096).unwrap();
        assert_eq!(block.range(8192, 4096), Some(BlockRange { first: 2, blocks: 1 }));
        assert_eq!(block.range(8192, 0), Some(BlockRange { first: 2, blocks: 0 }));
        assert_eq!((block.range(512, 4096), block.range(0, 512)), (None, None));
        assert_eq!((BlockSize::new(256), BlockSize::new(520), BlockSize::new(0)), (None, None, None));
    }

    #[test]
    fn the_longest_transfer_follows_from_mdts() {
        let block = BlockSize::new(512).unwrap();
        assert_eq!(blocks_max_of_mdts(0, 4096, block), None);
        // 128 KiB
        assert_eq!(blocks_max_of_mdts(5, 4096, block), Some(256));
        assert_eq!(blocks_max_of_mdts(7, 4096, BlockSize::new(4096).unwrap()), Some(128));
        // A limit that no transfer can reach is none.
        assert_eq!(blocks_max_of_mdts(60, 4096, block), None);
        assert_eq!(blocks_max_of_mdts(255, 4096, block), None);
    }

    #[test]
    fn a_range_within_the_limit_is_one_part_and_an_empty_one_is_none() {
        let range = BlockRange { first: 7, blocks: 256 };
        assert_eq!(parts(range, 256).collect::<Vec<_>>(), [LbaRange { first: 7, blocks: 256 }]);
        assert_eq!(parts(BlockRange { first: 7, blocks: 0 }, 256).len(), 0);
    }

    proptest! {
        #[test]
        fn parts_touch_each_other_and_are_the_whole_range(
            first in 0_u64..1 << 40, blocks in 0_u64..1 << 21, max in 1_u32..70_000,
        ) {
            let range = BlockRange { first, blocks };
            prop_assume!(blocks / u64::from(max) < 10_000);
            let mut next = first;
            for part in parts(range, max) {
                prop_assert_eq!(part.first, next);
                prop_assert!(part.blocks >= 1 && part.blocks <= max);
                next += u64::from(part.blocks);
            }
            prop_assert_eq!(next, first + blocks);
            prop_assert_eq!(parts(range, max).len() as u64, blocks.div_ceil(max.into()));
        }
    }
}
