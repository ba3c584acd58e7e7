//! NVMe drives that the kernel's driver does not have: with vfio-pci, in a run or left behind, with another driver, or with none. They have
//! no block device, and a list of block devices would not show them.

use crate::drive_paths::DrivePath;
use crate::listing::DriveListing;
use crate::pci::guard::pci_roots;
use crate::pci::vfio_users::{character_openers, vfio_openers};
use crate::sysfs::SystemRoots;
use std::cell::LazyCell;
use std::fs;
use testdrive_userspace::pci::{Bdf, PciFunction, NVME_CLASS, VFIO_DRIVER};

/// The driver of the kernel itself, whose drives have block devices.
const KERNEL_DRIVER: &str = "nvme";

/// Every NVMe function that another driver has, or none, by address. A host without PCI has none.
pub(crate) fn drives_away(roots: &SystemRoots) -> Vec<DriveListing> {
    let pci = pci_roots(roots);
    let entries = fs::read_dir(roots.sys.join("bus/pci/devices")).into_iter().flatten().flatten();
    let mut addresses: Vec<Bdf> =
        entries.filter_map(|entry| Bdf::parse(&entry.file_name().to_string_lossy())).collect();
    addresses.sort();
    // All processes are looked through once, and only where a drive asks for it.
    let among = LazyCell::new(|| character_openers(roots));
    let users = |function: &PciFunction| vfio_openers(function, roots, &among);
    addresses
        .into_iter()
        .filter_map(|bdf| PciFunction::find(&pci, bdf).ok())
        .filter(|function| function.class() == Some(NVME_CLASS))
        .filter(|function| function.driver().as_deref() != Some(KERNEL_DRIVER))
        .map(|function| listing(&function, &users))
        .collect()
}

fn listing(function: &PciFunction, users: &dyn Fn(&PciFunction) -> Vec<String>) -> DriveListing {
    let uri = format!("pci:{}", function.bdf);
    DriveListing {
        paths: vec![DrivePath { path: "userspace", uri: uri.clone() }],
        refusals: vec![where_it_is(function, users)],
        uri,
        ..DriveListing::default()
    }
}

/// Who has the drive, and how it comes back.
fn where_it_is(function: &PciFunction, users: &dyn Fn(&PciFunction) -> Vec<String>) -> String {
    let release = format!("'testdrive drives --release {}' gives it back to the kernel", function.bdf);
    match function.driver().as_deref() {
        Some(VFIO_DRIVER) => match users(function) {
            users if users.is_empty() => {
                format!("{VFIO_DRIVER} has it, and nobody is seen to use it: {release}")
            }
            users => format!("{VFIO_DRIVER} has it, for {}", users.join(" and ")),
        },
        Some(driver) => {
            format!("the driver {driver} has it, and not the kernel's own: what bound it there gives it back")
        }
        None => format!("no driver has it: {release}"),
    }
}
