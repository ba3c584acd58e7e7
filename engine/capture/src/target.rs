//! What a device named on the command line is, and under which numbers the kernel tells of its I/Os.

use crate::error::CaptureError;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use testdrive_drives::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use testdrive_drives::{devices_beneath_path, identify};
use testdrive_recording::DriveIdentity;
use testdrive_traces::Device;

/// The sectors of a partition on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first, in units of 512 bytes.
    pub first_sector: u64,
    /// How many.
    pub sectors: u64,
    /// How far before it a request may begin that reaches into it.
    pub margin_sectors: u64,
}

impl Window {
    /// The sector after its last.
    pub fn end_sector(&self) -> u64 {
        self.first_sector.saturating_add(self.sectors)
    }
}

/// A device to capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The kernel's name, such as `nvme0n1p2`.
    pub name: String,
    /// Its own number.
    pub number: DeviceNumber,
    /// The number that its events carry: that of the whole disk.
    pub device: Device,
    /// Where it is on the disk, if it is a partition.
    pub window: Option<Window>,
    /// What it is.
    pub identity: DriveIdentity,
    /// Devices and partitions whose I/Os reach it by being mapped, without being queued on it.
    pub remapped_from: Vec<Device>,
    /// It is what NVMe multipath shows of a namespace: its I/Os are issued on paths that have no device node.
    pub has_hidden_paths: bool,
    /// A device that hands it whole requests (device mapper's multipath), so that nothing is queued on it.
    pub gets_requests_from: Option<String>,
    /// Devices that it is built of, by name.
    pub built_of: Vec<String>,
}

impl Target {
    /// A disk like any other, of which only the number is known.
    pub fn plain(name: &str, device: Device) -> Target {
        Target {
            name: name.into(),
            number: DeviceNumber { major: device.major, minor: device.minor },
            device,
            window: None,
            identity: DriveIdentity::default(),
            remapped_from: Vec::new(),
            has_hidden_paths: false,
            gets_requests_from: None,
            built_of: Vec::new(),
        }
    }

    /// Finds what a path, a kernel's name or `major:minor` stands for.
    ///
    /// # Errors
    /// When it is no block device: with what it is instead, and what to name.
    pub fn find(given: &str, roots: &SystemRoots) -> Result<Target, CaptureError> {
        let number = number_of(given, roots)?;
        let unknown = |error: std::io::Error| {
            CaptureError::Usage(format!(
                "{given} ({number}) is not in sysfs: {error}; name a device of 'lsblk'"
            ))
        };
        let device = roots.block_device(number).map_err(unknown)?;
        let disk = device.whole_disk().map_err(unknown)?;
        let mut identity = identify(given, &device).map_err(unknown)?;
        identity.path = "trace".into();
        let mut target = Target { identity, number, ..Target::plain(&device.name, device_of(disk.number)) };
        target.window = device.is_partition().then(|| window(&device, &disk));
        target.has_hidden_paths = has_hidden_paths(roots, &disk);
        target.built_of = disk.slaves().into_iter().map(|slave| slave.name).collect();
        target.add_holders(&device, &disk, roots);
        Ok(target)
    }

    /// Notes the devices built on it that do not queue what they hand on.
    ///
    /// Device mapper clones every I/O and queues the clone. Others, md among them, hand on the I/O that was queued on themselves.
    /// One that stands on a partition names the disk with a place in the partition; the kernel's own step from partition to disk,
    /// which follows, has the right place.
    fn add_holders(&mut self, device: &BlockDevice, disk: &BlockDevice, roots: &SystemRoots) {
        let mut parts = vec![device.clone()];
        if device.number == disk.number {
            parts.extend(disk.partitions().unwrap_or_default());
        }
        for part in parts {
            let names = part.holders().unwrap_or_default();
            let holders = names.iter().filter_map(|name| named(name, roots).map(|holder| (name, holder)));
            for (name, holder) in holders {
                match holder.attribute("dm/uuid") {
                    Some(uuid) if uuid.starts_with("mpath-") => self.gets_requests_from = Some(name.clone()),
                    Some(_) => {}
                    None if part.is_partition() => self.remapped_from.push(device_of(part.number)),
                    None => self.remapped_from.push(device_of(holder.number)),
                }
            }
        }
    }

    /// Whether writing to the file or folder at `path` means writing to what is captured.
    pub fn is_beneath_path(&self, path: &Path, roots: &SystemRoots) -> bool {
        devices_beneath_path(roots, path).contains(&self.number)
    }
}

fn device_of(number: DeviceNumber) -> Device {
    Device { major: number.major, minor: number.minor }
}

fn named(name: &str, roots: &SystemRoots) -> Option<BlockDevice> {
    let text = fs::read_to_string(roots.sys.join("class/block").join(name).join("dev")).ok()?;
    roots.block_device(DeviceNumber::parse(&text)?).ok()
}

fn window(device: &BlockDevice, disk: &BlockDevice) -> Window {
    // sysfs counts in units of 512 bytes whatever the drive's block, as the events do.
    let number = |name| device.attribute_number(name).unwrap_or(0);
    let most_kib = disk.attribute_number("queue/max_sectors_kb").unwrap_or(1280);
    Window { first_sector: number("start"), sectors: number("size"), margin_sectors: most_kib * 2 }
}

/// The device's folder is below its subsystem's, and not below a controller's, where multipath shows it.
fn has_hidden_paths(roots: &SystemRoots, disk: &BlockDevice) -> bool {
    let link = roots.sys.join("dev/block").join(disk.number.to_string());
    fs::canonicalize(link)
        .is_ok_and(|folder| folder.components().any(|part| part.as_os_str() == "nvme-subsystem"))
}

fn number_of(given: &str, roots: &SystemRoots) -> Result<DeviceNumber, CaptureError> {
    if let Some(number) = DeviceNumber::parse(given) {
        return Ok(number);
    }
    let mut path = PathBuf::from(given);
    if !given.contains('/') && !path.exists() {
        path = Path::new("/dev").join(given);
    }
    if let Some(number) = roots.number_of_path(&path) {
        return Ok(number);
    }
    Err(CaptureError::Usage(no_block_device(given, &path, roots)))
}

fn no_block_device(given: &str, path: &Path, roots: &SystemRoots) -> String {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return format!("{given} cannot be looked at ({error}): name a block device, such as /dev/nvme0n1; 'lsblk' shows them"),
    };
    if metadata.file_type().is_char_device() {
        return format!(
            "{given} is a character device: what passes through it never reaches the block layer, where I/O is captured; name \
             the block device, such as /dev/nvme0n1"
        );
    }
    let below: Vec<String> = devices_beneath_path(roots, path)
        .into_iter()
        .filter_map(|number| Some(roots.block_device(number).ok()?.node().display().to_string()))
        .collect();
    let remedy = match &below[..] {
        [] => "name a block device, such as /dev/nvme0n1".to_string(),
        below => format!("it stands on {}: name one of these", below.join(", ")),
    };
    format!("{given} is not a block device; {remedy}")
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
