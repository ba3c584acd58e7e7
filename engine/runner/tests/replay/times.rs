//! Paces, and the times that they keep to: in virtual time each of them is exact.

use crate::{read, read_at, Bench, GAP_NS, MIB, SIM};
use serde_json::{json, Value};
use testdrive_core::{IoRecord, Opcode};
use testdrive_recording::Status;

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
