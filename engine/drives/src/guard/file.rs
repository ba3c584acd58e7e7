//! The guard for `file:` targets: a regular file that stands in for a drive. A user's file is as dear as a user's drive.

use crate::device::{Device, DeviceKind, PUNCH_HOLE};
use crate::guard::file_kind::{check_is_regular, is_marked, mark};
use crate::guard::probe;
use crate::guard::refusal::{reasons_of_usage, signature_names, Reason, Refusal};
use crate::guard::usage::{file_id, Snapshot};
use crate::guard::{
    cannot_open, consent_reason, handle, reopen, reopen_direct, Access, GuardedTarget, OpenRequest,
};
use crate::size::size_text;
use crate::sysfs::SystemRoots;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use testdrive_recording::{DriveIdentity, Warning};

/// What a file is written in units of, at most: the blocks of the drives that file systems are on.
const BLOCKS_BYTES: [usize; 4] = [512, 1024, 2048, 4096];
/// Opens or makes the file.
///
/// # Errors
/// As [`crate::guard::open_for_run`].
pub(crate) fn open(
    request: &OpenRequest,
    path: &Path,
    size_bytes: Option<u64>,
    roots: &SystemRoots,
) -> Result<GuardedTarget, Refusal> {
    match handle(path) {
        Ok(handle) => open_existing(request, path, size_bytes, &handle, roots),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(request, path, size_bytes),
        Err(error) => Err(cannot_open(path, &error)),
    }
}

/// I/O that goes through the page cache measures memory.
pub(crate) fn page_cache_warning(given: &str) -> Warning {
    let message = format!("{given} cannot be opened with O_DIRECT: I/O goes through the page cache, and its latencies are memory's");
    Warning::new(
        "page_cache",
        message,
        "use a block device, or a file on a file system with direct I/O (ext4, xfs, btrfs)",
    )
}

fn create(request: &OpenRequest, path: &Path, size_bytes: Option<u64>) -> Result<GuardedTarget, Refusal> {
    let shown = path.display();
    if path.is_symlink() {
        return Err(Refusal::Usage(format!("{shown} is a link that leads nowhere: name the file itself")));
    }
    let Some(size_bytes) = size_bytes else {
        return Err(Refusal::Usage(format!(
            "{shown} is not there, and no size is given to make it: write file:{shown}?size=4GiB"
        )));
    };
    let failed = |what: &str, error: io::Error| {
        Refusal::Usage(format!("{shown} cannot be {what} ({error}): choose another folder or size"))
    };
    let made = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let made = made.map_err(|error| failed("made", error))?;
    // Without the mark the file is asked for next time, which is no reason not to make it.
    mark(&made);
    let opened = made.set_len(size_bytes).and_then(|()| reopen_direct(&made, request.access.writes(), 0));
    let target = opened.map_err(|error| failed("given its size", error)).and_then(|opened| {
        lock(request, &opened.0)?;
        guarded(request, opened, size_bytes, true)
    });
    if target.is_err() {
        // Best effort: the file was made a moment ago, and is empty.
        let _ = fs::remove_file(path);
    }
    target
}

fn open_existing(
    request: &OpenRequest,
    path: &Path,
    size_bytes: Option<u64>,
    handle: &File,
    roots: &SystemRoots,
) -> Result<GuardedTarget, Refusal> {
    let given = &request.uri.given;
    let metadata = handle.metadata().map_err(|error| cannot_open(path, &error))?;
    check_is_regular(path, handle, &metadata)?;
    let is_empty = metadata.len() == 0;
    let capacity_bytes = match (metadata.len(), size_bytes) {
        (0, Some(wanted)) if request.access.writes() => wanted,
        (0, _) => {
            return Err(Refusal::Usage(format!(
                "{} is empty: give a size to make it, or name a file with content",
                path.display()
            )))
        }
        (has, Some(wanted)) if has != wanted => {
            return Err(Refusal::Usage(format!(
                "{} is there with {has} bytes, not the {wanted} of size=: leave the size out to use it as it is, or remove the file",
                path.display()
            )))
        }
        (has, _) => has,
    };
    if request.access == Access::ReadOnly {
        let opened = reopen_direct(handle, false, 0).map_err(|error| cannot_open(path, &error))?;
        return guarded(request, opened, capacity_bytes, false);
    }
    let mut reasons = match Snapshot::take(roots) {
        Ok(snapshot) => {
            let id = file_id(&metadata);
            reasons_of_usage(&snapshot.with_openers(Some(id)).usage_of_file(id))
        }
        Err(error) => vec![Reason::Unknown(error.to_string())],
    };
    let readable = reopen(handle, false, 0).map_err(|error| cannot_open(path, &error))?;
    reasons.extend(content_reasons(request, path, &readable, metadata.len()));
    Refusal::unless_empty(given, reasons)?;
    let opened = reopen_direct(handle, true, 0).map_err(|error| match error.raw_os_error() {
        Some(libc::ETXTBSY) => {
            Refusal::Unsafe { target: given.clone(), reasons: vec![Reason::Busy(Vec::new())] }
        }
        _ => cannot_open(path, &error),
    })?;
    lock(request, &opened.0)?;
    if is_empty {
        let failed = |error| Refusal::Usage(format!("{} cannot be given its size ({error})", path.display()));
        opened.0.set_len(capacity_bytes).map_err(failed)?;
        mark(&opened.0);
    }
    guarded(request, opened, capacity_bytes, false)
}

/// The reasons in what the file holds. A file that testdrive made needs no consent, unless something has been put into it since.
fn content_reasons(request: &OpenRequest, path: &Path, file: &File, length_bytes: u64) -> Vec<Reason> {
    if length_bytes == 0 {
        return Vec::new();
    }
    let mut reasons = Vec::new();
    let carried = signature_names(&probe::probe(file, length_bytes), &[]);
    if !is_marked(file) || !carried.is_empty() {
        let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let names = [path.display().to_string(), canonical.display().to_string()];
        reasons.extend(consent_reason(request.consent, &names));
    }
    if !carried.is_empty() && !request.consent.erase_signatures {
        reasons.push(Reason::Signatures(carried));
    }
    reasons
}

/// Keeps a second run off the same file for as long as the first lasts.
fn lock(request: &OpenRequest, file: &File) -> Result<(), Refusal> {
    if request.access == Access::ReadOnly {
        return Ok(());
    }
    // SAFETY: flock reads nothing but the descriptor, which is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EWOULDBLOCK) => Err(Refusal::Unsafe {
            target: request.uri.given.clone(),
            reasons: vec![Reason::Busy(vec!["another run, which has locked it".into()])],
        }),
        // A file system without locks cannot keep a second run off; the scan of open files still does.
        _ => Ok(()),
    }
}

fn guarded(
    request: &OpenRequest,
    (file, direct): (File, bool),
    length_bytes: u64,
    created: bool,
) -> Result<GuardedTarget, Refusal> {
    let given = &request.uri.given;
    let metadata =
        file.metadata().map_err(|error| Refusal::Drive(format!("{given} does not answer: {error}")))?;
    let block_bytes = if direct { direct_block_bytes(&file, length_bytes) } else { BLOCKS_BYTES[0] } as u64;
    let capacity_bytes = length_bytes / block_bytes * block_bytes;
    if capacity_bytes == 0 {
        return Err(Refusal::Usage(format!(
            "{given} is smaller than one block of {block_bytes} bytes: give a larger file"
        )));
    }
    let mut warnings = Vec::new();
    if !direct {
        warnings.push(page_cache_warning(given));
    }
    warnings.extend(space_warning(request, &file, &metadata, capacity_bytes));
    let writable = request.access.writes();
    let identity = DriveIdentity {
        uri: given.clone(),
        model: "file".into(),
        capacity_bytes,
        logical_block_bytes: block_bytes,
        physical_block_bytes: metadata.blksize().max(block_bytes),
        ..DriveIdentity::default()
    };
    let trims = writable && punches_holes(&file, length_bytes);
    let device =
        Device { file: Arc::new(file), kind: DeviceKind::File, writable, trims, polled: false, identity };
    Ok(GuardedTarget { device, direct, created, warnings })
}

/// The smallest block that the file takes direct I/O in: tried with reads, since only newer kernels tell.
fn direct_block_bytes(file: &File, length_bytes: u64) -> usize {
    let largest = BLOCKS_BYTES[BLOCKS_BYTES.len() - 1];
    let mut memory = vec![0_u8; 2 * largest];
    let skip = memory.as_ptr().align_offset(largest);
    let reads = |block: &usize| {
        2 * *block as u64 <= length_bytes
            && file.read_at(&mut memory[skip..skip + block], *block as u64).is_ok()
    };
    BLOCKS_BYTES.iter().copied().find(reads).unwrap_or(largest)
}

/// Whether the file system takes trims: asked with a hole behind the end of the file, where nothing is.
fn punches_holes(file: &File, length_bytes: u64) -> bool {
    let behind = length_bytes.next_multiple_of(1 << 20) as libc::off_t;
    // SAFETY: fallocate takes numbers only, and with KEEP_SIZE changes nothing behind the end.
    unsafe { libc::fallocate(file.as_raw_fd(), PUNCH_HOLE, behind, 1 << 20) == 0 }
}

/// Holes of a sparse file are answered without a drive, and filled only as long as there is space.
fn space_warning(
    request: &OpenRequest,
    file: &File,
    metadata: &fs::Metadata,
    capacity_bytes: u64,
) -> Option<Warning> {
    let given = &request.uri.given;
    let missing_bytes = capacity_bytes.saturating_sub(metadata.blocks() * 512);
    if missing_bytes == 0 {
        return None;
    }
    if request.access == Access::ReadOnly {
        let message = format!(
            "{given} has {} of holes: reads of these are answered without the drive",
            size_text(missing_bytes)
        );
        return Some(Warning::new("sparse_file", message, "fill the file first, with --prepare sequential"));
    }
    // SAFETY: statvfs is a C structure of integers, for which all zeroes is a value.
    let mut status: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the structure lives until the call returns.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), &mut status) } != 0 {
        return None;
    }
    let free_bytes = u128::from(status.f_bavail) * u128::from(status.f_frsize);
    (u128::from(missing_bytes) > free_bytes).then(|| {
        let free_bytes = size_text(u64::try_from(free_bytes).unwrap_or(u64::MAX));
        let message = format!(
            "{given} may grow by {} and its file system has {free_bytes} free",
            size_text(missing_bytes)
        );
        Warning::new(
            "file_larger_than_free_space",
            message,
            "give a smaller size, or free space: a write without space fails",
        )
    })
}
