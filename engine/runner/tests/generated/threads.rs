//! Several submitting threads: what each does is its own, and the same on every drive.

use crate::{Bench, Ran, MIB, SIM};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use testdrive_core::IoRecord;
use testdrive_recording::Status;
use testdrive_runner::Event;

/// What each thread did, by place: I/Os that were handed over together are recorded in the order of their completion.
fn by_thread(rows: &[IoRecord]) -> BTreeMap<i32, Vec<(i64, i64, u8)>> {
    let mut threads: BTreeMap<i32, Vec<(i64, i64, u8)>> = BTreeMap::new();
    for row in rows {
        let io = (row.offset_bytes, row.length_bytes, row.opcode as u8);
        threads.entry(row.stream).or_default().push(io);
    }
    threads.values_mut().for_each(|ios| ios.sort_unstable());
    threads
}

fn mix(threads: u32) -> Value {
    json!({"kind": "synthetic", "read_share": 0.7, "ios": 4_001, "threads": threads, "depth": 10, "span_bytes": 32 * MIB,
        "block_bytes": [{"bytes": 4096, "share": 0.5}, {"bytes": 8192, "share": 0.5}]})
}

fn complete(ran: Ran) -> Ran {
    assert_eq!(ran.outcome.status, Status::Complete, "{:?}", ran.outcome.reason);
    ran
}

#[test]
fn threads_do_the_same_on_the_null_drive_a_file_and_through_a_models_one_queue() {
    let bench = Bench::new();
    let null = complete(bench.phase("null:?size=64MiB", mix(4)));
    let threads = by_thread(&null.rows);
    assert_eq!(threads.values().map(Vec::len).collect::<Vec<_>>(), [1_001, 1_000, 1_000, 1_000]);
    let distinct: BTreeSet<&[(i64, i64, u8)]> = threads.values().map(|ios| &ios[..20]).collect();
    assert_eq!(distinct.len(), 4);
    assert_eq!((null.accounting("threads"), null.accounting("submitters")), (&json!(4), &json!(4)));

    let model = complete(bench.phase(SIM, mix(4)));
    assert!(by_thread(&model.rows) == threads);
    assert_eq!((model.accounting("threads"), model.accounting("submitters")), (&json!(4), &json!(1)));

    let file = complete(bench.phase(&bench.file_drive(64), mix(4)));
    assert!(by_thread(&file.rows) == threads);
    // Another seed, another workload; no threads, no such entry.
    let mut other = mix(1);
    other["seed"] = json!(2);
    let other = complete(bench.phase(SIM, other));
    assert!(by_thread(&other.rows)[&0][..20] != threads[&0][..20]);
    assert_eq!(other.accounting("threads"), &Value::Null);
}

#[test]
fn no_more_than_the_depth_is_in_flight_of_all_threads_together() {
    let bench = Bench::new();
    let phase = json!({"kind": "synthetic", "threads": 3, "depth": 5, "ios": 3_000});
    let ran = complete(bench.phase(&bench.file_drive(16), phase));
    for (thread, depth) in [(0, 2), (1, 2), (2, 1)] {
        let own: Vec<&IoRecord> = ran.rows.iter().filter(|row| row.stream == thread).collect();
        let deepest = own.iter().map(|row| {
            let at_once = |other: &&&IoRecord| {
                other.submit_ns <= row.submit_ns && row.submit_ns < other.complete_ns().unwrap()
            };
            own.iter().filter(at_once).count()
        });
        assert!(deepest.max() <= Some(depth), "thread {thread}");
    }
}

#[test]
fn threads_write_sequentially_in_parts_of_their_own_and_each_place_once_all_together() {
    let bench = Bench::new();
    let phase = |pattern: &str| json!({"kind": "synthetic", "pattern": pattern, "read_share": 0, "threads": 3, "ios": 256, "block_bytes": 65_536});
    let sequential = complete(bench.phase(&bench.file_drive(16), phase("sequential")));
    for (thread, ios) in by_thread(&sequential.rows) {
        let start = [0, 86, 171][thread as usize] * 65_536;
        assert!(ios.iter().enumerate().all(|(index, (offset, ..))| *offset == start + index as i64 * 65_536));
    }
    for uri in ["null:?size=16MiB", "sim:enterprise-mixed?capacity=16MiB"] {
        let once = complete(bench.phase(uri, phase("random_once")));
        let places: BTreeSet<i64> = once.rows.iter().map(|row| row.offset_bytes).collect();
        assert_eq!((places.len(), once.rows.len()), (256, 256));
    }
}

#[test]
fn submitters_are_kept_on_the_cpus_that_are_named() {
    let bench = Bench::new();
    // SAFETY: the call takes nothing.
    let here = unsafe { libc::sched_getcpu() };
    let mut phase = mix(2);
    phase["cpus"] = json!([here]);
    complete(bench.phase("null:?size=64MiB", phase.clone()));
    phase["cpus"] = json!([1023]);
    let refused = bench.run(json!({"uri": "null:"}), json!([phase])).err().unwrap();
    assert!(refused.message.starts_with("phase 'synthetic': cpus names 1023"), "{refused}");
}

#[test]
fn a_steady_state_is_judged_over_all_threads() {
    let bench = Bench::new();
    let phase = json!({"kind": "synthetic", "depth": 6, "threads": 3, "steady_state":
        {"measure": "iops", "round_ns": 10_000_000, "rounds_max": 6_000, "range_share": 10, "slope_share": 10}});
    let ran = complete(bench.phase("null:?size=1GiB", phase));
    let found = ran.accounting("steady_state");
    assert_eq!(found["achieved"], json!(true));
    let start_ns = ran.manifest.phases[0].start_ns;
    for (index, round) in found["rounds"].as_array().unwrap().iter().enumerate() {
        let of_round = |row: &&IoRecord| (row.complete_ns().unwrap() - start_ns) / 10_000_000 == index as i64;
        assert_eq!(round["ios"], json!(ran.rows.iter().filter(of_round).count()));
    }
}

#[test]
fn the_last_progress_tells_of_every_io_however_short_the_phase() {
    let bench = Bench::new();
    let phase = json!({"kind": "synthetic", "ios": 2_000, "depth": 32, "threads": 4});
    let phases = json!([phase, phase, phase, phase, phase]);
    let ran = complete(bench.run(json!({"uri": "null:?size=1GiB"}), phases).unwrap());
    let mut last = BTreeMap::new();
    for event in &ran.events {
        if let Event::Progress(progress) = event {
            last.insert(progress.phase, progress.ios);
        }
    }
    assert_eq!(last, (0..5).map(|phase| (phase, 2_000)).collect());
}
