//! The engine while it captures.

use crate::support::{loop_turn, skip, wait_for, LONG};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::MutexGuard;
use testdrive_core::IoRecord;
use testdrive_recording::Recording;

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// The turn of a test that captures loop devices, or `None` where that is not possible.
pub fn capture_turn() -> Option<MutexGuard<'static, ()>> {
    let turn = loop_turn()?;
    if Path::new(INSTANCES).is_dir() {
        return Some(turn);
    }
    skip("capturing needs tracefs at /sys/kernel/tracing");
    None
}

/// The instances that a process made.
pub fn instances_of(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("testdrive-{pid}-");
    let entries = std::fs::read_dir(INSTANCES).unwrap().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix))
        .collect()
}

/// Waits for the guard to take away what a process left.
pub fn nothing_is_left_of(pid: u32) -> bool {
    wait_for(LONG, || instances_of(pid).is_empty())
}

/// The processes that a process started.
pub fn children_of(pid: u32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testdrive-engine"));
    command.arg("capture").args(arguments).stdin(Stdio::null()).process_group(0);
    // Under nohup a capture heeds no hangup, and one that these tests send would leave it running for ever.
    let heed_hangups = || {
        // SAFETY: `signal` may be called between fork and exec, and the default action needs no handler.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(heed_hangups) };
    command
}

/// Runs `capture` to its end: exit status, lines, and what it said in words.
pub fn run(arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let output = command(arguments).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), lines, String::from_utf8(output.stderr).unwrap())
}

pub struct Capturing {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub warnings: Vec<Value>,
}

impl Capturing {
    /// Starts a capture and waits until the kernel writes events down.
    pub fn start(arguments: &[&str]) -> Capturing {
        let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut capturing = Capturing { child, lines, warnings: Vec::new() };
        loop {
            let event = capturing.next().expect("the engine ended before it started");
            assert_ne!(event["event"], "error", "{event}");
            if event["event"] == "started" {
                return capturing;
            }
        }
    }

    pub fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if event["event"] == "warning" {
            self.warnings.push(event.clone());
        }
        Some(event)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        send(self.pid() as i32, signal);
    }

    /// The last event and the exit status; -1 after a kill.
    pub fn end(mut self) -> (Value, i32) {
        let mut last = Value::Null;
        while let Some(event) = self.next() {
            last = event;
        }
        (last, self.child.wait().unwrap().code().unwrap_or(-1))
    }

    /// Ends a capture as a person does, and checks that it ended well.
    pub fn stop(self) -> Value {
        let pid = self.pid();
        self.signal(libc::SIGINT);
        let (last, status) = self.end();
        assert_eq!((last["event"].as_str(), status), (Some("finished"), 0), "{last}");
        assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
        last
    }
}

pub fn send(pid: i32, signal: i32) {
    // SAFETY: kill takes two integers; the processes are our children, not yet waited for, or theirs.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

pub fn open(path: &Path) -> Recording {
    Recording::open(path).unwrap()
}

/// All rows of a recording.
pub fn rows(path: &Path) -> Vec<IoRecord> {
    let mut rows = Vec::new();
    open(path).for_each_batch(|batch| rows.extend_from_slice(batch)).unwrap();
    rows
}

pub fn has_warning(path: &Path, code: &str) -> bool {
    open(path).manifest.warnings.iter().any(|warning| warning.code == code)
}
