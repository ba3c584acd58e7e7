//! `import` and `formats`, as a person or the control plane calls them.

#[path = "support/command.rs"]
mod command;

use command::{engine, lines, Folder};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use testdrive_core::{Opcode, SplitMix64};
use testdrive_recording::{OrderBy, Recording, RecordingKind, Status};

/// Runs `import` and gives its exit status and its lines.
fn import(arguments: &[&str]) -> (i32, Vec<Value>) {
    let output = engine().arg("import").args(arguments).output().unwrap();
    (output.status.code().unwrap(), lines(&output.stdout))
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

/// A trace of two volumes, and one I/O more of the first.
const VOLUMES: &str = "\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,1,Write,2517696512,512,12963
128166372026382245,usr,0,Write,0,1024,7
";

#[test]
fn each_volume_of_a_trace_becomes_a_recording_of_its_own() {
    let folder = Folder::new();
    let (input, output) = (folder.write("t.csv", VOLUMES), folder.text("prod.rec"));
    let (status, lines) = import(&[&input, "-o", &output]);
    assert_eq!(status, 0, "{lines:?}");
    let finished = lines.last().unwrap();
    assert_eq!((&finished["output"], &finished["counts"]["ios"]), (&Value::Null, &3.into()));
    assert_eq!(finished["counts"]["span_ns"], 2_332_061_600_i64 + 700);
    assert!(!Path::new(&output).exists());
    for (at, (volume, ios)) in [("usr_0", 2), ("usr_1", 1)].into_iter().enumerate() {
        let told = &finished["recordings"][at];
        let path = folder.text(&format!("prod.{volume}.rec"));
        assert_eq!((&told["volume"], &told["output"]), (&volume.into(), &path.as_str().into()));
        assert_eq!(told["counts"]["ios"], ios);
        let recording = Recording::open(Path::new(&path)).unwrap();
        assert_eq!((recording.manifest.status, recording.manifest.counts.ios), (Status::Complete, ios));
        assert_eq!(recording.manifest.source["volume"], volume);
        assert_eq!(recording.manifest.clock.shift_ns, 1_172_163_600_000_000_000);
    }
}

#[test]
fn a_volume_that_is_alone_or_chosen_takes_the_name_that_was_asked_for() {
    let folder = Folder::new();
    let (input, output) = (folder.write("t.csv", VOLUMES), folder.text("prod.rec"));
    let (status, lines) = import(&[&input, "-o", &output, "--volume", "usr_1"]);
    assert_eq!(status, 0, "{lines:?}");
    let finished = lines.last().unwrap();
    assert_eq!(
        (&finished["output"], &finished["recordings"][0]["volume"]),
        (&output.as_str().into(), &"usr_1".into())
    );
    let recording = Recording::open(Path::new(&output)).unwrap();
    assert_eq!((recording.manifest.counts.ios, &recording.manifest.source["volume"]), (1, &"usr_1".into()));
    assert_eq!(folder.names().len(), 2, "{:?}", folder.names());
    let (status, lines) = import(&[&input, "-o", &folder.text("other.rec"), "--volume", "usr_7"]);
    assert_eq!((status, error_of(&lines).0), (2, "usage"));
    assert!(error_of(&lines).1.contains("no I/O of volume 'usr_7'"), "{lines:?}");
}

#[test]
fn a_volume_whose_recording_exists_leaves_it_alone_and_removes_the_others() {
    let folder = Folder::new();
    let input = folder.write("t.csv", VOLUMES);
    let mine = folder.write("prod.usr_1.rec", "mine");
    let (status, lines) = import(&[&input, "-o", &folder.text("prod.rec")]);
    assert_eq!(status, 2, "{lines:?}");
    assert!(error_of(&lines).1.contains("prod.usr_1.rec exists already"), "{lines:?}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    assert_eq!(folder.names().len(), 2);
}

#[test]
fn formats_that_look_alike_are_asked_for_and_then_imported() {
    let folder = Folder::new();
    let input = folder.write("t.trace", "0 0 303567 7 0\n26214000 1 240840 6 1\n");
    let output = folder.text("out.rec");
    let (status, lines) = import(&[&input, "-o", &output]);
    assert_eq!(status, 2);
    assert!(error_of(&lines).1.contains("so say which it is with --format NAME"), "{lines:?}");
    let (status, lines) =
        import(&[&input, "-o", &output, "--format", "mqsim", "--time-unit", "us", "--volume", "1"]);
    assert_eq!(status, 0, "{lines:?}");
    let manifest = Recording::open(Path::new(&output)).unwrap().manifest;
    assert_eq!((&manifest.source["time_unit"], manifest.clock.shift_ns), (&"us".into(), 0));
    assert_eq!(manifest.phases[0].end_ns, 26_214_000_000);
}

#[test]
fn an_output_that_cannot_be_made_is_the_fault_of_its_disk() {
    let folder = Folder::new();
    let input = folder.write("t.csv", VOLUMES);
    let output = folder.text("t.csv/inside.rec");
    let (status, lines) = import(&[&input, "-o", &output]);
    assert_eq!((status, error_of(&lines).0), (4, "recording"), "{lines:?}");
}

#[test]
fn a_disk_that_runs_full_ends_the_import_and_keeps_what_was_written() {
    let folder = Folder::new();
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=20m", "tmpfs"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "a small disk cannot be mounted");
        println!("SKIPPED: a disk that runs full: a small disk cannot be mounted");
        return;
    }
    // Places without order, which take the most disk.
    let (mut text, mut random) = (String::new(), SplitMix64::new(1));
    for row in 0..1_000_000_u64 {
        let (ticks, place) = (128_166_372_003_061_629 + row * 10, random.below(1 << 40));
        writeln!(text, "{ticks},usr,0,Read,{place},512,{}", place % 99_991).unwrap();
    }
    let input = folder.write("t.csv", &text);
    let output = folder.text("disk/prod.rec");
    let (status, lines) = import(&[&input, "-o", &output]);
    let kept = Recording::open(Path::new(&output)).map(|recording| recording.manifest);
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!((status, error_of(&lines).0), (4, "recording"), "{lines:?}");
    let kept = kept.unwrap();
    assert_eq!(kept.status, Status::Failed);
    assert!((100_000..1_000_000).contains(&kept.counts.ios), "{}", kept.counts.ios);
}
