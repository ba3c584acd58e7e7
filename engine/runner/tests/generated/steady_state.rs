//! Phases that end in a steady state, or say that they did not.

use crate::{Bench, Ran, SIM};
use serde_json::{json, Value};
use testdrive_recording::Status;
use testdrive_runner::Event;

/// A drive on which garbage is collected soon after the first fill.
const WORN: &str = "sim:enterprise-mixed?capacity=1GiB&superblocks=500&initial_state=steady&op=7%";

fn writes(steady_state: Value) -> Value {
    json!({"kind": "synthetic", "name": "settle", "read_share": 0, "steady_state": steady_state})
}

/// Values of each round from the rows, to hold the engine's against.
fn iops_of(ran: &Ran, round_ns: i64) -> Vec<f64> {
    let phase = &ran.manifest.phases[0];
    let rounds = ran.accounting("steady_state")["rounds"].as_array().unwrap().len();
    let mut ios = vec![0_u64; rounds];
    for row in &ran.rows {
        let round = (row.complete_ns().unwrap() - phase.start_ns) / round_ns;
        if let Some(count) = ios.get_mut(round as usize) {
            *count += 1;
        }
    }
    ios.into_iter().map(|ios| ios as f64 * 1e9 / round_ns as f64).collect()
}

fn told_iops(ran: &Ran) -> Vec<f64> {
    let rounds = ran.accounting("steady_state")["rounds"].as_array().unwrap();
    rounds.iter().map(|round| round["iops"].as_f64().unwrap()).collect()
}

#[test]
fn a_phase_ends_with_the_first_steady_window_and_the_manifest_has_every_round() {
    let bench = Bench::new();
    let round_ns = 50_000_000;
    let ran = bench.phase(WORN, writes(json!({"measure": "iops", "round_ns": round_ns, "rounds_max": 100})));
    assert_eq!(ran.outcome.status, Status::Complete);
    let found = ran.accounting("steady_state");
    assert_eq!((&found["achieved"], &found["measure"]), (&json!(true), &json!("iops")));
    assert!(!ran.has_warning("steady_state_not_achieved"));
    let values = told_iops(&ran);
    assert_eq!(values, iops_of(&ran, round_ns));
    assert!(values.len() >= 5);
    // No window before the last one is steady, by the definition spelled out.
    let steady = |window: &[f64]| {
        let mean = window.iter().sum::<f64>() / 5.0;
        let range =
            window.iter().copied().fold(0.0, f64::max) - window.iter().copied().fold(f64::MAX, f64::min);
        let slope = (0..5).map(|place| (f64::from(place) - 2.0) * window[place as usize]).sum::<f64>() / 10.0;
        range <= 0.2 * mean && slope.abs() * 4.0 <= 0.1 * mean
    };
    let windows: Vec<bool> = values.windows(5).map(steady).collect();
    assert_eq!(windows.iter().position(|steady| *steady), Some(windows.len() - 1), "{values:?}");
    assert_eq!(found["window_first_round"], json!(values.len() - 5));
    let phase = &ran.manifest.phases[0];
    let end_ns = phase.start_ns + values.len() as i64 * round_ns;
    // Nothing is submitted after the round that decides.
    assert!(ran.rows.iter().all(|row| row.submit_ns <= end_ns) && phase.end_ns - end_ns < round_ns);
}

#[test]
fn a_phase_that_never_settles_ends_after_its_rounds_and_says_so() {
    let bench = Bench::new();
    let strict = json!({"measure": "latency", "round_ns": 5_000_000, "rounds_max": 7, "range_share": 1e-9});
    let ran = bench.phase(WORN, writes(strict));
    assert_eq!(ran.outcome.status, Status::Complete);
    let found = ran.accounting("steady_state");
    assert_eq!((&found["achieved"], found["rounds"].as_array().unwrap().len()), (&json!(false), 7));
    assert!(found["fit"]["range_share"].as_f64().unwrap() > 1e-9);
    assert!(ran.has_warning("steady_state_not_achieved"));
    let last = ran.events.iter().rev().find_map(|event| match event {
        Event::Progress(progress) => Some(progress),
        _ => None,
    });
    let steady = last.unwrap().steady_state.as_ref().expect("the progress tells of rounds");
    assert_eq!((steady.rounds, steady.rounds_max, steady.achieved), (7, 7, false));
}

#[test]
fn another_end_may_come_first() {
    let bench = Bench::new();
    let mut phase = writes(json!({"measure": "throughput", "round_ns": 1_000_000_000_i64}));
    phase["ios"] = json!(1_000);
    let ran = bench.phase(SIM, phase);
    assert_eq!(ran.rows.len(), 1_000);
    assert!(ran.has_warning("steady_state_not_achieved"));
    assert_eq!(ran.accounting("steady_state")["rounds"], json!([]));
}

#[test]
fn the_host_clock_has_rounds_too() {
    let bench = Bench::new();
    let phase = json!({"kind": "synthetic", "depth": 4, "duration_ns": 60_000_000_000_i64,
        "steady_state": {"measure": "iops", "round_ns": 10_000_000, "rounds_max": 6_000, "range_share": 10, "slope_share": 10}});
    let ran = bench.phase("null:?size=1GiB", phase);
    let values = told_iops(&ran);
    let found = ran.accounting("steady_state");
    assert_eq!((&found["achieved"], &found["window_first_round"]), (&json!(true), &json!(values.len() - 5)));
    assert_eq!(values, iops_of(&ran, 10_000_000));
    // With these limits any window is steady in which something was done. On a host that has no time for the run at first, nothing is.
    let worked: Vec<bool> = values.windows(5).map(|window| window.iter().sum::<f64>() > 0.0).collect();
    assert_eq!(worked.iter().position(|worked| *worked), Some(worked.len() - 1), "{values:?}");
}
