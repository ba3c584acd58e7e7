//! However a capture ends, its recording says so, and the kernel is as it was before.

use crate::capturing::{
    capture_turn, children_of, command, has_warning, instances_of, nothing_is_left_of, open, rows, run, send,
    Capturing,
};
use crate::support::{wait_for, Loop, LONG};
use crate::workload::Direct;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use testdrive_recording::Status;

fn work(device: &Loop, ios: u64) {
    let mut direct = Direct::open(&device.path);
    (0..ios).for_each(|index| direct.read(index % 1024));
}

#[test]
fn a_signal_ends_a_capture_well_unless_it_was_to_last_longer() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    for (signal, limit, status, exit_status) in [
        (libc::SIGINT, None, Status::Complete, 0),
        (libc::SIGTERM, None, Status::Complete, 0),
        (libc::SIGHUP, Some("1h"), Status::Interrupted, 5),
        (libc::SIGINT, Some("1h"), Status::Interrupted, 5),
    ] {
        let output = folder.path().join(format!("{signal}-{}.rec", limit.is_some()));
        let mut arguments = vec![device.path.as_str(), "-o", output.to_str().unwrap()];
        arguments.extend(limit.into_iter().flat_map(|limit| ["--for", limit]));
        let capturing = Capturing::start(&arguments);
        work(&device, 43);
        let pid = capturing.pid();
        capturing.signal(signal);
        let (last, ended) = capturing.end();
        assert_eq!((last["event"].as_str(), ended), (Some("finished"), exit_status), "{last}");
        assert_eq!((open(&output).manifest.status, rows(&output).len()), (status, 43));
        assert!(instances_of(pid).is_empty());
    }
}

#[test]
fn a_capture_ends_when_its_time_is_over() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let output = folder.path().join("a.rec");
    let start = Instant::now();
    let (status, lines, _) = run(&[&device.path, "--for", "700ms", "-o", output.to_str().unwrap()]);
    assert!(start.elapsed() >= Duration::from_millis(700));
    assert_eq!((status, lines.last().unwrap()["status"].as_str()), (0, Some("complete")));
    let phase = open(&output).manifest.phases[0].clone();
    // Its end is when the engine came round to ending it, which a busy host may put off.
    let lasted_ms = (phase.end_ns - phase.start_ns) / 1_000_000;
    assert!((700..60_000).contains(&lasted_ms), "{lasted_ms} ms");
}

#[test]
fn a_killed_capture_leaves_no_instance_and_a_recording_that_can_be_read() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    for group in [false, true] {
        let output = folder.path().join(format!("{group}.rec"));
        let capturing = Capturing::start(&[&device.path, "-o", output.to_str().unwrap()]);
        let pid = capturing.pid();
        assert_eq!(instances_of(pid).len(), 1);
        work(&device, 43);
        send(if group { -(pid as i32) } else { pid as i32 }, libc::SIGKILL);
        let (_, status) = capturing.end();
        assert_eq!(status, -1);
        assert!(nothing_is_left_of(pid), "{:?}", instances_of(pid));
        assert_eq!(open(&output).manifest.status, Status::Interrupted);
    }
}

#[test]
fn what_is_left_when_the_guard_is_killed_too_is_swept_by_the_next_capture() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let capturing = Capturing::start(&[&device.path, "-o", &path("a.rec")]);
    let (pid, guards) = (capturing.pid(), children_of(capturing.pid()));
    assert_eq!(guards.len(), 1);
    send(guards[0], libc::SIGKILL);
    capturing.signal(libc::SIGKILL);
    capturing.end();
    let left = instances_of(pid);
    assert_eq!(left.len(), 1, "the kernel keeps an instance that nobody removes");
    // A second capture at the same time is left alone.
    let other = Capturing::start(&[&device.path, "-o", &path("b.rec")]);
    assert_eq!((instances_of(pid).len(), instances_of(other.pid()).len()), (0, 1));
    let third = Capturing::start(&[&device.path, "-o", &path("c.rec")]);
    assert_eq!(instances_of(other.pid()).len(), 1);
    third.stop();
    other.stop();
}

#[test]
fn the_guard_ends_with_the_capture_and_holds_none_of_its_output() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let output = folder.path().join("a.rec");
    let capturing = Capturing::start(&[&device.path, "-o", output.to_str().unwrap()]);
    let guard = children_of(capturing.pid())[0];
    let name = || fs::read_to_string(format!("/proc/{guard}/comm")).unwrap();
    let open_files = || {
        let entries = fs::read_dir(format!("/proc/{guard}/fd")).unwrap().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect::<Vec<PathBuf>>()
    };
    // Nobody waits for the guard to come round to its first work, which is to name itself and to close what it has from the engine.
    let is_ready = || name().trim() == "testdrive-guard" && open_files().len() == 1;
    assert!(
        wait_for(LONG, is_ready),
        "only the pipe by which it learns of the end: {:?} of {}",
        open_files(),
        name()
    );
    capturing.stop();
    assert!(wait_for(LONG, || !PathBuf::from(format!("/proc/{guard}")).exists()));
}

#[test]
fn lost_events_are_counted_and_the_recording_says_so() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let output = folder.path().join("a.rec");
    let mut capturing =
        Capturing::start(&[&device.path, "--buffer", "64KiB", "-o", output.to_str().unwrap()]);
    // Nobody reads the buffer while it overflows.
    capturing.signal(libc::SIGSTOP);
    work(&device, 20_000);
    capturing.signal(libc::SIGCONT);
    while capturing.next().is_some_and(|event| event["events_lost"].as_u64().unwrap_or(0) == 0) {}
    work(&device, 10);
    let last = capturing.stop();
    let lost = last["events_lost"].as_u64().unwrap();
    let manifest = open(&output).manifest;
    assert!(has_warning(&output, "events_lost"), "{:?}", manifest.warnings);
    assert_eq!(manifest.dropped[0].count, lost);
    // A read that is no row has lost at least the first of its three events.
    let captured = manifest.counts.ios;
    assert!(captured < 20_010 && captured + lost >= 20_010, "{captured} captured, {lost} lost");
    assert!(lost <= 60_030, "{lost}");
    let warning = manifest.warnings.iter().find(|warning| warning.code == "events_lost").unwrap();
    assert!(warning.remedy.contains("--buffer") && warning.message.contains("between"), "{warning:?}");
}

#[test]
fn a_capture_ends_at_its_size() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let output = folder.path().join("a.rec");
    let arguments = [&device.path, "--max-size", "500KB", "-o", output.to_str().unwrap()];
    let mut capturing = Capturing::start(&arguments);
    let pid = capturing.pid();
    let last = loop {
        work(&device, 20_000);
        // Progress comes twice a second, and 20,000 reads take about as long.
        match capturing.next() {
            Some(event) if event["event"] == "finished" => break event,
            Some(_) => {}
            None => panic!("the engine ended without a last word"),
        }
    };
    assert_eq!(last["status"], "complete");
    assert!(last["reason"].as_str().unwrap().contains("--max-size"));
    let bytes: u64 = fs::read_dir(output.join("ios"))
        .unwrap()
        .flatten()
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!((500_000..20_000_000).contains(&bytes), "{bytes}");
    capturing.end();
    assert!(instances_of(pid).is_empty());
}

#[test]
fn a_capture_that_nobody_listens_to_ends() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let output = folder.path().join("a.rec");
    let mut child =
        command(&[&device.path, "-o", output.to_str().unwrap()]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(open(&output).manifest.status, Status::Interrupted);
    assert!(instances_of(pid).is_empty());
}

#[test]
fn a_recording_on_the_captured_device_is_warned_of() {
    let Some(_turn) = capture_turn() else { return };
    let device = Loop::new();
    crate::support::must("mkfs.ext4", &["-q", &device.path]);
    let mounted = crate::support::Mounted::new(&device.path);
    let output = mounted.point.path().join("a.rec");
    let (status, lines, _) = run(&[&device.path, "--for", "100ms", "-o", output.to_str().unwrap()]);
    assert_eq!(status, 0);
    let warning = lines.iter().find(|line| line["code"] == "feedback").unwrap();
    assert!(warning["message"].as_str().unwrap().contains(device.name()), "{warning}");
    assert!(has_warning(&output, "feedback"));
}
