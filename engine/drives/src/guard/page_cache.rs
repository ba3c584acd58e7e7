//! What the kernel's page cache holds of a block device. Commands that pass it (passthrough, the user-space driver) do not know of it, and
//! also I/O with O_DIRECT knows only of the device that it was given: a disk and each of its partitions have a cache of their own.
//!
//! A cache outlives whoever filled it for as long as anybody has the device open, as a multipath daemon or a monitor has. What was written
//! there and has not gone to the drive would go there in the midst of a run or after it, over what the run wrote or purged; and what was
//! read there before the run would be taken for what the drive holds afterwards.

use crate::guard::node::{open_node, NodeError};
use crate::guard::refusal::Reason;
use crate::guard::reopen;
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

const BLKFLSBUF: u32 = 0x1261;

/// Writes back and forgets what is cached of a claimed device, and of the devices that share its bytes: its partitions, or the disk that it
/// is a partition of. From the claim on nobody who behaves puts anything there.
///
/// # Errors
/// With what cannot be emptied: what is in there would reach the drive later.
pub(crate) fn write_back(device: &BlockDevice, file: &File, roots: &SystemRoots) -> Result<(), Reason> {
    let failed = |name: &str| {
        let name = name.to_string();
        move |error: io::Error| Reason::Cached { name, error: error.to_string() }
    };
    empty(file).map_err(failed(&device.name))?;
    for relative in relatives(device).map_err(failed(&device.name))? {
        let node = open_node(&relative, roots).map_err(|error| match error {
            NodeError::Open(path, error) => {
                let what = format!("its node {} cannot be opened: {error}", path.display());
                Reason::Cached { name: relative.name.clone(), error: what }
            }
            NodeError::Other(reason) => reason,
        })?;
        reopen(&node, false, 0).and_then(|opened| empty(&opened)).map_err(failed(&relative.name))?;
    }
    Ok(())
}

/// Forgets what is cached of a claimed device after a run that wrote to it, and of those that share its bytes. One that is gone, and a node
/// that went, have nothing to forget.
pub(crate) fn forget(file: &File, roots: &SystemRoots) {
    let device =
        file.metadata().and_then(|metadata| roots.block_device(DeviceNumber::from_raw(metadata.rdev())));
    let Ok(device) = device else { return };
    match write_back(&device, file, roots) {
        Ok(()) | Err(Reason::OtherNode { .. }) => {}
        Err(_) if !roots.sys.join("dev/block").join(device.number.to_string()).exists() => {}
        Err(reason) => eprintln!(
            "testdrive: after this run {reason} (until then, reads of it that are not direct may show what it held before)"
        ),
    }
}

/// The devices whose caches are of the same bytes.
fn relatives(device: &BlockDevice) -> io::Result<Vec<BlockDevice>> {
    match device.is_partition() {
        true => Ok(vec![device.whole_disk()?]),
        false => device.partitions(),
    }
}

/// Writes back and forgets what is cached of a device. What cannot be written is not kept by the kernel either, so that it is no error: it
/// does not come back.
fn empty(file: &File) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: BLKFLSBUF takes no argument.
    if unsafe { libc::ioctl(fd, BLKFLSBUF as _, 0) } == 0 {
        return Ok(());
    }
    // It is root's. Whoever may open the device may have the same done in two steps.
    // SAFETY: both calls take a descriptor, which is open, and integers.
    let answer = unsafe {
        libc::fsync(fd);
        libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED)
    };
    match answer {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
