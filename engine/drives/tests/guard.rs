//! The erase guard on real loop devices: what it refuses, with which reason, and that a refusal leaves every byte as it was.

mod support;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use support::{
    both_consents, claim, consent, has_program, loop_turn, must, open, open_with_output, Held, Loop, Mounted,
};
use testdrive_drives::guard::{open_with_roots, Access, Consent, OpenRequest};
use testdrive_drives::sysfs::SystemRoots;
use testdrive_drives::{DriveUri, Reason, Refusal, Target};

/// Asks for writing with every consent there is; returns the reasons after checking that no byte has changed.
#[track_caller]
fn reasons_despite_consent(device: &Loop, node: &str) -> Vec<Reason> {
    reasons_with(device, node, &both_consents(node))
}

#[track_caller]
fn reasons_with(device: &Loop, node: &str, consent: &Consent) -> Vec<Reason> {
    let before = device.content();
    let refusal = open(node, Access::Write, consent).expect_err("the guard opened it for writing");
    assert_eq!((refusal.kind(), refusal.exit_status()), ("refused", 3), "{refusal}");
    assert!(refusal.to_string().starts_with(&format!("{node} is refused")), "{refusal}");
    assert!(device.content() == before, "the refusal changed the device");
    refusal.reasons().to_vec()
}

#[test]
fn a_free_device_opens_with_consent_and_is_claimed_until_closed() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let target = open(&device.path, Access::Write, &consent(&device.path)).unwrap();
    assert!(target.device.writable && target.direct && !target.created);
    assert_eq!(target.device.identity.capacity_bytes, support::SIZE_BYTES);
    assert_eq!(target.device.identity.logical_block_bytes, 512);
    assert_eq!(target.device.identity.serial, "");
    assert!(target.device.trims, "a loop device over a file that takes holes takes trims");
    // Written through the page cache of nobody, so it is there at once.
    let block = [0xa5_u8; 8192];
    let aligned = &block[block.as_ptr().align_offset(4096)..][..4096];
    target.device.file.write_at(aligned, 4096).unwrap();
    let second = open(&device.path, Access::Write, &consent(&device.path)).unwrap_err();
    assert!(matches!(second.reasons(), [Reason::Busy(_)]), "{second}");
    drop(target);
    open(&device.path, Access::Write, &consent(&device.path)).unwrap();
    assert_eq!(device.content()[4096], 0xa5);
}

#[test]
fn nothing_is_written_without_consent_that_names_the_drive() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let reasons = reasons_with(&device, &device.path, &Consent::default());
    assert_eq!(reasons, [Reason::NoConsent { name: device.path.clone() }]);
    // The second consent alone is none.
    let only_signatures = Consent { erase: None, erase_signatures: true };
    assert_eq!(reasons_with(&device, &device.path, &only_signatures).len(), 1);
    for wrong in ["S4EWNX0M123", "", "loop0", "/dev/loop", "/dev/null"] {
        let reasons = reasons_with(&device, &device.path, &consent(wrong));
        assert_eq!(reasons, [Reason::WrongConsent { given: wrong.into(), name: device.path.clone() }]);
    }
}

#[test]
fn a_link_under_dev_may_be_named_by_either_path() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let link = format!("/dev/shm/testdrive-guard-{}", std::process::id());
    std::os::unix::fs::symlink(&device.path, &link).unwrap();
    let by_link = open(&link, Access::Write, &consent(&link));
    let by_node = open(&link, Access::Write, &consent(&device.path));
    let by_other = open(&link, Access::Write, &consent("/dev/loop-of-mine"));
    std::fs::remove_file(&link).unwrap();
    // The second is refused as the first still holds the claim.
    assert!(by_link.is_ok());
    assert!(matches!(by_node.unwrap_err().reasons(), [Reason::Busy(_)]));
    assert!(by_other
        .unwrap_err()
        .reasons()
        .contains(&Reason::WrongConsent { given: "/dev/loop-of-mine".into(), name: device.path.clone() }));
}

#[test]
fn a_file_system_needs_the_second_consent() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must("mkfs.ext4", &["-q", &device.path]);
    let reasons = reasons_with(&device, &device.path, &consent(&device.path));
    let [Reason::Signatures(names)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert_eq!(names, &["a signature of ext4 at byte 1080"]);
    open(&device.path, Access::Write, &both_consents(&device.path)).unwrap();
}

#[test]
fn a_mounted_device_is_never_written() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must("mkfs.ext4", &["-q", &device.path]);
    let mounted = Mounted::new(&device.path);
    let refusal = open(&device.path, Access::Write, &both_consents(&device.path)).unwrap_err();
    let place = mounted.point.path().display().to_string();
    assert_eq!(refusal.reasons(), [Reason::Mounted(vec![place.clone()])]);
    assert!(refusal.to_string().contains(&format!("mounted at {place}")), "{refusal}");
    assert_eq!(refusal.exit_status(), 3);
    // Only reading needs no consent and disturbs nothing.
    let target = open(&device.path, Access::ReadOnly, &Consent::default()).unwrap();
    assert!(!target.device.writable);
    drop(mounted);
    open(&device.path, Access::Write, &both_consents(&device.path)).unwrap();
}

#[test]
fn a_mount_in_another_mount_namespace_is_seen() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must("mkfs.ext4", &["-q", &device.path]);
    let point = tempfile::tempdir().unwrap();
    let place = point.path().display();
    let script = format!("mount {} {place} && echo ready && read", device.path);
    let holder = Held::ready(Command::new("unshare").args(["-m", "bash", "-c", &script]));
    let reasons = reasons_despite_consent(&device, &device.path);
    let [Reason::Mounted(places)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(places[0].starts_with(&format!("{place} (in the mount namespace of process")), "{places:?}");
    drop(holder);
}

#[test]
fn a_partition_table_needs_the_second_consent() {
    let Some(_turn) = loop_turn() else { return };
    for (label, expected) in
        [("gpt", "a partition table of gpt at byte 512"), ("dos", "a partition table of dos at byte 510")]
    {
        let device = Loop::new();
        let script = format!("printf 'label: {label}\\nstart=2048,size=8192\\n' | sfdisk -q {}", device.path);
        must("sh", &["-c", &script]);
        let reasons = reasons_with(&device, &device.path, &consent(&device.path));
        let [Reason::Signatures(names)] = reasons.as_slice() else { panic!("{reasons:?}") };
        assert!(names.iter().any(|name| name == expected), "{names:?}");
        open(&device.path, Access::Write, &both_consents(&device.path)).unwrap();
    }
}

#[test]
fn what_is_left_of_a_partition_table_is_still_one() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must(
        "sh",
        &["-c", &format!("printf 'label: gpt\\nstart=2048,size=8192\\n' | sfdisk -q {}", device.path)],
    );
    // The first MiB is gone, as after a careless dd; the backup at the end still leads to the data.
    device.write(0, &vec![0; 1 << 20]);
    let reasons = reasons_with(&device, &device.path, &consent(&device.path));
    let [Reason::Signatures(names)] = reasons.as_slice() else { panic!("{reasons:?}") };
    let last_block = format!("a partition table of gpt at byte {}", support::SIZE_BYTES - 512);
    assert!(names.contains(&last_block), "{names:?}");
}

#[test]
fn a_mounted_partition_keeps_the_whole_disk_and_itself() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::with(&["-P"]);
    let partition = device.partition();
    must("mkfs.ext4", &["-q", &partition]);
    let mounted = Mounted::new(&partition);
    let place = mounted.point.path().display().to_string();
    for node in [&device.path, &partition] {
        let refusal = open(node, Access::Write, &both_consents(node)).unwrap_err();
        assert_eq!(refusal.reasons(), [Reason::Mounted(vec![place.clone()])], "{node}");
    }
}

#[test]
fn a_free_partition_can_be_a_target_of_its_own() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::with(&["-P"]);
    let partition = device.partition();
    let whole = reasons_with(&device, &device.path, &consent(&device.path));
    let [Reason::Signatures(names)] = whole.as_slice() else { panic!("{whole:?}") };
    assert!(names.contains(&format!("partitions ({}p1)", device.name())), "{names:?}");
    let target = open(&partition, Access::Write, &consent(&partition)).unwrap();
    assert_eq!(target.device.identity.capacity_bytes, 40_960 * 512);
    // While the partition is claimed, so is its disk.
    let whole = open(&device.path, Access::Write, &both_consents(&device.path)).unwrap_err();
    assert!(matches!(whole.reasons(), [Reason::Busy(_)]), "{whole}");
    drop(target);
    must("mkfs.ext4", &["-q", &partition]);
    let reasons = reasons_with(&device, &partition, &consent(&partition));
    assert!(matches!(reasons.as_slice(), [Reason::Signatures(_)]), "{reasons:?}");
}

/// Not a test: what another process runs to claim a device.
#[test]
#[ignore = "runs in a process of its own, started by the next test"]
fn holder_process() {
    let file = claim(&std::env::var("TESTDRIVE_TEST_CLAIM").expect("only started by another test"));
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(file);
}

#[test]
fn a_device_that_another_process_has_claimed_is_named_with_that_process() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let mut holder = Command::new(std::env::current_exe().unwrap());
    holder.args(["--ignored", "--exact", "holder_process", "--nocapture"]);
    let holder = Held::ready(holder.env("TESTDRIVE_TEST_CLAIM", &device.path));
    let reasons = reasons_despite_consent(&device, &device.path);
    let [Reason::Busy(who)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(who.iter().any(|name| name.contains(&format!("process {} ", holder.pid()))), "{who:?}");
    // Reading beside it is harmless.
    open(&device.path, Access::ReadOnly, &Consent::default()).unwrap();
    drop(holder);
    open(&device.path, Access::Write, &consent(&device.path)).unwrap();
}

#[test]
fn a_claim_that_no_process_shows_is_still_a_claim() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    // Claims of our own process are not looked up, as the kernel's own cannot be.
    let _claim = claim(&device.path);
    assert_eq!(reasons_despite_consent(&device, &device.path), [Reason::Busy(Vec::new())]);
}

#[test]
fn a_process_that_may_write_without_a_claim_is_seen() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    // So do virtual machines that use a drive as their disk.
    let holder = Held::by_shell(&format!("exec 3<>{} && echo ready && read", device.path));
    let reasons = reasons_despite_consent(&device, &device.path);
    let [Reason::Busy(who)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(who.iter().any(|name| name == &format!("process {} (bash)", holder.pid())), "{who:?}");
}

#[test]
fn a_read_only_device_is_refused_for_writing() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::with(&["-r"]);
    assert_eq!(reasons_despite_consent(&device, &device.path), [Reason::ReadOnly]);
    open(&device.path, Access::ReadOnly, &Consent::default()).unwrap();
}

#[test]
fn swap_is_never_written() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must("mkswap", &[&device.path]);
    let reasons = reasons_with(&device, &device.path, &consent(&device.path));
    let [Reason::Signatures(names)] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert_eq!(names, &["a signature of swap at byte 4086"]);
    if support::run("swapon", &[&device.path]).is_none() {
        return support::skip("this kernel or container does not let a loop device be swap");
    }
    let refusal = open(&device.path, Access::Write, &both_consents(&device.path));
    must("swapoff", &[&device.path]);
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.reasons(), [Reason::Swap(vec![device.path.clone()])]);
}

#[test]
fn what_a_loop_device_stands_on_and_what_stands_on_it_is_followed() {
    let Some(_turn) = loop_turn() else { return };
    let lower = Loop::new();
    let upper = Loop::over(Path::new(&lower.path), &[]);
    // The lower one is held by the upper.
    assert_eq!(reasons_despite_consent(&lower, &lower.path), [Reason::Held(vec![upper.name().into()])]);
    // Two loop devices over one file share its bytes.
    let twin = Loop::over(&lower.backing, &[]);
    let reasons = reasons_despite_consent(&twin, &twin.path);
    assert_eq!(reasons, [Reason::Held(vec![lower.name().into()])]);
    drop(twin);
    // And what is mounted below is mounted above.
    must("mkfs.ext4", &["-q", &lower.path]);
    let mounted = Mounted::new(&lower.path);
    let place = mounted.point.path().display().to_string();
    assert_eq!(reasons_despite_consent(&upper, &upper.path), [Reason::Mounted(vec![place])]);
}

#[test]
fn all_reasons_are_told_at_once() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must("mkfs.ext4", &["-q", &device.path]);
    let _mounted = Mounted::new(&device.path);
    let refusal = open(&device.path, Access::Write, &consent("S4EW")).unwrap_err();
    let kinds = refusal.reasons();
    assert!(
        matches!(kinds, [Reason::WrongConsent { .. }, Reason::Mounted(_), Reason::Signatures(_)]),
        "{kinds:?}"
    );
    assert!(refusal.to_string().contains("refused for 3 reasons"), "{refusal}");
}

#[test]
fn the_recording_is_never_on_the_drive_that_is_measured() {
    let Some(_turn) = loop_turn() else { return };
    let outer = Loop::new();
    must("mkfs.ext4", &["-q", &outer.path]);
    let mounted = Mounted::new(&outer.path);
    let inner_file = mounted.point.path().join("inner.img");
    std::fs::File::create(&inner_file).unwrap().set_len(8 << 20).unwrap();
    let inner = Loop::over(&inner_file, &[]);
    must("mkfs.ext4", &["-q", &inner.path]);
    let inner_mounted = Mounted::new(&inner.path);
    let output = inner_mounted.point.path().join("not/yet/there.rec");
    for device in [&inner, &outer] {
        let nobody = Consent::default();
        let refusal = open_with_output(&device.path, Access::ReadOnly, &nobody, Some(&output)).unwrap_err();
        assert_eq!(
            refusal.reasons(),
            [Reason::RecordingOnIt(output.display().to_string())],
            "{}",
            device.path
        );
        assert_eq!(refusal.exit_status(), 3);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let output = elsewhere.path().join("a.rec");
    open_with_output(&outer.path, Access::ReadOnly, &Consent::default(), Some(&output)).unwrap();
    drop(inner_mounted);
}

/// An empty table for the first reader of a pipe, and another text for all later ones: the pipe is replaced while the first reader
/// still waits at it.
fn empty_once_then(pipe: &Path, later: &str) -> std::thread::JoinHandle<()> {
    let (pipe, next) = (pipe.to_path_buf(), pipe.with_extension("next"));
    std::fs::write(&next, later).unwrap();
    std::thread::spawn(move || {
        let first = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        std::fs::rename(&next, &pipe).unwrap();
        drop(first);
    })
}

#[test]
fn what_changes_between_the_check_and_the_claim_is_seen() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let proc = tempfile::tempdir().unwrap();
    std::fs::create_dir(proc.path().join("self")).unwrap();
    let pipe = proc.path().join("self/mountinfo");
    must("mkfifo", &[pipe.to_str().unwrap()]);
    let number = std::fs::read_to_string(format!("/sys/block/{}/dev", device.name())).unwrap();
    let late = format!("40 27 {} / /mounted/meanwhile rw - ext4 {} rw\n", number.trim(), device.path);
    let server = empty_once_then(&pipe, &late);
    let uri = DriveUri::parse(&device.path).unwrap();
    let consent = consent(&device.path);
    let request = OpenRequest { uri: &uri, access: Access::Write, consent: &consent, output: None };
    let roots = SystemRoots { proc: proc.path().into(), ..SystemRoots::default() };
    let refusal = open_with_roots(&request, &roots).unwrap_err();
    assert_eq!(refusal.reasons(), [Reason::Mounted(vec!["/mounted/meanwhile".into()])]);
    server.join().unwrap();
    // Nothing stays claimed.
    open(&device.path, Access::Write, &consent).unwrap();
}

#[test]
fn volume_managers_and_other_file_systems_are_recognised() {
    let Some(_turn) = loop_turn() else { return };
    let makers: [(&str, &[&str], &str); 6] = [
        ("pvcreate", &["-qq", "-ff", "-y"], "LVM2_member"),
        ("mkfs.ext2", &["-q"], "ext2"),
        ("mkfs.ext3", &["-q"], "ext3"),
        ("mkfs.vfat", &[], "vfat"),
        ("mkfs.btrfs", &["-q", "-f", "-M"], "btrfs"),
        ("mkfs.xfs", &["-q", "-f"], "xfs"),
    ];
    for (program, options, name) in makers {
        if !has_program(program) {
            eprintln!("SKIPPED: {program} is not installed");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let device = Loop::over(&image, &[]);
        let mut arguments = options.to_vec();
        arguments.push(&device.path);
        if support::run(program, &arguments).is_none() {
            eprintln!("SKIPPED: {program} does not work here");
            continue;
        }
        let refusal = open(&device.path, Access::Write, &consent(&device.path)).unwrap_err();
        let [Reason::Signatures(names)] = refusal.reasons() else { panic!("{refusal}") };
        assert!(
            names.iter().any(|each| each.contains(&format!("signature of {name} "))),
            "{name}: {names:?}"
        );
    }
}

#[test]
fn what_is_no_block_device_is_a_mistake_of_usage() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = folder.path().join("x.img");
    std::fs::write(&file, b"data").unwrap();
    let path = file.to_str().unwrap();
    let wrong = [
        (path, format!("write file:{path}")),
        ("/dev/null", "character device".into()),
        ("/dev/shm", "no block device".into()),
        ("/dev/nvme99n99", "is not there".into()),
    ];
    for (node, expected) in wrong {
        let refusal = open(node, Access::Write, &both_consents(node)).unwrap_err();
        assert!(matches!(refusal, Refusal::Usage(_)), "{refusal}");
        assert!(refusal.to_string().contains(&expected), "{refusal}");
        assert_eq!(refusal.exit_status(), 2);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"data");
}

#[test]
fn a_loop_device_without_a_file_has_nothing_to_test() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let path = device.path.clone();
    drop(device);
    // Another process may have attached it meanwhile; then there is nothing to see here.
    if std::fs::read_to_string(format!("/sys/block/{}/size", &path[5..])).is_ok_and(|size| size.trim() == "0")
    {
        let refusal = open(&path, Access::Write, &consent(&path)).unwrap_err();
        assert!(refusal.to_string().contains("no capacity"), "{refusal}");
        assert_eq!(refusal.exit_status(), 2);
    }
}

/// A buffered write that is over, as a program that copied something to the device leaves it.
fn write_cached(path: &str, offset: u64, byte: u8) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[byte; 4096], offset).unwrap();
}

fn byte_at(path: &Path, offset: u64) -> u8 {
    let mut byte = [0];
    std::fs::File::open(path).unwrap().read_exact_at(&mut byte, offset).unwrap();
    byte[0]
}

#[test]
fn what_the_page_caches_hold_reaches_the_drive_before_a_run_and_is_forgotten_after_it() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let partition = device.partition();
    // Who only reads keeps the caches alive; that of the partition is another than that of the disk.
    let readers = [&device.path, &partition].map(|path| std::fs::File::open(path).unwrap());
    let start = 2048 * 512;
    write_cached(&partition, 1 << 20, 0xbb);
    write_cached(&device.path, 24 << 20, 0xdd);
    let mut target = Target::open(&device.path, Access::Write, &both_consents(&device.path), None).unwrap();
    assert_eq!(byte_at(&device.backing, start + (1 << 20)), 0xbb);
    assert_eq!(byte_at(&device.backing, 24 << 20), 0xdd);

    let cached = |reader: &std::fs::File, offset| {
        let mut byte = [0];
        reader.read_exact_at(&mut byte, offset).unwrap();
        byte[0]
    };
    assert_eq!(cached(&readers[1], 1 << 20), 0xbb);
    let Target::Device { device: opened, .. } = &target else { panic!("a block device") };
    let block = [0x11_u8; 8192];
    let aligned = &block[block.as_ptr().align_offset(4096)..][..4096];
    opened.file.write_all_at(aligned, start + (1 << 20)).unwrap();
    target.give_back(testdrive_drives::Clock::start()).unwrap();
    assert_eq!(cached(&readers[1], 1 << 20), 0x11);
    drop((target, readers));

    // The other way round: the run is on the partition.
    let reader = std::fs::File::open(&device.path).unwrap();
    write_cached(&device.path, start + (2 << 20), 0xee);
    let mut target = Target::open(&partition, Access::Write, &both_consents(&partition), None).unwrap();
    assert_eq!(byte_at(&device.backing, start + (2 << 20)), 0xee);
    assert_eq!(cached(&reader, start + (2 << 20)), 0xee);
    let Target::Device { device: opened, .. } = &target else { panic!("a block device") };
    opened.file.write_all_at(aligned, 2 << 20).unwrap();
    target.give_back(testdrive_drives::Clock::start()).unwrap();
    assert_eq!(cached(&reader, start + (2 << 20)), 0x11);
}

#[test]
fn a_cache_that_cannot_be_reached_refuses_the_run() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let partition = device.partition();
    let away = format!("{partition}-away");
    std::fs::rename(&partition, &away).unwrap();
    let refused = open(&device.path, Access::Write, &both_consents(&device.path));
    std::fs::rename(&away, &partition).unwrap();
    let refusal = refused.unwrap_err();
    assert!(matches!(refusal.reasons(), [Reason::Cached { .. }]), "{refusal}");
    assert!(refusal.to_string().contains("partx -d"), "{refusal}");
    assert_eq!(refusal.exit_status(), 3);
}
