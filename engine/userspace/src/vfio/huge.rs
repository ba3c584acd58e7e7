//! Memory for DMA without an IOMMU: huge pages, which the kernel neither moves nor swaps, and where they are in physical memory.
//!
//! They are pages of one file in memory, which a guardian process keeps open: after a kill the kernel frees our memory before it takes the
//! controller from us, and pages that nobody else held would be somebody else's while the controller still writes to them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::ptr::NonNull;
use std::sync::Mutex;

/// The size of a huge page: on x86 and 64-bit Arm what is there unless another was chosen at boot.
pub const HUGE_BYTES: usize = 2 << 20;
/// MFD_HUGE_2MB: the exponent of the size, as mmap has it.
const HUGE_2MIB: libc::c_uint = 21 << 26;

/// A file of huge pages.
pub struct HugePages {
    file: OwnedFd,
    length: Mutex<u64>,
}

/// A mapping of some of them.
pub struct Mapping {
    /// Where it is for us.
    pub start: NonNull<u8>,
    /// Its size, whole huge pages.
    pub length: usize,
    /// The physical address of each page.
    pub physical: Vec<u64>,
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
        Ok(HugePages { file: unsafe { OwnedFd::from_raw_fd(fd) }, length: Mutex::new(0) })
    }

    /// The file.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Maps fresh pages, zeroed and in place.
    ///
    /// # Errors
    /// When there are not so many free ones, or where they are is not told, as to anybody but root.
    pub fn map(&self, length: usize) -> io::Result<Mapping> {
        let length = length.next_multiple_of(HUGE_BYTES);
        let mut file_length = self.length.lock().expect("no holder of this lock panics");
        let offset = *file_length;
        let fd = self.file.as_raw_fd();
        // SAFETY: the call takes integers only.
        if unsafe { libc::ftruncate(fd, (offset + length as u64) as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        *file_length = offset + length as u64;
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
        let mut mapping = Mapping { start, length, physical: Vec::new() };
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
    fn a_frame_is_an_address_only_where_the_kernel_tells_it() {
        assert_eq!(decode(1 << 63 | 0x1234), Some(0x1234 << 12));
        assert_eq!(decode(1 << 63 | 1 << 61 | 0x200), Some(0x200 << 12));
        // Not in memory, or not told to this user.
        assert_eq!((decode(0x1234), decode(1 << 63)), (None, None));
    }
}
