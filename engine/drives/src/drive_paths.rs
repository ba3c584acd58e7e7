//! The ways to one drive: its block device, and where it is an NVMe drive what leads past that.

use crate::pci::namespaces::head_name;
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// One way to a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DrivePath {
    /// `block`, `nvme_passthrough` or `userspace`.
    pub path: &'static str,
    /// What to give as `--drive`.
    pub uri: String,
}

/// Every way to a whole disk.
pub(crate) fn paths_of(disk: &BlockDevice, roots: &SystemRoots) -> Vec<DrivePath> {
    let mut paths = vec![DrivePath { path: "block", uri: disk.node().display().to_string() }];
    let Some(numbers) = namespace_numbers(&disk.name) else { return paths };
    let character = format!("ng{numbers}");
    if roots.dev.join(&character).exists() {
        paths.push(DrivePath { path: "nvme_passthrough", uri: format!("/dev/{character}") });
    }
    let controllers = disk.link("device").map(|owner| pci_controllers(&owner)).unwrap_or_default();
    paths.extend(controllers.into_iter().map(|(address, namespaces)| {
        let chosen = disk.attribute("nsid").filter(|_| namespaces > 1);
        let chosen = chosen.map_or_else(String::new, |nsid| format!("?namespace={nsid}"));
        DrivePath { path: "userspace", uri: format!("pci:{address}{chosen}") }
    }));
    paths
}

/// What tells a namespace from all others, through whichever controller it is seen; `None` of what is no NVMe namespace.
pub(crate) fn namespace_of(disk: &BlockDevice) -> Option<(String, String)> {
    namespace_numbers(&disk.name)?;
    let attribute = |name| disk.attribute(name).filter(|text| !text.is_empty());
    Some((attribute("device/subsysnqn")?, attribute("nsid")?))
}

/// Whether a name is that of a whole namespace.
pub(crate) fn is_namespace(name: &str) -> bool {
    namespace_numbers(name).is_some()
}

/// The numbers in the name of a whole namespace, as `0n1` of `nvme0n1`.
pub(crate) fn namespace_numbers(name: &str) -> Option<&str> {
    let numbers = name.strip_prefix("nvme")?;
    let parts: Vec<&str> = numbers.split('n').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (parts.len() == 2 && parts.iter().all(is_number)).then_some(numbers)
}

/// The number of the character device of a namespace, by which commands pass its block device. The class has them all, be they below their
/// controller or, as where several share the namespace, below the subsystem.
pub(crate) fn character_number(disk: &BlockDevice, roots: &SystemRoots) -> Option<DeviceNumber> {
    let name = format!("ng{}", namespace_numbers(&disk.name)?);
    let path = roots.sys.join("class/nvme-generic").join(name).join("dev");
    DeviceNumber::parse(&fs::read_to_string(path).ok()?)
}

/// The PCI address of a controller, or of every controller of a subsystem, each with how many namespaces the kernel shows of it.
fn pci_controllers(owner: &Path) -> Vec<(String, usize)> {
    let found = |controller: &Path| {
        let read = |name| fs::read_to_string(controller.join(name)).ok().map(|text| text.trim().to_string());
        let address = (read("transport")? == "pcie").then(|| read("address")).flatten()?;
        Some((address, entries(controller).filter_map(|path| head_name(&name_of(&path))).count()))
    };
    if let Some(own) = found(owner) {
        return vec![own];
    }
    let mut controllers: Vec<PathBuf> = entries(owner).collect();
    controllers.sort();
    controllers.iter().filter_map(|controller| found(controller)).collect()
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A disk whose device is the given directory, relative to sysfs, of a host that has these nodes.
    fn disk(sys: &Path, name: &str, device: &str, nodes: &[&str]) -> (BlockDevice, SystemRoots) {
        let directory = sys.join("devices").join(name);
        write(&directory.join("dev"), "259:0\n");
        write(&directory.join("nsid"), "1\n");
        symlink(sys.join(device), directory.join("device")).unwrap();
        fs::create_dir_all(sys.join("dev/block")).unwrap();
        symlink(&directory, sys.join("dev/block/259:0")).unwrap();
        nodes.iter().for_each(|node| write(&sys.join("nodes").join(node), ""));
        let roots = SystemRoots { sys: sys.into(), dev: sys.join("nodes"), ..SystemRoots::default() };
        (roots.block_device(DeviceNumber { major: 259, minor: 0 }).unwrap(), roots)
    }

    fn uris(disk: &BlockDevice, roots: &SystemRoots) -> Vec<(&'static str, String)> {
        paths_of(disk, roots).into_iter().map(|each| (each.path, each.uri)).collect()
    }

    #[test]
    fn an_nvme_drive_has_its_character_device_and_its_controllers_address() {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path();
        write(&sys.join("nvme0/transport"), "pcie\n");
        write(&sys.join("nvme0/address"), "0000:01:00.0\n");
        write(&sys.join("nvme0/subsysnqn"), "nqn.x\n");
        let (disk, roots) = disk(sys, "nvme0n1", "nvme0", &["ng0n1"]);
        let expected = [
            ("block", "/dev/nvme0n1".to_string()),
            ("nvme_passthrough", "/dev/ng0n1".to_string()),
            ("userspace", "pci:0000:01:00.0".to_string()),
        ];
        assert_eq!(uris(&disk, &roots), expected);
        assert_eq!(namespace_of(&disk), Some(("nqn.x".into(), "1".into())));
    }

    #[test]
    fn a_namespace_with_several_controllers_has_the_address_of_each_that_is_on_pci() {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path();
        for (name, transport, address) in [
            ("nvme1", "pcie", "0000:02:00.0"),
            ("nvme0", "pcie", "0000:01:00.0"),
            ("nvme2", "tcp", "traddr=10.0.0.1"),
        ] {
            write(&sys.join("subsystem").join(name).join("transport"), transport);
            write(&sys.join("subsystem").join(name).join("address"), address);
        }
        let (disk, roots) = disk(sys, "nvme3n1", "subsystem", &[]);
        let expected = [
            ("block", "/dev/nvme3n1".to_string()),
            ("userspace", "pci:0000:01:00.0".to_string()),
            ("userspace", "pci:0000:02:00.0".to_string()),
        ];
        assert_eq!(uris(&disk, &roots), expected);
    }

    #[test]
    fn a_namespace_of_a_controller_with_several_is_named_by_its_identifier() {
        for (names, expected) in [
            (["nvme0n1", "nvme0n2", "ng0n1"], "pci:0000:01:00.0?namespace=1"),
            (["nvme0c0n1", "nvme0c0n2", "hwmon1"], "pci:0000:01:00.0?namespace=1"),
            (["nvme0n1", "ng0n1", "ng0n2"], "pci:0000:01:00.0"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let sys = folder.path();
            write(&sys.join("nvme0/transport"), "pcie\n");
            write(&sys.join("nvme0/address"), "0000:01:00.0\n");
            names.iter().for_each(|name| fs::create_dir_all(sys.join("nvme0").join(name)).unwrap());
            let (disk, roots) = disk(sys, "nvme0n1", "nvme0", &[]);
            assert_eq!(uris(&disk, &roots)[1], ("userspace", expected.to_string()), "{names:?}");
        }
    }

    #[test]
    fn other_drives_have_their_block_device_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, roots) = disk(folder.path(), "sda", "target", &["ng0n1"]);
        assert_eq!(uris(&disk, &roots), [("block", "/dev/sda".to_string())]);
        assert_eq!(namespace_of(&disk), None);
        assert_eq!((namespace_numbers("nvme0n1p1"), namespace_numbers("nvme0c0n1")), (None, None));
    }
}
