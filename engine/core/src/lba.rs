//! Where an I/O of one drive goes on another of a different size or block.

use crate::Command;
use serde::{Deserialize, Serialize};

/// What becomes of I/Os that do not fit the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LbaMode {
    /// I/Os that end beyond the target are left out.
    #[default]
    Skip,
    /// Offsets are taken modulo the target's capacity.
    Wrap,
    /// Every offset is multiplied by target / source capacity.
    Scale,
    /// Only I/Os that end beyond the target are scaled into it.
    ScaleExcess,
}

/// What was done to an I/O to place it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacementChanges {
    /// The offset was taken modulo the capacity, and changed by it.
    pub wrapped: bool,
    /// The offset was scaled, and changed by it.
    pub scaled: bool,
    /// The length was cut so that the I/O ends on the target.
    pub clipped: bool,
    /// Offset or length was widened to the target's logical block.
    pub widened: bool,
}

/// Where an I/O goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Issue this.
    At(Command, PlacementChanges),
    /// Leave it out: it does not fit and the mode is [`LbaMode::Skip`].
    Skipped,
}

/// Places I/Os of a source of one capacity on a target of another.
#[derive(Clone, Copy, Debug)]
pub struct LbaMap {
    mode: LbaMode,
    source_bytes: u64,
    target_bytes: u64,
    block_bytes: u64,
}

impl LbaMap {
    /// A map onto a target of `target_bytes` with logical blocks of `block_bytes`; what is left of a last, partial block is not used.
    ///
    /// # Panics
    /// When `block_bytes` is 0: a drive without a block size is a broken invariant.
    pub fn new(mode: LbaMode, source_bytes: u64, target_bytes: u64, block_bytes: u64) -> LbaMap {
        assert!(block_bytes > 0, "a target with blocks of 0 bytes");
        LbaMap {
            mode,
            source_bytes: source_bytes.max(1),
            target_bytes: target_bytes - target_bytes % block_bytes,
            block_bytes,
        }
    }

    /// Places one I/O. A flush has no place and is returned as it is.
    ///
    /// An I/O of length 0 that is no flush, and any I/O on a target smaller than one block, is skipped.
    pub fn place(&self, command: Command) -> Placement {
        if command.opcode == crate::Opcode::Flush {
            let flush = Command { offset_bytes: 0, length_bytes: 0, ..command };
            return Placement::At(flush, PlacementChanges::default());
        }
        if command.length_bytes == 0 || self.target_bytes == 0 {
            return Placement::Skipped;
        }
        let mut changes = PlacementChanges::default();
        let beyond = command
            .offset_bytes
            .checked_add(command.length_bytes)
            .is_none_or(|end| self.align_up(end).is_none_or(|end| end > self.target_bytes));
        let mut offset = command.offset_bytes;
        match self.mode {
            LbaMode::Skip if beyond => return Placement::Skipped,
            LbaMode::Wrap => {
                offset %= self.target_bytes;
                changes.wrapped = offset != command.offset_bytes;
            }
            LbaMode::Scale => {
                offset = self.scaled(offset);
                changes.scaled = offset != command.offset_bytes;
            }
            LbaMode::ScaleExcess if beyond => {
                offset = self.scaled(offset);
                changes.scaled = offset != command.offset_bytes;
            }
            LbaMode::Skip | LbaMode::ScaleExcess => {}
        }
        self.fit(command, offset, changes)
    }

    /// Widens to whole blocks and cuts what hangs over the end.
    fn fit(&self, command: Command, offset: u64, mut changes: PlacementChanges) -> Placement {
        // A scaled offset above the end can only come from a source larger than it says; it goes to the last block.
        let start = (offset - offset % self.block_bytes).min(self.target_bytes - self.block_bytes);
        let wanted_end = self.align_up(offset.saturating_add(command.length_bytes)).unwrap_or(u64::MAX);
        let end = wanted_end.min(self.target_bytes);
        changes.clipped = wanted_end > self.target_bytes;
        let length_bytes = end - start;
        changes.widened = !changes.clipped && length_bytes > command.length_bytes || start != offset;
        Placement::At(Command { offset_bytes: start, length_bytes, ..command }, changes)
    }

    /// The offset times target / source, aligned down to a block.
    fn scaled(&self, offset: u64) -> u64 {
        let scaled = u128::from(offset) * u128::from(self.target_bytes) / u128::from(self.source_bytes);
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        scaled - scaled % self.block_bytes
    }

    fn align_up(&self, value: u64) -> Option<u64> {
        value.checked_next_multiple_of(self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Opcode};
    use proptest::prelude::*;

    const K: u64 = 1024;

    fn write(offset_bytes: u64, length_bytes: u64) -> Command {
        Command { offset_bytes, length_bytes, opcode: Opcode::Write, flags: Flags::FUA }
    }

    fn placed(mode: LbaMode, source: u64, target: u64, offset: u64, length: u64) -> Option<(u64, u64)> {
        match LbaMap::new(mode, source, target, 4 * K).place(write(offset, length)) {
            Placement::At(command, _) => {
                assert_eq!((command.opcode, command.flags), (Opcode::Write, Flags::FUA));
                Some((command.offset_bytes, command.length_bytes))
            }
            Placement::Skipped => None,
        }
    }

    #[test]
    fn skip_leaves_out_only_what_ends_beyond_the_target() {
        assert_eq!(placed(LbaMode::Skip, 128 * K, 64 * K, 60 * K, 4 * K), Some((60 * K, 4 * K)));
        assert_eq!(placed(LbaMode::Skip, 128 * K, 64 * K, 60 * K, 8 * K), None);
        assert_eq!(placed(LbaMode::Skip, 128 * K, 64 * K, u64::MAX - K, 8 * K), None);
    }

    #[test]
    fn wrap_takes_the_remainder_and_clips_the_end() {
        assert_eq!(placed(LbaMode::Wrap, 128 * K, 64 * K, 68 * K, 4 * K), Some((4 * K, 4 * K)));
        assert_eq!(placed(LbaMode::Wrap, 128 * K, 64 * K, 124 * K, 8 * K), Some((60 * K, 4 * K)));
    }

    #[test]
    fn scale_moves_every_offset_in_proportion_and_keeps_lengths() {
        assert_eq!(placed(LbaMode::Scale, 128 * K, 64 * K, 64 * K, 8 * K), Some((32 * K, 8 * K)));
        assert_eq!(placed(LbaMode::Scale, 64 * K, 128 * K, 16 * K, 4 * K), Some((32 * K, 4 * K)));
        assert_eq!(placed(LbaMode::Scale, 128 * K, 64 * K, 124 * K, 16 * K), Some((60 * K, 4 * K)));
    }

    #[test]
    fn scale_excess_moves_only_what_does_not_fit() {
        assert_eq!(placed(LbaMode::ScaleExcess, 128 * K, 64 * K, 16 * K, 4 * K), Some((16 * K, 4 * K)));
        assert_eq!(placed(LbaMode::ScaleExcess, 128 * K, 64 * K, 96 * K, 4 * K), Some((48 * K, 4 * K)));
    }

    #[test]
    fn what_is_smaller_than_a_block_is_widened_and_said_to_be() {
        let map = LbaMap::new(LbaMode::Skip, 64 * K, 64 * K, 4 * K);
        let Placement::At(command, changes) = map.place(write(4 * K + 512, 512)) else { panic!("skipped") };
        assert_eq!((command.offset_bytes, command.length_bytes), (4 * K, 4 * K));
        assert!(changes.widened && !changes.clipped);
        let Placement::At(_, changes) = map.place(write(4 * K, 4 * K)) else { panic!("skipped") };
        assert_eq!(changes, PlacementChanges::default());
    }

    #[test]
    fn a_flush_has_no_place_and_an_empty_io_is_left_out() {
        let flush = Command { opcode: Opcode::Flush, ..write(1 << 60, 0) };
        let map = LbaMap::new(LbaMode::Skip, K, 64 * K, 4 * K);
        assert!(matches!(map.place(flush), Placement::At(command, _) if command.offset_bytes == 0));
        assert_eq!(map.place(write(0, 0)), Placement::Skipped);
    }

    proptest! {
        #[test]
        fn what_is_placed_lies_on_the_target_in_whole_blocks(
            offset in any::<u64>(), length in 1_u64..1 << 32, source in 1_u64..1 << 50,
            blocks in 0_u64..1 << 30, block_log2 in 9_u32..17,
            mode in prop_oneof![Just(LbaMode::Skip), Just(LbaMode::Wrap), Just(LbaMode::Scale), Just(LbaMode::ScaleExcess)],
        ) {
            let block = 1_u64 << block_log2;
            let map = LbaMap::new(mode, source, blocks * block + 100, block);
            if let Placement::At(command, changes) = map.place(write(offset, length)) {
                prop_assert_eq!(command.offset_bytes % block, 0);
                prop_assert_eq!(command.length_bytes % block, 0);
                prop_assert!(command.length_bytes > 0);
                prop_assert!(command.offset_bytes + command.length_bytes <= blocks * block);
                prop_assert!(changes.clipped || command.length_bytes >= length);
            }
        }
    }
}
