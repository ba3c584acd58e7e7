//! What the driver needs of a PCI function: its registers, memory that it can reach, its interrupts. One implementation is VFIO's, one
//! a double in memory for tests.

use crate::memory::DmaMemory;
use std::io;
use std::os::fd::RawFd;

/// An NVMe controller's function, which user space has to itself.
pub trait Function: Send + Sync + 'static {
    /// Reads a register of BAR 0.
    fn read32(&self, offset: usize) -> u32;

    /// Writes a register of BAR 0. Where that has the controller look at memory, callers put [`crate::memory::before_doorbell`] before it.
    fn write32(&self, offset: usize, value: u32);

    /// The size of what can be reached of BAR 0.
    fn registers_bytes(&self) -> usize;

    /// Memory for `length_bytes` that the controller can reach, whole pages, zeroed and in place.
    ///
    /// # Errors
    /// When the host has not the memory, or does not let the controller reach it.
    fn allocate(&self, length_bytes: usize) -> io::Result<DmaMemory>;

    /// The descriptor that becomes readable with an interrupt of this vector; `None` where there are no interrupts.
    fn interrupt(&self, vector: u16) -> Option<RawFd>;

    /// How many vectors there are; 0 without interrupts.
    fn interrupts(&self) -> u16;

    /// Whether somebody wants the function back, as whoever takes the drive out of its slot: the host waits until we let go of it.
    fn is_wanted_back(&self) -> bool {
        false
    }

    /// Whether the bus had an error since the last time that this was asked, so that commands or answers may be lost.
    fn take_bus_error(&self) -> bool {
        false
    }

    /// Whether the controller may have memory to keep its own things in: not where nothing holds it to what it was given.
    fn may_lend_memory(&self) -> bool {
        true
    }

    /// Keeps the controller from reaching memory, whatever state it is in.
    fn cut_off(&self);

    /// A register of 64 bits, in the two halves that every controller takes (PCIe Transport 3.1.1).
    fn read64(&self, offset: usize) -> u64 {
        u64::from(self.read32(offset)) | u64::from(self.read32(offset + 4)) << 32
    }

    /// Writes a register of 64 bits.
    fn write64(&self, offset: usize, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }
}
