//! A controller's registers, mapped.

use super::abi::{self, RegionInfo};
use super::{because, host_page_bytes, region};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

/// So much of BAR 0 is mapped at least: registers, and the doorbells of more queues than are used, where these lie side by side.
const REGISTERS_BYTES: usize = 16 << 10;

/// BAR 0, as far as it is needed.
pub struct Registers {
    start: NonNull<u8>,
    /// How many bytes.
    pub length: usize,
}

// SAFETY: registers are no memory of this process; every access is volatile, and the controller orders them.
unsafe impl Send for Registers {}
// SAFETY: as above.
unsafe impl Sync for Registers {}

impl Registers {
    /// Maps them, as far as `needed` says when it is asked with the first of them, and as far as they go.
    ///
    /// # Errors
    /// When the kernel does not let them be mapped.
    pub fn map(device: &File, needed: impl FnOnce(&Registers) -> usize) -> io::Result<Registers> {
        let info = region(device, abi::REGION_BAR0)?;
        if info.flags & abi::REGION_MMAP == 0 || info.size < 0x2000 {
            let message =
                format!("its registers cannot be mapped (flags {:#x}, {} bytes)", info.flags, info.size);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let length = |wanted: usize| wanted.min(usize::try_from(info.size).unwrap_or(usize::MAX));
        let first = Registers::map_bytes(device, &info, length(REGISTERS_BYTES))?;
        let wanted = length(needed(&first).next_multiple_of(host_page_bytes()));
        if wanted <= first.length {
            return Ok(first);
        }
        Registers::map_bytes(device, &info, wanted)
    }

    fn map_bytes(device: &File, info: &RegionInfo, length: usize) -> io::Result<Registers> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                device.as_raw_fd(),
                info.offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(because("its registers cannot be mapped".into())(io::Error::last_os_error()));
        }
        Ok(Registers { start: NonNull::new(start.cast()).expect("mmap does not map address 0"), length })
    }

    #[inline]
    fn place(&self, offset: usize) -> *mut u32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length, "register {offset:#x}");
        // SAFETY: the register lies within the mapping, by the check above.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }

    #[inline]
    /// Reads a register.
    pub fn read32(&self, offset: usize) -> u32 {
        // SAFETY: `place` checked it; registers are little-endian.
        u32::from_le(unsafe { self.place(offset).read_volatile() })
    }

    #[inline]
    /// Writes a register.
    pub fn write32(&self, offset: usize, value: u32) {
        // SAFETY: `place` checked it.
        unsafe { self.place(offset).write_volatile(value.to_le()) };
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and is unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
