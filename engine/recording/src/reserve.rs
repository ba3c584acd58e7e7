//! Disk space held back, so that a full disk does not cost what was recorded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A file of unused blocks in the recording's directory.
///
/// When a write finds the disk full, the reserve is removed, the write is done again in the space that this freed, and
/// [`Reserve::is_spent`] tells the run to stop: the rest of what is in memory still fits.
pub(crate) struct Reserve {
    path: PathBuf,
    spent: Arc<AtomicBool>,
}

/// Takes blocks for a file. Memory file systems end this early when the kernel has other work for the thread, as io_uring may.
fn allocate(file: &File, length: libc::off_t) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open for the whole call, and fallocate reads nothing but its integer arguments.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

impl Reserve {
    /// Takes `bytes` of disk.
    pub(crate) fn take(directory: &Path, bytes: u64) -> io::Result<Reserve> {
        let path = directory.join("reserve");
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        if let Err(error) = allocate(&file, length) {
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                let _ = fs::remove_file(&path);
                return Err(error);
            }
            // A file system without fallocate keeps the reserve as written zeroes.
            io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut &file)?;
        }
        Ok(Reserve { path, spent: Arc::new(AtomicBool::new(false)) })
    }

    /// A flag that turns true when the reserve had to be used.
    pub(crate) fn spent_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.spent)
    }

    fn spend(path: &Path, spent: &AtomicBool) -> bool {
        !spent.swap(true, Ordering::AcqRel) && fs::remove_file(path).is_ok()
    }

    /// Gives the space back at the end.
    pub(crate) fn release(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// A file for writing that falls back on this reserve.
    pub(crate) fn guard(&self, file: File) -> ReservedFile {
        ReservedFile { file, reserve_path: self.path.clone(), spent: Arc::clone(&self.spent) }
    }
}

/// A file whose writes fall back on the reserve when the disk is full.
pub(crate) struct ReservedFile {
    file: File,
    reserve_path: PathBuf,
    spent: Arc<AtomicBool>,
}

impl ReservedFile {
    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Write for ReservedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
                    && Reserve::spend(&self.reserve_path, &self.spent) =>
            {
                self.file.write(bytes)
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for ReservedFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
