//! What a command of the run comes to on the drive: one command of the drive's own, or several.

use crate::nvme::commands::{forces_unit_access, CommandMaker};
use testdrive_core::{Command, Opcode};
use testdrive_nvme::{flush, parts, LbaRange, NvmCommand};
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
    let (opcode, fua) = (command.opcode, forces_unit_access(command));
    if opcode == Opcode::Flush {
        add(Piece::Plain(flush(namespace)));
        return Some(count);
    }
    let range_blocks = match opcode {
        Opcode::Trim => limits.trims?.range_blocks,
        _ => 0,
    };
    let Limits { transfer_blocks, zeroes_blocks, .. } = *limits;
    let maker = CommandMaker { nsid: namespace, block, transfer_blocks, zeroes_blocks, range_blocks };
    let mut buffer = buffer;
    for part in parts(range, maker.blocks_max(opcode)) {
        add(match (opcode, maker.command(opcode, part, fua)) {
            (_, None) => Piece::Range(part),
            (Opcode::Read, Some(read)) => Piece::Read(read, buffer),
            (Opcode::Write, Some(write)) => Piece::Write(write, buffer),
            (_, Some(command)) => Piece::Plain(command),
        });
        buffer = buffer.wrapping_add(part.blocks as usize * block.bytes() as usize);
    }
    Some(count)
}
