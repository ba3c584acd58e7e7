//! I/Os of a run as commands of the drive's own set: decided here for every path that sends such commands itself, so that all send the
//! same ones.

use testdrive_core::{Command, Flags, Opcode};
use testdrive_nvme::{read, write, write_zeroes, BlockSize, LbaRange, NvmCommand};

/// What makes commands for one namespace, and how long they may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandMaker {
    /// The namespace.
    pub nsid: u32,
    /// The size of its blocks.
    pub block: BlockSize,
    /// Blocks of a read or write.
    pub transfer_blocks: u32,
    /// Blocks of a write zeroes.
    pub zeroes_blocks: u32,
    /// Blocks of a range of a deallocate.
    pub range_blocks: u32,
}

impl CommandMaker {
    /// How many blocks one command, or one range of a trim, may be of; 0 of a flush, which is of none.
    pub fn blocks_max(&self, opcode: Opcode) -> u32 {
        match opcode {
            Opcode::Read | Opcode::Write => self.transfer_blocks,
            Opcode::WriteZeroes => self.zeroes_blocks,
            Opcode::Trim => self.range_blocks,
            Opcode::Flush => 0,
        }
    }

    /// The command for a part of an I/O. `None` of a trim, whose range goes into a command with others, and of a flush.
    pub fn command(&self, opcode: Opcode, part: LbaRange, fua: bool) -> Option<NvmCommand> {
        Some(match opcode {
            Opcode::Read => read(self.nsid, part, self.block.bytes(), false),
            Opcode::Write => write(self.nsid, part, self.block.bytes(), fua),
            // The blocks stay allocated: zeroes are written, and not trimmed.
            Opcode::WriteZeroes => write_zeroes(self.nsid, part, false, false),
            Opcode::Trim | Opcode::Flush => return None,
        })
    }
}

/// Whether an I/O forces unit access: writes alone, as on every path, since the block layer knows it of no others.
pub(crate) fn forces_unit_access(command: &Command) -> bool {
    command.opcode == Opcode::Write && command.flags.contains(Flags::FUA)
}

/// Whether a flush has to be done before an I/O goes: of writes alone, as above.
pub(crate) fn flushes_first(command: &Command) -> bool {
    command.opcode == Opcode::Write && command.flags.contains(Flags::PREFLUSH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_of_writes_alone() {
        for opcode in Opcode::ALL {
            let command =
                Command { opcode, offset_bytes: 0, length_bytes: 4096, flags: Flags::FUA | Flags::PREFLUSH };
            let is_write = opcode == Opcode::Write;
            assert_eq!((forces_unit_access(&command), flushes_first(&command)), (is_write, is_write));
        }
    }

    #[test]
    fn each_opcode_has_its_own_limit_and_only_writes_their_flag() {
        let block = BlockSize::new(4096).unwrap();
        let maker = CommandMaker { nsid: 3, block, transfer_blocks: 8, zeroes_blocks: 16, range_blocks: 32 };
        let part = LbaRange { first: 5, blocks: 2 };
        let of = |opcode| (maker.blocks_max(opcode), maker.command(opcode, part, true));
        assert_eq!(of(Opcode::Read), (8, Some(read(3, part, 4096, false))));
        assert_eq!(of(Opcode::Write), (8, Some(write(3, part, 4096, true))));
        assert_eq!(of(Opcode::WriteZeroes), (16, Some(write_zeroes(3, part, false, false))));
        assert_eq!((of(Opcode::Trim), of(Opcode::Flush)), ((32, None), (0, None)));
    }
}
