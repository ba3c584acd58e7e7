//! The ranges of a deallocate (NVM 3.2.3.1), and how many go into one command.

use crate::command::LbaRange;
use crate::controller::NvmLimits;

/// The most ranges of one command.
pub const RANGES_MAX: usize = 256;
/// The size of one range in memory.
pub const RANGE_BYTES: usize = 16;

/// Writes ranges as the drive reads them: context attributes, which are none, then length and first block.
///
/// # Panics
/// When the memory is too small.
pub fn encode_ranges(ranges: &[LbaRange], memory: &mut [u8]) {
    for (range, place) in
        ranges.iter().zip(memory[..ranges.len() * RANGE_BYTES].chunks_exact_mut(RANGE_BYTES))
    {
        place[..4].fill(0);
        place[4..8].copy_from_slice(&range.blocks.to_le_bytes());
        place[8..].copy_from_slice(&range.first.to_le_bytes());
    }
}

/// How much one deallocate may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimLimits {
    /// Ranges, at most [`RANGES_MAX`].
    pub ranges: usize,
    /// Blocks of a range.
    pub range_blocks: u32,
    /// Blocks of all ranges together.
    pub blocks: u64,
}

impl Default for TrimLimits {
    fn default() -> Self {
        TrimLimits { ranges: RANGES_MAX, range_blocks: u32::MAX, blocks: u64::MAX }
    }
}

impl TrimLimits {
    /// What the controller says; what it leaves at 0 is without limit but that of the command.
    pub fn of(limits: &NvmLimits) -> TrimLimits {
        let most = TrimLimits::default();
        let range_blocks = Some(limits.deallocate_range_blocks).filter(|blocks| *blocks > 0);
        let blocks = Some(limits.deallocate_blocks).filter(|blocks| *blocks > 0);
        let blocks = blocks.unwrap_or(most.blocks);
        // A single range is never longer than all together may be.
        let range_blocks =
            range_blocks.unwrap_or(most.range_blocks).min(u32::try_from(blocks).unwrap_or(u32::MAX));
        let ranges = Some(limits.deallocate_ranges).filter(|ranges| *ranges > 0);
        TrimLimits { ranges: ranges.map_or(most.ranges, usize::from), range_blocks, blocks }
    }

    /// The memory that the ranges of one command take.
    pub fn place_bytes(&self) -> usize {
        self.ranges * RANGE_BYTES
    }

    /// Whether a range may join others in one command. A deallocate promises nothing about the order of its ranges, and all of them
    /// complete together; so trims join only where they were handed over together, and where that was asked for.
    pub fn admits(&self, ranges: usize, blocks: u64, next: LbaRange) -> bool {
        ranges < self.ranges
            && next.blocks <= self.range_blocks
            && blocks.checked_add(next.blocks.into()).is_some_and(|sum| sum <= self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_laid_out_as_the_specification_has_them() {
        let ranges = [
            LbaRange { first: 0x0102_0304_0506_0708, blocks: 0x1122_3344 },
            LbaRange { first: 9, blocks: 1 },
        ];
        let mut memory = [0xff; 48];
        encode_ranges(&ranges, &mut memory);
        let mut expected = [0xff_u8; 48];
        expected[..16].copy_from_slice(&[0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 8, 7, 6, 5, 4, 3, 2, 1]);
        expected[16..32].copy_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(memory, expected);
    }

    #[test]
    fn a_controller_without_limits_takes_256_ranges() {
        let limits = TrimLimits::of(&NvmLimits::default());
        assert_eq!(limits, TrimLimits::default());
        let range = LbaRange { first: 0, blocks: u32::MAX };
        assert!(limits.admits(255, 1 << 40, range) && !limits.admits(256, 0, range));
    }

    #[test]
    fn the_limits_of_a_controller_hold() {
        let told = NvmLimits {
            deallocate_ranges: 2,
            deallocate_range_blocks: 100,
            deallocate_blocks: 150,
            ..NvmLimits::default()
        };
        let limits = TrimLimits::of(&told);
        let range = |blocks| LbaRange { first: 0, blocks };
        assert!(limits.admits(1, 100, range(50)) && !limits.admits(1, 100, range(51)));
        assert!(!limits.admits(2, 0, range(1)) && !limits.admits(0, 0, range(101)));
        // All together are the limit of one, where no other is told.
        let told = NvmLimits { deallocate_blocks: 150, ..NvmLimits::default() };
        assert_eq!(TrimLimits::of(&told).range_blocks, 150);
    }
}
