//! Phases whose I/Os are generated, on modelled drives, the null drive, files and loop devices: what was asked is what was done.

#[path = "../../../drives/tests/support/mod.rs"]
mod support;

mod phases;
mod rounds;
mod steady_state;
mod streams;
mod threads;
mod times;

use serde_json::{json, Value};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use testdrive_core::{IoRecord, Opcode};
use testdrive_recording::{Manifest, OrderBy, Recording};
use testdrive_runner::{run, Event, Job, Outcome, RunError};

const MIB: u64 = 1 << 20;
const SIM: &str = "sim:enterprise-mixed?capacity=64MiB";

/// A folder for recordings and drives.
struct Bench {
    folder: tempfile::TempDir,
}

/// A run and what it left behind.
struct Ran {
    outcome: Outcome,
    manifest: Manifest,
    rows: Vec<IoRecord>,
    events: Vec<Event>,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file_drive(&self, mib: u64) -> String {
        format!("file:{}?size={mib}MiB", self.path("drive.img").display())
    }

    fn run(&self, drive: Value, phases: Value) -> Result<Ran, RunError> {
        let output = self.path("run.rec");
        let _ = std::fs::remove_dir_all(&output);
        let job = json!({"version": 1, "drive": drive, "output": output, "phases": phases});
        let mut events = Vec::new();
        let outcome =
            run(&Job::parse(&job.to_string())?, &AtomicUsize::new(0), &mut |event| events.push(event))?;
        let recording = Recording::open(&output).unwrap();
        let rows = recording.ordered_rows(OrderBy::Submit).unwrap().map(Result::unwrap).collect();
        Ok(Ran { outcome, manifest: recording.manifest, rows, events })
    }

    /// One phase on a drive that needs no consent.
    fn phase(&self, uri: &str, phase: Value) -> Ran {
        self.run(json!({"uri": uri}), json!([phase])).unwrap()
    }
}

impl Ran {
    fn accounting(&self, key: &str) -> &Value {
        self.manifest.phases[0].accounting.get(key).unwrap_or(&Value::Null)
    }

    fn has_warning(&self, code: &str) -> bool {
        let told = self.events.iter().any(|event| matches!(event, Event::Warning(w) if w.code == code));
        let kept = self.manifest.warnings.iter().any(|warning| warning.code == code);
        assert_eq!(told, kept, "a warning is told and kept");
        kept
    }

    fn bytes_of(&self, opcode: Opcode) -> u64 {
        self.manifest.counts.by_opcode.of(opcode).bytes
    }
}
