//! Memory for transfers: mapped, touched and filled before the run, so that no page fault falls into a measurement.

use std::io;
use std::ptr::NonNull;
use testdrive_core::SplitMix64;

/// Alignment of every buffer handed out: what O_DIRECT asks of the strictest drives.
const ALIGNMENT: usize = 4096;
/// The least size of a region: reads and writes go round in it, so that a drive's DMA is not always to the same lines.
const REGION_MIN_BYTES: usize = 16 << 20;

/// What writes carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteData {
    /// Random bytes.
    Incompressible,
    /// Zeroes.
    Zero,
    /// Each 4 KiB holds this share of zeroes, the rest is random.
    CompressibleShare(f64),
}

/// An anonymous mapping.
struct Region {
    start: NonNull<u8>,
    length: usize,
    next: usize,
}

// SAFETY: a region owns its mapping alone and is only reached through its one owner.
unsafe impl Send for Region {}

impl Region {
    fn map(length: usize) -> io::Result<Region> {
        let length = length.next_multiple_of(ALIGNMENT);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("mmap does not map address 0");
        Ok(Region { start, length, next: 0 })
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is readable, writable, `length` bytes long, and borrowed here as `self` is.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// The start of `length` bytes, going round through the region.
    ///
    /// # Panics
    /// When more than the region is asked for: the caller sized it.
    #[inline]
    fn take(&mut self, length: usize) -> *mut u8 {
        assert!(length <= self.length, "an I/O of {length} bytes with buffers of {}", self.length);
        if self.next + length > self.length {
            self.next = 0;
        }
        // SAFETY: next + length lies within the mapping, by the check above.
        let start = unsafe { self.start.as_ptr().add(self.next) };
        self.next += length.next_multiple_of(ALIGNMENT);
        start
    }

    fn iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.length }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length and nothing else unmaps it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A region that reads land in and one that writes are taken from.
///
/// Concurrent reads may share memory: a replay does not look at what it reads. Writes only ever read their region.
pub struct Buffers {
    reads: Region,
    writes: Region,
}

impl Buffers {
    /// Index of the read region among the registered buffers.
    pub const READ_INDEX: u16 = 0;
    /// Index of the write region among the registered buffers.
    pub const WRITE_INDEX: u16 = 1;

    /// Buffers for I/Os of up to `io_bytes_max`.
    ///
    /// # Errors
    /// When the system has not the memory.
    pub fn new(io_bytes_max: u64, data: WriteData, seed: u64) -> io::Result<Buffers> {
        let length = usize::try_from(io_bytes_max).map_err(io::Error::other)?;
        let length = length.max(REGION_MIN_BYTES);
        let mut buffers = Buffers { reads: Region::map(length)?, writes: Region::map(length)? };
        buffers.fill(data, seed);
        Ok(buffers)
    }

    fn fill(&mut self, data: WriteData, seed: u64) {
        let zero_share = match data {
            WriteData::Incompressible => 0.0,
            WriteData::Zero => return,
            WriteData::CompressibleShare(share) => share.clamp(0.0, 1.0),
        };
        let random_bytes = ALIGNMENT - (ALIGNMENT as f64 * zero_share) as usize;
        let mut random = SplitMix64::new(seed);
        for page in self.writes.bytes_mut().chunks_exact_mut(ALIGNMENT) {
            random.fill(&mut page[..random_bytes]);
        }
    }

    /// Where a read of `length` bytes may land.
    #[inline]
    pub fn for_read(&mut self, length: usize) -> *mut u8 {
        self.reads.take(length)
    }

    /// Where a write of `length` bytes takes its data.
    #[inline]
    pub fn for_write(&mut self, length: usize) -> *const u8 {
        self.writes.take(length)
    }

    /// Both regions, in the order of their indices.
    pub fn iovecs(&self) -> [libc::iovec; 2] {
        [self.reads.iovec(), self.writes.iovec()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zero_share(data: WriteData) -> f64 {
        let mut buffers = Buffers::new(4096, data, 1).unwrap();
        let bytes = buffers.writes.bytes_mut();
        bytes.iter().filter(|&&byte| byte == 0).count() as f64 / bytes.len() as f64
    }

    #[test]
    fn write_data_is_what_was_asked_for() {
        assert!(zero_share(WriteData::Zero) == 1.0);
        assert!(zero_share(WriteData::Incompressible) < 0.01);
        assert!((zero_share(WriteData::CompressibleShare(0.5)) - 0.5).abs() < 0.01);
    }

    #[test]
    fn buffers_are_aligned_and_go_round_within_their_region() {
        let mut buffers = Buffers::new(20 << 20, WriteData::Zero, 1).unwrap();
        let [_, writes] = buffers.iovecs();
        let range = writes.iov_base as usize..writes.iov_base as usize + writes.iov_len;
        for length in [512, 4096, 20 << 20, 12 << 20, 20 << 20] {
            let start = buffers.for_write(length) as usize;
            assert_eq!(start % ALIGNMENT, 0);
            assert!(range.contains(&start) && start + length <= range.end);
        }
    }
}
