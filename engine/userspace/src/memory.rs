//! Memory that a controller can reach by DMA: where it is for us, and where it is for the controller.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{fence, Ordering};

/// The unit of DMA: memory is contiguous for the controller within it. PRP entries are made for pages of this size.
pub const PAGE_BYTES: usize = 4096;

/// Where memory is for the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// In one piece, from here on.
    Contiguous(u64),
    /// In pieces of one size, a power of two and at least a page, each from its own address on.
    Pieces {
        /// The size.
        bytes: usize,
        /// The address of each.
        starts: Vec<u64>,
    },
}

/// A mapping of whole pages, pinned in memory until it is dropped.
pub struct DmaMemory {
    start: NonNull<u8>,
    length: usize,
    addresses: Addresses,
    /// What ends the mapping when it is dropped.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the memory belongs to its owner alone, and is no thread's. It is not `Sync`: a shared reference writes to it, so that two threads
// with one would race.
unsafe impl Send for DmaMemory {}

impl DmaMemory {
    /// Memory of `length` bytes at `start` that is valid until `owner` is dropped.
    ///
    /// # Panics
    /// When it is not whole pages, or not all of it has addresses.
    ///
    /// # Safety
    /// The memory must be readable and writable for as long as `owner` lives, and reached through this alone.
    pub unsafe fn new(
        start: NonNull<u8>,
        length: usize,
        addresses: Addresses,
        owner: Box<dyn Any + Send + Sync>,
    ) -> DmaMemory {
        assert!(
            (start.as_ptr() as usize).is_multiple_of(PAGE_BYTES)
                && length.is_multiple_of(PAGE_BYTES)
                && length > 0
        );
        if let Addresses::Pieces { bytes, starts } = &addresses {
            assert!(bytes.is_power_of_two() && *bytes >= PAGE_BYTES && bytes * starts.len() >= length);
        }
        DmaMemory { start, length, addresses, _owner: owner }
    }

    /// Its size.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Where a byte of it is for us.
    ///
    /// # Panics
    /// When it is beyond the end.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.length, "byte {offset} of {}", self.length);
        // SAFETY: the offset lies within the mapping, by the check above.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Where a byte of it is for the controller. What follows in the same page follows there too.
    ///
    /// # Panics
    /// When it is beyond the end.
    #[inline]
    pub fn address(&self, offset: usize) -> u64 {
        assert!(offset < self.length, "byte {offset} of {}", self.length);
        match &self.addresses {
            Addresses::Contiguous(start) => start + offset as u64,
            Addresses::Pieces { bytes, starts } => starts[offset / bytes] + (offset % bytes) as u64,
        }
    }

    /// Whether so many bytes from here on are in one piece for the controller.
    pub fn is_contiguous(&self, offset: usize, length: usize) -> bool {
        match &self.addresses {
            Addresses::Contiguous(_) => true,
            Addresses::Pieces { .. } => (offset..offset + length)
                .step_by(PAGE_BYTES)
                .all(|at| self.address(at) == self.address(offset) + (at - offset) as u64),
        }
    }

    /// Writes a word that the controller will read.
    #[inline]
    pub fn write64(&self, offset: usize, value: u64) {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length);
        // SAFETY: the word lies within the mapping and is aligned, by the check above.
        unsafe { self.at(offset).cast::<u64>().write_volatile(value.to_le()) };
    }

    /// Reads a word that the controller may write at any time.
    #[inline]
    pub fn read32(&self, offset: usize) -> u32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length);
        // SAFETY: the word lies within the mapping and is aligned, by the check above.
        u32::from_le(unsafe { self.at(offset).cast::<u32>().read_volatile() })
    }

    /// Copies bytes in, for the controller to read.
    ///
    /// # Panics
    /// When they do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.length, "{} bytes at {offset} of {}", bytes.len(), self.length);
        // SAFETY: the range lies within the mapping, by the check above, and our slice cannot overlap it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len())
        };
    }

    /// Copies bytes out that the controller has written.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.length, "{} bytes at {offset} of {}", bytes.len(), self.length);
        // SAFETY: as in `write`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len())
        };
    }

    /// Makes everything zero.
    pub fn clear(&self) {
        // SAFETY: the range is the whole mapping.
        unsafe { std::ptr::write_bytes(self.start.as_ptr(), 0, self.length) };
    }
}

/// Everything that was written before is visible to the controller before what is written after, and everything that was read before was
/// read before it: a doorbell gives entries away, to be read or to be written over. Where memory and registers are ordered among each other
/// by the processor, as on x86, this keeps the compiler from moving either.
#[inline]
pub fn before_doorbell() {
    fence(Ordering::Release);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches no memory.
    unsafe {
        std::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
}

/// What the controller wrote before what was just read is read after it.
#[inline]
pub fn after_phase() {
    fence(Ordering::Acquire);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches no memory.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
}
