//! How replays end: with their source or duration, by a signal, by damage; and on which drives.

use crate::{quiet, Bench, MIB, SIM};
use serde_json::json;
use std::sync::atomic::AtomicUsize;
use testdrive_recording::{OrderBy, Recording, Status};
use testdrive_runner::{run, Event};

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
