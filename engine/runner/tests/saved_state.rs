//! A run that goes on from a saved drive records what the rest of an uninterrupted run would have.

use serde_json::{json, Value};
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use testdrive_core::IoRecord;
use testdrive_recording::{DriveEvent, OrderBy, Recording, Status};
use testdrive_runner::{run, ErrorKind, Event, Job, Outcome, RunError};
use testdrive_simulator::Model;

fn job(uri: &str, output: &Path, save_state: Option<&Path>, phases: &[Value]) -> Job {
    let drive = json!({"uri": uri});
    let job =
        json!({"version": 1, "drive": drive, "output": output, "save_state": save_state, "phases": phases});
    Job::parse(&job.to_string()).unwrap()
}

fn quiet(job: &Job) -> Result<Outcome, RunError> {
    run(job, &AtomicUsize::new(0), &mut |_: Event| ())
}

/// The rows of the last phase, with times from its beginning, and its events.
fn last_phase(path: &Path) -> (Vec<IoRecord>, Vec<DriveEvent>) {
    let recording = Recording::open(path).unwrap();
    let phase = recording.manifest.phases.last().unwrap();
    let rows = recording.ordered_rows(OrderBy::Submit).unwrap().map(Result::unwrap);
    let rows = rows.filter(|row| row.phase == phase.index).map(|row| IoRecord {
        intended_ns: row.intended_ns - phase.start_ns,
        submit_ns: row.submit_ns - phase.start_ns,
        phase: 0,
        ..row
    });
    let text = std::fs::read_to_string(path.join("drive_events.jsonl")).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<DriveEvent>(line).unwrap());
    let events = events.filter(|event| event.start_ns >= phase.start_ns).map(|event| DriveEvent {
        start_ns: event.start_ns - phase.start_ns,
        end_ns: event.end_ns - phase.start_ns,
        ..event
    });
    (rows.collect(), events.collect())
}

#[test]
fn a_run_on_a_restored_drive_records_the_rest_of_an_uninterrupted_one_on_every_model() {
    let prepare = json!({"kind": "synthetic", "read_share": 0.3, "ios": 12_000, "depth": 24, "seed": 1});
    let measure = json!({"kind": "synthetic", "read_share": 0.5, "ios": 8_000, "depth": 8, "seed": 2});
    for name in Model::builtin_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let uri = format!("sim:{name}?capacity=256MiB");
        quiet(&job(&uri, &at("whole.rec"), None, &[prepare.clone(), measure.clone()])).unwrap();
        quiet(&job(&uri, &at("first.rec"), Some(&at("a.state")), std::slice::from_ref(&prepare))).unwrap();
        let restored = format!("{uri}&state={}", at("a.state").display());
        quiet(&job(&restored, &at("rest.rec"), None, std::slice::from_ref(&measure))).unwrap();
        let ((whole_rows, whole_events), (rows, events)) =
            (last_phase(&at("whole.rec")), last_phase(&at("rest.rec")));
        assert_eq!(rows.len(), 8_000);
        assert!(rows == whole_rows, "{name}");
        assert!(events == whole_events, "{name}");
        let whole = Recording::open(&at("whole.rec")).unwrap().manifest;
        let rest = Recording::open(&at("rest.rec")).unwrap().manifest;
        assert_eq!(rest.phases[0].drive_counters, whole.phases[1].drive_counters, "{name}");
    }
}

#[test]
fn only_a_complete_run_leaves_a_state_and_the_others_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a.state");
    let uri = "sim:sata?capacity=256MiB&fault_gone_at=1ms";
    let reads = [json!({"kind": "synthetic", "ios": 10_000})];
    let mut codes = Vec::new();
    let stopped = job(uri, &folder.path().join("a.rec"), Some(&state), &reads);
    let outcome = run(&stopped, &AtomicUsize::new(0), &mut |event| {
        if let Event::Warning(warning) = event {
            codes.push(warning.code);
        }
    });
    assert_eq!(outcome.unwrap().status, Status::Failed);
    assert!(codes.contains(&"state_not_saved".to_string()) && !state.exists(), "{codes:?}");
}

#[test]
fn a_state_that_could_not_be_saved_is_found_out_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (output, state) = (folder.path().join("a.rec"), folder.path().join("a.state"));
    std::fs::write(&state, "mine").unwrap();
    let reads = [json!({"kind": "synthetic", "ios": 100})];
    for uri in ["sim:sata?capacity=256MiB", "null:?size=1GiB"] {
        let refused = quiet(&job(uri, &output, Some(&state), &reads)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Usage, "{refused}");
    }
    assert!(!output.exists());
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "mine");
}
