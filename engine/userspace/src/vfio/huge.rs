//! Memory for DMA without an IOMMU: huge pages, which the kernel neither moves nor swaps, and where they are in physical memory.
//!
//! They are pages of one file in memory, which a guardian process keeps open: after a kill the kernel frees our memory before it takes the
//! controller from us, and pages that nobody else held would be somebody else's while the controller still writes to them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// The size of a huge page: on x86 and 64-bit Arm what is there unless another was chosen at boot.
pub const HUGE_BYTES: usize = 2 << 20;
/// MFD_HUGE_2MB: the exponent of the size, as mmap has it.
const HUGE_2MIB: libc::c_uint = 21 << 26;

/// A file of huge pages.
pub struct HugePages {
    file: OwnedFd,
    places: Arc<Mutex<Places>>,
}

/// Which parts of the file are mapped. Pages stay in the file when their mapping goes, since the guardian answers for every one that a
/// controller may still reach: they are mapped again for the next queues.
#[derive(Default)]
struct Places {
    length: u64,
    /// Offset and length of what nobody maps, in order, without neighbours that touch.
    free: Vec<(u64, u64)>,
}

impl Places {
    /// A place for so many bytes: the smallest free one that is large enough, or one behind the end.
    fn take(&mut self, length: u64) -> u64 {
        let fits = self.free.iter().enumerate().filter(|(_, (_, free))| *free >= length);
        let Some((index, (offset, free))) = fits.min_by_key(|(_, (_, free))| *free) else {
            // What is free at the end is the beginning of what is taken.
            let last = self.free.pop_if(|(offset, free)| *offset + *free == self.length);
            let offset = last.map_or(self.length, |(offset, _)| offset);
            self.length = offset + length;
            return offset;
        };
        let (offset, free) = (*offset, *free);
        match free - length {
            0 => drop(self.free.remove(index)),
            left => self.free[index] = (offset + length, left),
        }
        offset
    }

    /// Makes a place free.
    fn give_back(&mut self, offset: u64, length: u64) {
        let index = self.free.partition_point(|(free, _)| *free < offset);
        self.free.insert(index, (offset, length));
        self.free.dedup_by(|next, before| {
            let touches = before.0 + before.1 == next.0;
            before.1 += if touches { next.1 } else { 0 };
            touches
        });
    }
}

/// A place in the file, until it is dropped.
struct Place {
    places: Arc<Mutex<Places>>,
    offset: u64,
    length: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().expect("no holder of this lock panics").give_back(self.offset, self.length);
    }
}

/// A mapping of some of them.
pub struct Mapping {
    /// Where it is for us.
    pub start: NonNull<u8>,
    /// Its size, whole huge pages.
    pub length: usize,
    /// The physical address of each page.
    pub physical: Vec<u64>,
    _place: Place,
}

// SAFETY: a mapping has one owner, and no thread's.
unsafe impl Send for Mapping {}
// SAFETY: nothing is reached through a shared reference to it.
unsafe impl Sync for Mapping {}

impl HugePages {
    /// An empty file.
    ///
    /// # Errors
    /// When the kernel has no huge pages of this size at all.
    pub fn new() -> io::Result<HugePages> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_HUGETLB | HUGE_2MIB;
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { libc::memfd_create(c"testdrive-dma".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        Ok(HugePages { file: unsafe { OwnedFd::from_raw_fd(fd) }, places: Arc::default() })
    }

    /// The file.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Maps pages, zeroed and in place; those first whose mapping is gone.
    ///
    /// # Errors
    /// When there are not so many free ones, or where they are is not told, as to anybody but root.
    pub fn map(&self, length: usize) -> io::Result<Mapping> {
        let length = length.next_multiple_of(HUGE_BYTES);
        let fd = self.file.as_raw_fd();
        let place = {
            let mut places = self.places.lock().expect("no holder of this lock panics");
            let place = places.take(length as u64);
            // Only ever made longer: what a controller may still reach stays in the file.
            // SAFETY: the call takes integers only.
            if unsafe { libc::ftruncate(fd, places.length as libc::off_t) } != 0 {
                places.give_back(place, length as u64);
                return Err(io::Error::last_os_error());
            }
            Place { places: Arc::clone(&self.places), offset: place, length: length as u64 }
        };
        let offset = place.offset;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE | libc::MAP_LOCKED);
        // SAFETY: a mapping at an address of the kernel's choice touches no memory of this process.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, offset as libc::off_t) };
        let missing = || {
            let message = format!(
                "{} huge pages of 2 MiB are not free: allow more (sysctl vm.nr_hugepages)",
                length / HUGE_BYTES
            );
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        };
        let start = match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => start,
            _ => return Err(missing()),
        };
        let mut mapping = Mapping { start, length, physical: Vec::new(), _place: place };
        // SAFETY: the range is the whole mapping, which was just made, and which nobody else knows of.
        unsafe { std::ptr::write_bytes(start.as_ptr(), 0, length) };
        let pagemap = File::open("/proc/self/pagemap")?;
        for page in (0..length).step_by(HUGE_BYTES) {
            mapping.physical.push(physical_address(&pagemap, start.as_ptr() as usize + page)?);
        }
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and is unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Where a page is in physical memory (Documentation/admin-guide/mm/pagemap.rst): the frame in bits 0 to 54, presence in bit 63.
fn physical_address(pagemap: &File, address: usize) -> io::Result<u64> {
    const SMALL_PAGE: usize = 4096;
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, (address / SMALL_PAGE * 8) as u64)?;
    decode(u64::from_ne_bytes(entry)).ok_or_else(|| {
        let message = "the kernel does not tell where memory is (/proc/self/pagemap): run as root";
        io::Error::new(io::ErrorKind::PermissionDenied, message)
    })
}

fn decode(entry: u64) -> Option<u64> {
    let frame = entry & ((1 << 55) - 1);
    (entry >> 63 == 1 && frame != 0).then_some(frame * 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_again_by_the_next_queues() {
        let mut places = Places::default();
        let phase = |places: &mut Places| [3, 1, 8].map(|pages| (places.take(pages), pages));
        let first = phase(&mut places);
        assert_eq!((first, places.length), ([(0, 3), (3, 1), (4, 8)], 12));
        for _ in 0..4 {
            // In whatever order they end.
            for index in [1, 0, 2] {
                let (offset, length) = first[index];
                places.give_back(offset, length);
            }
            assert_eq!(places.free, [(0, 12)]);
            let mut taken = phase(&mut places);
            taken.sort_unstable();
            assert_eq!((taken, places.length), ([(0, 3), (3, 1), (4, 8)], 12));
        }
    }

    #[test]
    fn the_smallest_place_that_is_large_enough_is_taken_and_the_end_grows() {
        let mut places = Places { length: 20, free: vec![(0, 6), (8, 2), (16, 4)] };
        assert_eq!((places.take(2), places.take(3), places.take(5)), (8, 16, 0));
        assert_eq!(places.free, [(5, 1), (19, 1)]);
        // What is free at the end is part of it.
        assert_eq!((places.take(3), places.length, places.free.as_slice()), (19, 22, &[(5, 1)][..]));
    }

    #[test]
    fn a_frame_is_an_address_only_where_the_kernel_tells_it() {
        assert_eq!(decode(1 << 63 | 0x1234), Some(0x1234 << 12));
        assert_eq!(decode(1 << 63 | 1 << 61 | 0x200), Some(0x200 << 12));
        // Not in memory, or not told to this user.
        assert_eq!((decode(0x1234), decode(1 << 63)), (None, None));
    }
}
