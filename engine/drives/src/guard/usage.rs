//! Who uses a device or a file: mounts, devices built on it, swap, and processes that have it open for writing.

use crate::drive_paths::character_number;
use crate::guard::mounts::{all_mounts, all_swaps, Mount, Swap};
use crate::guard::nvmet::{exports, Export};
use crate::guard::openers::{openers, FileId, Opened, Openers};
use crate::ioctl::loop_backing_id;
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Loop devices over loop devices are followed this far down, so that a circle ends.
const DEPTH_MAX: usize = 16;

/// An attached loop device.
#[derive(Clone, Debug)]
struct Loop {
    device: BlockDevice,
    backing: Option<Opened>,
}

/// A character device by which commands pass the block device of a namespace, and its claim.
#[derive(Clone, Copy, Debug)]
struct Bypass {
    character: DeviceNumber,
    block: DeviceNumber,
}

/// The state of the host at one moment, from which the usage of every device follows.
#[derive(Clone, Debug)]
pub struct Snapshot {
    roots: SystemRoots,
    mounts: Vec<Mount>,
    swaps: Vec<Swap>,
    loops: Vec<Loop>,
    exports: Vec<Export>,
    bypasses: Vec<Bypass>,
    openers: Openers,
}

/// The devices and files that share their bytes with a target, itself among them.
#[derive(Clone, Debug, Default)]
struct Related {
    devices: Vec<BlockDevice>,
    files: Vec<FileId>,
}

/// How a device or file is in use. Nothing of this can be overridden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Mount points, of the device and of its partitions.
    pub mounted: Vec<String>,
    /// Devices that are built on it.
    pub holders: Vec<String>,
    /// What of it is swap.
    pub swaps: Vec<String>,
    /// Processes that have it open for writing, or the character device of the same namespace.
    pub writers: Vec<String>,
    /// Processes that have it open at all, by either.
    pub openers: Vec<String>,
    /// What could not be found out: a device must then not be taken for free.
    pub unknown: Vec<String>,
    /// A process of which the kernel does not tell what it has mapped.
    pub hanging: Option<u32>,
}

/// The identity of the file that a path leads to.
pub(crate) fn file_id(metadata: &fs::Metadata) -> FileId {
    FileId { device: DeviceNumber::from_raw(metadata.dev()), inode: metadata.ino() }
}

fn attached_loops(disks: &[BlockDevice], roots: &SystemRoots) -> Vec<Loop> {
    let attached = disks.iter().filter_map(|device| {
        let path = device.loop_backing_file()?;
        let backing = loop_backing(roots, device, &path);
        Some(Loop { device: device.clone(), backing })
    });
    attached.collect()
}

/// A backing device is told by its path, a backing file by the kernel's own record of it, which a rename does not change.
fn loop_backing(roots: &SystemRoots, device: &BlockDevice, path: &Path) -> Option<Opened> {
    if let Some(number) = roots.number_of_path(path) {
        return Some(Opened::Device(number));
    }
    let node = roots.dev.join(&device.name);
    let recorded = fs::File::open(node).and_then(|file| loop_backing_id(&file));
    let id = recorded.or_else(|_| fs::metadata(path).map(|metadata| file_id(&metadata)));
    id.ok().map(Opened::File)
}

impl Snapshot {
    /// Looks at the host.
    ///
    /// # Errors
    /// When the tables of mounts, swap or block devices cannot be read: nothing may then be taken for free.
    pub fn take(roots: &SystemRoots) -> io::Result<Snapshot> {
        let disks = roots.whole_disks()?;
        let bypass = |disk: &BlockDevice| {
            Some(Bypass { character: character_number(disk, roots)?, block: disk.number })
        };
        Ok(Snapshot {
            roots: roots.clone(),
            mounts: all_mounts(roots)?,
            swaps: all_swaps(roots)?,
            loops: attached_loops(&disks, roots),
            exports: exports(&disks, roots),
            bypasses: disks.iter().filter_map(bypass).collect(),
            openers: Openers::default(),
        })
    }

    /// Looks, too, at which processes have block devices, what passes them, files under loop devices, or `file` open.
    pub fn with_openers(mut self, file: Option<FileId>) -> Snapshot {
        let backing: Vec<Opened> = self.loops.iter().filter_map(|each| each.backing).collect();
        self.openers = openers(&self.roots, |opened| match opened {
            Opened::Device(_) => true,
            Opened::Character(number) => self.bypasses.iter().any(|bypass| bypass.character == number),
            Opened::File(id) => Some(id) == file || backing.contains(&opened),
        });
        self
    }

    /// The usage of a device: its own, of its partitions or of its whole disk, and of what a loop device stands on.
    pub fn usage_of_device(&self, device: &BlockDevice) -> Usage {
        let mut usage = Usage::default();
        let mut related = Related::default();
        if let Err(error) = self.add_family(device, &mut related, 0) {
            usage.unknown.push(format!("the partitions of {} cannot be listed: {error}", device.name));
        }
        self.find(&related, usage)
    }

    /// The usage of a regular file.
    pub fn usage_of_file(&self, file: FileId) -> Usage {
        self.find(&Related { devices: Vec::new(), files: vec![file] }, Usage::default())
    }

    fn add_family(&self, device: &BlockDevice, related: &mut Related, depth: usize) -> io::Result<()> {
        let whole = device.whole_disk()?;
        let mut family = vec![device.clone()];
        if device.is_partition() {
            family.push(whole.clone());
        } else {
            family.extend(device.partitions()?);
        }
        for member in family {
            if !related.devices.iter().any(|known| known.number == member.number) {
                related.devices.push(member);
            }
        }
        match self.loops.iter().find(|each| each.device.number == whole.number).and_then(|each| each.backing)
        {
            Some(Opened::File(id)) => related.files.push(id),
            Some(Opened::Device(number)) if depth < DEPTH_MAX => {
                self.add_family(&self.roots.block_device(number)?, related, depth + 1)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn find(&self, related: &Related, mut usage: Usage) -> Usage {
        let has_device = |number: DeviceNumber| related.devices.iter().any(|each| each.number == number);
        let has = |opened: Opened| match opened {
            Opened::Device(number) => has_device(number),
            Opened::Character(number) => {
                self.bypasses.iter().any(|bypass| bypass.character == number && has_device(bypass.block))
            }
            Opened::File(id) => related.files.contains(&id),
        };
        for mount in &self.mounts {
            if mount.devices(&self.roots).into_iter().any(has_device) {
                usage.mounted.push(mount.place());
            }
        }
        for swap in &self.swaps {
            let file = || fs::metadata(&swap.path).ok().map(|metadata| Opened::File(file_id(&metadata)));
            let opened = self.roots.number_of_path(&swap.path).map(Opened::Device).or_else(file);
            if opened.is_some_and(has) {
                usage.swaps.push(swap.path.display().to_string());
            }
        }
        for device in &related.devices {
            match device.holders() {
                Ok(names) => usage.holders.extend(names),
                Err(error) => {
                    usage.unknown.push(format!("the holders of {} cannot be listed: {error}", device.name))
                }
            }
        }
        let exported = self.exports.iter().filter(|export| has_device(export.number));
        usage.holders.extend(exported.map(|export| export.name.clone()));
        let stacked = self.loops.iter().filter(|each| !has_device(each.device.number));
        usage.holders.extend(
            stacked.filter(|each| each.backing.is_some_and(has)).map(|each| each.device.name.clone()),
        );
        usage.hanging = self.openers.hanging;
        for opener in self.openers.found.iter().filter(|opener| has(opener.opened)) {
            usage.openers.push(opener.name());
            if opener.writable {
                usage.writers.push(opener.name());
            }
        }
        for list in [&mut usage.mounted, &mut usage.holders, &mut usage.writers, &mut usage.openers] {
            list.sort();
            list.dedup();
        }
        usage
    }

    /// The whole disks that a directory's file system is on, through partitions, device mapper, md and loop devices.
    pub fn disks_under(&self, directory: &Path) -> Vec<BlockDevice> {
        let mut found = Vec::new();
        self.add_disks_under(directory, &mut found, 0);
        found
    }

    fn add_disks_under(&self, path: &Path, found: &mut Vec<BlockDevice>, depth: usize) {
        let Ok(metadata) = fs::metadata(path) else { return };
        let number = DeviceNumber::from_raw(metadata.dev());
        if number.major != 0 {
            return self.add_device_and_below(number, found, depth);
        }
        // The number is of no device (btrfs, overlayfs): the mount tells where the file system is.
        let Some(mount) = self.mount_of(path) else { return };
        for number in mount.devices(&self.roots) {
            self.add_device_and_below(number, found, depth);
        }
        let upper = mount.options.split(',').find_map(|option| option.strip_prefix("upperdir="));
        if let Some(upper) = upper.filter(|_| depth < DEPTH_MAX) {
            self.add_disks_under(Path::new(upper), found, depth + 1);
        }
    }

    fn add_device_and_below(&self, number: DeviceNumber, found: &mut Vec<BlockDevice>, depth: usize) {
        let Ok(device) = self.roots.block_device(number) else { return };
        let Ok(whole) = device.whole_disk() else { return };
        if depth > DEPTH_MAX {
            return;
        }
        for slave in whole.slaves() {
            self.add_device_and_below(slave.number, found, depth + 1);
        }
        match self.loops.iter().find(|each| each.device.number == whole.number) {
            Some(Loop { backing: Some(Opened::Device(below)), .. }) => {
                self.add_device_and_below(*below, found, depth + 1);
            }
            Some(Loop { backing: Some(Opened::File(id)), device }) if id.device.major != 0 => {
                debug_assert_eq!(device.number, whole.number);
                self.add_device_and_below(id.device, found, depth + 1);
            }
            Some(Loop { device, .. }) => {
                let backing = device.loop_backing_file();
                backing.iter().for_each(|path| self.add_disks_under(path, found, depth + 1));
            }
            None => {}
        }
        if !found.iter().any(|known| known.number == whole.number) {
            found.push(whole);
        }
    }

    /// The mount of our namespace that a path is in: by the kernel's own number of it.
    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;
        let handle = fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
        let fdinfo = self.roots.proc.join("self/fdinfo").join(handle.as_raw_fd().to_string());
        let text = fs::read_to_string(fdinfo).ok()?;
        let id: u64 = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()?;
        self.mounts.iter().find(|mount| mount.id == id && mount.of_process.is_none())
    }
}

/// The nearest folder of a path that exists: an output is judged before it is made.
pub(crate) fn existing_ancestor(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute.ancestors().find(|folder| folder.exists()).map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}
