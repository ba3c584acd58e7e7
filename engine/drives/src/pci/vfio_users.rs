//! Who has a function through VFIO. The kernel takes a function from its user only once that lets go of it, and asks it to: a virtual machine
//! answers by unplugging its disk. So a function in use is left alone, be its user one of ours or not.

use crate::guard::openers::{openers, Opened, Opener};
use crate::sysfs::{DeviceNumber, SystemRoots};
use std::fs::{self, OpenOptions};
use testdrive_userspace::pci::PciFunction;

/// The users of a function that vfio-pci has, by process; `None` where there are none. The list is empty where nobody is seen, as in
/// another container, and yet somebody has it.
pub(crate) fn vfio_users(function: &PciFunction, roots: &SystemRoots) -> Option<Vec<String>> {
    let found = vfio_openers(function, roots, &character_openers(roots));
    // A group is opened once at a time, whoever looks; also while a device of it is open without the group.
    let is_taken = group_names(function).iter().any(|name| {
        let opened = OpenOptions::new().read(true).write(true).open(roots.dev.join("vfio").join(name));
        opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    });
    (is_taken || !found.is_empty()).then_some(found)
}

/// Who has which character device.
pub(crate) fn character_openers(roots: &SystemRoots) -> Vec<Opener> {
    openers(roots, |opened| matches!(opened, Opened::Character(_))).found
}

/// The users among those of character devices, and the group left alone: whoever opens it at the same time would be refused.
pub(crate) fn vfio_openers(function: &PciFunction, roots: &SystemRoots, among: &[Opener]) -> Vec<String> {
    let names = group_names(function);
    let of_group = names.iter().map(|name| roots.sys.join("class/vfio").join(name).join("dev"));
    let own = fs::read_dir(function.directory().join("vfio-dev")).into_iter().flatten().flatten();
    let of_device = own.map(|entry| entry.path().join("dev"));
    let numbers: Vec<DeviceNumber> = of_group
        .chain(of_device)
        .filter_map(|path| DeviceNumber::parse(&fs::read_to_string(path).ok()?))
        .collect();
    let has = |opened| matches!(opened, Opened::Character(number) if numbers.contains(&number));
    among.iter().filter(|opener| has(opener.opened)).map(Opener::name).collect()
}

/// What VFIO calls the function's group, with an IOMMU and without.
fn group_names(function: &PciFunction) -> Vec<String> {
    let group = function.iommu_group();
    group.into_iter().flat_map(|group| [format!("noiommu-{group}"), group]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use testdrive_userspace::pci::{Bdf, Roots};

    /// A host with a function in group 3, and a process that has /dev/null open.
    fn host() -> (tempfile::TempDir, SystemRoots, PciFunction) {
        let folder = tempfile::tempdir().unwrap();
        let at = |relative: &str| folder.path().join(relative);
        let device = at("sys/bus/pci/devices/0000:01:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(at("proc/77/fd")).unwrap();
        symlink("../../../kernel/iommu_groups/3", device.join("iommu_group")).unwrap();
        symlink("/dev/null", at("proc/77/fd/9")).unwrap();
        fs::write(at("proc/77/comm"), "qemu-system-x86\n").unwrap();
        let roots = SystemRoots { sys: at("sys"), proc: at("proc"), dev: at("dev") };
        let pci = Roots { sys: at("sys"), dev: at("dev"), ..Roots::default() };
        let function = PciFunction::find(&pci, Bdf::parse("0000:01:00.0").unwrap()).unwrap();
        (folder, roots, function)
    }

    #[test]
    fn who_has_the_group_or_the_device_open_is_named() {
        for node in [
            "sys/class/vfio/3",
            "sys/class/vfio/noiommu-3",
            "sys/bus/pci/devices/0000:01:00.0/vfio-dev/vfio0",
        ] {
            let (folder, roots, function) = host();
            assert_eq!(vfio_users(&function, &roots), None);
            fs::create_dir_all(folder.path().join(node)).unwrap();
            // The number of /dev/null.
            fs::write(folder.path().join(node).join("dev"), "1:3\n").unwrap();
            let users = vfio_users(&function, &roots);
            assert_eq!(users, Some(vec!["process 77 (qemu-system-x86)".to_string()]), "{node}");
        }
    }

    #[test]
    fn a_user_of_another_group_is_none() {
        let (folder, roots, function) = host();
        fs::create_dir_all(folder.path().join("sys/class/vfio/4")).unwrap();
        fs::write(folder.path().join("sys/class/vfio/4/dev"), "1:3\n").unwrap();
        assert_eq!(vfio_users(&function, &roots), None);
    }
}
