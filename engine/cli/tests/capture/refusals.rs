//! What cannot be captured is refused with one message that says what to do.

use crate::capturing::{capture_turn, command, run};
use crate::support::Loop;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

/// The error of a capture that does not begin: kind, message and status; the words on standard error are the same.
fn refused(arguments: &[&str]) -> (String, String, i32) {
    let (status, lines, words) = run(arguments);
    let last = lines.last().unwrap_or_else(|| panic!("{words}"));
    assert_eq!((last["event"].as_str(), last["exit_status"].as_i64()), (Some("error"), Some(status.into())));
    let message = last["message"].as_str().unwrap().to_string();
    assert_eq!(words.trim(), format!("error: {message}"));
    (last["kind"].as_str().unwrap().to_string(), message, status)
}

#[test]
fn what_is_no_block_device_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.rec").display().to_string();
    for (device, words) in [
        ("/dev/no-such-disk", "lsblk"),
        ("/dev/null", "character device"),
        ("/proc/self/stat", "not a block device"),
        ("7:99999", "not in sysfs"),
    ] {
        let (kind, message, status) = refused(&[device, "-o", &output]);
        assert_eq!((kind.as_str(), status), ("usage", 2));
        assert!(message.contains(words) && message.contains(device), "{message}");
    }
    assert!(!folder.path().join("a.rec").exists());
}

#[test]
fn an_output_that_exists_and_a_device_named_twice_are_refused() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let there = folder.path().display().to_string();
    let (kind, message, status) = refused(&[&device.path, "-o", &there]);
    assert_eq!((kind.as_str(), status), ("usage", 2));
    assert!(message.contains("exists already"), "{message}");
    let output = folder.path().join("a.rec").display().to_string();
    let (_, message, _) = refused(&[&device.path, device.name(), "-o", &output]);
    assert!(message.contains("named twice"), "{message}");
}

#[test]
fn options_that_mean_nothing_are_refused_before_anything_is_touched() {
    for (arguments, words) in [
        (&["/dev/null", "-o", "x", "--for", "60"][..], "60s"),
        (&["/dev/null", "-o", "x", "--events", "complete"][..], "queue or issue"),
        (&["/dev/null", "-o", "x", "--max-size", "4G"][..], "4GiB (binary)"),
        (&["/dev/null"][..], "--output"),
    ] {
        let output = command(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn without_root_the_message_says_so() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    // A copy that somebody else may run, in a place that somebody else may write to.
    let open_folder = std::env::temp_dir().join(format!("testdrive-capture-{}", std::process::id()));
    std::fs::create_dir(&open_folder).unwrap();
    let engine = open_folder.join("engine");
    std::fs::copy(env!("CARGO_BIN_EXE_testdrive-engine"), &engine).unwrap();
    let output = folder.path().join("a.rec");
    let said = std::process::Command::new(&engine)
        .args(["capture", device.name(), "-o", output.to_str().unwrap()])
        .uid(65_534)
        .gid(65_534)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    std::fs::remove_dir_all(&open_folder).unwrap();
    let words = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(2), "{words}");
    assert!(words.contains("needs root; run it with sudo"), "{words}");
}
