//! Replays on the null drive, on modelled drives and on files: what was asked is what is issued, and every I/O is accounted for.

use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_recording::{
    Manifest, OrderBy, Phase, PhaseKind, Recording, RecordingKind, RecordingWriter, Status, WriterLimits,
};
use testdrive_runner::{run, ErrorKind, Event, Job, Outcome, RunError};

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

#[test]
fn a_timed_replay_in_virtual_time_keeps_every_time_place_and_kind_exactly() {
    let bench = Bench::new();
    let source = bench.source(2_000, 64 * MIB);
    let replayed = bench.replay(SIM, "a.rec", &source, json!({})).unwrap();
    assert_eq!(replayed.outcome.status, Status::Complete);
    replayed.assert_accounted();
    let expected = read(&source);
    assert_eq!(replayed.rows.len(), expected.len());
    for (own, expected) in replayed.rows.iter().zip(&expected) {
        assert_eq!((own.intended_ns, own.submit_ns), (expected.intended_ns, expected.intended_ns));
        assert_eq!((own.offset_bytes, own.length_bytes), (expected.offset_bytes, expected.length_bytes));
        assert_eq!((own.opcode, own.flags, own.stream), (expected.opcode, expected.flags, expected.stream));
        assert!(own.latency_ns > 0 && own.status == 0);
    }
    assert_eq!(replayed.accounting["order_inversions"], 0);
    assert_eq!(replayed.accounting["replayed_span_ns"], replayed.accounting["intended_span_ns"]);
    // Each I/O of the source takes two gaps and the microsecond from its arrival to its issue, so three overlap for that long.
    assert_eq!(replayed.accounting["source_depth"]["max"], 3);
    assert!(replayed.recording.manifest.drive.as_ref().unwrap().modelled);
}

#[test]
fn a_modelled_replay_is_the_same_every_time() {
    let bench = Bench::new();
    let source = bench.source(3_000, 64 * MIB);
    let first = bench.replay(SIM, "a.rec", &source, json!({"speed": 7.0})).unwrap();
    let second = bench.replay(SIM, "b.rec", &source, json!({"speed": 7.0})).unwrap();
    assert_eq!(first.rows, second.rows);
}

#[test]
fn speed_divides_every_time() {
    let bench = Bench::new();
    let source = bench.source(500, 64 * MIB);
    let replayed = bench.replay(SIM, "a.rec", &source, json!({"speed": 2.0})).unwrap();
    assert!(replayed.rows.iter().zip(0..).all(|(row, index)| row.intended_ns == index * GAP_NS / 2));
}

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

#[test]
fn times_beyond_what_a_clock_can_tell_do_not_wrap_around() {
    let bench = Bench::new();
    let three_hours_ns = 3 * 3_600 * 1_000_000_000;
    let source = bench.source_of("slow.rec", &[read_at(0, 0, 4096), read_at(three_hours_ns, 8192, 4096)]);
    for (name, settings) in [
        ("asap.rec", json!({"pace": "asap", "speed": 1e-6, "loop": 3})),
        ("depth.rec", json!({"pace": "depth", "speed": 1e-6, "loop": 3, "duration_ns": 1_000_000})),
        ("timed.rec", json!({"speed": 1e-6, "loop": 3, "duration_ns": 1_000_000})),
    ] {
        let replayed = bench.replay(SIM, name, &source, settings).unwrap();
        assert_eq!(replayed.outcome.status, Status::Complete);
        assert_eq!(replayed.rows.len(), if name == "asap.rec" { 6 } else { 1 }, "{name}");
    }
}

#[test]
fn an_io_that_is_longer_than_its_manifest_tells_is_left_out_and_counted() {
    let bench = Bench::new();
    let source = bench.source_of("source.rec", &[read_at(0, 256, 5120), read_at(0, 0, 4096)]);
    let manifest = source.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace(r#""length_max_bytes": 5120"#, r#""length_max_bytes": 4096"#))
        .unwrap();
    let drive = bench.path("drive.img");
    std::fs::write(&drive, vec![0; 1 << 20]).unwrap();
    let replayed = bench.replay(&format!("file:{}", drive.display()), "a.rec", &source, json!({})).unwrap();
    replayed.assert_accounted();
    assert_eq!((replayed.ios("issued"), replayed.ios("unsupported")), (1, 1));
}

#[test]
fn a_replay_that_falls_behind_by_more_than_it_may_is_given_up() {
    let bench = Bench::new();
    let source = bench.source(20_000, 64 * MIB);
    // One I/O at a time: the drive takes longer for each than the time between two of them.
    let patient = json!({"speed": 20.0, "max_in_flight": 1, "only": ["read"]});
    let late = |row: &IoRecord| row.submit_ns - row.intended_ns;
    let whole = bench.replay(SIM, "whole.rec", &source, patient.clone()).unwrap();
    whole.assert_accounted();
    assert_eq!(whole.accounting.get("cannot_keep_up"), None);
    assert!(whole.rows.iter().map(late).max().unwrap() > 50_000_000);

    let mut strict = patient;
    strict["max_lag_ns"] = json!(10_000_000);
    let given_up = bench.replay(SIM, "given-up.rec", &source, strict).unwrap();
    assert_eq!(given_up.outcome.status, Status::Failed);
    let reason = given_up.outcome.reason.clone().unwrap();
    assert!(reason.starts_with("the drive cannot keep up: an I/O is 0.010 s behind its time"), "{reason}");
    let found = &given_up.accounting["cannot_keep_up"];
    assert_eq!((&found["stream"], &found["max_lag_ns"]), (&Value::Null, &json!(10_000_000)));
    // What went until then is recorded, as it was in the run that went on; the rest was not reached.
    assert_eq!(given_up.rows, whole.rows[..given_up.rows.len()]);
    assert!(given_up.rows.iter().map(late).max().unwrap() <= 10_000_000);
    assert!(given_up.ios("not_reached") > 0);
    let first_not_issued = &whole.rows[given_up.rows.len()];
    let due_ns = first_not_issued.intended_ns - given_up.recording.manifest.phases[0].start_ns;
    assert_eq!(found["at_ns"].as_i64().unwrap() - found["lag_ns"].as_i64().unwrap(), due_ns);
}

#[test]
fn a_window_is_replayed_from_its_own_start() {
    let bench = Bench::new();
    let source = bench.source(1_000, 64 * MIB);
    let window = json!({"from_ns": 100 * GAP_NS, "to_ns": 150 * GAP_NS});
    let replayed = bench.replay(SIM, "a.rec", &source, window).unwrap();
    replayed.assert_accounted();
    assert_eq!(replayed.rows.len(), 50);
    let expected = &read(&source)[100..150];
    assert!(replayed
        .rows
        .iter()
        .zip(expected)
        .all(|(own, row)| own.intended_ns == row.intended_ns - 100 * GAP_NS));
}

#[test]
fn loops_follow_one_another_without_a_gap() {
    let bench = Bench::new();
    let source = bench.source(100, 64 * MIB);
    let replayed = bench.replay(SIM, "a.rec", &source, json!({"loop": 3})).unwrap();
    replayed.assert_accounted();
    assert!(replayed.rows.iter().zip(0..).all(|(row, index)| row.intended_ns == index * GAP_NS));
    assert_eq!(replayed.rows.len(), 300);
    let bounded = bench.replay(SIM, "b.rec", &source, json!({"duration_ns": 250 * GAP_NS})).unwrap();
    assert_eq!(bounded.rows.len(), 250, "a duration alone loops until it is over");
}

#[test]
fn filters_leave_out_what_they_say_and_account_for_it() {
    let bench = Bench::new();
    let source = bench.source(1_000, 64 * MIB);
    let without = bench.replay(SIM, "a.rec", &source, json!({"without": ["trim"]})).unwrap();
    without.assert_accounted();
    assert_eq!(without.accounting["filtered"]["trim"]["ios"], 200);
    let only = bench.replay(SIM, "b.rec", &source, json!({"only": ["read", "flush"]})).unwrap();
    only.assert_accounted();
    assert_eq!(only.rows.len(), 400);
    let error =
        bench.replay(SIM, "c.rec", &source, json!({"only": ["read"], "without": ["read"]})).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(!bench.path("c.rec").exists(), "a refused job leaves nothing behind");
}

#[test]
fn every_lba_mode_accounts_for_what_does_not_fit() {
    let bench = Bench::new();
    let source = bench.source(1_000, 128 * MIB);
    for mode in ["skip", "wrap", "scale", "scale-excess"] {
        let replayed = bench.replay(SIM, &format!("{mode}.rec"), &source, json!({"lba": mode})).unwrap();
        replayed.assert_accounted();
        assert!(replayed.rows.iter().all(|row| (row.offset_bytes + row.length_bytes) as u64 <= 64 * MIB));
        let beyond = read(&source)
            .iter()
            .filter(|row| (row.offset_bytes + row.length_bytes) as u64 > 64 * MIB)
            .count();
        assert!(beyond > 300, "the source must not fit for this test to mean anything");
        match mode {
            "skip" => assert_eq!(replayed.ios("skipped"), beyond as u64),
            "wrap" => assert_eq!((replayed.ios("skipped"), replayed.ios("wrapped")), (0, beyond as u64)),
            "scale-excess" => {
                assert_eq!((replayed.ios("skipped"), replayed.ios("scaled")), (0, beyond as u64))
            }
            _ => assert!(replayed.ios("scaled") > 700, "scale moves every offset but those at the start"),
        }
    }
}

#[test]
fn a_drive_on_which_nothing_fits_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    let far = IoRecord { offset_bytes: 1 << 40, ..read(&bench.source(1, 64 * MIB))[0] };
    let source = bench.source_of("far.rec", &[far]);
    let error = bench.replay(SIM, "a.rec", &source, json!({})).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.message.contains("--lba"), "{error}");
    assert!(!bench.path("a.rec").exists());
}

#[test]
fn asap_keeps_its_depth_and_ignores_time() {
    let bench = Bench::new();
    let source = bench.source(2_000, 64 * MIB);
    let replayed = bench.replay(SIM, "a.rec", &source, json!({"pace": "asap", "depth": 7})).unwrap();
    replayed.assert_accounted();
    assert_eq!(replayed.accounting["replay_depth"]["max"], 7);
    assert!(replayed.rows.iter().all(|row| row.intended_ns == row.submit_ns));
    let places =
        |rows: &[IoRecord]| rows.iter().map(|row| (row.offset_bytes, row.opcode)).collect::<Vec<_>>();
    let mut own = places(&replayed.rows);
    let mut expected = places(&read(&source));
    own.sort();
    expected.sort();
    assert_eq!(own, expected);
}

#[test]
fn depth_pacing_keeps_the_sources_concurrency_and_think_times() {
    let bench = Bench::new();
    // Two I/Os at once, both done after 100 us; then after a think time of 30 us the next two; and so on.
    let template = read(&bench.source(1, 64 * MIB))[0];
    let rows: Vec<IoRecord> = (0..400)
        .map(|index| IoRecord {
            intended_ns: index / 2 * 130_000,
            submit_ns: index / 2 * 130_000,
            latency_ns: 100_000,
            offset_bytes: index * 8192,
            opcode: Opcode::Read,
            ..template
        })
        .collect();
    let source = bench.source_of("pairs.rec", &rows);
    let replayed = bench.replay(SIM, "a.rec", &source, json!({"pace": "depth"})).unwrap();
    replayed.assert_accounted();
    assert_eq!(replayed.accounting["replay_depth"]["max"], 2);
    for pair in replayed.rows.chunks(2).collect::<Vec<_>>().windows(2) {
        let done_ns = pair[0].iter().map(|row| row.submit_ns + row.latency_ns).max().unwrap();
        assert!(pair[1].iter().all(|row| row.submit_ns == done_ns + 30_000), "{pair:?}");
    }
}

#[test]
fn a_source_without_completions_cannot_be_paced_by_depth() {
    let bench = Bench::new();
    let rows: Vec<IoRecord> =
        read(&bench.source(10, 64 * MIB)).iter().map(|row| IoRecord { latency_ns: -1, ..*row }).collect();
    let source = bench.source_of("blind.rec", &rows);
    let error = bench.replay(SIM, "a.rec", &source, json!({"pace": "depth"})).err().unwrap();
    assert!(error.message.contains("no completions"), "{error}");
    assert_eq!(bench.replay(SIM, "b.rec", &source, json!({})).unwrap().rows.len(), 10);
}

#[test]
fn a_source_without_offsets_cannot_be_replayed() {
    let bench = Bench::new();
    let source = bench.source(10, 64 * MIB);
    let manifest = std::fs::read_to_string(source.join("manifest.json")).unwrap();
    let absent = manifest.replace("\"absent_columns\": []", "\"absent_columns\": [\"offset_bytes\"]");
    std::fs::write(source.join("manifest.json"), absent).unwrap();
    let error = bench.replay(SIM, "a.rec", &source, json!({})).err().unwrap();
    assert!(error.message.contains("does not tell offset_bytes"), "{error}");
}

#[test]
fn streams_of_the_source_are_kept_apart_and_everything_is_still_issued_once() {
    let bench = Bench::new();
    let source = bench.source(20_000, 64 * MIB);
    let settings = json!({"streams": "source", "speed": 50.0});
    let replayed = bench.replay("null:?size=64MiB", "a.rec", &source, settings).unwrap();
    replayed.assert_accounted();
    let key = |row: &IoRecord| (row.intended_ns, row.stream, row.offset_bytes);
    let mut own: Vec<_> = replayed.rows.iter().map(key).collect();
    own.sort_unstable();
    let first_ns = own[0].0;
    let expected: Vec<_> = read(&source)
        .iter()
        .map(|row| (row.intended_ns / 50 + first_ns, row.stream, row.offset_bytes))
        .collect();
    assert_eq!(own, expected);
}

#[test]
fn streams_of_very_different_size_do_not_hold_each_other_up() {
    let bench = Bench::new();
    let template = read(&bench.source(1, 64 * MIB))[0];
    // More than twice what the feeder decodes ahead, all of one stream but the last.
    let rows: Vec<IoRecord> = (0..150_000)
        .map(|index| {
            let last = index == 149_999;
            IoRecord {
                intended_ns: index * 1_000,
                submit_ns: index * 1_000,
                stream: i32::from(last),
                ..template
            }
        })
        .collect();
    let source = bench.source_of("skewed.rec", &rows);
    let replayed = bench.replay("null:?size=64MiB", "a.rec", &source, json!({"streams": "source"})).unwrap();
    replayed.assert_accounted();
    assert_eq!(replayed.rows.len(), 150_000);
}

#[test]
fn order_is_judged_within_each_phase() {
    let bench = Bench::new();
    let source = bench.source(2_000, 64 * MIB);
    let replay = json!({"kind": "replay", "recording": source, "streams": "source", "speed": 0.5});
    quiet(&bench.job("null:?size=64MiB", "a.rec", json!([replay, replay]))).unwrap();
    let phases = Recording::open(&bench.path("a.rec")).unwrap().manifest.phases;
    let inversions = |index: usize| phases[index].accounting["order_inversions"].as_u64().unwrap();
    assert!(inversions(1) < 2_000, "{} of 2000 I/Os are out of order", inversions(1));
    assert!(phases[1].start_ns >= phases[0].end_ns);
}

#[test]
fn a_closed_loop_starts_with_its_phase_and_ends_with_its_duration() {
    let bench = Bench::new();
    let phases = json!([{"kind": "synthetic", "duration_ns": 20_000_000, "depth": 4}]);
    quiet(&bench.job("null:?size=64MiB", "a.rec", phases)).unwrap();
    let recording = Recording::open(&bench.path("a.rec")).unwrap();
    let phase = &recording.manifest.phases[0];
    assert!(phase.end_ns - phase.start_ns >= 20_000_000);
    for row in recording.ordered_rows(OrderBy::Submit).unwrap() {
        assert!(row.unwrap().submit_ns >= phase.start_ns);
    }
}

#[test]
fn a_replay_that_is_late_ends_with_its_duration_and_says_what_it_did_not_reach() {
    let bench = Bench::new();
    let source = bench.source(2_000, 64 * MIB);
    // One read at a time, on a drive that takes far longer for it than the gap between two.
    let phases = json!([{"kind": "replay", "recording": source, "only": ["read"], "max_in_flight": 1, "speed": 50.0,
        "duration_ns": 2_000_000}]);
    quiet(&bench.job(SIM, "a.rec", phases)).unwrap();
    let phase = &Recording::open(&bench.path("a.rec")).unwrap().manifest.phases[0];
    let reads = |entry: &str| phase.accounting[entry]["read"]["ios"].as_u64().unwrap();
    assert_eq!(reads("source"), 400, "all that was due in 2 ms at 50 times the speed");
    assert!(reads("not_reached") > 0);
    assert_eq!(reads("issued") + reads("not_reached"), 400);
    assert!(phase.end_ns - phase.start_ns < 4_000_000, "{} ns", phase.end_ns - phase.start_ns);
}

#[test]
fn a_duration_without_a_schedule_leaves_nothing_unreached() {
    let bench = Bench::new();
    let source = bench.source(1_000, 64 * MIB);
    let settings = json!({"pace": "asap", "depth": 1, "duration_ns": 5_000_000});
    bench.replay(SIM, "a.rec", &source, settings).unwrap().assert_accounted();
}

#[test]
fn a_filter_that_leaves_nothing_in_the_window_ends_at_once() {
    let bench = Bench::new();
    let template = read(&bench.source(1, 64 * MIB))[0];
    let trim = IoRecord { intended_ns: 1_000_000, submit_ns: 1_000_000, opcode: Opcode::Trim, ..template };
    let source = bench.source_of("one-trim.rec", &[template, trim]);
    let settings =
        json!({"only": ["trim"], "to_ns": 500_000, "pace": "asap", "duration_ns": 1_000_000_000_i64});
    assert_eq!(bench.replay(SIM, "a.rec", &source, settings).unwrap().rows, []);
}

#[test]
fn a_source_that_is_damaged_half_way_leaves_a_recording_of_the_first_half() {
    let bench = Bench::new();
    let source = bench.source(400_000, 64 * MIB);
    let segment = source.join("ios/00000.parquet");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() * 3 / 4;
    bytes[middle..middle + 20_000].fill(0xff);
    std::fs::write(&segment, bytes).unwrap();
    let job = bench.job(SIM, "a.rec", json!([{"kind": "replay", "recording": source}]));
    let error = quiet(&job).err().unwrap();
    assert!(error.message.contains("00000.parquet is damaged"), "{error}");
    let recording = Recording::open(&bench.path("a.rec")).unwrap();
    assert_eq!((recording.manifest.status, recording.manifest.phases.len()), (Status::Failed, 1));
    let issued = recording.rows().unwrap();
    assert!((100_000..400_000).contains(&issued), "{issued}");
    let unreached = recording.manifest.phases[0].accounting["not_reached"]["read"]["ios"].as_u64().unwrap();
    assert!(unreached > 0);
}

#[test]
fn a_run_can_be_replayed_itself_and_only_its_measured_phases_are() {
    let bench = Bench::new();
    let source = bench.source(500, 64 * MIB);
    let phases = json!([
        {"kind": "prepare", "method": "sequential"},
        {"kind": "replay", "recording": source, "lba": "scale"},
    ]);
    let outcome = quiet(&bench.job(SIM, "first.rec", phases)).unwrap();
    assert_eq!(outcome.counts.ios, 512 + 500);
    let again = bench.replay(SIM, "again.rec", &bench.path("first.rec"), json!({})).unwrap();
    assert_eq!(again.rows.len(), 500);
    assert_eq!(again.rows[0].intended_ns, 0);
    again.assert_accounted();
}

#[test]
fn a_file_is_prepared_and_replayed_on_through_both_engines() {
    let bench = Bench::new();
    let source = bench.source(1_000, 16 * MIB);
    for engine in ["io_uring", "sync"] {
        let uri = format!("file:{}?size=16MiB&engine={engine}", bench.path(engine).display());
        let replayed = bench.replay(&uri, &format!("{engine}.rec"), &source, json!({"speed": 2.0})).unwrap();
        assert_eq!(replayed.outcome.status, Status::Complete, "{:?}", replayed.outcome.reason);
        replayed.assert_accounted();
        assert_eq!(replayed.ios("issued") + replayed.ios("unsupported"), 1_000);
        assert_eq!(replayed.recording.manifest.drive.as_ref().unwrap().path, engine);
        assert!(replayed.rows.iter().all(|row| row.submit_ns >= row.intended_ns && row.status == 0));
    }
}

#[test]
fn a_run_that_keeps_no_rows_still_counts_and_measures() {
    let bench = Bench::new();
    let mut job = bench.job(SIM, "a.rec", json!([{"kind": "synthetic", "ios": 1000, "depth": 4}]));
    job.record = false;
    let outcome = quiet(&job).unwrap();
    assert_eq!((outcome.counts.ios, outcome.latencies.count()), (1_000, 1_000));
    assert!(!bench.path("a.rec").exists());
}

#[test]
fn a_signal_stops_the_run_and_the_recording_is_kept_and_marked() {
    let bench = Bench::new();
    let source = bench.source(200_000, 64 * MIB);
    let job = bench.job("null:?size=64MiB", "a.rec", json!([{"kind": "replay", "recording": source}]));
    let signal = AtomicUsize::new(0);
    let mut told = 0;
    let outcome = run(&job, &signal, &mut |event| {
        if matches!(event, Event::Progress(_)) {
            told += 1;
            signal.store(libc::SIGINT as usize, std::sync::atomic::Ordering::Relaxed);
        }
    })
    .unwrap();
    assert_eq!((outcome.status, outcome.exit_status()), (Status::Interrupted, 5));
    assert!(told >= 1);
    let recording = Recording::open(&bench.path("a.rec")).unwrap();
    assert_eq!(recording.manifest.status, Status::Interrupted);
    assert!(recording.manifest.status_reason.unwrap().contains("SIGINT"));
    let accounting = &recording.manifest.phases[0].accounting;
    let reads = |entry: &str| accounting[entry]["read"]["ios"].as_u64().unwrap();
    assert_eq!(reads("source"), 40_000);
    assert_eq!(reads("issued") + reads("not_reached"), 40_000);
    assert!(reads("not_reached") > 0);
}
