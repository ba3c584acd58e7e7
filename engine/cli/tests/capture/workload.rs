//! I/O whose every command is known: past the page cache, one after the other.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

const BLOCK_BYTES: usize = 4096;
const BLKDISCARD: u64 = 0x1277;
const BLKZEROOUT: u64 = 0x127f;

/// A device opened past the page cache.
pub struct Direct {
    file: File,
    memory: *mut u8,
    layout: Layout,
}

impl Direct {
    pub fn open(path: &str) -> Direct {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
        let layout = Layout::from_size_align(BLOCK_BYTES, BLOCK_BYTES).unwrap();
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc_zeroed(layout) };
        assert!(!memory.is_null());
        Direct { file, memory, layout }
    }

    fn block(&mut self) -> &mut [u8] {
        // SAFETY: the memory is ours, of this size, initialised, and borrowed with self.
        unsafe { std::slice::from_raw_parts_mut(self.memory, BLOCK_BYTES) }
    }

    fn offset(index: u64) -> u64 {
        index * BLOCK_BYTES as u64
    }

    pub fn read(&mut self, index: u64) {
        let file = self.file.try_clone().unwrap();
        file.read_exact_at(self.block(), Direct::offset(index)).unwrap();
    }

    pub fn write(&mut self, index: u64) {
        let file = self.file.try_clone().unwrap();
        file.write_all_at(self.block(), Direct::offset(index)).unwrap();
    }

    /// A write that must be durable when it is done: with FUA.
    pub fn write_durably(&mut self, index: u64) {
        let vector = libc::iovec { iov_base: self.memory.cast(), iov_len: BLOCK_BYTES };
        let offset = Direct::offset(index) as libc::off_t;
        // SAFETY: the vector names memory of ours, which lives for the whole call.
        let written = unsafe { libc::pwritev2(self.file.as_raw_fd(), &vector, 1, offset, libc::RWF_DSYNC) };
        assert_eq!(written, BLOCK_BYTES as isize, "{}", std::io::Error::last_os_error());
    }

    pub fn flush(&self) {
        self.file.sync_all().unwrap();
    }

    pub fn trim(&self, index: u64, blocks: u64) {
        self.range(BLKDISCARD, index, blocks);
    }

    pub fn write_zeroes(&self, index: u64, blocks: u64) {
        self.range(BLKZEROOUT, index, blocks);
    }

    fn range(&self, request: u64, index: u64, blocks: u64) {
        let range = [Direct::offset(index), Direct::offset(blocks)];
        // SAFETY: both requests read two numbers of 64 bits, which live for the whole call.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request as libc::Ioctl, range.as_ptr()) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not used after.
        unsafe { dealloc(self.memory, self.layout) };
    }
}
