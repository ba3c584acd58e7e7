//! What is mounted and what is swap, in every mount namespace that can be read.

use crate::sysfs::{DeviceNumber, SystemRoots};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One line of mountinfo(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of the mount.
    pub id: u64,
    /// The device that the kernel names, 0:N where the file system has none or several.
    pub number: DeviceNumber,
    /// Where.
    pub mount_point: String,
    /// The file system's type.
    pub fs_type: String,
    /// What was mounted; devices of several are joined by colons.
    pub source: String,
    /// Options of the file system itself.
    pub options: String,
    /// A process in whose mount namespace it is, where that is not ours.
    pub of_process: Option<u32>,
}

/// Where a device is used as swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The device or file, as the kernel names it.
    pub path: PathBuf,
}

/// Undoes the octal escapes of the kernel's tables (`\040` for a space).
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.filter(|_| first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parse_mount(line: &str, of_process: Option<u32>) -> Option<Mount> {
    // A varying number of optional fields stands before a lone hyphen.
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let mut after = after.split(' ');
    Some(Mount {
        id: before.first()?.parse().ok()?,
        number: DeviceNumber::parse(before.get(2)?)?,
        mount_point: unescape(before.get(4)?),
        fs_type: after.next()?.to_string(),
        source: unescape(after.next()?),
        options: after.next().unwrap_or_default().to_string(),
        of_process,
    })
}

fn read_table(path: &Path, of_process: Option<u32>) -> io::Result<Vec<Mount>> {
    let text = fs::read_to_string(path)?;
    let parsed = text.lines().map(|line| parse_mount(line, of_process));
    parsed.collect::<Option<Vec<Mount>>>().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{} is not understood", path.display()))
    })
}

/// Every mount of our own namespace, and of each other namespace that a process we may look at lives in: a service keeps its
/// private copy of a mount after the host has unmounted.
///
/// # Errors
/// When our own table cannot be read: nothing may then be taken for unmounted.
pub fn all_mounts(roots: &SystemRoots) -> io::Result<Vec<Mount>> {
    let mut mounts = read_table(&roots.proc.join("self/mountinfo"), None)?;
    let mut seen = BTreeSet::new();
    seen.extend(fs::read_link(roots.proc.join("self/ns/mnt")).ok());
    for pid in process_ids(roots) {
        let folder = roots.proc.join(pid.to_string());
        if fs::read_link(folder.join("ns/mnt")).is_ok_and(|namespace| seen.insert(namespace)) {
            // The process may be gone by now; its mounts are then gone with it.
            mounts.extend(read_table(&folder.join("mountinfo"), Some(pid)).unwrap_or_default());
        }
    }
    Ok(mounts)
}

/// Every process, by number.
pub(crate) fn process_ids(roots: &SystemRoots) -> Vec<u32> {
    let entries = fs::read_dir(&roots.proc).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

impl Mount {
    /// The block devices that the file system is on, as far as the kernel tells.
    pub fn devices(&self, roots: &SystemRoots) -> Vec<DeviceNumber> {
        if self.number.major != 0 {
            return vec![self.number];
        }
        // btrfs, bcachefs and others show a number of no device: their source names the devices.
        let sources = self.source.split(':').filter(|source| source.starts_with('/'));
        let mut numbers: Vec<DeviceNumber> =
            sources.filter_map(|source| roots.number_of_path(Path::new(source))).collect();
        if self.fs_type == "btrfs" {
            numbers.extend(btrfs_siblings(roots, &numbers));
        }
        numbers
    }

    /// The mount point, with whose namespace it is in where that is not ours.
    pub fn place(&self) -> String {
        match self.of_process {
            None => self.mount_point.clone(),
            Some(pid) => format!("{} (in the mount namespace of process {pid})", self.mount_point),
        }
    }
}

/// The other devices of the btrfs file systems that one of `numbers` belongs to: mountinfo names only one of them.
fn btrfs_siblings(roots: &SystemRoots, numbers: &[DeviceNumber]) -> Vec<DeviceNumber> {
    let mut siblings = Vec::new();
    for file_system in fs::read_dir(roots.sys.join("fs/btrfs")).into_iter().flatten().flatten() {
        let links = fs::read_dir(file_system.path().join("devices")).into_iter().flatten().flatten();
        let members: Vec<DeviceNumber> = links
            .filter_map(|link| DeviceNumber::parse(&fs::read_to_string(link.path().join("dev")).ok()?))
            .collect();
        if members.iter().any(|member| numbers.contains(member)) {
            siblings.extend(members);
        }
    }
    siblings
}

/// Every device and file that is swap.
///
/// # Errors
/// When the kernel's table cannot be read, unless the kernel is built without swap and has none.
pub fn all_swaps(roots: &SystemRoots) -> io::Result<Vec<Swap>> {
    let text = match fs::read_to_string(roots.proc.join("swaps")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let names = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    Ok(names.map(|name| Swap { path: PathBuf::from(unescape(name)) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_optional_fields_are_understood() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:7 - ext3 /dev/a\134b rw,errors=continue";
        let mount = parse_mount(line, Some(7)).unwrap();
        assert_eq!(mount.number, DeviceNumber { major: 98, minor: 0 });
        assert_eq!(
            (mount.id, mount.mount_point.as_str(), mount.source.as_str()),
            (36, "/mnt 2", r"/dev/a\b")
        );
        assert_eq!(mount.place(), "/mnt 2 (in the mount namespace of process 7)");
        assert_eq!(parse_mount("36 35 98:0 / /mnt rw", None), None);
    }

    #[test]
    fn a_broken_escape_stays_as_it_is() {
        assert_eq!(unescape(r"a\04"), r"a\04");
        assert_eq!(unescape(r"a\x40b\040"), r"a\x40b ");
    }
}
