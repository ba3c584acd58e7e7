//! Memory of this process that an IOMMU lets a controller reach.

use super::abi::{self, DmaMap, DmaUnmap};
use super::iova::IovaSpace;
use super::{because, call_with};
use crate::memory::{Addresses, DmaMemory};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// A container with an IOMMU.
pub struct Iommu {
    /// VFIO's container.
    pub container: File,
    /// Which addresses are free.
    pub space: Mutex<IovaSpace>,
}

/// Memory of this process that an IOMMU lets the controller reach, until it is dropped.
pub struct Pinned {
    iommu: Arc<Iommu>,
    iova: u64,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory has one owner, and no thread's.
unsafe impl Send for Pinned {}
// SAFETY: nothing is reached through a shared reference to it.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Maps fresh memory, zeroed and in place.
    ///
    /// # Errors
    /// When there is no memory, no address, or the kernel does not pin so much.
    pub fn map(iommu: &Arc<Iommu>, length: usize) -> io::Result<DmaMemory> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        );
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).expect("mmap does not map address 0");
        // A child of a fork must not get copies of pages that the controller knows: ours would then be the copies.
        // SAFETY: the advice is for the mapping that was just made.
        unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_DONTFORK) };
        let taken = iommu.space.lock().expect("no holder of this lock panics").take(length as u64);
        let Some(iova) = taken else {
            // SAFETY: the mapping was just made, and nobody knows of it.
            unsafe { libc::munmap(start.as_ptr().cast(), length) };
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                "the IOMMU has no addresses left for so much memory",
            ));
        };
        let pinned = Pinned { iommu: Arc::clone(iommu), iova, start, length };
        let argsz = size_of::<DmaMap>() as u32;
        let (vaddr, size) = (start.as_ptr() as u64, length as u64);
        let mut request = DmaMap { argsz, flags: abi::DMA_READ_WRITE, vaddr, iova, size };
        call_with(iommu.container.as_raw_fd(), abi::IOMMU_MAP_DMA, &mut request).map_err(because(format!(
            "{size} bytes cannot be pinned for the drive: allow more locked memory (ulimit -l unlimited), or run as root"
        )))?;
        // SAFETY: the mapping is readable and writable, and lasts as long as its owner.
        Ok(unsafe { DmaMemory::new(start, length, Addresses::Contiguous(iova), Box::new(pinned)) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let argsz = size_of::<DmaUnmap>() as u32;
        let mut request = DmaUnmap { argsz, flags: 0, iova: self.iova, size: self.length as u64 };
        // Where it was never mapped there is nothing to unmap.
        let _ = call_with(self.iommu.container.as_raw_fd(), abi::IOMMU_UNMAP_DMA, &mut request);
        self.iommu.space.lock().expect("no holder of this lock panics").give_back(self.iova);
        // SAFETY: the mapping was made with this length, is unmapped once, and no controller reaches it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
