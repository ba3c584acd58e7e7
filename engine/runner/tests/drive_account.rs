//! What a drive tells of itself reaches the recording, however the run ends, and only from drives that tell.

use serde_json::{json, Value};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use testdrive_core::Opcode;
use testdrive_recording::{DriveCounters, DriveEvent, Manifest, OrderBy, Recording, Status};
use testdrive_runner::{run, Event, Job};

/// A drive of 1 GiB on which garbage is collected from the first write.
const URI: &str = "sim:enterprise-mixed?capacity=1GiB&superblocks=500&initial_state=steady&op=7%&trim_mode=firmware&trim_per_page=1us";

fn job(uri: &str, output: &Path, phases: Value) -> Job {
    let job = json!({"version": 1, "drive": {"uri": uri}, "output": output, "phases": phases});
    Job::parse(&job.to_string()).unwrap()
}

fn writes(ios: u64) -> Value {
    json!({"kind": "synthetic", "read_share": 0.25, "ios": ios, "depth": 16})
}

fn events_of(path: &Path) -> Vec<DriveEvent> {
    let text = std::fs::read_to_string(path.join("drive_events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn recorded(path: &Path) -> Manifest {
    Recording::open(path).unwrap().manifest
}

fn counters(manifest: &Manifest, index: usize) -> (DriveCounters, DriveCounters) {
    let around = manifest.phases[index].drive_counters.expect("a modelled drive counts");
    (around.before, around.after)
}

#[test]
fn counters_stand_around_each_phase_and_events_beside_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let phases = json!([writes(20_000), writes(10_000)]);
    run(&job(URI, &path, phases), &AtomicUsize::new(0), &mut |_| {}).unwrap();
    let manifest = recorded(&path);
    let ((before, between), (also_between, after)) = (counters(&manifest, 0), counters(&manifest, 1));
    assert_eq!(before, zeroes());
    assert_eq!(between, also_between);
    let written = manifest.counts.by_opcode.of(Opcode::Write).bytes;
    assert_eq!(after.host_written_bytes, Some(written));
    assert_eq!(after.host_read_bytes, Some(manifest.counts.by_opcode.of(Opcode::Read).bytes));
    assert!(after.nand_written_bytes > Some(4 * written), "{after:?}");
    assert!(after.moved_pages > between.moved_pages && after.erases > between.erases);

    let events = events_of(&path);
    assert_eq!(manifest.drive_events.map(|summary| summary.events), Some(events.len() as u64));
    let collected = events.iter().filter(|event| event.kind == "garbage_collection" && event.unit == "pages");
    let (moved, gathering) = (collected.map(|event| event.amount).sum::<u64>(), 48);
    assert!(moved > 0 && (moved..=moved + gathering).contains(&after.moved_pages.unwrap()), "{moved}");
    let end_ns = manifest.phases[1].end_ns;
    assert!(events.iter().all(|event| 0 <= event.start_ns && event.end_ns <= end_ns));
}

fn zeroes() -> DriveCounters {
    DriveCounters {
        host_read_bytes: Some(0),
        host_written_bytes: Some(0),
        trims: Some(0),
        trimmed_bytes: Some(0),
        nand_written_bytes: Some(0),
        moved_pages: Some(0),
        erases: Some(0),
        energy_uj: Some(0),
    }
}

#[test]
fn a_run_that_is_interrupted_keeps_what_the_drive_told_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let signal = AtomicUsize::new(0);
    let endless = json!([{"kind": "synthetic", "read_share": 0.0, "duration_ns": 3_600_000_000_000_i64}]);
    let mut stop_once_under_way = |event: Event| {
        if matches!(event, Event::Progress(progress) if progress.ios > 0) {
            signal.store(libc::SIGINT as usize, Ordering::Relaxed);
        }
    };
    let outcome = run(&job(URI, &path, endless), &signal, &mut stop_once_under_way).unwrap();
    assert_eq!(outcome.status, Status::Interrupted);
    let manifest = recorded(&path);
    let (_, after) = counters(&manifest, 0);
    assert_eq!(after.host_written_bytes, Some(manifest.counts.bytes));
    let events = events_of(&path);
    assert!(events.iter().map(|event| event.amount).sum::<u64>() > 0);
}

#[test]
fn drives_that_tell_nothing_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    run(&job("null:?size=1GiB", &path, json!([writes(100)])), &AtomicUsize::new(0), &mut |_| {}).unwrap();
    let manifest = recorded(&path);
    assert_eq!((manifest.phases[0].drive_counters, manifest.drive_events), (None, None));
    assert!(!path.join("drive_events.jsonl").exists());
    let text = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    assert!(!text.contains("drive_counters") && !text.contains("drive_events"));
    assert_eq!(Recording::open(&path).unwrap().ordered_rows(OrderBy::Submit).unwrap().count(), 100);
}
