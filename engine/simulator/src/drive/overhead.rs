//! What the NAND has to do beyond pages: programs of parity and of the drive's own tables, and erases.

use crate::ftl::TranslationLayer;
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// One, in the fractions of a unit or a block in which overhead is kept.
const WHOLE: u64 = 1 << 32;

/// What is owed of both.
///
/// It is kept as fractions, so that they come as often as they should on a drive of any size: a superblock of a drive that
/// is scaled down is smaller than the blocks that it stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Overhead {
    per_host_unit: u64,
    per_moved_unit: u64,
    per_folded_unit: u64,
    per_page: u64,
    blocks_per_superblock: u64,
    blocks_per_cached_unit: u64,
    owed_units: u64,
    owed_blocks: u64,
    next_die: u32,
}

impl Overhead {
    pub(super) fn new(parameters: &Parameters, translation: &TranslationLayer) -> Overhead {
        let fraction = |programs: f64| ((programs - 1.0) * WHOLE as f64).round() as u64;
        let block_units = parameters.erase_block_bytes / parameters.program_unit_bytes;
        Overhead {
            per_host_unit: fraction(parameters.programs_per_host_page),
            per_moved_unit: fraction(parameters.programs_per_moved_page),
            per_folded_unit: fraction(parameters.programs_per_folded_page),
            blocks_per_cached_unit: WHOLE / block_units,
            per_page: WHOLE / u64::from(parameters.unit_pages()),
            blocks_per_superblock: u64::from(translation.superblock_units()) * WHOLE / block_units,
            owed_units: 0,
            owed_blocks: 0,
            next_die: 0,
        }
    }

    pub(super) fn owe_for_host(&mut self) {
        self.owed_units += self.per_host_unit;
    }

    pub(super) fn owe_for_moved(&mut self) {
        self.owed_units += self.per_moved_unit;
    }

    pub(super) fn owe_for_folded(&mut self) {
        self.owed_units += self.per_folded_unit;
    }

    /// Blocks of the cache are erased alike, in so many units of the cache as else of the rest.
    pub(super) fn owe_for_cached_erase(&mut self) {
        self.owed_blocks += self.blocks_per_cached_unit;
    }

    /// A page of the drive's own.
    pub(super) fn owe_for_page(&mut self) {
        self.owed_units += self.per_page;
    }

    pub(super) fn owe_for_erase(&mut self) {
        self.owed_blocks += self.blocks_per_superblock;
    }

    /// The die that is to erase a block next, asked once for each unit of the host, so that erases do not come all at once.
    pub(super) fn next_erase(&mut self, dies: u32) -> Option<u32> {
        self.owed_blocks = self.owed_blocks.checked_sub(WHOLE)?;
        Some(self.take_turn(dies))
    }

    /// The die that is to program overhead next, if any is due.
    pub(super) fn next_program(&mut self, dies: u32) -> Option<u32> {
        self.owed_units = self.owed_units.checked_sub(WHOLE)?;
        Some(self.take_turn(dies))
    }

    fn take_turn(&mut self, dies: u32) -> u32 {
        let die = self.next_die;
        self.next_die = (die + 1) % dies;
        die
    }
}
