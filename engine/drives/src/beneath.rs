//! What a file or device stands on: the block devices beneath it, through file systems, partitions, device mapper, md and loop
//! devices.

use crate::guard::mounts::all_mounts;
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Every block device that a write to the file at `path` may reach, its own partition and its disk among them. What cannot be found
/// out is left out: a file in memory or on a network stands on none.
pub fn devices_beneath_path(roots: &SystemRoots, path: &Path) -> BTreeSet<DeviceNumber> {
    let mut found = BTreeSet::new();
    follow(roots, devices_of_path(roots, path), &mut found);
    found
}

/// Every block device that an I/O to the device may reach, itself among them.
pub fn devices_beneath(roots: &SystemRoots, device: DeviceNumber) -> BTreeSet<DeviceNumber> {
    let mut found = BTreeSet::new();
    follow(roots, vec![device], &mut found);
    found
}

/// Adds devices with all that they stand on. What was found already is not followed again, so that a circle ends.
fn follow(roots: &SystemRoots, mut open: Vec<DeviceNumber>, found: &mut BTreeSet<DeviceNumber>) {
    while let Some(number) = open.pop() {
        if !found.insert(number) {
            continue;
        }
        let Ok(device) = roots.block_device(number) else { continue };
        open.extend(device.slaves().iter().map(|slave| slave.number));
        open.extend(device.whole_disk().map(|disk| disk.number));
        open.extend(backing(roots, &device));
    }
}

/// What a loop device stands on: a device, or those of a file.
fn backing(roots: &SystemRoots, device: &BlockDevice) -> Vec<DeviceNumber> {
    let Some(path) = device.loop_backing_file() else { return Vec::new() };
    match roots.number_of_path(&path) {
        Some(number) => vec![number],
        None => devices_of_path(roots, &path),
    }
}

/// The devices that the file system under a path is on.
fn devices_of_path(roots: &SystemRoots, path: &Path) -> Vec<DeviceNumber> {
    let Ok(metadata) = fs::metadata(path) else { return Vec::new() };
    let number = DeviceNumber::from_raw(metadata.dev());
    if number.major != 0 {
        return vec![number];
    }
    // A file system that shows a number of no device is looked up by it.
    let mounts = all_mounts(roots).unwrap_or_default();
    mounts.iter().find(|mount| mount.number == number).map_or_else(Vec::new, |mount| mount.devices(roots))
}
