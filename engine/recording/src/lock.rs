//! The lock that a writer holds on its recording for as long as it lives: how a reader tells a crash from a run in progress.
//!
//! A process number would not do: the reader may be in another container, or on another host that shares the disk.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

const FILE_NAME: &str = "writer.lock";

/// A held lock. The kernel lets go of it with the process, however that ends.
pub(crate) struct WriterLock {
    _file: File,
}

/// What a reader finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterState {
    /// Somebody holds the lock, or it cannot be told: the recording must be left alone.
    Alive,
    /// Nobody holds it.
    Gone,
}

fn try_lock(file: &File, operation: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call.
    match unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl WriterLock {
    /// Takes the lock on a recording's directory.
    pub(crate) fn take(directory: &Path) -> io::Result<WriterLock> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(directory.join(FILE_NAME))?;
        match try_lock(&file, libc::LOCK_EX) {
            // A file system without locks: a reader there cannot tell either, and leaves a running recording alone.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOLCK)) => {}
            result => result?,
        }
        Ok(WriterLock { _file: file })
    }

    /// Takes the lock's file away, once the manifest says how the recording ended.
    pub(crate) fn remove(directory: &Path) {
        let _ = fs::remove_file(directory.join(FILE_NAME));
    }
}

/// Whether the writer of a recording that says `running` still lives.
pub(crate) fn writer_state(directory: &Path) -> WriterState {
    match File::open(directory.join(FILE_NAME)) {
        Ok(file) => match try_lock(&file, libc::LOCK_SH) {
            Ok(()) => WriterState::Gone,
            Err(_) => WriterState::Alive,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => WriterState::Gone,
        Err(_) => WriterState::Alive,
    }
}
