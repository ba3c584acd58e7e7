//! What is asked before a controller is taken from the kernel, on trees of sysfs laid out by hand. None of these gets as far as taking it:
//! the trees have no vfio-pci, which is asked for last.

#[path = "support/tree.rs"]
mod tree;

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::time::Duration;
use testdrive_drives::guard::OpenRequest;
use testdrive_drives::nvme::admin::{AdminData, AdminError, AdminQueue};
use testdrive_drives::{Access, Consent, DriveKind, DriveUri, PciTarget, Reason, Refusal};
use testdrive_nvme::{get_feature, Feature, FeatureSelect, IdentifyWhat, NvmCommand};
use tree::Tree;

const BDF: &str = "0000:fe:1f.7";
const DEVICE: &str = "sys/bus/pci/devices/0000:fe:1f.7";
/// A line of mounts that has the controller's other namespace.
const SECOND_IS_MOUNTED: &str = "30 22 259:71 / /srv rw - ext4 /dev/nvme7n2 rw\n";

/// A controller with one namespace, behind an IOMMU, with the kernel's driver.
fn controller() -> Tree {
    let tree = Tree::new();
    namespace(&tree, "nvme7n1", "259:70", "1", "S4EW");
    tree.write(&format!("{DEVICE}/class"), "0x010802\n");
    tree.write(&format!("{DEVICE}/nvme/nvme7/dev"), "240:7\n");
    fs::create_dir_all(tree.path(&format!("{DEVICE}/nvme/nvme7/nvme7n1"))).unwrap();
    bind(&tree, BDF, "nvme");
    group_member(&tree, BDF);
    symlink(tree.path("sys/kernel/iommu_groups/3"), tree.path(&format!("{DEVICE}/iommu_group"))).unwrap();
    tree
}

fn group_member(tree: &Tree, bdf: &str) {
    fs::create_dir_all(tree.path(&format!("sys/kernel/iommu_groups/3/devices/{bdf}"))).unwrap();
}

/// A namespace as the kernel shows it.
fn namespace(tree: &Tree, name: &str, number: &str, nsid: &str, serial: &str) {
    let attributes = [("nsid", nsid), ("device/model", "EXAMPLE SSD"), ("device/serial", serial)];
    tree.disk(name, number, &attributes);
}

/// Gives a function that has no driver to one.
fn bind(tree: &Tree, bdf: &str, driver: &str) {
    let driver = tree.path(&format!("sys/bus/pci/drivers/{driver}"));
    fs::create_dir_all(&driver).unwrap();
    symlink(driver, tree.path(&format!("sys/bus/pci/devices/{bdf}/driver"))).unwrap();
}

/// The other namespace of the controller.
fn second(tree: &Tree) {
    namespace(tree, "nvme7n2", "259:71", "2", "S4EW");
    fs::create_dir_all(tree.path(&format!("{DEVICE}/nvme/nvme7/nvme7n2"))).unwrap();
}

/// A drive that lists these namespaces, of which it erases one at a time; or that does not answer.
struct Drive(Option<Vec<u32>>);

/// A drive that lists so many namespaces.
fn drive_of(namespaces: u32) -> Box<dyn AdminQueue> {
    Box::new(Drive(Some((1..=namespaces).collect())))
}

impl AdminQueue for Drive {
    fn admin(&mut self, command: &NvmCommand, data: AdminData<'_>, _: Duration) -> Result<u32, AdminError> {
        let AdminData::Read(bytes) = data else {
            // What the kernel has set is asked for before the drive is taken.
            assert_eq!(*command, get_feature(Feature::InterruptCoalescing, FeatureSelect::Current));
            return Ok(0);
        };
        let listed = self.0.as_ref().ok_or_else(|| io::Error::other("it is silent"))?;
        if *command == testdrive_nvme::identify(IdentifyWhat::ActiveNamespaces(0)) {
            for (word, nsid) in bytes.chunks_exact_mut(4).zip(listed) {
                word.copy_from_slice(&nsid.to_le_bytes());
            }
        }
        Ok(0)
    }
}

fn refusal(tree: &Tree, options: &str, access: Access, erase: Option<&str>) -> Refusal {
    let shown = ["nvme7n1", "nvme7n2"].iter().filter_map(|disk| {
        fs::read_to_string(tree.path(&format!("sys/devices/{disk}/nsid"))).ok()?.trim().parse().ok()
    });
    let shown: Vec<u32> = shown.collect();
    refusal_of(tree, options, access, erase, &|_| Box::new(Drive(Some(shown.clone()))))
}

/// The same of a drive that answers so.
fn refusal_of(
    tree: &Tree,
    options: &str,
    access: Access,
    erase: Option<&str>,
    admin_of: &dyn Fn(File) -> Box<dyn AdminQueue>,
) -> Refusal {
    let uri = DriveUri::parse(&format!("pci:{BDF}{options}")).unwrap();
    let DriveKind::Pci(pci) = &uri.kind else { panic!("{uri:?}") };
    let consent = Consent { erase: erase.map(str::to_string), erase_signatures: false };
    let request = OpenRequest { uri: &uri, access, consent: &consent, output: None };
    match PciTarget::open_asking(&request, pci, &tree.roots(), admin_of) {
        Ok(_) => panic!("it was taken"),
        Err(refusal) => refusal,
    }
}

fn read(tree: &Tree) -> Refusal {
    refusal(tree, "", Access::ReadOnly, None)
}

/// Looks that nothing spoke against the controller: these trees have no VFIO, which is asked for last.
#[track_caller]
fn assert_is_free(refusal: &Refusal) {
    assert!(refusal.to_string().contains("modprobe vfio-pci"), "{refusal}");
}

#[test]
fn a_free_controller_is_only_short_of_vfio() {
    let refusal = read(&controller());
    assert_is_free(&refusal);
    assert_eq!(refusal.exit_status(), 2);
}

#[test]
fn what_is_no_nvme_controller_or_not_the_kernels_is_refused() {
    let tree = controller();
    tree.write(&format!("{DEVICE}/class"), "0x020000\n");
    assert!(read(&tree).to_string().contains("is no NVMe controller (its class is 020000"));
    let tree = controller();
    fs::remove_file(tree.path(&format!("{DEVICE}/driver"))).unwrap();
    let reasons = |tree: &Tree| read(tree).reasons().to_vec();
    let not_kernels = |driver: &str| [Reason::NotKernels { driver: driver.into(), bdf: BDF.into() }];
    assert_eq!(reasons(&tree), not_kernels("no driver"));
    assert!(read(&tree).to_string().contains(&format!("drives --release {BDF}")));
    bind(&tree, BDF, "uio_pci_generic");
    assert_eq!(reasons(&tree), not_kernels("uio_pci_generic"));
    // A release leaves such a drive to whoever bound it, so that it is no remedy.
    let told = read(&tree).to_string();
    assert!(told.contains("setup.sh reset") && !told.contains("--release"), "{told}");
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
        tree.write(&format!("sys/bus/pci/devices/{bdf}/class"), class);
        if let Some(driver) = driver {
            bind(&tree, bdf, driver);
        }
    }
    assert_eq!(read(&tree).reasons(), [Reason::SharedGroup(vec!["0000:fe:1f.3 (e1000e)".into()])]);
}

#[test]
fn a_namespace_in_use_is_refused_for_reading_too_whichever_was_named() {
    let tree = controller();
    second(&tree);
    assert!(read(&tree).to_string().contains("has the namespaces 1, 2: choose one"));
    let first = |tree: &Tree| refusal(tree, "?namespace=1", Access::ReadOnly, None);
    assert_is_free(&first(&tree));
    assert!(refusal(&tree, "?namespace=3", Access::ReadOnly, None).to_string().contains("no such namespace"));
    tree.write("proc/self/mountinfo", SECOND_IS_MOUNTED);
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
fn a_drive_that_does_not_say_what_it_has_is_not_taken() {
    for access in [Access::ReadOnly, Access::Format, Access::Sanitize] {
        let refusal = refusal_of(&controller(), "", access, Some("S4EW"), &|_| Box::new(Drive(None)));
        assert!(refusal.to_string().contains("does not list its namespaces: it is silent"), "{refusal}");
        assert_eq!(refusal.exit_status(), 3);
    }
}

/// A drive with one namespace, of which each block of 512 bytes has 8 more of metadata.
struct WithMetadata;

impl AdminQueue for WithMetadata {
    fn admin(
        &mut self,
        command: &NvmCommand,
        data: AdminData<'_>,
        timeout: Duration,
    ) -> Result<u32, AdminError> {
        let AdminData::Read(bytes) = data else { panic!("{command:?}") };
        if *command == testdrive_nvme::identify(IdentifyWhat::Namespace(1)) {
            bytes[128..132].copy_from_slice(&(9_u32 << 16 | 8).to_le_bytes());
            return Ok(0);
        }
        Drive(Some(vec![1])).admin(command, AdminData::Read(bytes), timeout)
    }
}

#[test]
fn a_namespace_with_metadata_is_refused_while_the_kernel_has_it_unless_it_may_be_formatted() {
    let refused =
        |access| refusal_of(&controller(), "", access, Some("S4EW"), &|_| Box::new(WithMetadata)).to_string();
    for access in [Access::ReadOnly, Access::Write] {
        let told = refused(access);
        assert!(told.contains("metadata") && told.contains("'method': 'format'"), "{told}");
    }
    // What then stands against it is that this tree has no content to look at.
    let told = refused(Access::Format);
    assert!(told.contains("it does not tell its size") && !told.contains("metadata"), "{told}");
}

#[test]
fn a_namespace_that_the_kernel_shows_late_is_waited_for_and_looked_at() {
    let tree = controller();
    let asked = Cell::new(false);
    // It is shown once the drive was asked, so that the first look has found one namespace less than there are.
    let of_two = |_: File| -> Box<dyn AdminQueue> {
        if !asked.replace(true) {
            tree.write("proc/self/mountinfo", SECOND_IS_MOUNTED);
            second(&tree);
        }
        drive_of(2)
    };
    let refusal = refusal_of(&tree, "?namespace=1", Access::ReadOnly, None, &of_two);
    assert_eq!(refusal.reasons(), [Reason::Mounted(vec!["/srv".into()])]);
}

#[test]
fn a_namespace_that_the_kernel_does_not_show_cannot_be_looked_at() {
    // Also where none was named: the one that is shown is not the only one.
    let refusal = refusal_of(&controller(), "", Access::ReadOnly, None, &|_| drive_of(2));
    assert_eq!((refusal.reasons(), refusal.exit_status()), (&[Reason::NotShown(2)][..], 3));
    assert!(refusal.to_string().contains("it has a namespace 2 that this host has no block device of"));
}

#[test]
fn a_namespace_that_came_while_the_others_were_looked_at_is_not_taken_unseen() {
    let asked = Cell::new(0);
    let later = |_: File| -> Box<dyn AdminQueue> {
        asked.set(asked.get() + 1);
        drive_of(asked.get())
    };
    let refusal = refusal_of(&controller(), "", Access::ReadOnly, None, &later);
    assert_eq!((refusal.reasons(), asked.get()), (&[Reason::NotShown(2)][..], 3));
    let tree = controller();
    let asked = Cell::new(false);
    let shown = |_: File| -> Box<dyn AdminQueue> {
        if !asked.replace(true) {
            second(&tree);
        }
        drive_of(1)
    };
    let refusal = refusal_of(&tree, "", Access::ReadOnly, None, &shown);
    assert_eq!((refusal.reasons(), refusal.exit_status()), (&[Reason::Changed][..], 3));
}

#[test]
fn a_function_with_virtual_functions_is_refused_before_anything_is_unbound() {
    let tree = controller();
    tree.write(&format!("{DEVICE}/sriov_numvfs"), "0\n");
    assert_is_free(&read(&tree));
    tree.write(&format!("{DEVICE}/sriov_numvfs"), "4\n");
    let refusal = read(&tree);
    assert_eq!((refusal.reasons(), refusal.exit_status()), (&[Reason::VirtualFunctions(4)][..], 3));
    assert!(refusal.to_string().contains("4 virtual functions"), "{refusal}");
}

#[test]
fn who_has_a_character_device_open_is_seen_wherever_the_kernel_puts_it() {
    let tree = controller();
    // Below the subsystem, as of every drive that several controllers may share; /dev/null has its number.
    tree.write("sys/class/nvme-generic/ng7n1/dev", "1:3\n");
    tree.write("proc/4242/comm", "fio\n");
    tree.write("proc/4242/fdinfo/3", "pos: 0\nflags: 0100000\n");
    fs::create_dir_all(tree.path("proc/4242/fd")).unwrap();
    symlink("/dev/null", tree.path("proc/4242/fd/3")).unwrap();
    // Only for reading, too: the drive would be taken away from it.
    assert_eq!(read(&tree).reasons(), [Reason::Busy(vec!["process 4242 (fio)".into()])]);
    fs::write(tree.path("proc/4242/fdinfo/3"), "flags: 0100002\n").unwrap();
    assert_eq!(read(&tree).reasons(), [Reason::Busy(vec!["process 4242 (fio)".into()])]);
}

#[test]
fn zones_are_refused() {
    let tree = controller();
    tree.write("sys/devices/nvme7n1/queue/zoned", "host-managed\n");
    let refusal = read(&tree);
    assert!(
        refusal.to_string().contains("has zones (host-managed), which this path does not know"),
        "{refusal}"
    );
    assert_eq!(refusal.exit_status(), 2);
    tree.write("sys/devices/nvme7n1/queue/zoned", "none\n");
    assert_is_free(&read(&tree));
}

#[test]
fn a_node_that_leads_to_another_disk_is_refused() {
    let tree = controller();
    namespace(&tree, "nvme8n1", "259:80", "1", "S4EX");
    fs::remove_file(tree.path("dev/nvme7n1")).unwrap();
    symlink("nvme8n1", tree.path("dev/nvme7n1")).unwrap();
    for access in [Access::ReadOnly, Access::Write] {
        let refusal = refusal(&tree, "", access, Some("S4EW"));
        assert!(
            refusal.to_string().contains("leads to device 259:80, and this drive is 259:70"),
            "{refusal}"
        );
        assert_eq!(refusal.exit_status(), 3);
    }
}
