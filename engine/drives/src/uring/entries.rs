//! Commands as entries of a ring, and what their completions say.

use crate::buffers::Buffers;
use crate::device::{self, Device, DeviceKind};
use io_uring::{cqueue, opcode, squeue, types};
use testdrive_core::{Command, Flags, Opcode};

/// Marks the completion of a flush that was linked before a write.
const PREFLUSH_TAG: u64 = 1 << 32;
/// Where the length stands in the user data, above the slot and the tag.
const LENGTH_SHIFT: u32 = 33;
/// `_IO(0x12, 0)` of linux/blkdev.h: discard as an io_uring command.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

/// The descriptor as the rings name it.
#[derive(Clone, Copy)]
pub(super) enum FileHandle {
    /// As their first registered file.
    Registered,
    /// By its number.
    Plain(i32),
}

/// Builds one entry for whichever way the file is named.
macro_rules! with_file {
    ($handle:expr, $file:ident => $entry:expr) => {
        match $handle {
            FileHandle::Registered => {
                let $file = types::Fixed(0);
                $entry
            }
            FileHandle::Plain(fd) => {
                let $file = types::Fd(fd);
                $entry
            }
        }
    };
}

/// What the entries of a drive have in common.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    /// The file.
    pub file: FileHandle,
    /// Whether the buffers are registered.
    pub fixed_buffers: bool,
}

impl Entries {
    /// The entry of a command. Reads and writes take their place in the buffers here.
    ///
    /// For reads and writes the kernel answers the bytes that moved; the length asked for travels in the upper half of the user data, so
    /// that a short transfer is seen.
    #[inline]
    pub fn of(self, slot: u32, command: &Command, device: &Device, buffers: &mut Buffers) -> squeue::Entry {
        let expected = if command.opcode.transfers() { command.length_bytes } else { 0 };
        self.plain(slot, command, device, buffers).user_data(u64::from(slot) | expected << LENGTH_SHIFT)
    }

    fn plain(self, slot: u32, command: &Command, device: &Device, buffers: &mut Buffers) -> squeue::Entry {
        let (offset, length) = (command.offset_bytes, command.length_bytes);
        match command.opcode {
            Opcode::Read => {
                let buffer = buffers.for_read(length as usize);
                if self.fixed_buffers {
                    let index = Buffers::READ_INDEX;
                    with_file!(self.file, file => opcode::ReadFixed::new(file, buffer, length as u32, index).offset(offset).build())
                } else {
                    with_file!(self.file, file => opcode::Read::new(file, buffer, length as u32).offset(offset).build())
                }
            }
            Opcode::Write => {
                let buffer = buffers.for_write(slot, length as usize);
                let fua = if command.flags.contains(Flags::FUA) { libc::RWF_DSYNC } else { 0 };
                if self.fixed_buffers {
                    let index = Buffers::WRITE_INDEX;
                    with_file!(self.file, file => opcode::WriteFixed::new(file, buffer, length as u32, index).offset(offset).rw_flags(fua).build())
                } else {
                    with_file!(self.file, file => opcode::Write::new(file, buffer, length as u32).offset(offset).rw_flags(fua).build())
                }
            }
            Opcode::Flush => self.sync(),
            Opcode::Trim if device.kind == DeviceKind::Block => {
                // The command's first eight bytes are the entry's `addr3`, where the kernel looks for the length.
                let mut length_field = [0_u8; 16];
                length_field[..8].copy_from_slice(&length.to_ne_bytes());
                with_file!(self.file, file => opcode::UringCmd16::new(file, BLOCK_URING_CMD_DISCARD).addr(Some(offset)).cmd(length_field).build())
            }
            Opcode::Trim => {
                with_file!(self.file, file => opcode::Fallocate::new(file, length).offset(offset).mode(device::PUNCH_HOLE).build())
            }
            Opcode::WriteZeroes => {
                let mode = device.zeroes_mode();
                with_file!(self.file, file => opcode::Fallocate::new(file, length).offset(offset).mode(mode).build())
            }
        }
    }

    /// The flush before a write, which is not begun unless that succeeded.
    pub fn preflush(self, slot: u32) -> squeue::Entry {
        self.sync().flags(squeue::Flags::IO_LINK).user_data(u64::from(slot) | PREFLUSH_TAG)
    }

    fn sync(self) -> squeue::Entry {
        with_file!(self.file, file => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build())
    }
}

/// The slot and the outcome of a completed command; `None` of a flush before a write, whose answer is noted until that completes.
#[inline]
pub(super) fn outcome_of(entry: &cqueue::Entry, preflush_status: &mut [i32]) -> Option<(u32, i32)> {
    let slot = entry.user_data() as u32;
    if entry.user_data() & PREFLUSH_TAG != 0 {
        preflush_status[slot as usize] = (-entry.result()).max(0);
        return None;
    }
    let expected = (entry.user_data() >> LENGTH_SHIFT) as i32;
    let preflush = std::mem::take(&mut preflush_status[slot as usize]);
    let status = match entry.result() {
        // The write was cancelled because the flush linked before it failed: the flush's error tells why.
        result if result == -libc::ECANCELED && preflush != 0 => preflush,
        result if result < 0 => -result,
        result if expected > 0 && result != expected => libc::EIO,
        _ => 0,
    };
    Some((slot, status))
}
