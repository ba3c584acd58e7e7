//! `export`, as a person or the control plane calls it.

#[path = "support/command.rs"]
mod command;

use command::{engine, lines, Folder};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_recording::{
    Manifest, OrderBy, Phase, PhaseKind, Recording, RecordingKind, RecordingWriter, Status, WriterLimits,
};

fn export(arguments: &[&str]) -> Output {
    engine().arg("export").args(arguments).output().unwrap()
}

fn error_of(output: &Output) -> (i32, String, String) {
    let last = lines(&output.stdout).pop().unwrap();
    assert_eq!(last["event"], "error", "{last}");
    let word = |key: &str| last[key].as_str().unwrap().to_string();
    (output.status.code().unwrap(), word("kind"), word("message"))
}

fn row(index: i64, phase: u16) -> IoRecord {
    IoRecord {
        intended_ns: 7_000_000_000 * i64::from(phase) + index * 10_000,
        submit_ns: 7_000_000_000 * i64::from(phase) + index * 10_000 + 5,
        latency_ns: 80_000,
        offset_bytes: index * 4096,
        length_bytes: 4096,
        stream: 1,
        status: 0,
        phase,
        opcode: if phase == 0 { Opcode::WriteZeroes } else { Opcode::Read },
        flags: Flags::NONE,
    }
}

fn phase(index: u16, name: &str, measured: bool) -> Phase {
    Phase {
        index,
        name: name.into(),
        kind: PhaseKind::Replay,
        measured,
        start_ns: 7_000_000_000 * i64::from(index),
        end_ns: 0,
        settings: serde_json::Map::new(),
        accounting: serde_json::Map::new(),
        drive_counters: None,
    }
}

/// A recording of `ios` I/Os in a phase that is not measured, and as many in each of two that are.
fn record(path: &Path, ios: i64) {
    let mut manifest = Manifest::new(RecordingKind::Run, "virtual");
    manifest.phases = vec![phase(0, "prepare", false), phase(1, "first", true), phase(2, "second", true)];
    manifest.source.insert("device".into(), "259:2".into());
    let mut writer = RecordingWriter::create(path, manifest, WriterLimits::default()).unwrap();
    for phase in 0..3 {
        let rows: Vec<IoRecord> = (0..ios).map(|index| row(index, phase)).collect();
        rows.chunks(1 << 16).for_each(|rows| writer.append(rows).unwrap());
    }
    writer.finish(Status::Complete, None).unwrap();
}

#[test]
fn measured_phases_are_exported_and_what_the_trace_cannot_say_is_told() {
    let folder = Folder::new();
    let (recording, output) = (folder.text("a.rec"), folder.text("a.iolog"));
    record(Path::new(&recording), 100);
    let done = export(&[&recording, "-o", &output, "--format", "fio-iolog", "--target", "disk"]);
    assert_eq!(done.status.code(), Some(0));
    let all = lines(&done.stdout);
    let finished = all.last().unwrap();
    assert_eq!((&finished["event"], &finished["status"]), (&"finished".into(), &"complete".into()));
    assert_eq!(finished["counts"]["by_opcode"]["read"]["ios"], 200);
    assert_eq!(
        (&finished["shift_ns"], &finished["dropped"]),
        (&6_000_000_000_i64.into(), &Value::Array(vec![]))
    );
    let lost: Vec<&str> = finished["not_carried"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lost| lost["column"].as_str().unwrap())
        .collect();
    assert_eq!(lost, ["latency_ns", "submit_ns", "stream", "phase"]);
    let progress = &all[all.len() - 2];
    assert_eq!((&progress["rows"], &progress["rows_total"]), (&300.into(), &300.into()));
    let text = std::fs::read_to_string(&output).unwrap();
    assert!(text.starts_with("fio version 3 iolog\n1000000 disk add\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" read ")).count(), 200);
    assert_eq!(folder.names(), ["a.iolog", "a.rec"]);
}

#[test]
fn phases_are_chosen_by_name_and_a_name_that_is_none_is_refused_with_those_there_are() {
    let folder = Folder::new();
    let recording = folder.text("a.rec");
    record(Path::new(&recording), 100);
    for (phases, ios, dropped) in [("all", 200, 100), ("second", 100, 0), ("second,first", 200, 0)] {
        let output = folder.text(&format!("{phases}.iolog"));
        let done = export(&[&recording, "-o", &output, "--format", "fio-iolog", "--phases", phases]);
        let finished = lines(&done.stdout).pop().unwrap();
        assert_eq!(finished["counts"]["ios"], ios, "{phases}: {finished}");
        let count = finished["dropped"].get(0).map_or(0, |dropped| dropped["count"].as_i64().unwrap());
        assert_eq!(count, dropped, "{phases}");
    }
    let done = export(&[&recording, "-o", "x", "--format", "csv", "--phases", "third"]);
    let (status, kind, message) = error_of(&done);
    assert_eq!((status, kind.as_str()), (2, "usage"));
    assert!(message.contains("no phase 'third'") && message.contains("prepare, first, second"), "{message}");
    let output = folder.text("prepare.iolog");
    let done = export(&[&recording, "-o", &output, "--format", "fio-iolog", "--phases", "prepare"]);
    let (status, _, message) = error_of(&done);
    assert!(status == 2 && message.contains("none of the I/Os: there are 100 write_zeroes"), "{message}");
    assert!(!Path::new(&output).exists());
}

#[test]
fn standard_output_carries_the_trace_and_nothing_else() {
    let folder = Folder::new();
    let (recording, output) = (folder.text("a.rec"), folder.text("a.csv"));
    record(Path::new(&recording), 100);
    assert!(export(&[&recording, "-o", &output, "--format", "csv"]).status.success());
    let done = export(&[&recording, "-o", "-", "--format", "csv"]);
    assert_eq!(done.stdout, std::fs::read(&output).unwrap());
    assert_eq!(lines(&done.stderr).pop().unwrap()["counts"]["ios"], 200);
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let folder = Folder::new();
    let recording = folder.text("a.rec");
    record(Path::new(&recording), 200_000);
    let mut child = engine()
        .args(["export", &recording, "-o", "-", "--format", "blkparse"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0_u8; 100];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"259,2    1        1 "), "{}", String::from_utf8_lossy(&first));
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(lines(&done.stderr).pop().unwrap()["kind"], "closed_output");
}

#[test]
fn a_signal_leaves_no_trace_that_could_be_taken_for_a_whole_one() {
    let folder = Folder::new();
    let recording = folder.text("a.rec");
    record(Path::new(&recording), 400_000);
    let output = folder.text("a.txt");
    let mut child = engine()
        .args(["export", &recording, "-o", &output, "--format", "blkparse"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The first progress is told while almost everything is still to do.
    let mut said = [0_u8; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(5));
    assert_eq!(folder.names(), ["a.rec"]);
}

#[test]
fn what_exists_is_never_touched_and_what_cannot_be_exported_leaves_nothing_behind() {
    let folder = Folder::new();
    let recording = folder.text("a.rec");
    record(Path::new(&recording), 10);
    let mine = folder.text("mine.csv");
    std::fs::File::create(&mine).unwrap().write_all(b"mine").unwrap();
    let nowhere = folder.text("no/such/folder.csv");
    let new = folder.text("new");
    let cases: [(&[&str], &str); 7] = [
        (&[&recording, "-o", &mine, "--format", "csv"], "exists already"),
        (&[&recording, "-o", &nowhere, "--format", "csv"], "cannot create"),
        (&[&recording, "-o", &new, "--format", "pcap"], "fio-iolog, blkparse, csv"),
        (&[&mine, "-o", &new, "--format", "csv"], "is not a recording"),
        (&[&recording, "-o", &new, "--format", "csv", "--times", "submit"], "--times does not fit csv"),
        (
            &[&recording, "-o", &new, "--format", "blkparse", "--target", "x"],
            "--target does not fit blkparse",
        ),
        (&[&recording, "-o", &new, "--format", "fio-iolog", "--target", "a b"], "white space"),
    ];
    for (arguments, expected) in cases {
        let (status, kind, message) = error_of(&export(arguments));
        assert_eq!((status, kind.as_str()), (2, "usage"), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(folder.names(), ["a.rec", "mine.csv"]);
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
}

#[test]
fn a_recording_that_is_not_the_whole_workload_is_warned_of() {
    let folder = Folder::new();
    let recording = folder.text("a.rec");
    let mut manifest = Manifest::new(RecordingKind::Import, "trace");
    manifest.phases = vec![phase(0, "import", true)];
    manifest.dropped.push(testdrive_recording::Dropped { what: "events that were lost".into(), count: 17 });
    let mut writer =
        RecordingWriter::create(Path::new(&recording), manifest, WriterLimits::default()).unwrap();
    writer.append(&[row(1, 0)]).unwrap();
    writer.finish(Status::Interrupted, Some("by a signal".into())).unwrap();
    let done = export(&[&recording, "-o", &folder.text("a.csv"), "--format", "csv"]);
    let messages: Vec<String> = lines(&done.stdout)
        .iter()
        .filter(|line| line["event"] == "warning")
        .map(|line| line["message"].as_str().unwrap().to_string())
        .collect();
    assert!(messages[0].contains("interrupted: by a signal"), "{messages:?}");
    assert!(messages[1].contains("17 events that were lost"), "{messages:?}");
    let rows = Recording::open(Path::new(&recording)).unwrap().ordered_rows(OrderBy::Intended).unwrap();
    assert_eq!(rows.count(), 1);
}
