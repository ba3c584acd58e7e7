//! Replays on the null drive, on modelled drives and on files: what was asked is what is issued, and every I/O is accounted for.

mod ends;
mod selection;
mod streams;
mod times;

use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_recording::{
    Manifest, OrderBy, Phase, PhaseKind, Recording, RecordingKind, RecordingWriter, Status, WriterLimits,
};
use testdrive_runner::{run, Event, Job, Outcome, RunError};

const GAP_NS: i64 = 50_000;
const MIB: u64 = 1 << 20;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A source of `count` I/Os, `GAP_NS` apart, over `span_bytes`, each taking two gaps.
    fn source(&self, count: i64, span_bytes: u64) -> PathBuf {
        let mut random = SplitMix64::new(5);
        let rows: Vec<IoRecord> = (0..count)
            .map(|index| {
                let opcode = Opcode::ALL[(index % 5) as usize];
                let flush = opcode == Opcode::Flush;
                IoRecord {
                    intended_ns: index * GAP_NS,
                    submit_ns: index * GAP_NS + 1_000,
                    latency_ns: 2 * GAP_NS,
                    offset_bytes: if flush { 0 } else { (random.below(span_bytes / 8192) * 8192) as i64 },
                    length_bytes: if flush { 0 } else { 8192 },
                    stream: (index % 3) as i32,
                    status: 0,
                    phase: 0,
                    opcode,
                    flags: if opcode == Opcode::Write { Flags::FUA | Flags::PREFLUSH } else { Flags::NONE },
                }
            })
            .collect();
        self.source_of("source.rec", &rows)
    }

    fn source_of(&self, name: &str, rows: &[IoRecord]) -> PathBuf {
        let mut manifest = Manifest::new(RecordingKind::Import, "trace");
        manifest.phases.push(Phase {
            index: 0,
            name: "import".into(),
            kind: PhaseKind::Import,
            measured: true,
            start_ns: 0,
            end_ns: 0,
            settings: serde_json::Map::new(),
            accounting: serde_json::Map::new(),
            drive_counters: None,
        });
        let path = self.path(name);
        let limits = WriterLimits { reserve_bytes: 1 << 16, ..WriterLimits::default() };
        let mut writer = RecordingWriter::create(&path, manifest, limits).unwrap();
        writer.append(rows).unwrap();
        writer.finish(Status::Complete, None).unwrap();
        path
    }

    fn job(&self, uri: &str, output: &str, phases: Value) -> Job {
        let job = json!({"version": 1, "drive": {"uri": uri}, "output": self.path(output), "phases": phases});
        Job::parse(&job.to_string()).unwrap()
    }

    /// Replays the source on a drive with these settings.
    fn replay(&self, uri: &str, output: &str, source: &Path, settings: Value) -> Result<Replayed, RunError> {
        let mut phase = json!({"kind": "replay", "recording": source});
        phase.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let outcome = quiet(&self.job(uri, output, json!([phase])))?;
        let recording = Recording::open(&self.path(output)).unwrap();
        let rows = recording.ordered_rows(OrderBy::Submit).unwrap().map(Result::unwrap).collect();
        Ok(Replayed {
            outcome,
            accounting: recording.manifest.phases[0].accounting.clone().into(),
            recording,
            rows,
        })
    }
}

struct Replayed {
    outcome: Outcome,
    accounting: Value,
    recording: Recording,
    rows: Vec<IoRecord>,
}

impl Replayed {
    /// I/Os of an entry of the accounting, over all opcodes.
    fn ios(&self, entry: &str) -> u64 {
        let by_opcode =
            self.accounting[entry].as_object().unwrap_or_else(|| panic!("no {entry}: {}", self.accounting));
        by_opcode.values().map(|count| count["ios"].as_u64().unwrap()).sum()
    }

    fn assert_accounted(&self) {
        let parts = ["issued", "filtered", "skipped", "unsupported", "not_reached"];
        assert_eq!(
            self.ios("source"),
            parts.iter().map(|part| self.ios(part)).sum::<u64>(),
            "{}",
            self.accounting
        );
        assert_eq!(self.ios("issued"), self.rows.len() as u64);
        // `not_reached` is defined as the difference, so that only its value says something: a complete run reaches everything.
        assert_eq!(
            (self.outcome.status, self.ios("not_reached")),
            (Status::Complete, 0),
            "{}",
            self.accounting
        );
    }
}

fn quiet(job: &Job) -> Result<Outcome, RunError> {
    run(job, &AtomicUsize::new(0), &mut |_: Event| ())
}

fn read(source: &Path) -> Vec<IoRecord> {
    let rows = Recording::open(source).unwrap().ordered_rows(OrderBy::Intended).unwrap();
    rows.map(Result::unwrap).collect()
}

const SIM: &str = "sim:enterprise-mixed?capacity=64MiB";

fn read_at(time_ns: i64, offset_bytes: i64, length_bytes: i64) -> IoRecord {
    IoRecord {
        intended_ns: time_ns,
        submit_ns: time_ns,
        latency_ns: GAP_NS,
        offset_bytes,
        length_bytes,
        stream: 0,
        status: 0,
        phase: 0,
        opcode: Opcode::Read,
        flags: Flags::NONE,
    }
}
