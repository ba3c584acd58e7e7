//! The questions that only an open block device answers.

use crate::guard::openers::FileId;
use crate::sysfs::DeviceNumber;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const BLKROGET: u32 = 0x125e;
const BLKSSZGET: u32 = 0x1268;
const BLKPBSZGET: u32 = 0x127b;
const BLKGETSIZE64: u32 = 0x8008_1272;
const LOOP_GET_STATUS64: u32 = 0x4c05;

/// What the kernel says of an open block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Capacity.
    pub capacity_bytes: u64,
    /// The smallest unit that can be addressed.
    pub logical_block_bytes: u64,
    /// The smallest unit that is written without a read first.
    pub physical_block_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
}

fn ask<T>(file: &File, request: u32, answer: &mut T) -> io::Result<()> {
    // SAFETY: every caller passes the type that its request fills, which lives until the call returns.
    match unsafe { libc::ioctl(file.as_raw_fd(), request as _, std::ptr::from_mut(answer)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Capacity, block sizes and the read-only switch of an open block device.
///
/// # Errors
/// When the device does not answer, as when it is gone.
pub fn geometry(file: &File) -> io::Result<Geometry> {
    let (mut capacity_bytes, mut logical, mut physical, mut read_only) = (0_u64, 0_i32, 0_u32, 0_i32);
    ask(file, BLKGETSIZE64, &mut capacity_bytes)?;
    ask(file, BLKSSZGET, &mut logical)?;
    ask(file, BLKPBSZGET, &mut physical)?;
    ask(file, BLKROGET, &mut read_only)?;
    Ok(Geometry {
        capacity_bytes,
        logical_block_bytes: logical.unsigned_abs().into(),
        physical_block_bytes: physical.into(),
        read_only: read_only != 0,
    })
}

/// `struct loop_info64` of linux/loop.h, of which only the first two fields are read.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    unused: [u64; 27],
}

/// The file that an attached loop device stands on, whatever its path is by now.
///
/// # Errors
/// When the device is not an attached loop device.
pub fn loop_backing_id(file: &File) -> io::Result<FileId> {
    let mut info = LoopInfo64 { device: 0, inode: 0, unused: [0; 27] };
    ask(file, LOOP_GET_STATUS64, &mut info)?;
    Ok(FileId { device: DeviceNumber::from_raw(info.device), inode: info.inode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_structure_fits_the_buffer() {
        // Five u64, four u32, names of 64 and 64 bytes, a key of 32, two u64.
        assert_eq!(std::mem::size_of::<LoopInfo64>(), 5 * 8 + 4 * 4 + 64 + 64 + 32 + 2 * 8);
    }

    #[test]
    fn a_file_that_is_no_device_has_no_geometry() {
        assert!(geometry(&tempfile::tempfile().unwrap()).is_err());
    }
}
