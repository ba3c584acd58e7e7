//! Memory for transfers: mapped, touched and filled before the run, so that no page fault falls into a measurement.

use crate::drive::QueueOptions;
use std::io;
use std::ptr::NonNull;
use testdrive_core::SplitMix64;
use testdrive_userspace::memory::DmaMemory;

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

impl WriteData {
    /// How many of each [`ALIGNMENT`] bytes are random; the others are zero.
    fn random_bytes(self) -> usize {
        match self {
            WriteData::Incompressible => ALIGNMENT,
            WriteData::Zero => 0,
            WriteData::CompressibleShare(share) => {
                ALIGNMENT - (ALIGNMENT as f64 * share.clamp(0.0, 1.0)) as usize
            }
        }
    }
}

/// Memory that I/O goes round in.
pub(crate) struct Region {
    start: NonNull<u8>,
    length: usize,
    next: usize,
    /// Where it is cut for registration: what fits into a piece is not put across a cut. The whole length where it is not cut.
    piece: usize,
    /// Memory of somebody else's, where it is no mapping of our own.
    dma: Option<DmaMemory>,
}

// SAFETY: a region owns its mapping alone and is only reached through its one owner.
unsafe impl Send for Region {}

impl Region {
    /// Memory of at least so many bytes, touched.
    ///
    /// # Errors
    /// When the system has not the memory.
    pub(crate) fn map(length: usize) -> io::Result<Region> {
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
        Ok(Region { start, length, next: 0, piece: length, dma: None })
    }

    /// Memory that a drive reaches by itself.
    pub(crate) fn over(memory: DmaMemory) -> Region {
        let start = NonNull::new(memory.at(0)).expect("no memory is at address 0");
        let length = memory.length();
        Region { start, length, next: 0, piece: length, dma: Some(memory) }
    }

    /// The memory for DMA that it is over, and where in it a place of the region is.
    ///
    /// # Panics
    /// When it is over none.
    pub(crate) fn dma_of(&self, place: *const u8) -> (&DmaMemory, usize) {
        let memory = self.dma.as_ref().expect("the region was made for DMA");
        (memory, place as usize - self.start.as_ptr() as usize)
    }

    /// All of it.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
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
        if self.next % self.piece + length > self.piece {
            self.next = self.next.next_multiple_of(self.piece);
        }
        if self.next + length > self.length {
            self.next = 0;
        }
        // SAFETY: next + length lies within the mapping, by the check above.
        let start = unsafe { self.start.as_ptr().add(self.next) };
        self.next += length.next_multiple_of(ALIGNMENT);
        start
    }

    /// As the kernel is told of it.
    fn iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: self.length }
    }

    /// Cuts it into pieces of so many bytes, a multiple of [`ALIGNMENT`], and a rest.
    pub(crate) fn cut(&mut self, piece_bytes: usize) -> Vec<libc::iovec> {
        self.piece = piece_bytes;
        let start = self.start.as_ptr() as usize;
        (0..self.length)
            .step_by(piece_bytes)
            .map(|offset| libc::iovec {
                iov_base: (start + offset) as *mut libc::c_void,
                iov_len: piece_bytes.min(self.length - offset),
            })
            .collect()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.dma.is_none() {
            // SAFETY: the mapping was made by `map` with this length and nothing else unmaps it.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

/// A region that reads land in and one that writes are taken from.
///
/// Concurrent reads may share memory: a replay does not look at what it reads. Writes only ever read their region.
pub struct Buffers {
    reads: Region,
    writes: Region,
    refill: Option<Refill>,
}

/// Fresh bytes for each write, each slot in a place of its own: no byte changes while a write that carries it is in flight.
struct Refill {
    random: SplitMix64,
    /// Of each [`ALIGNMENT`] bytes; the rest stays zero.
    random_bytes: usize,
    place_bytes: usize,
}

impl Buffers {
    /// Index of the read region among the registered buffers.
    pub const READ_INDEX: u16 = 0;
    /// Index of the write region among the registered buffers.
    pub const WRITE_INDEX: u16 = 1;

    /// Buffers for a queue.
    ///
    /// # Errors
    /// When the system has not the memory.
    pub fn new(options: &QueueOptions) -> io::Result<Buffers> {
        Buffers::with(options, Region::map)
    }

    /// The same, in memory that a drive reaches by itself.
    ///
    /// # Errors
    /// When there is no such memory.
    pub fn for_dma(
        options: &QueueOptions,
        allocate: impl Fn(usize) -> io::Result<DmaMemory>,
    ) -> io::Result<Buffers> {
        Buffers::with(options, |length| allocate(length).map(Region::over))
    }

    fn with(options: &QueueOptions, region: impl Fn(usize) -> io::Result<Region>) -> io::Result<Buffers> {
        let QueueOptions { depth, io_bytes_max, data, data_seed, refill, .. } = *options;
        let length = usize::try_from(io_bytes_max).map_err(io::Error::other)?;
        let place_bytes = length.next_multiple_of(ALIGNMENT);
        let places_bytes = if refill { place_bytes.checked_mul(depth) } else { Some(0) };
        let places_bytes = places_bytes.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let length = length.max(REGION_MIN_BYTES);
        let mut random = SplitMix64::new(data_seed);
        let random_bytes = data.random_bytes();
        let mut writes = region(length.max(places_bytes))?;
        if random_bytes > 0 {
            for page in writes.bytes_mut().chunks_exact_mut(ALIGNMENT) {
                random.fill(&mut page[..random_bytes]);
            }
        }
        let refill = (refill && random_bytes > 0).then_some(Refill { random, random_bytes, place_bytes });
        Ok(Buffers { reads: region(length)?, writes, refill })
    }

    /// Where a read of `length` bytes may land.
    #[inline]
    pub fn for_read(&mut self, length: usize) -> *mut u8 {
        self.reads.take(length)
    }

    /// Where a write of `length` bytes in a free slot takes its data.
    ///
    /// # Panics
    /// When it is longer than the buffers were made for.
    #[inline]
    pub fn for_write(&mut self, slot: u32, length: usize) -> *const u8 {
        match &mut self.refill {
            None => self.writes.take(length),
            Some(refill) => {
                assert!(length <= refill.place_bytes, "a write of {length} bytes in {}", refill.place_bytes);
                let start = slot as usize * refill.place_bytes;
                let place = &mut self.writes.bytes_mut()[start..start + length];
                for page in place.chunks_mut(ALIGNMENT) {
                    let random_bytes = refill.random_bytes.min(page.len());
                    refill.random.fill(&mut page[..random_bytes]);
                }
                place.as_ptr()
            }
        }
    }

    /// Both regions in pieces of so many bytes, those for reads first: for kernels that do not take a part of a large buffer. What is no
    /// longer than a piece lies within one, unless writes are refilled.
    pub fn pieces(&mut self, piece_bytes: usize) -> Vec<libc::iovec> {
        let mut pieces = self.reads.cut(piece_bytes);
        pieces.extend(self.writes.cut(piece_bytes));
        pieces
    }

    /// The memory that a buffer for reads or writes is in, and its place there; made by [`Buffers::for_dma`].
    ///
    /// # Panics
    /// When the buffers are not for DMA.
    pub fn dma_of(&self, is_write: bool, buffer: *const u8) -> (&DmaMemory, usize) {
        if is_write { &self.writes } else { &self.reads }.dma_of(buffer)
    }

    /// Both regions, in the order of their indices.
    pub fn iovecs(&self) -> [libc::iovec; 2] {
        [self.reads.iovec(), self.writes.iovec()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn options(io_bytes_max: u64, data: WriteData, refill: bool) -> QueueOptions {
        QueueOptions { clock: Clock::uncalibrated(), depth: 4, io_bytes_max, data, data_seed: 1, refill }
    }

    fn zero_share_of(bytes: &[u8]) -> f64 {
        bytes.iter().filter(|&&byte| byte == 0).count() as f64 / bytes.len() as f64
    }

    fn zero_share(data: WriteData) -> f64 {
        let mut buffers = Buffers::new(&options(4096, data, false)).unwrap();
        zero_share_of(buffers.writes.bytes_mut())
    }

    #[test]
    fn refilled_writes_carry_fresh_bytes_in_a_place_of_their_slot() {
        let half = WriteData::CompressibleShare(0.5);
        let mut buffers = Buffers::new(&options(8 << 20, half, true)).unwrap();
        let mut carried = |slot, length| {
            let start = buffers.for_write(slot, length);
            // SAFETY: the place has that length, and nobody else has the buffers.
            (start as usize, unsafe { std::slice::from_raw_parts(start, length) }.to_vec())
        };
        let (first, old) = carried(0, 16_384);
        let (other, _) = carried(3, 8 << 20);
        assert_eq!(other - first, 3 * (8 << 20));
        let (again, fresh) = carried(0, 16_384);
        assert_eq!(again, first);
        for (old, fresh) in old.chunks(4096).zip(fresh.chunks(4096)) {
            assert!(old[..2048] != fresh[..2048] && fresh[2048..].iter().all(|&byte| byte == 0));
            assert!(zero_share_of(&fresh[..2048]) < 0.05);
        }
        // A write shorter than a page is as random as the page's beginning.
        assert!(zero_share_of(&carried(1, 512).1) < 0.05);
    }

    #[test]
    fn queues_with_seeds_of_their_own_carry_other_bytes() {
        let written = |data_seed| {
            let options = QueueOptions { data_seed, ..options(4096, WriteData::Incompressible, false) };
            Buffers::new(&options).unwrap().writes.bytes_mut()[..64].to_vec()
        };
        assert!(written(1) != written(2) && written(1) == written(1));
    }

    #[test]
    fn write_data_is_what_was_asked_for() {
        assert!(zero_share(WriteData::Zero) == 1.0);
        assert!(zero_share(WriteData::Incompressible) < 0.01);
        assert!((zero_share(WriteData::CompressibleShare(0.5)) - 0.5).abs() < 0.01);
    }

    #[test]
    fn what_fits_into_a_piece_lies_within_one_and_what_is_longer_begins_with_one() {
        let mut buffers = Buffers::new(&options(1 << 20, WriteData::Zero, false)).unwrap();
        let pieces = buffers.pieces(126_976);
        let region = buffers.iovecs()[0].iov_base as usize;
        let covered: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        assert_eq!(covered, buffers.iovecs().iter().map(|whole| whole.iov_len).sum::<usize>());
        for length in [4096, 126_976, 65_536, 65_536, 512, 1 << 20, 4096, 1 << 20, 126_976].repeat(40) {
            let offset = buffers.for_read(length) as usize - region;
            assert!(offset + length <= 16 << 20);
            match length <= 126_976 {
                true => assert_eq!(offset / 126_976, (offset + length - 1) / 126_976, "{offset} {length}"),
                false => assert_eq!(offset % 126_976, 0, "{offset} {length}"),
            }
        }
    }

    #[test]
    fn buffers_are_aligned_and_go_round_within_their_region() {
        let mut buffers = Buffers::new(&options(20 << 20, WriteData::Zero, false)).unwrap();
        let [_, writes] = buffers.iovecs();
        let range = writes.iov_base as usize..writes.iov_base as usize + writes.iov_len;
        for length in [512, 4096, 20 << 20, 12 << 20, 20 << 20] {
            let start = buffers.for_write(0, length) as usize;
            assert_eq!(start % ALIGNMENT, 0);
            assert!(range.contains(&start) && start + length <= range.end);
        }
    }
}
