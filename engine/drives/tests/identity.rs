//! Identity and usage of hardware that a test machine does not have, on trees laid out as the kernel lays them out.

mod support;
#[path = "support/tree.rs"]
mod tree;

use std::os::unix::fs::symlink;
use support::{both_consents, consent, loop_turn, must, Loop, Mounted};
use testdrive_drives::guard::{open_with_roots, Access, Consent, OpenRequest};
use testdrive_drives::{list_with_roots, DriveListing, DriveUri, Reason};
use tree::Tree;

fn list(tree: &Tree) -> Vec<DriveListing> {
    list_with_roots(&tree.roots()).unwrap()
}

fn only(tree: &Tree) -> DriveListing {
    let mut drives = list(tree);
    assert_eq!(drives.len(), 1);
    drives.remove(0)
}

/// Model, serial, firmware and what consent must name.
fn identity(drive: &DriveListing) -> [&str; 4] {
    [&drive.model, &drive.serial, &drive.firmware, &drive.erase_name]
}

#[test]
fn an_nvme_namespace_has_the_identity_of_its_controller() {
    let tree = Tree::new();
    let attributes = [
        ("device/model", "Samsung SSD 980 PRO 2TB                 "),
        ("device/serial", "S4EWNX0M123456      "),
        ("device/firmware_rev", "5B2QGXA7"),
        ("wwid", "eui.002538b911b37d95"),
    ];
    tree.disk("nvme0n1", "259:0", &attributes);
    let drive = only(&tree);
    assert_eq!(identity(&drive), ["Samsung SSD 980 PRO 2TB", "S4EWNX0M123456", "5B2QGXA7", "S4EWNX0M123456"]);
    assert_eq!((drive.uri.as_str(), drive.capacity_bytes), ("/dev/nvme0n1", 1 << 30));
    assert_eq!((drive.logical_block_bytes, drive.physical_block_bytes), (512, 4096));
    assert!(!drive.rotational && drive.discard_max_bytes == 2_147_450_880);
}

#[test]
fn a_sata_drive_has_no_vendor_and_a_sas_drive_has_one() {
    let tree = Tree::new();
    let sata = [("device/vendor", "ATA     "), ("device/model", "WDC WDS500G1B0A-"), ("device/rev", "X411")];
    tree.disk("sda", "8:0", &sata);
    tree.write("sys/devices/sda/device/vpd_pg80", b"\x00\x80\x00\x14        183412800042");
    let sas = [
        ("device/vendor", "SEAGATE "),
        ("device/model", "XS3840TE70004   "),
        ("device/rev", "0003"),
        ("queue/rotational", "1"),
    ];
    tree.disk("sdb", "8:16", &sas);
    tree.write("sys/devices/sdb/device/vpd_pg80", b"\x00\x80\x00\x08HLC00XYZ");
    let drives = list(&tree);
    assert_eq!(identity(&drives[0]), ["WDC WDS500G1B0A-", "183412800042", "X411", "183412800042"]);
    assert_eq!(identity(&drives[1]), ["SEAGATE XS3840TE70004", "HLC00XYZ", "0003", "HLC00XYZ"]);
    assert!(drives[1].rotational);
}

#[test]
fn virtio_and_mmc_have_their_serials_elsewhere() {
    let tree = Tree::new();
    tree.disk(
        "mmcblk0",
        "179:0",
        &[("device/name", "SD64G"), ("device/serial", "0x1a2b3c4d"), ("device/fwrev", "0x8")],
    );
    tree.disk("vda", "254:0", &[("device/vendor", "0x1af4"), ("serial", "volume-7")]);
    let drives = list(&tree);
    assert_eq!(identity(&drives[0]), ["SD64G", "0x1a2b3c4d", "0x8", "0x1a2b3c4d"]);
    assert_eq!(identity(&drives[1]), ["", "volume-7", "", "volume-7"]);
}

#[test]
fn a_serial_that_tells_nothing_is_not_asked_for() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[("device/model", "Bridge"), ("device/wwid", "naa.5000c500a1b2c3d4")]);
    tree.write("sys/devices/sda/device/vpd_pg80", b"\x00\x80\x00\x0c000000000000");
    tree.disk("sdb", "8:16", &[("device/model", "Bridge")]);
    let drives = list(&tree);
    assert_eq!(drives[0].erase_name, "naa.5000c500a1b2c3d4");
    assert_eq!((drives[1].serial.as_str(), drives[1].erase_name.as_str()), ("", "/dev/sdb"));
}

#[test]
fn what_is_built_on_a_partition_holds_the_disk() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    tree.partition("sda", "sda1", "8:1");
    tree.partition("sda", "sda2", "8:2");
    tree.disk("dm-0", "253:0", &[]);
    tree.stack("sda/sda2", "dm-0");
    let drives = list(&tree);
    assert_eq!(drives[0].uri, "/dev/dm-0");
    assert_eq!(drives[1].holders, ["dm-0"]);
    assert_eq!(drives[1].partitions, ["sda1", "sda2"]);
    assert!(!drives[1].erasable);
    let told = drives[1]
        .refusals
        .iter()
        .any(|reason| reason.contains("held by dm-0") && reason.contains("vgchange"));
    assert!(told, "{:?}", drives[1].refusals);
    assert_eq!(drives[0].holders, Vec::<String>::new());
}

#[test]
fn every_device_of_a_btrfs_is_mounted() {
    let tree = Tree::new();
    for (name, number) in [("sdb", "8:16"), ("sdc", "8:32"), ("sdd", "8:48")] {
        tree.disk(name, number, &[]);
    }
    // The kernel's number is of no device, and only one of two is named.
    tree.write("proc/self/mountinfo", "40 27 0:45 / /srv/two\\040disks rw - btrfs /dev/sdb rw\n");
    for name in ["sdb", "sdc"] {
        let link = tree.path(&format!("sys/fs/btrfs/6c1f/devices/{name}"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(tree.path(&format!("sys/devices/{name}")), link).unwrap();
    }
    let drives = list(&tree);
    let mounted: Vec<_> = drives.iter().map(|drive| drive.mounted.clone()).collect();
    assert_eq!(mounted, [vec!["/srv/two disks".to_string()], vec!["/srv/two disks".to_string()], vec![]]);
}

#[test]
fn a_drive_that_is_served_over_a_network_is_held() {
    let tree = Tree::new();
    tree.disk("nvme0n1", "259:0", &[]);
    tree.disk("nvme1n1", "259:1", &[]);
    for (number, enable) in [("0", "0"), ("1", "1")] {
        let namespace = format!("sys/kernel/config/nvmet/subsystems/shelf/namespaces/{number}");
        tree.write(&format!("{namespace}/device_path"), format!("/dev/nvme{number}n1\n"));
        tree.write(&format!("{namespace}/enable"), format!("{enable}\n"));
    }
    let drives = list(&tree);
    assert_eq!(drives[0].holders, Vec::<String>::new());
    assert!(drives[1].holders[0].starts_with("the NVMe target ("), "{:?}", drives[1].holders);
}

/// The directory of a controller in sysfs, with its namespaces below it where the kernel puts them.
fn nvme_controller(tree: &Tree, name: &str, subsystem: &str, below: &[&str]) {
    tree.write(&format!("sys/devices/{name}/subsysnqn"), format!("{subsystem}\n"));
    for each in below {
        std::fs::create_dir_all(tree.path(&format!("sys/devices/{name}/{each}"))).unwrap();
    }
    std::fs::create_dir_all(tree.path("sys/class/nvme")).unwrap();
    let link = tree.path(&format!("sys/class/nvme/{name}"));
    symlink(tree.path(&format!("sys/devices/{name}")), link).unwrap();
}

#[test]
fn a_controller_that_the_nvme_target_passes_through_holds_every_namespace_of_its_subsystem() {
    let tree = Tree::new();
    for (name, number, subsystem) in [
        ("nvme0n1", "259:0", "nqn.shelf"),
        ("nvme0n2", "259:1", "nqn.shelf"),
        ("nvme1n1", "259:2", "nqn.other"),
    ] {
        tree.disk(name, number, &[("device/subsysnqn", subsystem)]);
    }
    nvme_controller(&tree, "nvme0", "nqn.shelf", &["nvme0n1", "nvme0n2"]);
    nvme_controller(&tree, "nvme1", "nqn.other", &["nvme1n1"]);
    let passthru = "sys/kernel/config/nvmet/subsystems/shelf/passthru";
    let holders = || -> Vec<usize> { list(&tree).iter().map(|drive| drive.holders.len()).collect() };
    tree.write(&format!("{passthru}/device_path"), "/dev/nvme0\n");
    tree.write(&format!("{passthru}/enable"), "0\n");
    assert_eq!(holders(), [0, 0, 0]);
    tree.write(&format!("{passthru}/enable"), "1\n");
    assert_eq!(holders(), [1, 1, 0]);
    let told = &list(&tree)[1].refusals;
    let words =
        |reason: &String| reason.contains("held by the NVMe target (") && reason.contains("/dev/nvme0");
    assert!(told.iter().any(words), "{told:?}");
    // Whose controller it is cannot be told: it may be any.
    tree.write(&format!("{passthru}/device_path"), "/dev/by-hand/shelf\n");
    assert_eq!(holders(), [1, 1, 1]);
}

/// A process that has /dev/null open, in a host whose namespace 0n1 has that number for its character device.
fn opener_of_the_character_device(tree: &Tree, flags: &str) {
    tree.write("sys/class/nvme-generic/ng0n1/dev", "1:3\n");
    tree.write("proc/4242/comm", "fio\n");
    tree.write("proc/4242/fdinfo/3", format!("pos: 0\nflags: {flags}\n"));
    std::fs::create_dir_all(tree.path("proc/4242/fd")).unwrap();
    symlink("/dev/null", tree.path("proc/4242/fd/3")).unwrap();
}

#[test]
fn who_can_write_by_the_character_device_of_a_namespace_uses_its_block_device() {
    for (flags, in_use) in [("0100002", true), ("0100001", true), ("0100000", false)] {
        let tree = Tree::new();
        tree.disk("nvme0n1", "259:0", &[]);
        tree.disk("nvme1n1", "259:1", &[]);
        opener_of_the_character_device(&tree, flags);
        let drives = list(&tree);
        let told = |drive: &DriveListing| {
            drive.refusals.iter().any(|reason| reason.contains("in use by process 4242 (fio)"))
        };
        assert_eq!(
            (told(&drives[0]), told(&drives[1])),
            (in_use, false),
            "{flags}: {:?}",
            drives[0].refusals
        );
    }
}

#[test]
fn a_node_that_leads_to_another_disk_is_not_looked_at_in_its_place() {
    let tree = Tree::new();
    tree.disk("nvme0n1", "259:0", &[]);
    tree.disk("nvme1n1", "259:1", &[]);
    std::fs::remove_file(tree.path("dev/nvme0n1")).unwrap();
    symlink("nvme1n1", tree.path("dev/nvme0n1")).unwrap();
    let refusals = &list(&tree)[0].refusals;
    let told = |reason: &String| reason.contains("leads to device 259:1, and this drive is 259:0");
    assert!(refusals.iter().any(told), "{refusals:?}");
}

#[test]
fn swap_on_a_partition_through_a_link_is_seen() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    tree.partition("sda", "sda3", "8:3");
    std::fs::create_dir_all(tree.path("dev/mapper")).unwrap();
    symlink("../sda3", tree.path("dev/mapper/swap")).unwrap();
    tree.write("proc/swaps", "Filename Type Size Used Priority\n/dev/mapper/swap partition 8 0 -2\n");
    let drive = only(&tree);
    assert!(drive.swap && drive.refusals.iter().any(|reason| reason.contains("swapoff")), "{drive:?}");
}

#[test]
fn a_mount_in_the_namespace_of_a_service_is_seen_once() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    for (pid, namespace) in [("self", "mnt:[1]"), ("100", "mnt:[1]"), ("200", "mnt:[2]"), ("201", "mnt:[2]")]
    {
        std::fs::create_dir_all(tree.path(&format!("proc/{pid}/ns"))).unwrap();
        symlink(namespace, tree.path(&format!("proc/{pid}/ns/mnt"))).unwrap();
    }
    let service = "50 27 8:0 / /old rw - xfs /dev/sda rw\n";
    tree.write("proc/200/mountinfo", service);
    tree.write("proc/201/mountinfo", service);
    assert_eq!(only(&tree).mounted, ["/old (in the mount namespace of process 200)"]);
}

#[test]
fn a_read_only_disk_makes_its_partitions_read_only() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[("ro", "1")]);
    assert!(only(&tree).read_only);
}

#[test]
fn drives_without_capacity_are_not_listed() {
    let tree = Tree::new();
    tree.disk("loop7", "7:7", &[("size", "0")]);
    tree.disk("zram0", "253:0", &[("size", "0")]);
    assert!(list(&tree).is_empty());
}

#[test]
fn without_the_kernels_tables_nothing_is_taken_for_free() {
    for missing in ["proc/self/mountinfo", "sys/block"] {
        let tree = Tree::new();
        tree.disk("sda", "8:0", &[]);
        let path = tree.path(missing);
        std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).unwrap();
        assert!(list_with_roots(&tree.roots()).is_err(), "{missing}");
    }
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    std::fs::remove_dir(tree.path("sys/devices/sda/holders")).unwrap();
    assert!(only(&tree).refusals.iter().any(|reason| reason.contains("holders of sda cannot be listed")));
}

fn open_as(
    tree: &Tree,
    device: &Loop,
    access: Access,
    consent: &Consent,
    output: Option<&std::path::Path>,
) -> Result<String, Vec<Reason>> {
    let uri = DriveUri::parse(&device.path).unwrap();
    let request = OpenRequest { uri: &uri, access, consent, output };
    let opened = open_with_roots(&request, &tree.roots_with_real_nodes());
    opened.map(|target| target.device.identity.serial).map_err(|refusal| refusal.reasons().to_vec())
}

fn number_of(device: &Loop) -> String {
    std::fs::read_to_string(format!("/sys/block/{}/dev", device.name())).unwrap().trim().to_string()
}

#[test]
fn a_drive_with_a_serial_is_named_by_it_and_by_nothing_else() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let tree = Tree::new();
    tree.disk("nvme1n1", &number_of(&device), &[("device/serial", "S4EWNX0M123456")]);
    let open = |given: &str| open_as(&tree, &device, Access::Write, &consent(given), None);
    assert_eq!(open("S4EWNX0M123456"), Ok("S4EWNX0M123456".to_string()));
    for wrong in [device.path.as_str(), "/dev/nvme1n1", "S4EWNX0M12345", "s4ewnx0m123456", "S4EWNX0M123456 "]
    {
        let name = "S4EWNX0M123456".to_string();
        assert_eq!(open(wrong), Err(vec![Reason::WrongConsent { given: wrong.into(), name }]));
    }
}

#[test]
fn a_recording_on_a_volume_over_the_drive_is_refused() {
    let Some(_turn) = loop_turn() else { return };
    let (target, volume, other) = (Loop::new(), Loop::new(), Loop::new());
    must("mkfs.ext4", &["-q", &volume.path]);
    let mounted = Mounted::new(&volume.path);
    let tree = Tree::new();
    // The mounted device claims to be a logical volume, and the target the disk whose partition it is on.
    tree.disk("sda", &number_of(&target), &[]);
    tree.partition("sda", "sda2", "8:2");
    tree.disk("dm-0", &number_of(&volume), &[]);
    tree.stack("sda/sda2", "dm-0");
    tree.disk("sdb", &number_of(&other), &[]);
    let output = mounted.point.path().join("a.rec");
    let refused = open_as(&tree, &target, Access::ReadOnly, &Consent::default(), Some(&output));
    assert_eq!(refused, Err(vec![Reason::RecordingOnIt(output.display().to_string())]));
    assert!(open_as(&tree, &other, Access::ReadOnly, &Consent::default(), Some(&output)).is_ok());
    let writing = open_as(&tree, &target, Access::Write, &both_consents(&target.path), Some(&output));
    assert!(writing.unwrap_err().contains(&Reason::RecordingOnIt(output.display().to_string())));
}

#[test]
fn nvme_drives_that_the_kernels_driver_does_not_have_are_listed_with_who_has_them() {
    let tree = Tree::new();
    for (address, class, driver) in [
        ("0000:01:00.0", "0x010802", Some("vfio-pci")),
        ("0000:02:00.0", "0x010802", Some("nvme")),
        ("0000:03:00.0", "0x010802", Some("uio_pci_generic")),
        ("0000:04:00.0", "0x020000", Some("vfio-pci")),
        ("0000:05:00.0", "0x010802", None),
    ] {
        let folder = format!("sys/bus/pci/devices/{address}");
        tree.write(&format!("{folder}/class"), format!("{class}\n"));
        if let Some(driver) = driver {
            let link = tree.path(&format!("{folder}/driver"));
            std::os::unix::fs::symlink(format!("../../../bus/pci/drivers/{driver}"), link).unwrap();
        }
    }
    let drives = list(&tree);
    let told: Vec<_> = drives.iter().map(|drive| (&*drive.uri, &*drive.refusals[0])).collect();
    let [(first, vfio), (second, uio), (third, none)] = told[..] else { panic!("{told:?}") };
    assert_eq!([first, second, third], ["pci:0000:01:00.0", "pci:0000:03:00.0", "pci:0000:05:00.0"]);
    assert!(vfio.contains("nobody is seen to use it: 'testdrive drives --release 0000:01:00.0'"), "{vfio}");
    assert!(uio.contains("uio_pci_generic has it") && !uio.contains("--release"), "{uio}");
    assert!(none.contains("no driver has it: 'testdrive drives --release 0000:05:00.0'"), "{none}");
    assert!(drives.iter().all(|drive| !drive.erasable && drive.paths.len() == 1));
}
