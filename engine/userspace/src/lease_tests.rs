//! Taking and giving back, on a sysfs laid out by hand.

use super::*;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tempfile::TempDir;

const BDF: &str = "0000:01:00.0";

/// A sysfs laid out by hand, with a thread that does what the kernel does when its files are written.
struct Tree {
    folder: TempDir,
    running: Arc<AtomicBool>,
    kernel: Option<thread::JoinHandle<()>>,
}

impl Tree {
    fn new(driver: Option<&str>) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path().join("sys");
        let device = sys.join("bus/pci/devices").join(BDF);
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("driver_override"), "(null)\n").unwrap();
        for name in ["nvme", VFIO_DRIVER] {
            let directory = sys.join("bus/pci/drivers").join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("unbind"), "").unwrap();
        }
        fs::write(sys.join("bus/pci/drivers_probe"), "").unwrap();
        if let Some(driver) = driver {
            symlink(sys.join("bus/pci/drivers").join(driver), device.join("driver")).unwrap();
        }
        let running = Arc::new(AtomicBool::new(true));
        let goes_on = Arc::clone(&running);
        let kernel = thread::spawn(move || {
            while goes_on.load(Ordering::Relaxed) {
                act_as_kernel(&sys, &device);
                thread::sleep(Duration::from_millis(1));
            }
        });
        Tree { folder, running, kernel: Some(kernel) }
    }

    fn roots(&self) -> Roots {
        let path = self.folder.path();
        Roots { sys: path.join("sys"), dev: path.join("dev"), notes: path.join("notes") }
    }

    fn function(&self) -> PciFunction {
        PciFunction::find(&self.roots(), Bdf::parse(BDF).unwrap()).unwrap()
    }

    fn note(&self) -> PathBuf {
        self.roots().notes.join(format!("pci-{BDF}"))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.running.store(false, Ordering::Relaxed);
        self.kernel.take().unwrap().join().unwrap();
    }
}

fn take_word(path: &Path) -> bool {
    let asked = fs::read_to_string(path).is_ok_and(|text| text.trim() == BDF);
    if asked {
        fs::write(path, "").unwrap();
    }
    asked
}

fn act_as_kernel(sys: &Path, device: &Path) {
    let drivers = sys.join("bus/pci/drivers");
    let link = device.join("driver");
    for name in ["nvme", VFIO_DRIVER] {
        let bound = fs::read_link(&link).is_ok_and(|to| to.ends_with(name));
        if take_word(&drivers.join(name).join("unbind")) && bound {
            fs::remove_file(&link).unwrap();
        }
    }
    // What was unbound just now may be asked to be bound at once.
    let unbinding =
        |name: &str| fs::read_to_string(drivers.join(name).join("unbind")).is_ok_and(|text| !text.is_empty());
    if !unbinding("nvme")
        && !unbinding(VFIO_DRIVER)
        && take_word(&sys.join("bus/pci/drivers_probe"))
        && !link.exists()
    {
        let Ok(text) = fs::read_to_string(device.join("driver_override")) else { return };
        // An empty line clears it; sysfs then says so.
        let wanted = match text.trim() {
            "" | "(null)" => "nvme",
            name => name,
        };
        symlink(drivers.join(wanted), link).unwrap();
    }
}

fn nobody(_: &PciFunction) -> Option<Vec<String>> {
    None
}

/// A function with vfio-pci, and a note of a run that is no more.
fn left_behind() -> Tree {
    let tree = Tree::new(Some(VFIO_DRIVER));
    fs::create_dir_all(tree.roots().notes).unwrap();
    fs::write(tree.note(), "pid 1\ndriver nvme\ndriver_override \n").unwrap();
    fs::write(tree.function().directory().join("driver_override"), VFIO_DRIVER).unwrap();
    tree
}

#[test]
fn a_function_is_taken_and_given_back_as_it_was() {
    let tree = Tree::new(Some("nvme"));
    let function = tree.function();
    let lease = Lease::take(&function, &[], || {}).unwrap();
    assert_eq!(function.driver().as_deref(), Some(VFIO_DRIVER));
    assert!(fs::read_to_string(tree.note()).unwrap().contains("driver nvme\n"));
    // Nobody else takes, repairs or releases it meanwhile.
    assert!(matches!(Lease::take(&function, &[], || {}), Err(LeaseError::InUse { .. })));
    assert!(matches!(repair(&function, nobody), Err(LeaseError::InUse { .. })));
    assert!(matches!(release(&tree.roots(), function.bdf, nobody), Err(LeaseError::InUse { .. })));
    lease.give_back().unwrap();
    assert_eq!((function.driver().as_deref(), function.driver_override()), (Some("nvme"), None));
    assert!(!tree.note().exists());
}

#[test]
fn an_override_that_was_there_is_there_again() {
    let tree = Tree::new(Some("nvme"));
    let function = tree.function();
    fs::write(function.directory().join("driver_override"), "nvme\n").unwrap();
    Lease::take(&function, &[], || {}).unwrap().give_back().unwrap();
    assert_eq!(function.driver_override().as_deref(), Some("nvme"));
}

#[test]
fn a_function_that_is_gone_is_not_waited_for_and_leaves_no_note() {
    let tree = Tree::new(Some("nvme"));
    let function = tree.function();
    let lease = Lease::take(&function, &[], || {}).unwrap();
    fs::rename(function.directory(), tree.folder.path().join("pulled")).unwrap();
    let began = Instant::now();
    assert!(matches!(lease.give_back(), Err(LeaseError::Gone(bdf)) if bdf == function.bdf));
    assert!(began.elapsed() < BIND_LIMIT && !tree.note().exists());
}

#[test]
fn what_was_claimed_is_let_go_of_only_once_the_driver_has() {
    let tree = Tree::new(Some("nvme"));
    let function = tree.function();
    let mut called = 0;
    Lease::take(&function, &[], || called += 1).unwrap().give_back().unwrap();
    assert_eq!(called, 1);
}

#[test]
fn the_guardian_gives_it_back_after_a_kill() {
    let tree = Tree::new(Some("nvme"));
    let function = tree.function();
    let mut lease = Lease::take(&function, &[], || {}).unwrap();
    // What a kill comes to: the note is not removed by us, and the guardian is left without a word.
    drop(lease.note.take());
    drop(lease.guardian.take());
    assert_eq!(wait_for_driver(&function, "nvme").map_err(|error| error.to_string()), Ok(()));
    assert!(!tree.note().exists());
}

#[test]
fn a_note_that_was_left_behind_is_found_and_acted_upon() {
    let tree = left_behind();
    assert!(repair(&tree.function(), nobody).unwrap());
    assert_eq!(tree.function().driver().as_deref(), Some("nvme"));
    assert!(!tree.note().exists() && !repair(&tree.function(), nobody).unwrap());
    let tree = left_behind();
    assert_eq!(
        release(&tree.roots(), tree.function().bdf, nobody).unwrap(),
        Released::Restored("nvme".into())
    );
    assert_eq!(release(&tree.roots(), tree.function().bdf, nobody).unwrap(), Released::Bound("nvme".into()));
}

#[test]
fn what_somebody_else_bound_is_released_when_asked_and_never_repaired() {
    for driver in [Some(VFIO_DRIVER), None] {
        let tree = Tree::new(driver);
        assert!(!repair(&tree.function(), nobody).unwrap());
        assert_eq!(tree.function().driver().as_deref(), driver);
        assert_eq!(
            release(&tree.roots(), tree.function().bdf, nobody).unwrap(),
            Released::Restored("nvme".into())
        );
        assert_eq!(tree.function().driver().as_deref(), Some("nvme"));
    }
}

#[test]
fn what_somebody_has_through_vfio_is_neither_released_nor_repaired() {
    let used = |_: &PciFunction| Some(vec!["process 77 (qemu)".to_string()]);
    let tree = left_behind();
    let errors =
        [repair(&tree.function(), used).err(), release(&tree.roots(), tree.function().bdf, used).err()];
    for error in errors {
        let error = error.unwrap();
        assert!(
            error.to_string().contains("in use through VFIO: stop who has it first (process 77"),
            "{error}"
        );
        assert!(matches!(error, LeaseError::Used { by, .. } if by == ["process 77 (qemu)"]));
    }
    // Nothing was changed, and what is to be put back is still known.
    assert_eq!(tree.function().driver().as_deref(), Some(VFIO_DRIVER));
    assert_eq!(tree.function().driver_override().as_deref(), Some(VFIO_DRIVER));
    assert!(repair(&tree.function(), nobody).unwrap());
    let tree = Tree::new(Some(VFIO_DRIVER));
    assert!(release(&tree.roots(), tree.function().bdf, used).is_err() && !tree.note().exists());
    // A driver of the kernel has nobody behind it that would have to be asked.
    let tree = Tree::new(Some("nvme"));
    assert_eq!(release(&tree.roots(), tree.function().bdf, used).unwrap(), Released::Bound("nvme".into()));
}

#[test]
fn without_vfio_or_a_driver_to_go_back_to_nothing_is_changed() {
    let tree = Tree::new(None);
    let error = Lease::take(&tree.function(), &[], || {}).err().unwrap().to_string();
    assert!(error.contains("no driver"), "{error}");
    fs::remove_dir_all(tree.roots().sys.join("bus/pci/drivers").join(VFIO_DRIVER)).unwrap();
    assert!(matches!(Lease::take(&tree.function(), &[], || {}), Err(LeaseError::NoVfio)));
    let absent = Bdf::parse("0000:02:00.0").unwrap();
    assert!(matches!(release(&tree.roots(), absent, nobody), Err(LeaseError::Absent(_))));
}

#[test]
fn what_another_driver_for_user_space_has_is_left_to_it_and_a_stale_note_goes() {
    for is_noted in [true, false] {
        let other = || {
            let tree = if is_noted { left_behind() } else { Tree::new(Some(VFIO_DRIVER)) };
            let function = tree.function();
            let link = function.directory().join("driver");
            fs::remove_file(&link).unwrap();
            symlink(tree.roots().sys.join("bus/pci/drivers/uio_pci_generic"), &link).unwrap();
            fs::write(function.directory().join("driver_override"), "uio_pci_generic\n").unwrap();
            tree
        };
        let as_it_was = |tree: &Tree| {
            let function = tree.function();
            assert_eq!(function.driver().as_deref(), Some("uio_pci_generic"));
            assert_eq!(function.driver_override().as_deref(), Some("uio_pci_generic"));
            assert!(!tree.note().exists());
        };
        let tree = other();
        let error = release(&tree.roots(), tree.function().bdf, nobody).unwrap_err();
        assert!(
            matches!(&error, LeaseError::OtherDriver { driver, .. } if driver == "uio_pci_generic"),
            "{error}"
        );
        as_it_was(&tree);
        let tree = other();
        assert!(!repair(&tree.function(), nobody).unwrap());
        as_it_was(&tree);
    }
}
