//! What a command asks for: whether it can be done, and the pages that it is about.

use crate::parameters::Parameters;
use crate::PAGE_BYTES;
use std::ops::Range;
use testdrive_core::{Command, Opcode};

/// Status of a command that reaches beyond the drive: EIO.
const STATUS_OUT_OF_RANGE: i32 = 5;
/// Status of a command that is empty or not a whole number of logical blocks: EINVAL.
const STATUS_MISALIGNED: i32 = 22;

/// What a command ends with; 0 where nothing is wrong with it.
pub(crate) fn status_of(command: &Command, parameters: &Parameters) -> i32 {
    let Command { offset_bytes, length_bytes, opcode, .. } = *command;
    let block = parameters.logical_block_bytes;
    if opcode == Opcode::Flush {
        0
    } else if length_bytes == 0 || !offset_bytes.is_multiple_of(block) || !length_bytes.is_multiple_of(block)
    {
        STATUS_MISALIGNED
    } else if offset_bytes.checked_add(length_bytes).is_none_or(|end| end > parameters.capacity_bytes) {
        STATUS_OUT_OF_RANGE
    } else {
        0
    }
}

/// Every page that the command touches, in part or whole.
pub(crate) fn touched_pages(command: &Command) -> Range<u32> {
    let end_bytes = command.offset_bytes.saturating_add(command.length_bytes);
    page_number(command.offset_bytes / PAGE_BYTES)..page_number(end_bytes.div_ceil(PAGE_BYTES))
}

/// Every page that a write writes: whole units of what the mapping tells apart.
pub(crate) fn written_pages(command: &Command, unit_bytes: u64) -> Range<u32> {
    let first = command.offset_bytes / unit_bytes * unit_bytes;
    let end = (command.offset_bytes + command.length_bytes).next_multiple_of(unit_bytes);
    page_number(first / PAGE_BYTES)..page_number(end / PAGE_BYTES)
}

/// Every page that the command covers whole: part of a page cannot be given up.
pub(crate) fn whole_pages(command: &Command) -> Range<u32> {
    let first = command.offset_bytes.div_ceil(PAGE_BYTES);
    let end = ((command.offset_bytes + command.length_bytes) / PAGE_BYTES).max(first);
    page_number(first)..page_number(end)
}

/// Pages of a drive fit; those of a command that reaches beyond it are only counted for the time that refusing it takes.
fn page_number(page: u64) -> u32 {
    u32::try_from(page).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use testdrive_core::Flags;

    fn command(opcode: Opcode, offset_bytes: u64, length_bytes: u64) -> Command {
        Command { offset_bytes, length_bytes, opcode, flags: Flags::NONE }
    }

    #[test]
    fn only_whole_blocks_within_the_drive_are_accepted() {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        model.set_all([("capacity", "1MiB"), ("logical_block_bytes", "512")]).unwrap();
        let status = |opcode, offset, length| status_of(&command(opcode, offset, length), model.parameters());
        let end = 1 << 20;
        for opcode in [Opcode::Read, Opcode::Write, Opcode::Trim, Opcode::WriteZeroes] {
            assert_eq!(status(opcode, end - 512, 512), 0);
            assert_eq!(status(opcode, end - 512, 1024), STATUS_OUT_OF_RANGE);
            assert_eq!(status(opcode, u64::MAX - 511, 512), STATUS_OUT_OF_RANGE);
            assert_eq!(status(opcode, 100, 512), STATUS_MISALIGNED);
            assert_eq!(status(opcode, 0, 100), STATUS_MISALIGNED);
            assert_eq!(status(opcode, 0, 0), STATUS_MISALIGNED);
        }
        assert_eq!(status(Opcode::Flush, u64::MAX, 0), 0);
    }

    #[test]
    fn reads_touch_partial_pages_and_trims_spare_them() {
        let partial = command(Opcode::Trim, 512, 12_288);
        assert_eq!(touched_pages(&partial), 0..4);
        assert_eq!(whole_pages(&partial), 1..3);
        assert!(whole_pages(&command(Opcode::Trim, 512, 1024)).is_empty());
    }
}
