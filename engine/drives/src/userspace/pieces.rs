//! What a command of the run comes to on the drive: one command of the drive's own, or several.

use testdrive_core::{Command, Flags, Opcode};
use testdrive_nvme::{flush, parts, read, write, write_zeroes, LbaRange, NvmCommand};
use testdrive_userspace::Limits;

/// One command of the drive, of which a command of the run may take several, or a range of one.
#[derive(Clone, Copy)]
pub(super) enum Piece {
    /// A command without data.
    Plain(NvmCommand),
    /// A read into the buffer.
    Read(NvmCommand, *const u8),
    /// A write from the buffer.
    Write(NvmCommand, *const u8),
    /// A range of a deallocate, which may share its command with others.
    Range(LbaRange),
}

/// Cuts a command into pieces that the drive takes, in order; how many. `None` of one that is not whole blocks, which no drive could do.
pub(super) fn cut(
    limits: &Limits,
    command: &Command,
    buffer: *const u8,
    mut add: impl FnMut(Piece),
) -> Option<usize> {
    let Limits { namespace, block, .. } = *limits;
    let range = block.range(command.offset_bytes, command.length_bytes)?;
    let mut count = 0;
    let mut add = |piece| {
        add(piece);
        count += 1;
    };
    match command.opcode {
        Opcode::Flush => add(Piece::Plain(flush(namespace))),
        Opcode::Read | Opcode::Write => {
            let fua = command.flags.contains(Flags::FUA);
            let mut buffer = buffer;
            for part in parts(range, limits.transfer_blocks) {
                add(match command.opcode {
                    Opcode::Read => Piece::Read(read(namespace, part, block.bytes(), false), buffer),
                    _ => Piece::Write(write(namespace, part, block.bytes(), fua), buffer),
                });
                buffer = buffer.wrapping_add(part.blocks as usize * block.bytes() as usize);
            }
        }
        Opcode::WriteZeroes => {
            for part in parts(range, limits.zeroes_blocks) {
                add(Piece::Plain(write_zeroes(namespace, part, false, false)));
            }
        }
        Opcode::Trim => parts(range, limits.trims?.range_blocks).for_each(|part| add(Piece::Range(part))),
    }
    Some(count)
}
