//! A run that does not keep every row is held to the same run that does: the model repeats itself to the nanosecond.

use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use testdrive_core::{IoRecord, NS_PER_S};
use testdrive_recording::{IntervalRow, OrderBy, Quantity, Recording, Status};
use testdrive_runner::{run, Job};

/// Reads and writes with a stall now and then, and some reads that fail.
const URI: &str = "sim:consumer-mlc?capacity=1GiB&superblocks=500&fault_stall_at_ns=3500000000&fault_stall_ns=700000000&fault_read_error_rate=0.0005&fault_read_error_length_bytes=1073741824";

fn recorded(path: &Path, keep: &str, phases: &Value) -> Recording {
    let job = json!({
        "version": 1, "drive": {"uri": URI}, "output": path, "keep": keep, "on_error": "continue", "phases": phases,
    });
    let outcome = run(&Job::parse(&job.to_string()).unwrap(), &AtomicUsize::new(0), &mut |_| {}).unwrap();
    assert_eq!(outcome.status, Status::Complete, "{:?}", outcome.reason);
    Recording::open(path).unwrap()
}

fn phases() -> Value {
    json!([
        {"kind": "synthetic", "name": "fill", "pattern": "sequential", "read_share": 0.0, "block_bytes": 131_072, "ios": 4_000},
        {"kind": "synthetic", "name": "mix", "read_share": 0.7, "duration_ns": 6_500_000_000_i64, "depth": 16},
    ])
}

fn entries(recording: &Recording) -> Vec<IntervalRow> {
    let mut entries = Vec::new();
    recording.for_each_interval(|entry| entries.push(*entry)).unwrap();
    entries
}

/// What identifies a second's share of one opcode.
type Second = (u16, i64, i32);

fn second_of(row: &IoRecord, starts_ns: &[i64]) -> Second {
    let start_ns = starts_ns[usize::from(row.phase)];
    let index = (row.submit_ns + row.latency_ns.max(0) - start_ns).div_euclid(NS_PER_S);
    (row.phase, start_ns + index * NS_PER_S, row.opcode as i32)
}

#[test]
fn every_second_holds_what_the_rows_hold_and_the_slowest_rows_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(&folder.path().join("whole.rec"), "rows", &phases());
    let long = recorded(&folder.path().join("long.rec"), "slowest", &phases());
    assert_eq!(long.manifest.counts, whole.manifest.counts);
    assert!(whole.manifest.counts.errors > 10);
    let starts_ns: Vec<i64> = long.manifest.phases.iter().map(|phase| phase.start_ns).collect();

    let rows: Vec<IoRecord> = whole.ordered_rows(OrderBy::Submit).unwrap().collect::<Result<_, _>>().unwrap();
    let mut expected: BTreeMap<Second, [i64; 5]> = BTreeMap::new();
    for row in &rows {
        let [count, sum, max, bytes, failed] = expected.entry(second_of(row, &starts_ns)).or_default();
        if row.status == 0 {
            *count += 1;
            *sum += row.latency_ns;
            *max = row.latency_ns.max(*max);
            *bytes += row.length_bytes;
        } else {
            *failed += 1;
        }
    }
    let mut found: BTreeMap<Second, [i64; 5]> = BTreeMap::new();
    let mut kept_from_ns: BTreeMap<Second, i64> = BTreeMap::new();
    for entry in entries(&long).iter().filter(|entry| entry.quantity == Quantity::Service) {
        let second = (entry.phase, entry.start_ns, entry.opcode as i32);
        kept_from_ns.insert(second, entry.kept_from_ns);
        let bucket = entry.bucket;
        let [count, sum, max, bytes, failed] = found.entry(second).or_default();
        if entry.latency_ceiling_ns < 0 {
            *failed += bucket.count as i64;
        } else {
            *count += bucket.count as i64;
            *sum += bucket.sum_ns as i64;
            *max = (bucket.max_ns as i64).max(*max);
            *bytes += bucket.bytes as i64;
        }
    }
    assert_eq!(found, expected);
    assert!(expected.len() > 12, "{} seconds", expected.len());

    let mut kept = Vec::new();
    long.for_each_slowest(|rows| kept.extend_from_slice(rows)).unwrap();
    let is_kept =
        |row: &&IoRecord| row.status != 0 || row.latency_ns >= kept_from_ns[&second_of(row, &starts_ns)];
    let mut wanted: Vec<IoRecord> = rows.iter().filter(is_kept).copied().collect();
    let order = |row: &IoRecord| (row.submit_ns, row.offset_bytes, row.opcode);
    kept.sort_by_key(order);
    wanted.sort_by_key(order);
    assert_eq!(kept, wanted);
    // From a phase's second second on only the slowest are kept, the stall of 700 ms with them.
    assert!(kept.len() * 3 < rows.len(), "{} of {}", kept.len(), rows.len());
    assert!(kept.iter().any(|row| row.latency_ns > 600_000_000));
    assert_eq!(kept.iter().map(|row| row.latency_ns).max(), rows.iter().map(|row| row.latency_ns).max());
}

#[test]
fn a_closed_loop_has_no_response_times_beside_its_service_times() {
    let folder = tempfile::tempdir().unwrap();
    let long = recorded(&folder.path().join("long.rec"), "slowest", &phases());
    assert!(entries(&long).iter().all(|entry| entry.quantity == Quantity::Service));
}

#[test]
fn what_does_not_keep_every_row_cannot_be_replayed_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.rec");
    recorded(&path, "slowest", &phases());
    let job = json!({
        "version": 1, "drive": {"uri": URI}, "output": folder.path().join("again.rec"),
        "phases": [{"kind": "replay", "recording": path}],
    });
    let error = run(&Job::parse(&job.to_string()).unwrap(), &AtomicUsize::new(0), &mut |_| {}).unwrap_err();
    assert!(error.message.contains("not every row"), "{}", error.message);
    assert!(!folder.path().join("again.rec").exists());
}
