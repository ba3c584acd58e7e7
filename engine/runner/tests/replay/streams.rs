//! Streams of a source, each issued by a thread of its own.

use crate::{quiet, read, Bench, MIB};
use serde_json::json;
use testdrive_core::IoRecord;
use testdrive_recording::Recording;

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
