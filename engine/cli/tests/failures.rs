//! What goes wrong in a run, done to the real engine: it ends with a clear message and the documented status, and what was
//! recorded so far can be read.

#[path = "../../drives/tests/support/mod.rs"]
mod support;

use serde_json::{json, Value};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use support::{loop_turn, must, run, unmount, Loop};
use testdrive_recording::{Recording, Status};

/// The engine at work on a job.
struct Engine {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Engine {
    fn start(job: &Value) -> Engine {
        let mut child = Command::new(env!("CARGO_BIN_EXE_testdrive-engine"))
            .arg("run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(job.to_string().as_bytes()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Engine { child, lines }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// Waits until so many I/Os are done.
    fn wait_for_ios(&mut self, ios: u64) {
        self.wait_for_progress("ios", ios);
    }

    /// Waits until the progress counts so many of something.
    fn wait_for_progress(&mut self, what: &str, count: u64) {
        while let Some(event) = self.next() {
            assert_ne!(event["event"], "error", "{event}");
            assert_ne!(event["event"], "finished", "{event}");
            if event[what].as_u64().is_some_and(|counted| counted >= count) {
                return;
            }
        }
        panic!("the engine ended before it counted {count} {what}");
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill takes two integers, and the child has not been waited for, so its number is still its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// The last event and the exit status.
    fn end(mut self) -> (Value, i32) {
        let mut last = Value::Null;
        while let Some(event) = self.next() {
            last = event;
        }
        (last, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

fn endless(uri: &str, output: &Path) -> Value {
    synthetic(uri, output, json!({"duration_ns": 60_000_000_000_i64, "depth": 1}))
}

fn synthetic(uri: &str, output: &Path, settings: Value) -> Value {
    let mut phase = json!({"kind": "synthetic"});
    phase.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    json!({"version": 1, "drive": {"uri": uri}, "output": output, "phases": [phase]})
}

/// A file to test on, and where to record.
fn file_and_output(folder: &Path, size_bytes: u64) -> (PathBuf, String, PathBuf) {
    let path = folder.join("drive");
    (path.clone(), format!("file:{}?size={size_bytes}", path.display()), folder.join("a.rec"))
}

fn rows(output: &Path) -> u64 {
    Recording::open(output).unwrap().rows().unwrap()
}

#[test]
fn a_signal_closes_the_recording_and_leaves_with_5() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let (_, uri, output) = file_and_output(folder.path(), 1 << 20);
        let mut engine = Engine::start(&endless(&uri, &output));
        engine.wait_for_ios(100);
        engine.signal(signal);
        let (finished, status) = engine.end();
        assert_eq!((finished["event"].as_str(), status), (Some("finished"), 5), "{finished}");
        assert_eq!(finished["status"], "interrupted");
        assert_eq!(finished["counts"]["ios"], rows(&output));
        assert!(rows(&output) >= 100);
    }
}

#[test]
fn a_refused_job_leaves_no_file_that_it_made_and_keeps_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let (path, uri, output) = file_and_output(folder.path(), 1 << 20);
    let too_large = synthetic(&uri, &output, json!({"ios": 1, "block_bytes": 1 << 30}));
    fs::create_dir(folder.path().join("taken.rec")).unwrap();
    let taken = synthetic(&uri, &folder.path().join("taken.rec"), json!({"ios": 1}));
    for job in [&too_large, &taken] {
        let (error, status) = Engine::start(job).end();
        assert_eq!((error["event"].as_str(), status), (Some("error"), 2), "{error}");
        assert!(!path.exists(), "{error}");
    }
    assert_eq!(Engine::start(&synthetic(&uri, &output, json!({"ios": 1}))).end().1, 0);
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    // It was there before this job, which is refused as the one before.
    assert_eq!(Engine::start(&taken).end().1, 2);
    assert!(path.exists());
}

#[test]
fn an_engine_whose_caller_is_gone_stops_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (_, uri, output) = file_and_output(folder.path(), 1 << 20);
    let mut engine = Engine::start(&endless(&uri, &output));
    engine.wait_for_ios(100);
    let Engine { mut child, lines } = engine;
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let manifest = Recording::open(&output).unwrap().manifest;
    assert_eq!(manifest.status, Status::Interrupted);
    assert!(manifest.status_reason.unwrap().contains("whoever asked"));
}

#[test]
fn a_killed_engine_leaves_every_closed_segment_and_the_recording_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.rec");
    let mut job = synthetic("null:", &output, json!({"duration_ns": 600_000_000_000_i64, "depth": 32}));
    job["segment_s"] = 0.5.into();
    let mut engine = Engine::start(&job);
    engine.wait_for_ios(1_000);
    while !output.join("ios/00000.parquet").exists() {
        assert!(engine.next().is_some(), "the engine ended by itself");
    }
    engine.signal(libc::SIGKILL);
    let (_, status) = engine.end();
    assert_eq!(status, -1, "killed");
    let manifest = fs::read_to_string(output.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"running\""), "nobody has marked it yet");
    let recording = Recording::open(&output).unwrap();
    assert_eq!(recording.manifest.status, Status::Interrupted);
    assert!(recording.rows().unwrap() >= 1_000);
    assert_eq!(recording.manifest.counts.ios, recording.rows().unwrap());
    assert!(!output.join("reserve").exists());
    let phases = &recording.manifest.phases;
    assert_eq!(phases.len(), 1, "the phase that was cut off is known");
    assert!(phases[0].measured && phases[0].start_ns > 0 && phases[0].end_ns > phases[0].start_ns);
}

#[test]
fn a_killed_engine_leaves_what_was_found_of_the_rounds_that_were_over() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.rec");
    let phase = |name: &str| json!({"kind": "synthetic", "name": name, "duration_ns": 50_000_000, "rate_limit_iops": 2_000});
    let job = json!({"version": 1, "drive": {"uri": "null:"}, "output": output, "phases": [
        {"kind": "rounds", "name": "matrix", "phases": [phase("one"), phase("other")], "rounds_max": 500, "range_share": 1e-9,
         "tracked": [{"phase": "one", "measure": "iops"}]}]});
    let mut engine = Engine::start(&job);
    let mut rounds = 0;
    while rounds < 3 {
        let event = engine.next().expect("the engine ended by itself");
        rounds += u64::from(event["event"] == "round");
    }
    engine.signal(libc::SIGKILL);
    assert_eq!(engine.end().1, -1, "killed");
    let manifest = Recording::open(&output).unwrap().manifest;
    assert_eq!(manifest.status, Status::Interrupted);
    let done: Vec<u64> =
        manifest.phases.iter().filter_map(|phase| phase.accounting.get("rounds")?["done"].as_u64()).collect();
    assert!(done.len() >= 3 && done == (1..=done.len() as u64).collect::<Vec<_>>(), "{done:?}");
    assert!(manifest
        .phases
        .iter()
        .enumerate()
        .all(|(at, phase)| { phase.settings["round"] == json!(at / 2) && usize::from(phase.index) == at }));
}

#[test]
fn a_recording_in_progress_is_left_alone_by_a_reader_in_another_container() {
    let Some(_turn) = loop_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_, uri, output) = file_and_output(folder.path(), 1 << 20);
    let mut engine = Engine::start(&endless(&uri, &output));
    engine.wait_for_ios(100);
    // With process numbers of its own, as in a container, the reader cannot see the writer.
    let other = folder.path().join("other.rec");
    let job = json!({"version": 1, "drive": {"uri": "null:"}, "output": other,
        "phases": [{"kind": "replay", "recording": output}]});
    let job_file = folder.path().join("job.json");
    fs::write(&job_file, job.to_string()).unwrap();
    let binary = env!("CARGO_BIN_EXE_testdrive-engine");
    let arguments = ["-pf", "--mount-proc", binary, "run", "--job", job_file.to_str().unwrap()];
    let ended = Command::new("unshare").args(arguments).stdout(Stdio::null()).status().unwrap();
    assert!(ended.code().is_some());
    engine.wait_for_ios(200);
    engine.signal(libc::SIGINT);
    let (finished, status) = engine.end();
    assert_eq!(status, 5, "{finished}");
    assert_eq!(rows(&output), finished["counts"]["ios"].as_u64().unwrap());
}

#[test]
fn a_device_that_disappears_ends_the_run_even_where_errors_do_not() {
    let Some(_turn) = loop_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let device = Loop::new();
    let output = folder.path().join("a.rec");
    let mut job = endless(&device.path, &output);
    job["on_error"] = "continue".into();
    let mut engine = Engine::start(&job);
    engine.wait_for_ios(100);
    // A loop device whose file is gone has no capacity any more, as a drive that was pulled.
    File::options().write(true).open(&device.backing).unwrap().set_len(0).unwrap();
    must("losetup", &["--set-capacity", &device.path]);
    let (finished, status) = engine.end();
    assert_eq!((finished["status"].as_str(), status), (Some("failed"), 4), "{finished}");
    assert!(finished["reason"].as_str().unwrap().contains("the drive is gone"), "{finished}");
    assert_eq!(rows(&output), finished["counts"]["ios"].as_u64().unwrap());
}

#[test]
fn an_io_error_is_recorded_and_ends_the_run_with_4_or_not_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (path, uri, output) = file_and_output(folder.path(), 16 << 20);
    let mut engine = Engine::start(&endless(&uri, &output));
    engine.wait_for_ios(100);
    // A file cut short under the run stands for a drive that loses a part of itself: reads beyond come back short.
    File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let (finished, status) = engine.end();
    assert_eq!((finished["status"].as_str(), status), (Some("failed"), 4), "{finished}");
    assert!(
        finished["reason"].as_str().unwrap().contains("an I/O failed: read of 4096 bytes at offset"),
        "{finished}"
    );
    assert_eq!(finished["counts"]["errors"], 1);
    assert_eq!(rows(&output), finished["counts"]["ios"].as_u64().unwrap());

    let output = folder.path().join("b.rec");
    File::options().write(true).open(&path).unwrap().set_len(16 << 20).unwrap();
    let mut job = endless(&uri, &output);
    job["on_error"] = "continue".into();
    let mut engine = Engine::start(&job);
    engine.wait_for_ios(100);
    File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    engine.wait_for_progress("errors", 11);
    engine.signal(libc::SIGINT);
    let (finished, status) = engine.end();
    assert_eq!(status, 5, "{finished}");
    assert!(finished["counts"]["errors"].as_u64().unwrap() > 10, "{finished}");
}

#[test]
fn a_drive_that_stops_answering_ends_the_run_after_its_timeout() {
    let Some(_turn) = loop_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let device = Loop::new();
    must("mkfs.ext4", &["-q", &device.path]);
    let mount = folder.path().join("mount");
    fs::create_dir(&mount).unwrap();
    must("mount", &[&device.path, mount.to_str().unwrap()]);
    let unmount = Unmount(mount.clone());
    let uri = format!("file:{}?size=8MiB", mount.join("drive").display());
    let output = folder.path().join("a.rec");
    let mut job =
        synthetic(&uri, &output, json!({"duration_ns": 60_000_000_000_i64, "depth": 4, "read_share": 0.0}));
    // So long that a host which is merely busy is not taken for such a drive.
    let io_timeout_s = 5.0;
    job["io_timeout_s"] = io_timeout_s.into();
    let mut engine = Engine::start(&job);
    engine.wait_for_ios(100);
    // Writes to a frozen file system wait until it is thawed: a drive that does not answer.
    must("fsfreeze", &["--freeze", mount.to_str().unwrap()]);
    let thaw = Thaw(mount.clone());
    let mut finished = Value::Null;
    while let Some(event) = engine.next() {
        finished = event;
        if finished["event"] == "finished" {
            break;
        }
    }
    assert_eq!(finished["status"], "failed", "{finished}");
    let waited_s =
        finished["reason"].as_str().unwrap().strip_prefix("the drive has not answered an I/O for ");
    let waited_s = waited_s.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(waited_s.is_some_and(|waited_s| waited_s >= io_timeout_s), "{finished}");
    let unanswered = finished["counts"]["no_completion"].as_u64().unwrap();
    assert!((1..=4).contains(&unanswered), "{finished}");
    assert_eq!(rows(&output), finished["counts"]["ios"].as_u64().unwrap());
    // The process itself can only go once the kernel lets its requests go.
    drop(thaw);
    assert_eq!(engine.end().1, 4);
    drop(unmount);
}

/// Thaws a file system, whatever happens to the test.
struct Thaw(PathBuf);

impl Drop for Thaw {
    fn drop(&mut self) {
        run("fsfreeze", &["--unfreeze", self.0.to_str().unwrap()]);
    }
}

/// Unmounts a file system, whatever happens to the test.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

#[test]
fn a_full_disk_under_the_recording_ends_the_run_and_keeps_every_row() {
    let Some(_turn) = loop_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    must("mount", &["-t", "tmpfs", "-o", "size=40m", "tmpfs", disk.to_str().unwrap()]);
    let unmount = Unmount(disk.clone());
    let output = disk.join("a.rec");
    let job = synthetic("null:", &output, json!({"duration_ns": 600_000_000_000_i64, "depth": 32}));
    let (finished, status) = Engine::start(&job).end();
    assert_eq!((finished["event"].as_str(), status), (Some("finished"), 4), "{finished}");
    assert!(finished["reason"].as_str().unwrap().contains("disk under the recording is full"), "{finished}");
    let kept = rows(&output);
    assert_eq!(
        kept,
        finished["counts"]["ios"].as_u64().unwrap(),
        "every I/O that was done is in the recording"
    );
    assert!(kept > 1_000_000);
    drop(unmount);
}

#[test]
fn wrong_jobs_are_refused_with_2_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.rec");
    let cases = [
        (json!("not a job"), "the job is not valid"),
        (
            json!({"version": 1, "drive": {"uri": "null:"}, "output": output, "phases": [], "speed": 1}),
            "speed",
        ),
        (endless("sim:no-such-model", &output), "no-such-model"),
        (endless("file:/nowhere/at/all?size=1MiB", &output), "/nowhere"),
        (endless("file:relative-and-without-a-size", &output), "size"),
        (
            json!({"version": 1, "drive": {"uri": "null:"}, "output": output,
            "phases": [{"kind": "replay", "recording": folder.path().join("none.rec")}]}),
            "no such directory",
        ),
    ];
    for (job, expected) in cases {
        let (error, status) = Engine::start(&job).end();
        assert_eq!((error["event"].as_str(), status), (Some("error"), 2), "{error}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error} does not tell {expected}");
        assert_eq!(error["exit_status"], 2);
        assert!(!output.exists());
    }
    fs::create_dir(&output).unwrap();
    let (error, status) = Engine::start(&endless("null:", &output)).end();
    assert_eq!(status, 2);
    assert!(error["message"].as_str().unwrap().contains("exists already"), "{error}");
}

#[test]
fn writing_to_a_device_that_was_not_named_is_refused_with_3() {
    let Some(_turn) = loop_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let device = Loop::new();
    device.write(0, &[9; 8192]);
    let before = device.content();
    let output = folder.path().join("a.rec");
    let mut job = synthetic(&device.path, &output, json!({"ios": 100, "read_share": 0.5}));
    for consent in [Value::Null, "SOMETHING-ELSE".into()] {
        job["drive"]["erase"] = consent;
        let (error, status) = Engine::start(&job).end();
        assert_eq!((error["kind"].as_str(), status), (Some("refused"), 3), "{error}");
        assert!(error["message"].as_str().unwrap().contains("--erase"), "{error}");
        assert_eq!(device.content(), before);
        assert!(!output.exists());
    }
    job["drive"]["erase"] = device.path.clone().into();
    let (finished, status) = Engine::start(&job).end();
    assert_eq!((finished["status"].as_str(), status), (Some("complete"), 0), "{finished}");
    assert_ne!(device.content(), before);
}
