//! What the kernel's NVMe target serves to other hosts: it takes no claim on a drive, so O_EXCL does not see it.

use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A device that this host serves to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) number: DeviceNumber,
    /// By what, as a message names it.
    pub(crate) name: String,
}

/// Every device that is served: as a namespace of a subsystem, or with its whole controller, which is passed through.
pub(crate) fn exports(disks: &[BlockDevice], roots: &SystemRoots) -> Vec<Export> {
    let mut found = Vec::new();
    for subsystem in entries(&roots.sys.join("kernel/config/nvmet/subsystems")) {
        found.extend(
            entries(&subsystem.join("namespaces")).iter().filter_map(|folder| namespace(folder, roots)),
        );
        found.extend(passed_through(&subsystem.join("passthru"), disks, roots));
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The path of the device that a folder of the target's configuration serves; `None` where it is switched off.
fn served_path(folder: &Path) -> Option<PathBuf> {
    let attribute = |name| fs::read_to_string(folder.join(name)).ok();
    let is_enabled = attribute("enable")?.trim() == "1";
    is_enabled.then(|| attribute("device_path")).flatten().map(|path| path.trim().into())
}

fn namespace(folder: &Path, roots: &SystemRoots) -> Option<Export> {
    let number = roots.number_of_path(&served_path(folder)?)?;
    Some(Export { number, name: format!("the NVMe target ({})", folder.display()) })
}

/// Every namespace of the subsystem whose controller is passed through: who has one of its controllers reaches those that it shares with
/// others, and can format the drive. Where the controller cannot be found any more it may be any.
fn passed_through(folder: &Path, disks: &[BlockDevice], roots: &SystemRoots) -> Vec<Export> {
    let Some(path) = served_path(folder) else { return Vec::new() };
    let controller = controller_of(&path, roots);
    let name = format!("the NVMe target ({}, which passes {} through)", folder.display(), path.display());
    let is_of_it = |disk: &&BlockDevice| {
        disk.name.starts_with("nvme") && controller.as_ref().is_none_or(|each| is_of(disk, each))
    };
    disks.iter().filter(is_of_it).map(|disk| Export { number: disk.number, name: name.clone() }).collect()
}

/// The directory in sysfs of the controller that a character device leads to: by its number, or by its name where it has no node here.
fn controller_of(path: &Path, roots: &SystemRoots) -> Option<PathBuf> {
    let link = match fs::metadata(roots.dev_path(path)) {
        Ok(metadata) if metadata.file_type().is_char_device() => {
            roots.sys.join("dev/char").join(DeviceNumber::from_raw(metadata.rdev()).to_string())
        }
        _ => roots.sys.join("class/nvme").join(path.file_name()?),
    };
    fs::canonicalize(link).ok()
}

/// Whether a disk is a namespace of a controller, or of another of the same subsystem.
fn is_of(disk: &BlockDevice, controller: &Path) -> bool {
    let subsystem = fs::read_to_string(controller.join("subsysnqn")).unwrap_or_default();
    let same_subsystem =
        disk.attribute("device/subsysnqn").is_some_and(|name| !name.is_empty() && name == subsystem.trim());
    same_subsystem || disk.link("device").is_some_and(|own| own == *controller)
}
