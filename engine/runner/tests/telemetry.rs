//! What a drive measures of itself is in the recording beside its rows, and comes to what the drive's counters say.

use serde_json::{json, Value};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use testdrive_recording::{Manifest, Recording, Status, TelemetryRow};
use testdrive_runner::{run, Event, Job};

const S: i64 = 1_000_000_000;
/// Heat that is felt within seconds.
const WARM: &str =
    "sim:consumer-highend?capacity=1GiB&thermal_resistance_mc_per_w=10000&thermal_time_constant=5s";

fn job(uri: &str, output: &Path, save_state: Option<&Path>, phases: &Value) -> Job {
    let job = json!({"version": 1, "drive": {"uri": uri}, "output": output, "save_state": save_state, "phases": phases});
    Job::parse(&job.to_string()).unwrap()
}

fn quiet(uri: &str, output: &Path, save_state: Option<&Path>, phases: &Value) -> Manifest {
    let outcome = run(&job(uri, output, save_state, phases), &AtomicUsize::new(0), &mut |_| {}).unwrap();
    assert_eq!(outcome.status, Status::Complete);
    Recording::open(output).unwrap().manifest
}

fn rows_of(path: &Path, sensor: &str) -> Vec<(i64, i64)> {
    let text = std::fs::read_to_string(path.join("telemetry.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<TelemetryRow>(line).unwrap());
    rows.filter(|row| row.sensor == sensor).map(|row| (row.time_ns, row.value)).collect()
}

/// What the counters grew by over all phases.
fn ledger_uj(manifest: &Manifest) -> i64 {
    let around = |index: usize| manifest.phases[index].drive_counters.unwrap();
    let (first, last) = (around(0), around(manifest.phases.len() - 1));
    (last.after.energy_uj.unwrap() - first.before.energy_uj.unwrap()).cast_signed()
}

fn check_totals(path: &Path, manifest: &Manifest) {
    let (power, energy) = (rows_of(path, "power"), rows_of(path, "energy"));
    assert_eq!(energy.last().unwrap().1, ledger_uj(manifest));
    // The power that stands beside it is its growth.
    assert!(energy.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    for (pair, (time_ns, power_mw)) in energy.windows(2).zip(&power[1..]) {
        let [(from_ns, before_uj), (to_ns, after_uj)] = pair else { unreachable!() };
        assert_eq!(time_ns, to_ns);
        let mean_mw = (after_uj - before_uj) as f64 * 1e6 / (to_ns - from_ns) as f64;
        // Both are rounded: the energies to 1 uJ, the power to 1 mW.
        let rounding_mw = 0.5 + 1e6 / (to_ns - from_ns) as f64;
        assert!((mean_mw - *power_mw as f64).abs() <= rounding_mw, "{mean_mw} and {power_mw} mW at {to_ns}");
    }
}

#[test]
fn the_energy_of_the_telemetry_is_that_of_the_ledger_whatever_the_drive_does() {
    let folder = tempfile::tempdir().unwrap();
    let writes =
        json!({"kind": "synthetic", "read_share": 0.3, "duration_ns": 2_300_000_000_i64, "depth": 16});
    let reads = json!({"kind": "synthetic", "ios": 30_000, "depth": 4});
    for (index, uri) in [
        WARM,
        "sim:enterprise-mixed?capacity=1GiB&superblocks=500&op=7%",
        "sim:sata?capacity=1GiB&power_sleep_after=100ms",
        "sim:enterprise-read?capacity=1GiB&fault_power_loss_at=1.5s&fault_power_loss=1s",
    ]
    .iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{index}.rec"));
        let mut phases = json!([writes, reads]);
        if uri.contains("fault") {
            phases = json!([writes]);
        }
        let job = json!({"version": 1, "drive": {"uri": uri}, "output": path, "on_error": "continue", "phases": phases});
        run(&Job::parse(&job.to_string()).unwrap(), &AtomicUsize::new(0), &mut |_| {}).unwrap();
        let manifest = Recording::open(&path).unwrap().manifest;
        check_totals(&path, &manifest);
        let rows = std::fs::read_to_string(path.join("telemetry.jsonl")).unwrap().lines().count() as u64;
        assert_eq!(manifest.telemetry.unwrap().rows, rows);
        // A sample for each second, and one for what was left.
        let times: Vec<i64> = rows_of(&path, "power").iter().map(|(time_ns, _)| *time_ns).collect();
        assert!(times.len() >= 3 && times[..2] == [S, 2 * S], "{times:?}");
        let end_ns = manifest.phases.last().unwrap().end_ns;
        assert!((end_ns..end_ns + S / 5).contains(times.last().unwrap()), "{times:?} of {end_ns}");
    }
}

#[test]
fn a_drive_that_is_at_work_warms_up_and_one_without_heat_says_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let writes = json!([{"kind": "synthetic", "read_share": 0.0, "duration_ns": 6 * S, "depth": 16}]);
    quiet(WARM, &path, None, &writes);
    let temperatures = rows_of(&path, "temperature");
    assert_eq!(temperatures.len(), rows_of(&path, "power").len());
    assert!(temperatures.windows(2).all(|pair| pair[0].1 < pair[1].1), "{temperatures:?}");
    assert!(temperatures[0].1 > 25_000);
    let path = folder.path().join("b.rec");
    quiet("sim:sata?capacity=1GiB", &path, None, &writes);
    assert_eq!(rows_of(&path, "temperature"), []);
}

#[test]
fn an_idle_quarter_of_an_hour_is_one_row_and_its_energy_is_that_of_being_on() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("source.rec"), folder.path().join("a.rec"));
    // Reads for a second before and after a quarter of an hour in which the source's drive stood still.
    let stalled = json!({"version": 1, "drive": {"uri": "sim:sata?capacity=1GiB&fault_stall_at=1s&fault_stall=900s"},
        "output": source, "io_timeout_s": 1200.0,
        "phases": [{"kind": "synthetic", "depth": 1, "duration_ns": 902 * S}]});
    run(&Job::parse(&stalled.to_string()).unwrap(), &AtomicUsize::new(0), &mut |_| {}).unwrap();
    let replay = json!([{"kind": "replay", "recording": source, "pace": "timed"}]);
    let manifest = quiet("sim:sata?capacity=1GiB", &path, None, &replay);
    assert!(manifest.phases[0].end_ns > 901 * S);
    check_totals(&path, &manifest);
    let power = rows_of(&path, "power");
    let idle = power.windows(2).find(|pair| pair[1].0 - pair[0].0 > S).expect("a row for more than a second");
    assert_eq!(idle[1].0 - idle[0].0, 899 * S, "{power:?}");
    assert!(power.len() <= 6, "{power:?}");
    assert_eq!(idle[1].1, 1_500, "the model's power without commands");
}

#[test]
fn a_run_on_a_restored_drive_counts_its_own_energy_only() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let work = json!([{"kind": "synthetic", "read_share": 0.5, "duration_ns": 2 * S, "depth": 8}]);
    let first = quiet(WARM, &at("a.rec"), Some(&at("a.state")), &work);
    let uri = format!("{WARM}&state={}", at("a.state").display());
    let second = quiet(&uri, &at("b.rec"), None, &work);
    check_totals(&at("b.rec"), &second);
    assert!(ledger_uj(&first) > 0 && ledger_uj(&second) > 0);
    // Its heat it has kept.
    let last = rows_of(&at("a.rec"), "temperature").last().unwrap().1;
    assert!(rows_of(&at("b.rec"), "temperature")[0].1 > last);
}

#[test]
fn a_run_that_is_interrupted_keeps_its_telemetry_and_one_without_a_recording_keeps_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let signal = AtomicUsize::new(0);
    let endless = json!([{"kind": "synthetic", "read_share": 0.0, "duration_ns": 3_600 * S}]);
    let mut stop_once_under_way = |event: Event| {
        if matches!(event, Event::Progress(progress) if progress.ios > 0) {
            signal.store(libc::SIGINT as usize, Ordering::Relaxed);
        }
    };
    let outcome = run(&job(WARM, &path, None, &endless), &signal, &mut stop_once_under_way).unwrap();
    assert_eq!(outcome.status, Status::Interrupted);
    check_totals(&path, &Recording::open(&path).unwrap().manifest);

    let job = json!({"version": 1, "drive": {"uri": WARM}, "output": folder.path().join("none.rec"), "record": false,
        "phases": [{"kind": "synthetic", "ios": 100_000}]});
    run(&Job::parse(&job.to_string()).unwrap(), &AtomicUsize::new(0), &mut |_| {}).unwrap();
    assert!(!folder.path().join("none.rec").exists());
    let null = folder.path().join("null.rec");
    let manifest = quiet("null:?size=1GiB", &null, None, &json!([{"kind": "synthetic", "ios": 100}]));
    assert!(manifest.telemetry.is_none() && !null.join("telemetry.jsonl").exists());
}

#[test]
fn telemetry_that_cannot_be_written_ends_the_run_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let endless = json!([{"kind": "synthetic", "duration_ns": 36_000 * S}]);
    let in_the_way = path.join("telemetry.jsonl");
    // The directory is made by the run; something of that name in it is not there otherwise.
    let outcome = run(&job(WARM, &path, None, &endless), &AtomicUsize::new(0), &mut |event| {
        if let Event::Started { .. } = event {
            std::fs::create_dir(&in_the_way).unwrap();
        }
    })
    .unwrap();
    assert_eq!(outcome.status, Status::Failed);
    let reason = outcome.reason.unwrap();
    assert!(reason.contains("telemetry.jsonl"), "{reason}");
}
