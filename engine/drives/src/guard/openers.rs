//! Which processes have a device or a file open.

use crate::guard::mapped::{mapped_by, MAPPED_LIMIT};
use crate::guard::mounts::process_ids;
use crate::sysfs::{DeviceNumber, SystemRoots};
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file of a file system, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The file system.
    pub device: DeviceNumber,
    /// The file.
    pub inode: u64,
}

/// What an open descriptor leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A block device, through whichever node.
    Device(DeviceNumber),
    /// A character device.
    Character(DeviceNumber),
    /// A regular file.
    File(FileId),
}

/// A process that has something open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// The process.
    pub pid: u32,
    /// Its command.
    pub command: String,
    /// What it has open.
    pub opened: Opened,
    /// Whether it can write to it.
    pub writable: bool,
}

impl Opener {
    /// The process as a message names it.
    pub fn name(&self) -> String {
        format!("process {} ({})", self.pid, self.command)
    }
}

/// What was found of the processes that have something.
#[derive(Clone, Debug, Default)]
pub struct Openers {
    /// Those that have one of the wanted things, once each.
    pub found: Vec<Opener>,
    /// A process of which the kernel does not tell what it has mapped: there may be others.
    pub hanging: Option<u32>,
}

/// Every other process that has one of the wanted things open or mapped. Those that we may not look at are left out: only root sees all of
/// them.
pub fn openers(roots: &SystemRoots, wanted: impl Fn(Opened) -> bool) -> Openers {
    let own = fs::read_link(roots.proc.join("self")).ok();
    let own: Option<u32> = own.and_then(|link| link.to_str()?.parse().ok());
    let pids: Vec<u32> = process_ids(roots).into_iter().filter(|pid| Some(*pid) != own).collect();
    let mut found: Vec<Opener> = Vec::new();
    let mut add = |pid: u32, opened: Opened, writable: bool| match found
        .iter_mut()
        .find(|other| other.pid == pid && other.opened == opened)
    {
        Some(other) => other.writable |= writable,
        None => {
            let comm = roots.proc.join(pid.to_string()).join("comm");
            let command = fs::read_to_string(comm).unwrap_or_default().trim().to_string();
            found.push(Opener { pid, command, opened, writable });
        }
    };
    for pid in &pids {
        for (opened, writable) in described(&roots.proc.join(pid.to_string()), &wanted) {
            add(*pid, opened, writable);
        }
    }
    let (mapped, hanging) = mapped_by(&roots.proc, pids, MAPPED_LIMIT);
    mapped
        .into_iter()
        .filter(|(_, opened, _)| wanted(*opened))
        .for_each(|(pid, opened, writable)| add(pid, opened, writable));
    Openers { found, hanging }
}

/// What of the wanted things a process has open by its descriptors, and whether it can write to it.
fn described(folder: &Path, wanted: impl Fn(Opened) -> bool) -> Vec<(Opened, bool)> {
    let mut found = Vec::new();
    for descriptor in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
        let Some(opened) = what_is_open(&descriptor.path()).filter(|opened| wanted(*opened)) else {
            continue;
        };
        let flags =
            descriptor_flags(&folder.join("fdinfo").join(descriptor.file_name())).unwrap_or(libc::O_RDWR);
        if flags & libc::O_PATH == 0 {
            found.push((opened, flags & libc::O_ACCMODE != libc::O_RDONLY));
        }
    }
    found
}

/// Looks through the link of a descriptor or a mapping. Only what the kernel has cached is asked for, so that a dead network server cannot hang it.
pub(super) fn what_is_open(link: &Path) -> Option<Opened> {
    let path = CString::new(link.as_os_str().as_bytes()).ok()?;
    // SAFETY: statx is a C structure of integers, for which all zeroes is a value.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    let wanted = libc::STATX_TYPE | libc::STATX_INO;
    // SAFETY: the path ends with a zero byte, and both it and the structure live until the call returns.
    let answer =
        unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), libc::AT_STATX_DONT_SYNC, wanted, &mut status) };
    if answer != 0 {
        return None;
    }
    match libc::mode_t::from(status.stx_mode) & libc::S_IFMT {
        kind @ (libc::S_IFBLK | libc::S_IFCHR) => {
            let number = DeviceNumber { major: status.stx_rdev_major, minor: status.stx_rdev_minor };
            Some(if kind == libc::S_IFBLK { Opened::Device(number) } else { Opened::Character(number) })
        }
        libc::S_IFREG => {
            let device = DeviceNumber { major: status.stx_dev_major, minor: status.stx_dev_minor };
            Some(Opened::File(FileId { device, inode: status.stx_ino }))
        }
        _ => None,
    }
}

/// The flags that a descriptor was opened with: octal in its fdinfo.
fn descriptor_flags(fdinfo: &Path) -> Option<i32> {
    let text = fs::read_to_string(fdinfo).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(flags.trim(), 8).ok()
}
