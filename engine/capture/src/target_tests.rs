//! Devices of hosts laid out by hand: multipath, md on partitions, device mapper.

use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

struct Host {
    folder: TempDir,
}

impl Host {
    fn new() -> Host {
        let host = Host { folder: tempfile::tempdir().unwrap() };
        for folder in ["sys/class/block", "sys/dev/block", "proc", "dev"] {
            fs::create_dir_all(host.folder.path().join(folder)).unwrap();
        }
        host
    }

    fn roots(&self) -> SystemRoots {
        let at = |name| self.folder.path().join(name);
        SystemRoots { sys: at("sys"), proc: at("proc"), dev: at("dev") }
    }

    /// A device with its attributes, in a folder below sys/devices.
    fn device(&self, place: &str, number: &str, attributes: &[(&str, &str)]) {
        let folder = self.folder.path().join("sys/devices").join(place);
        let name = folder.file_name().unwrap().to_owned();
        for (attribute, value) in [("dev", number), ("size", "1000000")].iter().chain(attributes) {
            let path = folder.join(attribute);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        for list in ["holders", "slaves"] {
            fs::create_dir_all(folder.join(list)).unwrap();
        }
        symlink(&folder, self.folder.path().join("sys/class/block").join(&name)).unwrap();
        symlink(&folder, self.folder.path().join("sys/dev/block").join(number)).unwrap();
        fs::write(self.folder.path().join("dev").join(&name), "").unwrap();
    }

    fn stack(&self, lower: &str, upper: &str) {
        let at = |place: &str| self.folder.path().join("sys/devices").join(place);
        let name = |place: &str| Path::new(place).file_name().unwrap().to_owned();
        symlink(at(upper), at(lower).join("holders").join(name(upper))).unwrap();
        symlink(at(lower), at(upper).join("slaves").join(name(lower))).unwrap();
    }

    fn find(&self, given: &str) -> Target {
        Target::find(given, &self.roots()).unwrap()
    }
}

fn host_with_a_partition() -> Host {
    let host = Host::new();
    host.device("pci/nvme0n1", "259:0", &[("queue/max_sectors_kb", "512"), ("device/model", "X1")]);
    let partition = [("partition", "1"), ("start", "4096"), ("size", "2048")];
    host.device("pci/nvme0n1/nvme0n1p1", "259:1", &partition);
    host
}

#[test]
fn a_partition_is_captured_on_its_disk_within_its_sectors() {
    let host = host_with_a_partition();
    for given in ["/dev/nvme0n1p1", "nvme0n1p1", "259:1"] {
        let target = host.find(given);
        assert_eq!((target.name.as_str(), target.device), ("nvme0n1p1", Device { major: 259, minor: 0 }));
        let window = Window { first_sector: 4096, sectors: 2048, margin_sectors: 1024 };
        assert_eq!((target.window, target.identity.capacity_bytes), (Some(window), 2048 * 512));
        assert_eq!((target.identity.model.as_str(), target.identity.path.as_str()), ("X1", "trace"));
    }
    let disk = host.find("/dev/nvme0n1");
    assert_eq!((disk.window, disk.has_hidden_paths), (None, false));
}

#[test]
fn md_is_followed_by_the_number_whose_places_are_right() {
    let host = host_with_a_partition();
    host.device("virtual/md0", "9:0", &[]);
    host.device("virtual/md1", "9:1", &[]);
    host.stack("pci/nvme0n1/nvme0n1p1", "virtual/md0");
    host.stack("pci/nvme0n1", "virtual/md1");
    let (md1, partition) = (Device { major: 9, minor: 1 }, Device { major: 259, minor: 1 });
    assert_eq!(host.find("nvme0n1").remapped_from, [md1, partition]);
    assert_eq!(host.find("nvme0n1p1").remapped_from, [partition]);
    assert_eq!(host.find("md0").built_of, ["nvme0n1p1"]);
}

#[test]
fn device_mapper_queues_itself_but_its_multipath_hands_on_requests() {
    let host = host_with_a_partition();
    host.device("virtual/dm-0", "253:0", &[("dm/uuid", "LVM-abc")]);
    host.stack("pci/nvme0n1", "virtual/dm-0");
    let disk = host.find("nvme0n1");
    assert!(disk.remapped_from.is_empty() && disk.gets_requests_from.is_none());
    host.device("virtual/dm-1", "253:1", &[("dm/uuid", "mpath-abc")]);
    host.stack("pci/nvme0n1", "virtual/dm-1");
    assert_eq!(host.find("nvme0n1").gets_requests_from.as_deref(), Some("dm-1"));
}

#[test]
fn what_multipath_shows_of_a_namespace_has_hidden_paths() {
    let host = Host::new();
    host.device("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "259:2", &[]);
    assert!(host.find("nvme0n1").has_hidden_paths);
}

#[test]
fn what_is_no_block_device_is_said_to_be_what_it_is() {
    let host = host_with_a_partition();
    let said = |given: &str| match Target::find(given, &host.roots()) {
        Err(error @ CaptureError::Usage(_)) => (error.to_string(), error.exit_status()),
        other => panic!("{other:?}"),
    };
    assert!(said("/dev/null").0.contains("character device"));
    assert!(said("/no/such").0.contains("lsblk"));
    assert!(said("8:77").0.contains("not in sysfs"));
    let folder = host.folder.path().display().to_string();
    assert!(said(&folder).0.contains("not a block device"), "{}", said(&folder).0);
    assert_eq!(said(&folder).1, 2);
}
