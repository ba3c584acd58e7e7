//! Buffers that the kernel has registered, and whether it can use parts of them for passthrough.

use super::ioctl::{uring_command, NVME_URING_CMD_IO};
use super::WideRing;
use io_uring::{opcode, types};
use std::io;
use std::os::fd::RawFd;
use testdrive_nvme::{read, LbaRange};

/// The most buffers that a ring registers.
const PIECES_MAX: usize = 1 << 14;

/// Memory in pieces, by address.
pub(super) struct Registered {
    /// Where each begins and ends, sorted, with its index.
    pieces: Vec<(u64, u64, u16)>,
}

impl Registered {
    /// Nothing is registered.
    pub fn none() -> Registered {
        Registered { pieces: Vec::new() }
    }

    /// Registers memory with every ring; nothing where one of them refuses, as it does without the memory to lock.
    ///
    /// # Safety
    /// The memory must stay mapped until the rings are gone.
    pub unsafe fn with<'r>(
        mut rings: impl Iterator<Item = &'r WideRing>,
        pieces: &[libc::iovec],
    ) -> Registered {
        let fits = pieces.len() <= PIECES_MAX;
        // SAFETY: passed on to the caller.
        if !fits || !rings.all(|ring| unsafe { ring.submitter().register_buffers(pieces) }.is_ok()) {
            return Registered::none();
        }
        let bounds = |(index, piece): (usize, &libc::iovec)| {
            let start = piece.iov_base as u64;
            (start, start + piece.iov_len as u64, index as u16)
        };
        let mut pieces: Vec<_> = pieces.iter().enumerate().map(bounds).collect();
        pieces.sort_unstable();
        Registered { pieces }
    }

    /// Whether anything is registered.
    pub fn is_some(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The index of the buffer that a range lies within.
    #[inline]
    pub fn index_of(&self, address: u64, length_bytes: u32) -> Option<u16> {
        let after = self.pieces.partition_point(|(start, ..)| *start <= address);
        let (_, end, index) = self.pieces[..after].last()?;
        (address + u64::from(length_bytes) <= *end).then_some(*index)
    }
}

/// Whether the kernel takes a part of a registered buffer for a command: before Linux 6.12 some do not, and answer EINVAL without asking
/// the drive. It takes a read of the first block to know.
pub(super) fn takes_parts(
    ring: &mut WideRing,
    fd: RawFd,
    nsid: u32,
    block_bytes: u32,
    registered: &Registered,
) -> io::Result<bool> {
    let Some((address, _, index)) = registered.pieces.first() else { return Ok(false) };
    // SAFETY: the address is of registered memory, which the caller keeps mapped.
    unsafe { reads(ring, fd, nsid, block_bytes, (*address, Some(*index))) }
}

/// Whether the kernel sends a read of the drive's first block by this ring: before Linux 6.1 it builds rings that poll, and then refuses each
/// command on them.
///
/// # Safety
/// There must be room for a block at the address until the ring is gone.
pub(super) unsafe fn reads(
    ring: &mut WideRing,
    fd: RawFd,
    nsid: u32,
    block_bytes: u32,
    (address, index): (u64, Option<u16>),
) -> io::Result<bool> {
    let command = read(nsid, LbaRange { first: 0, blocks: 1 }, block_bytes, false);
    let entry = opcode::UringCmd80::new(types::Fd(fd), NVME_URING_CMD_IO)
        .cmd(uring_command(&command, address))
        .buf_index(index)
        .build();
    // SAFETY: the command points to memory that the caller keeps.
    unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)?;
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            // A signal: the read stays in flight, and a ring is not left while it has one.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // A ring that polls also returns without a completion when another thread wants the CPU.
        if let Some(entry) = ring.completion().next() {
            // What the drive itself answers does not matter here.
            return Ok(entry.result() >= 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_only_in_the_piece_that_holds_all_of_it() {
        let registered = Registered { pieces: vec![(4096, 8192, 1), (8192, 12_288, 0), (20_480, 24_576, 2)] };
        assert_eq!(registered.index_of(4096, 4096), Some(1));
        assert_eq!(registered.index_of(8192, 16), Some(0));
        assert_eq!(registered.index_of(6144, 4096), None);
        assert_eq!((registered.index_of(0, 16), registered.index_of(16_384, 16)), (None, None));
        assert_eq!(registered.index_of(24_000, 576), Some(2));
        assert_eq!(Registered::none().index_of(4096, 1), None);
    }
}
