//! `import` and `formats`, as a person or the control plane calls them.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testdrive_core::Opcode;
use testdrive_recording::{OrderBy, Recording, RecordingKind, Status};

fn engine() -> Command {
    Command::new(env!("CARGO_BIN_EXE_testdrive-engine"))
}

/// Runs `import` and gives its exit status and its lines.
fn import(arguments: &[&str]) -> (i32, Vec<Value>) {
    let output = engine().arg("import").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), lines)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
    fn write(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.text(name)
    }
}

/// One queue, issue and completion for each I/O, `ios` of them, 10 us apart.
fn trace(ios: u64) -> String {
    let mut text = String::from("# tracer: nop\n");
    for index in 0..ios {
        for (step, event) in
            ["block_bio_queue: 7,0 W ", "block_rq_issue: 7,0 W 4096 () ", "block_rq_complete: 7,0 W () "]
                .iter()
                .enumerate()
        {
            let time_us = 2_000_000 + index * 10 + step as u64;
            let (seconds, fraction) = (time_us / 1_000_000, time_us % 1_000_000);
            let end = if step == 2 { "[0]" } else { "[fio]" };
            writeln!(text, " fio-1 [000] ..... {seconds}.{fraction:06}: {event}{} + 8 {end}", index * 8)
                .unwrap();
        }
    }
    text
}

fn error_of(lines: &[Value]) -> (&str, &str) {
    let last = lines.last().unwrap();
    assert_eq!(last["event"], "error", "{last}");
    (last["kind"].as_str().unwrap(), last["message"].as_str().unwrap())
}

#[test]
fn a_trace_becomes_a_recording_that_says_where_it_came_from() {
    let folder = Folder::new();
    let (input, output) = (folder.write("prod.txt", &trace(1000)), folder.text("prod.rec"));
    let (status, lines) = import(&[&input, "-o", &output]);
    assert_eq!(status, 0, "{lines:?}");
    let finished = lines.last().unwrap();
    assert_eq!((&finished["event"], &finished["status"]), (&"finished".into(), &"complete".into()));
    assert_eq!(
        (&finished["counts"]["ios"], &finished["output"]),
        (&1000.into(), &Value::from(output.as_str()))
    );
    let progress: Vec<&Value> = lines.iter().filter(|line| line["event"] == "progress").collect();
    let last = progress.last().unwrap();
    assert_eq!(last["bytes_read"], last["bytes_total"]);
    let recording = Recording::open(Path::new(&output)).unwrap();
    let manifest = &recording.manifest;
    assert_eq!((manifest.kind, manifest.status), (RecordingKind::Import, Status::Complete));
    assert_eq!(manifest.clock.shift_ns, 2_000_000_000);
    assert_eq!(manifest.source["format"], "trace-event");
    assert_eq!((&manifest.source["events"], &manifest.source["device"]), (&"queued".into(), &"7:0".into()));
    assert_eq!(manifest.source["files"], Value::from(vec![input]));
    assert_eq!((manifest.phases.len(), manifest.phases[0].measured), (1, true));
    assert_eq!(manifest.phases[0].end_ns, 999 * 10_000 + 2000);
    let rows: Vec<_> = recording.ordered_rows(OrderBy::Intended).unwrap().map(Result::unwrap).collect();
    assert_eq!((rows.len(), rows[999].intended_ns, rows[999].latency_ns), (1000, 9_990_000, 1000));
}

#[test]
fn a_csv_is_imported_by_its_map_of_columns() {
    let folder = Folder::new();
    let input = folder.write("x.csv", "t,lat,what\n0,1.5,R\n2.5,3,trim\n");
    let output = folder.text("x.rec");
    let (status, lines) = import(&[&input, "-o", &output, "--columns", "submit_us=t,latency_us=lat,op=what"]);
    assert_eq!(status, 0, "{lines:?}");
    let recording = Recording::open(Path::new(&output)).unwrap();
    assert_eq!(recording.manifest.source["columns"]["latency_us"], "lat");
    assert!(recording.manifest.absent_columns.contains(&"intended_ns".to_string()));
    let rows: Vec<_> = recording.ordered_rows(OrderBy::Submit).unwrap().map(Result::unwrap).collect();
    assert_eq!((rows[1].opcode, rows[1].submit_ns, rows[1].latency_ns), (Opcode::Trim, 2500, 3000));
}

#[test]
fn what_cannot_be_imported_leaves_nothing_behind_and_exits_with_2() {
    let folder = Folder::new();
    let output = folder.text("out.rec");
    let empty = folder.write("empty.txt", "");
    let foreign = folder.write("foreign.bin", "\u{7f}ELF and so on");
    let damaged = folder.write("damaged.csv", "t,lat\n1,2\nx,3\n");
    let good = folder.write("good.txt", &trace(3));
    let cases: [(&[&str], &str); 10] = [
        (&["/dev/null"], "name it with --format"),
        (&["/dev/null", "--format", "csv", "--columns", "time_us=0"], "save it to a file first"),
        (&[&empty], "is empty"),
        (&[&foreign], "no format that is known"),
        (&["nothing.txt"], "cannot open nothing.txt"),
        (&[&good, "--format", "pcap"], "no trace format 'pcap'"),
        (&[&good, "--format", "blktrace"], "byte 0"),
        (&[&good, "--device", "8:0"], "no I/O of device 8:0"),
        (&[&damaged, "--columns", "submit_us=t,latency_us=lat"], "line 3: submit_us (column 't') is 'x'"),
        (&[&damaged, "--columns", "submit_us=t,latency_us=wait"], "no column 'wait'"),
    ];
    for (arguments, message) in cases {
        let (status, lines) = import(&[arguments, &["-o", &output]].concat());
        let (kind, said) = error_of(&lines);
        assert_eq!((status, kind), (2, "usage"), "{said}");
        assert!(said.contains(message), "{said}");
        assert!(!Path::new(&output).exists(), "{said}");
    }
}

#[test]
fn an_existing_output_is_never_touched() {
    let folder = Folder::new();
    let input = folder.write("good.txt", &trace(3));
    let output = folder.write("mine.rec", "mine");
    let (status, lines) = import(&[&input, "-o", &output]);
    assert_eq!(status, 2);
    assert!(error_of(&lines).1.contains("exists already"), "{lines:?}");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "mine");
}

#[test]
fn arguments_that_make_no_sense_exit_with_2() {
    for arguments in [&["a", "-o", "b", "--events", "some"][..], &["a", "-o", "b", "--device", "sda"], &["a"]]
    {
        let output = engine().arg("import").args(arguments).stderr(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_signal_keeps_what_was_imported_and_exits_with_5() {
    let folder = Folder::new();
    // A pipe that is held open: the import waits for more until the signal comes.
    let input = folder.path("trace.pipe");
    assert!(Command::new("mkfifo").arg(&input).status().unwrap().success());
    let output = folder.text("out.rec");
    let mut child = engine()
        .args(["import", "--format", "trace-event", "-o", &output])
        .arg(&input)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&input).unwrap();
    pipe.write_all(trace(60_000).as_bytes()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("progress"));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // The engine may be gone before it has read all of this.
    let _ = pipe.write_all(trace(60_000).replace(" 2.", " 9.").as_bytes());
    drop(pipe);
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5), "{last}");
    assert_eq!((&last["event"], &last["status"]), (&"finished".into(), &"interrupted".into()));
    let recording = Recording::open(Path::new(&output)).unwrap();
    assert_eq!(recording.manifest.status, Status::Interrupted);
    assert!(recording.manifest.counts.ios > 0);
}

#[test]
fn formats_are_listed_with_what_they_carry() {
    let output = engine().arg("formats").output().unwrap();
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = list.iter().map(|format| format["name"].as_str().unwrap()).collect();
    for name in ["blktrace", "blkparse", "trace-event", "msr", "mqsim", "csv"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for format in &list {
        assert!(!format["description"].as_str().unwrap().is_empty());
        for key in ["has_queue_events", "has_completions", "has_trims", "has_volumes"] {
            assert!(format[key].is_boolean(), "{format}");
        }
        assert!(["content", "name", "asking"].contains(&format["found_by"].as_str().unwrap()), "{format}");
    }
}
