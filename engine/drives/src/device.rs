//! A block device or file, opened by the guard, as the I/O paths use it.

use crate::drive::SubmitError;
use crate::guard::page_cache;
use crate::sysfs::SystemRoots;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use testdrive_core::Opcode;
use testdrive_recording::DriveIdentity;

/// What was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A block device.
    Block,
    /// A regular file that stands in for one.
    File,
}

/// An open drive. Every queue holds it, so that it stays open, and claimed, until the last is gone.
#[derive(Clone, Debug)]
pub struct Device {
    /// Opened with O_DIRECT where the file system has it.
    pub file: Arc<File>,
    /// What it is.
    pub kind: DeviceKind,
    /// Whether it was opened for writing, with consent.
    pub writable: bool,
    /// Whether it takes trims: a device that discards, a file system that punches holes.
    pub trims: bool,
    /// Whether the kernel can poll it for completions.
    pub polled: bool,
    /// What it is.
    pub identity: DriveIdentity,
}

impl Device {
    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Whether a path over this device may issue the opcode at all.
    pub fn supports(&self, opcode: Opcode) -> bool {
        match opcode {
            Opcode::Trim => self.trims,
            Opcode::Read | Opcode::Write | Opcode::Flush | Opcode::WriteZeroes => true,
        }
    }

    /// Whether a path over this device may issue the opcode now.
    ///
    /// # Errors
    /// When it would write to a device that was opened for reading only, or the device cannot do it.
    pub fn check(&self, opcode: Opcode) -> Result<(), SubmitError> {
        if opcode.modifies() && !self.writable {
            return Err(SubmitError::ReadOnly);
        }
        if !self.supports(opcode) {
            return Err(SubmitError::Unsupported);
        }
        Ok(())
    }

    /// Whether a block device was removed: the kernel then says that it has no capacity, or does not answer at all.
    pub fn is_gone(&self) -> bool {
        const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
        if self.kind == DeviceKind::File {
            return false;
        }
        let mut capacity_bytes = 0_u64;
        // SAFETY: BLKGETSIZE64 writes one u64 to the pointer, which is valid for the whole call.
        let answer = unsafe { libc::ioctl(self.fd(), BLKGETSIZE64 as _, &mut capacity_bytes) };
        answer != 0 || capacity_bytes == 0
    }

    /// Has the kernel forget what it knew of the content before a run that wrote, and of the others that were claimed with it. Not where a
    /// queue was left behind with commands in flight: the content is not settled then, and a drive that does not answer would be waited for.
    pub(crate) fn forget_cached(&self, others: &[Arc<File>], roots: &SystemRoots) {
        if self.kind == DeviceKind::Block && self.writable && self.is_let_go_of() {
            std::iter::once(&self.file).chain(others).for_each(|file| page_cache::forget(file, roots));
        }
    }

    /// Whether no queue has it any more: those that end with commands in flight keep it.
    fn is_let_go_of(&self) -> bool {
        Arc::strong_count(&self.file) == 1
    }

    /// The fallocate(2) mode that writes zeroes. A file's range becomes a hole, which every file system with holes has, tmpfs too,
    /// and which reads as zeroes all the same.
    pub fn zeroes_mode(&self) -> i32 {
        match self.kind {
            DeviceKind::Block => libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE,
            DeviceKind::File => PUNCH_HOLE,
        }
    }
}

/// The mode for fallocate(2) that deallocates a range of a file.
pub const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// Trims a range of a block device, and waits for it.
///
/// # Errors
/// What BLKDISCARD answers.
pub fn discard(fd: RawFd, offset_bytes: u64, length_bytes: u64) -> std::io::Result<()> {
    const BLKDISCARD: libc::c_ulong = 0x1277;
    let range = [offset_bytes, length_bytes];
    // SAFETY: BLKDISCARD reads two u64 from the pointer, which is valid for the whole call.
    match unsafe { libc::ioctl(fd, BLKDISCARD as _, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
