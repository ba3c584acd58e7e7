//! The erase guard: the only way to an open drive. The last to be asked, so it trusts nothing that was checked before it.
//!
//! A block device is first looked at through a handle that can neither read nor write, then read, and only when nothing speaks
//! against it is it opened for writing with O_EXCL, which the kernel gives to one holder only. The claim is kept for the whole run,
//! and everything is checked once more under it.

mod blkid;
mod file;
mod file_kind;
mod mapped;
pub(crate) mod mounts;
pub(crate) mod node;
mod nvmet;
pub(crate) mod openers;
pub(crate) mod page_cache;
mod probe;
pub(crate) mod refusal;
pub mod signatures;
pub(crate) mod state;
pub(crate) mod usage;

use crate::device::{Device, DeviceKind};
use crate::guard::refusal::{Reason, Refusal};
use crate::guard::state::State;
use crate::guard::usage::{existing_ancestor, Snapshot, Usage};
use crate::identity::{erase_name, features, identify};
use crate::ioctl::geometry;
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use crate::uri::{DriveKind, DriveUri};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testdrive_nvme::ControllerIdentity;
use testdrive_recording::{DriveIdentity, Warning};

/// What a run does to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads and flushes: needs no consent, and claims nothing.
    ReadOnly,
    /// Also writes, trims or write-zeroes.
    Write,
    /// Also formats, which on some drives is of every namespace.
    Format,
    /// Also sanitizes, which is of every namespace.
    Sanitize,
}

impl Access {
    /// Whether what the drive holds may change.
    pub fn writes(self) -> bool {
        self != Access::ReadOnly
    }

    /// Whether namespaces are erased as wholes, which may be of more than the one that was named.
    pub fn erases(self) -> bool {
        matches!(self, Access::Format | Access::Sanitize)
    }

    /// Whether namespaces of such a drive are erased that were not named.
    pub fn is_of_all(self, controller: &ControllerIdentity) -> bool {
        match self {
            Access::ReadOnly | Access::Write => false,
            Access::Format => controller.format_is_of_all || controller.format_erase_is_of_all,
            Access::Sanitize => true,
        }
    }
}

/// What the user consented to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The drive that may be overwritten: its serial, or its path where it has none.
    pub erase: Option<String>,
    /// Whether it may be overwritten although it carries a partition table or another signature.
    pub erase_signatures: bool,
}

/// What is to be opened, and how.
#[derive(Clone, Debug)]
pub struct OpenRequest<'a> {
    /// A block device or a file.
    pub uri: &'a DriveUri,
    /// What the run does to it.
    pub access: Access,
    /// What the user consented to.
    pub consent: &'a Consent,
    /// Where the recording goes; it need not be there yet.
    pub output: Option<&'a Path>,
}

/// An open drive that may be used as was asked. The claim on it ends with the last copy of its device.
#[derive(Clone, Debug)]
pub struct GuardedTarget {
    /// The drive as the I/O paths use it; they set `identity.path` and `identity.settings`.
    pub device: Device,
    /// Whether I/O goes past the page cache.
    pub direct: bool,
    /// Whether the file was made just now.
    pub created: bool,
    /// What makes the figures less valid than they look.
    pub warnings: Vec<Warning>,
}

/// Opens a block device or a file for a run.
///
/// # Errors
/// [`Refusal::Unsafe`] with every reason when it is not safe, [`Refusal::Usage`] when the target is not what the URI says, and
/// [`Refusal::Drive`] when it does not answer. Nothing was written, and nothing stays open.
pub fn open_for_run(request: &OpenRequest) -> Result<GuardedTarget, Refusal> {
    open_with_roots(request, &SystemRoots::default())
}

/// The same, with the kernel's file systems elsewhere.
///
/// # Errors
/// As [`open_for_run`].
pub fn open_with_roots(request: &OpenRequest, roots: &SystemRoots) -> Result<GuardedTarget, Refusal> {
    match &request.uri.kind {
        DriveKind::Block { path } => open_block(request, path, roots),
        DriveKind::File { path, size_bytes } => file::open(request, path, *size_bytes, roots),
        DriveKind::Passthru { .. } | DriveKind::Pci(_) | DriveKind::Sim { .. } | DriveKind::Null { .. } => {
            Err(Refusal::Usage(format!(
                "'{}' is neither a block device nor a file: give one of them",
                request.uri.given
            )))
        }
    }
}

/// Opens a path without touching what is there: the handle names the inode, whatever becomes of the path.
pub(crate) fn handle(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)
}

/// Opens what a handle names.
pub(crate) fn reopen(handle: &File, write: bool, flags: i32) -> io::Result<File> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    OpenOptions::new().read(true).write(write).custom_flags(flags).open(link)
}

/// Opens what a handle names past the page cache where that is possible; the second value says whether it was.
pub(crate) fn reopen_direct(handle: &File, write: bool, flags: i32) -> io::Result<(File, bool)> {
    match reopen(handle, write, flags | libc::O_DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok((reopen(handle, write, flags)?, false))
        }
        Err(error) => Err(error),
    }
}

/// A refusal for a path that cannot be opened.
pub(crate) fn cannot_open(path: &Path, error: &io::Error) -> Refusal {
    let path = path.display();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => {
            Refusal::Usage(format!("{path} is not there: 'testdrive drives' lists the drives of this host"))
        }
        Some(libc::EACCES | libc::EPERM) => Refusal::Usage(format!(
            "{path} cannot be opened ({error}): run as root, or as a user who may open this drive"
        )),
        _ => {
            Refusal::Drive(format!("{path} cannot be opened ({error}): check the drive and the kernel's log"))
        }
    }
}

fn open_block(request: &OpenRequest, path: &Path, roots: &SystemRoots) -> Result<GuardedTarget, Refusal> {
    let handle = handle(path).map_err(|error| cannot_open(path, &error))?;
    open_handle(request, path, handle, roots)
}

/// Opens the block device that a handle names, whose path may differ from the one that was asked for: what speaks against it is told of
/// that.
pub(crate) fn open_handle(
    request: &OpenRequest,
    path: &Path,
    handle: File,
    roots: &SystemRoots,
) -> Result<GuardedTarget, Refusal> {
    let given = &request.uri.given;
    let number = block_number(path, &handle)?;
    let unknown = |error: io::Error| Refusal::Unsafe {
        target: given.clone(),
        reasons: vec![Reason::Unknown(format!("device {number}: {error}"))],
    };
    let device = roots.block_device(number).map_err(unknown)?;
    let identity = identify(given, &device).map_err(unknown)?;
    if identity.capacity_bytes == 0 {
        return Err(Refusal::Usage(format!(
            "{given} has no capacity, as a drive without a medium or a loop device without a file: attach one, or name another drive"
        )));
    }
    let snapshot = Snapshot::take(roots).map_err(unknown)?;
    let mut reasons = Vec::new();
    reasons.extend(request.output.and_then(|output| recording_on(&device, &snapshot, output)));
    if request.access == Access::ReadOnly {
        Refusal::unless_empty(given, reasons)?;
        let opened = reopen_direct(&handle, false, 0).map_err(|error| cannot_open(path, &error))?;
        return guarded(request, &device, opened, identity);
    }
    reasons.extend(consent_reason(request.consent, &erasable_names(path, &device, &identity)));
    let state = State::look(&device, &handle, &snapshot.with_openers(None));
    reasons.extend(state.reasons(request.consent.erase_signatures));
    Refusal::unless_empty(given, reasons)?;

    let opened = match reopen_direct(&handle, true, libc::O_EXCL) {
        Ok(opened) => opened,
        Err(error) => {
            let reasons = match error.raw_os_error() {
                Some(libc::EBUSY) => vec![Reason::Busy(state.usage.openers)],
                Some(libc::EROFS) => vec![Reason::ReadOnly],
                _ => return Err(cannot_open(path, &error)),
            };
            return Err(Refusal::Unsafe { target: given.clone(), reasons });
        }
    };
    // First of all, so that what only the cache has is looked at, too.
    page_cache::write_back(&device, &opened.0, roots).map_err(|reason| Refusal::because(given, reason))?;
    check_under_claim(request, &device, &opened.0, roots)?;
    guarded(request, &device, opened, identity)
}

/// The number of a block device, or what to write instead for anything else.
fn block_number(path: &Path, handle: &File) -> Result<DeviceNumber, Refusal> {
    let metadata = handle.metadata().map_err(|error| cannot_open(path, &error))?;
    let (path, kind) = (path.display(), metadata.file_type());
    let message = if kind.is_block_device() {
        return Ok(DeviceNumber::from_raw(metadata.rdev()));
    } else if kind.is_file() {
        format!("{path} is a regular file, not a block device: write file:{path}")
    } else if kind.is_char_device() {
        format!("{path} is a character device, not a block device: 'testdrive drives' lists the drives of this host")
    } else {
        format!("{path} is no block device: 'testdrive drives' lists the drives of this host")
    };
    Err(Refusal::Usage(message))
}

/// Everything that consent may name: the serial alone where there is one, else the path, as given or as the kernel has it.
fn erasable_names(path: &Path, device: &BlockDevice, identity: &DriveIdentity) -> Vec<String> {
    let mut names = vec![erase_name(&identity.serial, &device.node())];
    if identity.serial.is_empty() {
        let canonical = std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        names.extend([path.display().to_string(), canonical.display().to_string()]);
    }
    names
}

/// Whether consent names one of the names, of which the first is the one to ask for.
pub(crate) fn consent_reason(consent: &Consent, names: &[String]) -> Option<Reason> {
    match &consent.erase {
        None => Some(Reason::NoConsent { name: names[0].clone() }),
        Some(given) if names.contains(given) => None,
        Some(given) => Some(Reason::WrongConsent { given: given.clone(), name: names[0].clone() }),
    }
}

/// A recording on the drive that is measured would be measured, too.
fn recording_on(device: &BlockDevice, snapshot: &Snapshot, output: &Path) -> Option<Reason> {
    let target = device.whole_disk().ok()?;
    let disks = snapshot.disks_under(&existing_ancestor(output));
    let is_on_it = disks.iter().any(|disk| disk.number == target.number);
    is_on_it.then(|| Reason::RecordingOnIt(output.display().to_string()))
}

/// Checks all that could have changed until the claim was ours. From now on nobody can mount the device or build on it.
fn check_under_claim(
    request: &OpenRequest,
    device: &BlockDevice,
    file: &File,
    roots: &SystemRoots,
) -> Result<(), Refusal> {
    let given = &request.uri.given;
    let metadata = file.metadata().map_err(|error| cannot_open(Path::new(given), &error))?;
    if !metadata.file_type().is_block_device() || DeviceNumber::from_raw(metadata.rdev()) != device.number {
        let reason =
            Reason::Unknown(format!("the device {} became another while it was opened", device.number));
        return Err(Refusal::Unsafe { target: given.clone(), reasons: vec![reason] });
    }
    let usage = match Snapshot::take(roots) {
        Ok(snapshot) => snapshot.with_openers(None).usage_of_device(device),
        Err(error) => Usage { unknown: vec![error.to_string()], ..Usage::default() },
    };
    let state = State::read_through(device, file, usage);
    Refusal::unless_empty(given, state.reasons(request.consent.erase_signatures))
}

fn guarded(
    request: &OpenRequest,
    device: &BlockDevice,
    (file, direct): (File, bool),
    mut identity: DriveIdentity,
) -> Result<GuardedTarget, Refusal> {
    let failed = |error: io::Error| {
        Refusal::Drive(format!("{} does not tell its size ({error}): check the drive", request.uri.given))
    };
    let geometry = geometry(&file).map_err(failed)?;
    identity.capacity_bytes = geometry.capacity_bytes;
    identity.logical_block_bytes = geometry.logical_block_bytes;
    identity.physical_block_bytes = geometry.physical_block_bytes;
    let features = features(device).map_err(failed)?;
    let device = Device {
        file: Arc::new(file),
        kind: DeviceKind::Block,
        writable: request.access.writes(),
        trims: features.discard_max_bytes > 0,
        polled: features.polled,
        identity,
    };
    let warnings = if direct { Vec::new() } else { vec![file::page_cache_warning(&request.uri.given)] };
    Ok(GuardedTarget { device, direct, created: false, warnings })
}
