//! What is asked before a controller is taken from the kernel, on trees of sysfs laid out by hand. None of these gets as far as taking it:
//! the trees have no vfio-pci, which is asked for last.

#[path = "support/tree.rs"]
mod tree;

use std::fs;
use std::os::unix::fs::symlink;
use testdrive_drives::guard::OpenRequest;
use testdrive_drives::{Access, Consent, DriveKind, DriveUri, PciTarget, Reason, Refusal};
use tree::Tree;

const BDF: &str = "0000:fe:1f.7";
const DEVICE: &str = "sys/bus/pci/devices/0000:fe:1f.7";

/// A controller with one namespace, behind an IOMMU, with the kernel's driver.
fn controller() -> Tree {
    let tree = Tree::new();
    let attributes = [("nsid", "1"), ("device/model", "EXAMPLE SSD"), ("device/serial", "S4EW")];
    tree.disk("nvme7n1", "259:70", &attributes);
    tree.write(&format!("{DEVICE}/class"), "0x010802\n");
    tree.write(&format!("{DEVICE}/nvme/nvme7/dev"), "240:7\n");
    fs::create_dir_all(tree.path(&format!("{DEVICE}/nvme/nvme7/nvme7n1"))).unwrap();
    fs::create_dir_all(tree.path("sys/bus/pci/drivers/nvme")).unwrap();
    symlink(tree.path("sys/bus/pci/drivers/nvme"), tree.path(&format!("{DEVICE}/driver"))).unwrap();
    group_member(&tree, BDF);
    symlink(tree.path("sys/kernel/iommu_groups/3"), tree.path(&format!("{DEVICE}/iommu_group"))).unwrap();
    tree
}

fn group_member(tree: &Tree, bdf: &str) {
    fs::create_dir_all(tree.path(&format!("sys/kernel/iommu_groups/3/devices/{bdf}"))).unwrap();
}

fn refusal(tree: &Tree, options: &str, access: Access, erase: Option<&str>) -> Refusal {
    let uri = DriveUri::parse(&format!("pci:{BDF}{options}")).unwrap();
    let DriveKind::Pci(pci) = &uri.kind else { panic!("{uri:?}") };
    let consent = Consent { erase: erase.map(str::to_string), erase_signatures: false };
    let request = OpenRequest { uri: &uri, access, consent: &consent, output: None };
    match PciTarget::open(&request, pci, &tree.roots()) {
        Ok(_) => panic!("it was taken"),
        Err(refusal) => refusal,
    }
}

fn read(tree: &Tree) -> Refusal {
    refusal(tree, "", Access::ReadOnly, None)
}

#[test]
fn a_free_controller_is_only_short_of_vfio() {
    let refusal = read(&controller());
    assert!(refusal.to_string().contains("modprobe vfio-pci"), "{refusal}");
    assert_eq!(refusal.exit_status(), 2);
}

#[test]
fn what_is_no_nvme_controller_or_not_the_kernels_is_refused() {
    let tree = controller();
    tree.write(&format!("{DEVICE}/class"), "0x020000\n");
    assert!(read(&tree).to_string().contains("is no NVMe controller (its class is 020000"));
    let tree = controller();
    let driver = tree.path(&format!("{DEVICE}/driver"));
    fs::remove_file(&driver).unwrap();
    let reasons = |tree: &Tree| read(tree).reasons().to_vec();
    let not_kernels = |driver: &str| [Reason::NotKernels { driver: driver.into(), bdf: BDF.into() }];
    assert_eq!(reasons(&tree), not_kernels("no driver"));
    symlink(tree.path("sys/bus/pci/drivers/uio_pci_generic"), &driver).unwrap();
    assert_eq!(reasons(&tree), not_kernels("uio_pci_generic"));
    assert!(read(&tree).to_string().contains(&format!("drives --release {BDF}")));
}

#[test]
fn without_an_iommu_it_takes_a_flag_and_with_one_the_flag_is_refused() {
    let tree = controller();
    let without = |tree: &Tree, options| refusal(tree, options, Access::ReadOnly, None).to_string();
    assert!(without(&tree, "?noiommu=yes").contains("leave noiommu=yes out"));
    fs::remove_file(tree.path(&format!("{DEVICE}/iommu_group"))).unwrap();
    assert!(without(&tree, "").contains("has no IOMMU group"));
    assert!(without(&tree, "?noiommu=yes").contains("enable_unsafe_noiommu_mode"));
}

#[test]
fn others_of_its_group_that_have_a_driver_are_named_and_bridges_do_not_count() {
    let tree = controller();
    for (bdf, class, driver) in [
        ("0000:fe:1f.0", "0x060400", Some("pcieport")),
        ("0000:fe:1f.1", "0x010802", Some("vfio-pci")),
        ("0000:fe:1f.2", "0x020000", None),
        ("0000:fe:1f.3", "0x020000", Some("e1000e")),
    ] {
        group_member(&tree, bdf);
        let device = format!("sys/bus/pci/devices/{bdf}");
        tree.write(&format!("{device}/class"), class);
        let link = |driver| {
            symlink(
                tree.path(&format!("sys/bus/pci/drivers/{driver}")),
                tree.path(&format!("{device}/driver")),
            )
        };
        driver.into_iter().for_each(|driver| link(driver).unwrap());
    }
    assert_eq!(read(&tree).reasons(), [Reason::SharedGroup(vec!["0000:fe:1f.3 (e1000e)".into()])]);
}

#[test]
fn a_namespace_in_use_is_refused_for_reading_too_whichever_was_named() {
    let tree = controller();
    tree.disk(
        "nvme7n2",
        "259:71",
        &[("nsid", "2"), ("device/model", "EXAMPLE SSD"), ("device/serial", "S4EW")],
    );
    fs::create_dir_all(tree.path(&format!("{DEVICE}/nvme/nvme7/nvme7n2"))).unwrap();
    assert!(read(&tree).to_string().contains("has the namespaces 1, 2: choose one"));
    let first = |tree: &Tree| refusal(tree, "?namespace=1", Access::ReadOnly, None);
    assert!(first(&tree).to_string().contains("modprobe vfio-pci"));
    assert!(refusal(&tree, "?namespace=3", Access::ReadOnly, None).to_string().contains("no such namespace"));
    tree.write("proc/self/mountinfo", "30 22 259:71 / /srv rw - ext4 /dev/nvme7n2 rw\n");
    assert_eq!(first(&tree).reasons(), [Reason::Mounted(vec!["/srv".into()])]);
    tree.write("proc/self/mountinfo", "");
    tree.disk("md0", "9:0", &[]);
    tree.stack("nvme7n2", "md0");
    assert_eq!(first(&tree).reasons(), [Reason::Held(vec!["md0".into()])]);
}

#[test]
fn consent_names_the_serial_and_another_controller_of_the_same_namespaces_is_told() {
    let tree = controller();
    let write = |erase| refusal(&tree, "", Access::Write, erase).reasons().to_vec();
    assert!(write(None).contains(&Reason::NoConsent { name: "S4EW".into() }));
    let wrong = Reason::WrongConsent { given: "nvme7n1".into(), name: "S4EW".into() };
    assert!(write(Some("nvme7n1")).contains(&wrong));
    for name in ["nvme7", "nvme8", "nvme7n1"] {
        fs::create_dir_all(tree.path(&format!("sys/class/nvme-subsystem/nvme-subsys7/{name}"))).unwrap();
    }
    assert_eq!(read(&tree).reasons(), [Reason::OtherControllers(vec!["nvme8".into()])]);
}

#[test]
fn a_controller_whose_namespaces_are_not_shown_cannot_be_told_free() {
    let tree = controller();
    fs::remove_dir_all(tree.path(&format!("{DEVICE}/nvme"))).unwrap();
    assert!(read(&tree).to_string().contains("shows no namespace"));
}

#[test]
fn a_drive_that_does_not_say_what_a_format_erases_is_not_taken() {
    // Nothing of a tree answers a command.
    for access in [Access::Format, Access::Sanitize] {
        let refusal = refusal(&controller(), "", access, Some("S4EW"));
        assert!(refusal.to_string().contains("does not say what it is"), "{refusal}");
        assert_eq!(refusal.exit_status(), 4);
    }
}
