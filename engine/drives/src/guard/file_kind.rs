//! What a path that should be a file leads to, and whether testdrive made it.

use crate::guard::cannot_open;
use crate::guard::refusal::{Reason, Refusal};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Set on every file that testdrive makes as a target, so that it may be overwritten again without being asked for.
const MARK: &std::ffi::CStr = c"user.testdrive.target";
/// File systems whose files are switches of the kernel or of firmware, not data (linux/magic.h).
const SWITCHES: [(i64, &str); 9] = [
    (0x9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x6265_6570, "configfs"),
    (0x7363_6673, "securityfs"),
    (0xde5e_81e4, "efivarfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
];

/// Whether a path leads to a file that holds data.
///
/// # Errors
/// When it leads to a device, a directory, a pipe, or a switch of the kernel.
pub(crate) fn check_is_regular(path: &Path, handle: &File, metadata: &fs::Metadata) -> Result<(), Refusal> {
    let (shown, kind) = (path.display(), metadata.file_type());
    if kind.is_block_device() {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let node = real.display().to_string();
        return Err(Refusal::Unsafe {
            target: format!("file:{shown}"),
            reasons: vec![Reason::BlockDevice { linked: path.is_symlink(), node }],
        });
    }
    let what = match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => return check_holds_data(path, handle),
    };
    Err(Refusal::Usage(format!(
        "{shown} is {what}, not a regular file: name a file, or one to be made with size="
    )))
}

fn check_holds_data(path: &Path, handle: &File) -> Result<(), Refusal> {
    // SAFETY: statfs is a C structure of integers, for which all zeroes is a value.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the structure lives until the call returns.
    if unsafe { libc::fstatfs(handle.as_raw_fd(), &mut status) } != 0 {
        return Err(cannot_open(path, &io::Error::last_os_error()));
    }
    #[allow(clippy::unnecessary_cast, reason = "the type of this field differs between C libraries")]
    let kind = status.f_type as i64;
    match SWITCHES.iter().find(|(magic, _)| *magic == kind) {
        Some((_, name)) => Err(Refusal::Usage(format!(
            "{} is a file of {name}, which holds no data: name another file",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Marks a file as one that testdrive made.
pub(crate) fn mark(file: &File) {
    // SAFETY: the name ends with a zero byte, and the value is one byte that lives until the call returns. A file system without
    // such attributes answers with an error, which only means that consent is asked for the next time.
    unsafe { libc::fsetxattr(file.as_raw_fd(), MARK.as_ptr(), b"1".as_ptr().cast(), 1, 0) };
}

/// Whether testdrive made the file.
pub(crate) fn is_marked(file: &File) -> bool {
    let mut value = 0_u8;
    // SAFETY: the name ends with a zero byte, and the buffer is the one byte that its length says.
    let length =
        unsafe { libc::fgetxattr(file.as_raw_fd(), MARK.as_ptr(), std::ptr::from_mut(&mut value).cast(), 1) };
    length == 1 && value == b'1'
}
