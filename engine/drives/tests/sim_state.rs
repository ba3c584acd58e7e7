//! A modelled drive's state in a file: it goes on from there, and what is not whole or not its own is refused.

use std::fs;
use std::path::Path;
use testdrive_core::{Command, Completion, Flags, Opcode, SplitMix64};
use testdrive_drives::{Access, Consent, Drive, Target, TargetError, Wait};

const URI: &str = "sim:enterprise-read?capacity=256MiB&superblocks=100&op=7%";

fn open(uri: &str) -> Result<Target, TargetError> {
    Target::open(uri, Access::Write, &Consent::default(), None)
}

fn drive(target: &mut Target) -> &mut impl Drive {
    match target {
        Target::Sim(drive) => &mut **drive,
        _ => panic!("not a modelled drive"),
    }
}

/// So many commands, eight at a time, from a seed; returns what came of them.
fn work(drive: &mut impl Drive, count: u32, seed: u64) -> Vec<Completion> {
    let (mut random, mut done) = (SplitMix64::new(seed), Vec::new());
    for _ in 0..count / 8 {
        for slot in 0..8 {
            let opcode = [Opcode::Write, Opcode::Write, Opcode::Read, Opcode::Trim][random.below(4) as usize];
            let offset_bytes = random.below(65_536 - 64) * 4096;
            let length_bytes = (1 + random.below(64)) * 4096;
            drive.submit(slot, &Command { offset_bytes, length_bytes, opcode, flags: Flags::NONE }).unwrap();
        }
        drive.kick().unwrap();
        let before = done.len();
        while done.len() < before + 8 {
            drive.poll(Wait::Until(i64::MAX), &mut done).unwrap();
        }
    }
    done
}

#[test]
fn a_restored_drive_goes_on_as_the_one_that_was_saved_with_a_clock_from_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.state");
    let mut target = open(URI).unwrap();
    work(drive(&mut target), 8_000, 1);
    drive(&mut target).take_events();
    target.save_state(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing but the state is left");
    let saved_ns = drive(&mut target).now_ns();

    let mut restored = open(&format!("{URI}&state={}", path.display())).unwrap();
    assert_eq!(drive(&mut restored).now_ns(), 0);
    assert_eq!(restored.counters(), target.counters());
    assert_eq!(restored.identity().settings["restored_from"], path.display().to_string());
    let went_on = work(drive(&mut target), 8_000, 2);
    let mut expected = went_on.clone();
    expected.iter_mut().for_each(|done| done.complete_ns -= saved_ns);
    assert!(work(drive(&mut restored), 8_000, 2) == expected);
    assert_eq!(restored.counters(), target.counters());
    let (mut events, others) = (drive(&mut target).take_events(), drive(&mut restored).take_events());
    let first_ns = events.as_ref().unwrap().events[0].start_ns;
    assert!(first_ns >= saved_ns);
    for event in &mut events.as_mut().unwrap().events {
        (event.start_ns, event.end_ns) = (event.start_ns - saved_ns, event.end_ns - saved_ns);
    }
    assert!(events == others);
}

fn refusal(path: &Path, uri: &str) -> String {
    match open(&format!("{uri}&state={}", path.display())) {
        Err(TargetError::Usage(message)) => message,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{} was taken", path.display()),
    }
}

#[test]
fn what_is_no_whole_state_of_this_drive_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.state");
    let mut target = open(URI).unwrap();
    work(drive(&mut target), 800, 1);
    target.save_state(&path).unwrap();
    let whole = fs::read(&path).unwrap();

    let other = refusal(&path, "sim:enterprise-read?capacity=128MiB&superblocks=100&op=7%");
    assert!(other.contains("with capacity_bytes=268435456, not with capacity_bytes=134217728"), "{other}");
    assert!(
        refusal(&path, "sim:sata?capacity=256MiB").contains("of the model 'enterprise-read', not of 'sata'")
    );
    assert!(refusal(&folder.path().join("none"), URI).contains("cannot be read: No such file"));
    assert!(refusal(folder.path(), URI).contains("is no saved state"));

    let refused = |bytes: &[u8]| {
        let path = folder.path().join("damaged.state");
        fs::write(&path, bytes).unwrap();
        refusal(&path, URI)
    };
    assert!(refused(b"").contains("is no saved state"));
    assert!(refused(b"PAR1 something else altogether").contains("is no saved state"));
    let version = refused(&[b"testdrive-drive-state 999\n", &whole[24..]].concat());
    assert!(version.contains("has version 999, and this engine has version"), "{version}");
    // Every cut, and a bit turned over anywhere.
    for cut in (0..whole.len()).step_by(whole.len() / 50) {
        refused(&whole[..cut]);
    }
    let mut random = SplitMix64::new(1);
    for _ in 0..100 {
        let mut bytes = whole.clone();
        bytes[random.below(whole.len() as u64) as usize] ^= 1 << random.below(8);
        refused(&bytes);
    }
    refused(&[&whole[..], b"x"].concat());
    assert!(open(&format!("{URI}&state={}", path.display())).is_ok());
}

#[test]
fn a_state_is_saved_where_nothing_is_and_of_drives_that_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.state");
    let target = open(URI).unwrap();
    target.check_state_path(&path).unwrap();
    target.save_state(&path).unwrap();
    let taken = target.check_state_path(&path).unwrap_err().to_string();
    assert!(taken.contains("exists already"), "{taken}");
    let nowhere = target.check_state_path(&folder.path().join("no/a.state")).unwrap_err().to_string();
    assert!(nowhere.contains("is no directory to save a state in"), "{nowhere}");
    let null = open("null:").unwrap();
    assert!(
        matches!(null.check_state_path(&path), Err(TargetError::Usage(text)) if text.contains("only modelled drives"))
    );
}

#[test]
fn a_full_disk_leaves_no_part_of_a_state() {
    let target = open(URI).unwrap();
    let error = target.save_state(Path::new("/dev/full/a.state")).unwrap_err();
    assert!(matches!(&error, TargetError::Drive(text) if text.contains("could not be saved")), "{error}");
}
