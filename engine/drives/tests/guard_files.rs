//! The guard on `file:` targets: a user's file is not overwritten, and nothing that only looks like a file is.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{both_consents, consent, loop_turn, must, open, turn, Held, Loop};
use tempfile::TempDir;
use testdrive_drives::guard::{Access, Consent};
use testdrive_drives::{Reason, Refusal};

fn folder() -> (TempDir, PathBuf) {
    // Beside the sources rather than in /tmp, which may be in memory and without direct I/O.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("target.img");
    (folder, path)
}

fn uri(path: &Path) -> String {
    format!("file:{}", path.display())
}

fn refusal(uri: &str, consent: &Consent) -> Refusal {
    open(uri, Access::Write, consent).expect_err("the guard opened it for writing")
}

#[test]
fn a_new_file_is_made_and_may_be_used_again() {
    let _turn = turn();
    let (_folder, path) = folder();
    let sized = format!("{}?size=8MiB", uri(&path));
    let target = open(&sized, Access::Write, &Consent::default()).unwrap();
    assert!(target.created && target.device.writable);
    assert_eq!(target.device.identity.capacity_bytes, 8 << 20);
    assert_eq!(target.device.identity.uri, sized);
    let locked = refusal(&sized, &Consent::default());
    assert!(matches!(locked.reasons(), [Reason::Busy(_)]), "{locked}");
    drop(target);
    let again = open(&sized, Access::Write, &Consent::default()).unwrap();
    assert!(!again.created);
    drop(again);
    let without_size = open(&uri(&path), Access::Write, &Consent::default()).unwrap();
    assert_eq!(without_size.device.identity.capacity_bytes, 8 << 20);
}

#[test]
fn a_new_file_needs_a_size_and_a_folder() {
    let _turn = turn();
    let (folder, path) = folder();
    let no_size = refusal(&uri(&path), &Consent::default());
    assert!(no_size.to_string().contains("?size=4GiB"), "{no_size}");
    assert_eq!(no_size.exit_status(), 2);
    assert!(!path.exists());
    let no_folder = refusal(&format!("file:{}/no/x?size=1MiB", folder.path().display()), &Consent::default());
    assert_eq!(no_folder.exit_status(), 2);
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    let dangling = refusal(&format!("{}?size=1MiB", uri(&link)), &Consent::default());
    assert!(dangling.to_string().contains("leads nowhere"), "{dangling}");
    assert!(!path.exists());
}

#[test]
fn an_impossible_size_leaves_no_file_behind() {
    let _turn = turn();
    let (_folder, path) = folder();
    let refusal = refusal(&format!("{}?size=8191PiB", uri(&path)), &Consent::default());
    assert_eq!(refusal.exit_status(), 2, "{refusal}");
    assert!(!path.exists());
}

#[test]
fn a_users_file_needs_consent_that_names_it() {
    let _turn = turn();
    let (folder, path) = folder();
    let content = vec![7; 1 << 20];
    fs::write(&path, &content).unwrap();
    let name = path.display().to_string();
    let none = refusal(&uri(&path), &Consent::default());
    assert_eq!(none.reasons(), [Reason::NoConsent { name: name.clone() }]);
    let other = refusal(&uri(&path), &consent("/another"));
    assert_eq!(other.reasons(), [Reason::WrongConsent { given: "/another".into(), name: name.clone() }]);
    assert_eq!(fs::read(&path).unwrap(), content);
    open(&uri(&path), Access::Write, &consent(&name)).unwrap();
    // Through a link, the file's own path is as good as the link's.
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    open(&uri(&link), Access::Write, &consent(&name)).unwrap();
    open(&uri(&link), Access::Write, &consent(link.to_str().unwrap())).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn a_file_that_is_only_read_needs_no_consent() {
    let _turn = turn();
    let (_folder, path) = folder();
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let target = open(&uri(&path), Access::ReadOnly, &Consent::default()).unwrap();
    assert!(!target.device.writable && !target.device.trims);
}

#[test]
fn holes_that_would_be_read_are_warned_of() {
    let _turn = turn();
    let (_folder, path) = folder();
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let target = open(&uri(&path), Access::ReadOnly, &Consent::default()).unwrap();
    assert_eq!(target.warnings.last().map(|warning| warning.code.as_str()), Some("sparse_file"));
}

#[test]
fn a_file_that_cannot_fit_is_warned_of() {
    let _turn = turn();
    let (_folder, path) = folder();
    let target = open(&format!("{}?size=8TiB", uri(&path)), Access::Write, &Consent::default());
    let Ok(target) = target else { return support::skip("this file system has no files of 8 TiB") };
    assert_eq!(
        target.warnings.last().map(|warning| warning.code.as_str()),
        Some("file_larger_than_free_space")
    );
}

#[test]
fn an_existing_file_is_not_resized() {
    let _turn = turn();
    let (_folder, path) = folder();
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let refusal = refusal(&format!("{}?size=2MiB", uri(&path)), &both_consents(path.to_str().unwrap()));
    assert!(refusal.to_string().contains("1048576 bytes, not the 2097152"), "{refusal}");
    assert_eq!(refusal.exit_status(), 2);
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
}

#[test]
fn an_empty_file_is_given_its_size() {
    let _turn = turn();
    let (_folder, path) = folder();
    File::create(&path).unwrap();
    assert_eq!(refusal(&uri(&path), &Consent::default()).exit_status(), 2);
    let target = open(&format!("{}?size=1MiB", uri(&path)), Access::Write, &Consent::default()).unwrap();
    assert_eq!(target.device.identity.capacity_bytes, 1 << 20);
    drop(target);
    open(&uri(&path), Access::Write, &Consent::default()).unwrap();
}

#[test]
fn a_target_that_became_a_disk_image_is_asked_for_again() {
    let _turn = turn();
    let (_folder, path) = folder();
    drop(open(&format!("{}?size=8MiB", uri(&path)), Access::Write, &Consent::default()).unwrap());
    must("mkfs.ext4", &["-q", path.to_str().unwrap()]);
    let before = fs::read(&path).unwrap();
    let refusal = refusal(&uri(&path), &Consent::default());
    assert!(matches!(refusal.reasons(), [Reason::NoConsent { .. }, Reason::Signatures(_)]), "{refusal}");
    assert_eq!(fs::read(&path).unwrap(), before);
    open(&uri(&path), Access::Write, &both_consents(path.to_str().unwrap())).unwrap();
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let _turn = turn();
    let (folder, path) = folder();
    must("mkfifo", &[path.to_str().unwrap()]);
    let cases = [
        (uri(&path), "a pipe"),
        (uri(folder.path()), "a directory"),
        ("file:/dev/zero".to_string(), "a character device"),
        ("file:/proc/sys/vm/drop_caches".to_string(), "procfs"),
        ("file:/sys/kernel/profiling".to_string(), "sysfs"),
    ];
    for (uri, expected) in cases {
        if !Path::new(&uri[5..]).exists() {
            continue;
        }
        let refusal = refusal(&uri, &both_consents(&uri[5..]));
        assert!(refusal.to_string().contains(expected), "{refusal}");
        assert_eq!(refusal.exit_status(), 2);
    }
}

#[test]
fn a_file_that_is_in_truth_a_block_device_is_refused() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let (folder, path) = folder();
    symlink(&device.path, &path).unwrap();
    let by_link = refusal(&uri(&path), &both_consents(path.to_str().unwrap()));
    assert_eq!(by_link.reasons(), [Reason::BlockDevice { linked: true, node: device.path.clone() }]);
    assert!(by_link.to_string().contains(&format!("name it as {}, with --erase", device.path)), "{by_link}");
    assert_eq!(by_link.exit_status(), 3);
    // A second node of the same device, as mknod makes it, is no link.
    let number = fs::read_to_string(format!("/sys/block/{}/dev", device.name())).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    let node = folder.path().join("node");
    must("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let by_node = refusal(&uri(&node), &both_consents(node.to_str().unwrap()));
    assert!(matches!(by_node.reasons(), [Reason::BlockDevice { linked: false, .. }]), "{by_node}");
    assert!(device.content().iter().all(|byte| *byte == 0));
}

#[test]
fn a_file_under_a_loop_device_is_held_by_it() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let name = device.backing.display().to_string();
    let reasons = refusal(&uri(&device.backing), &both_consents(&name));
    assert_eq!(reasons.reasons(), [Reason::Held(vec![device.name().into()])]);
    // Whatever name it has by now.
    let renamed = device.backing.with_file_name("renamed.img");
    fs::rename(&device.backing, &renamed).unwrap();
    let reasons = refusal(&uri(&renamed), &both_consents(renamed.to_str().unwrap()));
    assert_eq!(reasons.reasons(), [Reason::Held(vec![device.name().into()])]);
}

#[test]
fn a_file_that_another_process_may_write_is_refused() {
    let _turn = turn();
    let (_folder, path) = folder();
    drop(open(&format!("{}?size=1MiB", uri(&path)), Access::Write, &Consent::default()).unwrap());
    let holder = Held::by_shell(&format!("exec 3<>{} && echo ready && read", path.display()));
    let refusal = refusal(&uri(&path), &Consent::default());
    assert_eq!(refusal.reasons(), [Reason::Busy(vec![format!("process {} (bash)", holder.pid())])]);
}

#[test]
fn a_file_or_device_that_another_process_may_write_by_its_memory_is_refused() {
    let _turn = turn();
    // The descriptor is closed: the mapping alone is left, and here it is not even writable yet.
    let script = "import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDWR)
assert libc.mmap(None, 1 << 20, int(sys.argv[2]), 1, fd, 0) not in (None, 2**64 - 1)
os.close(fd)
print('ready', flush=True)
input()";
    let (_folder, path) = folder();
    drop(open(&format!("{}?size=1MiB", uri(&path)), Access::Write, &Consent::default()).unwrap());
    for protection in ["3", "1"] {
        let holder =
            Held::ready(Command::new("python3").args(["-c", script, path.to_str().unwrap(), protection]));
        let refusal = refusal(&uri(&path), &Consent::default());
        assert_eq!(refusal.reasons(), [Reason::Busy(vec![format!("process {} (python3)", holder.pid())])]);
    }
    drop(open(&uri(&path), Access::Write, &Consent::default()).unwrap());
    drop(_turn);
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let holder = Held::ready(Command::new("python3").args(["-c", script, &device.path, "3"]));
    let refusal = refusal(&device.path, &both_consents(&device.path));
    assert_eq!(refusal.reasons(), [Reason::Busy(vec![format!("process {} (python3)", holder.pid())])]);
}
