//! Groups of phases that are run in rounds until what is tracked is steady.

use crate::{Bench, Ran};
use serde_json::{json, Value};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use testdrive_core::Opcode;
use testdrive_recording::{Phase, Recording, Status};
use testdrive_runner::{run, Event, Job, RoundOver};

/// A drive on which garbage is collected soon after the first fill.
const WORN: &str = "sim:enterprise-mixed?capacity=1GiB&superblocks=500&initial_state=steady&op=7%";
const PHASE_NS: i64 = 40_000_000;

/// Writes and then a mix, each for a short time, in rounds.
fn group(rest: Value) -> Value {
    let synthetic = |name: &str, read_share: f64, block_bytes: u64| json!({"kind": "synthetic", "name": name, "read_share": read_share, "block_bytes": block_bytes, "duration_ns": PHASE_NS});
    let mut group = json!({
        "kind": "rounds",
        "name": "matrix",
        "phases": [synthetic("writes", 0.0, 4096), synthetic("mixed", 0.65, 65_536)],
        "tracked": [{"phase": "writes", "measure": "iops"}, {"phase": "mixed", "measure": "throughput"},
                    {"phase": "mixed", "measure": "latency"}],
    });
    group.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    group
}

fn rounds_of(ran: &Ran) -> Vec<&Phase> {
    ran.manifest.phases.iter().filter(|phase| phase.settings.contains_key("round")).collect()
}

fn told(ran: &Ran) -> Vec<&RoundOver> {
    ran.events
        .iter()
        .filter_map(|event| if let Event::Round(over) = event { Some(over) } else { None })
        .collect()
}

/// IOPS, bytes per second and mean latency of a phase, from its rows.
fn figures(ran: &Ran, phase: &Phase) -> [f64; 3] {
    let rows = || ran.rows.iter().filter(|row| row.phase == phase.index && row.status == 0);
    let (count, span_s) = (rows().count() as f64, (phase.end_ns - phase.start_ns) as f64 / 1e9);
    let bytes: i64 = rows().map(|row| row.length_bytes).sum();
    let latency: i64 = rows().map(|row| row.latency_ns).sum();
    [count / span_s, bytes as f64 / span_s, latency as f64 / count]
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs()
}

#[test]
fn every_round_runs_every_phase_until_all_that_is_tracked_is_steady() {
    let bench = Bench::new();
    let before = json!({"kind": "synthetic", "name": "before", "ios": 10});
    let after = json!({"kind": "synthetic", "name": "after", "ios": 10});
    let ran = bench.run(json!({"uri": WORN}), json!([before, group(json!({})), after])).unwrap();
    assert_eq!(ran.outcome.status, Status::Complete);
    assert!(!ran.has_warning("steady_state_not_achieved"), "{:?}", told(&ran).last());
    let phases = rounds_of(&ran);
    let rounds = phases.len() / 2;
    assert!((5..=25).contains(&rounds) && phases.len() == 2 * rounds, "{rounds}");
    for (place, phase) in phases.iter().enumerate() {
        assert_eq!(usize::from(phase.index), place + 1);
        assert_eq!(phase.name, ["writes", "mixed"][place % 2]);
        assert_eq!(
            (&phase.settings["rounds"], &phase.settings["round"]),
            (&json!("matrix"), &json!(place / 2))
        );
        // After each round, and only then, the manifest has what was found.
        assert_eq!(
            phase.accounting.get("rounds").map(|found| &found["done"]),
            (place % 2 == 1).then_some(&json!(place / 2 + 1))
        );
    }
    let last = ran.manifest.phases.last().unwrap();
    assert_eq!((last.name.as_str(), usize::from(last.index)), ("after", 2 * rounds + 1));
    assert!(!last.settings.contains_key("round"));

    let found = &phases.last().unwrap().accounting["rounds"];
    assert_eq!(
        (&found["achieved"], &found["name"], &found["window_first_round"]),
        (&json!(true), &json!("matrix"), &json!(rounds - 5))
    );
    assert_eq!(found["window_start_ns"], json!(phases[2 * (rounds - 5)].start_ns));
    let mut steady_before = vec![true; rounds - 5];
    for (tracked, (member, figure)) in [(0, 0), (1, 1), (1, 2)].into_iter().enumerate() {
        let values: Vec<f64> =
            (0..rounds).map(|round| figures(&ran, phases[2 * round + member])[figure]).collect();
        let kept = found["tracked"][tracked]["values"].as_array().unwrap();
        assert!(
            kept.len() == rounds
                && kept.iter().zip(&values).all(|(kept, value)| close(kept.as_f64().unwrap(), *value))
        );
        // The definition spelled out.
        let steady = |window: &[f64]| {
            let mean = window.iter().sum::<f64>() / 5.0;
            let (low, high) =
                (window.iter().copied().fold(f64::MAX, f64::min), window.iter().copied().fold(0.0, f64::max));
            let slope = (0..5).map(|place| (place as f64 - 2.0) * window[place]).sum::<f64>() / 10.0;
            high - low <= 0.2 * mean && slope.abs() * 4.0 <= 0.1 * mean
        };
        assert!(steady(&values[rounds - 5..]));
        steady_before
            .iter_mut()
            .enumerate()
            .for_each(|(first, all)| *all &= steady(&values[first..first + 5]));
    }
    assert!(!steady_before.contains(&true), "no window before was steady in everything");
}

#[test]
fn no_round_writes_to_the_places_of_another() {
    let bench = Bench::new();
    let ran = bench.phase(WORN, group(json!({"rounds_max": 3, "window": 3, "range_share": 1e-9})));
    let places = |round: usize| -> HashSet<i64> {
        let phase = rounds_of(&ran)[2 * round].index;
        ran.rows.iter().filter(|row| row.phase == phase).map(|row| row.offset_bytes).take(500).collect()
    };
    let (first, second) = (places(0), places(1));
    // 500 of 262,144 places twice have one in common by chance.
    assert!(first.intersection(&second).count() < 20);
    let seeds: HashSet<u64> =
        rounds_of(&ran).iter().map(|phase| phase.settings["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), 6);
    assert!(ran.bytes_of(Opcode::Write) > 0);
}

#[test]
fn a_group_that_never_settles_ends_after_its_rounds_and_says_so() {
    let bench = Bench::new();
    let ran = bench.phase(WORN, group(json!({"rounds_max": 4, "window": 2, "slope_share": 1e-9})));
    assert_eq!(ran.outcome.status, Status::Complete);
    assert_eq!(rounds_of(&ran).len(), 8);
    assert!(ran.has_warning("steady_state_not_achieved"));
    let found = &ran.manifest.phases[7].accounting["rounds"];
    assert_eq!(
        (&found["achieved"], &found["done"], &found["window_first_round"]),
        (&json!(false), &json!(4), &json!(2))
    );
}

#[test]
fn the_progress_tells_of_every_round() {
    let bench = Bench::new();
    let ran = bench.phase(WORN, group(json!({"rounds_max": 3, "window": 2, "slope_share": 1e-9})));
    let rounds = told(&ran);
    assert_eq!(rounds.iter().map(|over| over.position.round).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rounds
        .iter()
        .all(|over| over.position.rounds_max == 3 && !over.achieved && over.tracked.len() == 3));
    assert_eq!(rounds[0].tracked[0].fit, None);
    let fit = rounds[2].tracked[0].fit.unwrap();
    let values: Vec<f64> = rounds.iter().map(|over| over.tracked[0].value.unwrap()).collect();
    assert!(close(fit.mean, (values[1] + values[2]) / 2.0));
    let begun: Vec<Value> = ran
        .events
        .iter()
        .filter(|event| matches!(event, Event::Phase { .. }))
        .map(|event| json!(event))
        .collect();
    assert_eq!(begun[3]["rounds"], json!({"name": "matrix", "round": 1, "rounds_max": 3}));
    let started = json!(ran.events.iter().find(|event| matches!(event, Event::Started { .. })));
    assert_eq!(started["phases"].as_array().unwrap().len(), 2);
    assert_eq!(started["phases"][1]["rounds"]["round"], json!(0));
}

#[test]
fn an_interrupt_within_a_round_keeps_what_the_rounds_before_came_to() {
    let bench = Bench::new();
    let output = bench.path("run.rec");
    let job = json!({"version": 1, "drive": {"uri": WORN}, "output": output,
        "phases": [group(json!({"slope_share": 1e-9})), {"kind": "synthetic", "ios": 10}]});
    let signal = AtomicUsize::new(0);
    let mut rounds = 0;
    let outcome = run(&Job::parse(&job.to_string()).unwrap(), &signal, &mut |event| match event {
        Event::Round(_) => rounds += 1,
        // In the second phase of the third round.
        Event::Phase { index: 5, .. } => signal.store(2, Ordering::Relaxed),
        _ => {}
    })
    .unwrap();
    // What a signal ends is the phase that runs, which in virtual time may be over by the time that it is seen.
    assert_eq!(outcome.status, Status::Interrupted);
    let manifest = Recording::open(&output).unwrap().manifest;
    let judged: Vec<u64> =
        manifest.phases.iter().filter_map(|phase| phase.accounting.get("rounds")?["done"].as_u64()).collect();
    assert_eq!(judged, (1..=rounds).collect::<Vec<u64>>());
    assert!(
        (2..25).contains(&rounds) && manifest.phases.iter().all(|phase| phase.settings.contains_key("round"))
    );
}

#[test]
fn a_drive_that_fails_or_falls_silent_within_a_round_ends_the_run() {
    let bench = Bench::new();
    for (fault, reason) in
        [("fault_gone_at=130ms", ""), ("fault_stall_at=130ms&fault_stall=100s", "has not answered an I/O")]
    {
        let ran = bench.phase(&format!("{WORN}&{fault}"), group(json!({"slope_share": 1e-9})));
        assert_eq!(ran.outcome.status, Status::Failed, "{fault}");
        assert!(ran.outcome.reason.as_ref().unwrap().contains(reason), "{:?}", ran.outcome.reason);
        let phases = rounds_of(&ran);
        let judged = phases.iter().filter(|phase| phase.accounting.contains_key("rounds")).count();
        assert!(judged >= 1 && judged == (phases.len() - 1) / 2, "{fault}: {judged} of {}", phases.len());
        assert_eq!(told(&ran).len(), judged);
    }
}

#[test]
fn a_group_on_a_file_is_a_group_too() {
    let bench = Bench::new();
    let drive = json!({"uri": bench.file_drive(64)});
    let ran = bench
        .run(
            drive,
            json!([group(json!({"rounds_max": 2, "window": 2, "range_share": 10, "slope_share": 10}))]),
        )
        .unwrap();
    assert_eq!((ran.outcome.status, rounds_of(&ran).len()), (Status::Complete, 4));
    let found = &ran.manifest.phases[3].accounting["rounds"];
    let values = found["tracked"][0]["values"].as_array().unwrap();
    assert!(values.iter().zip([0, 2]).all(|(value, phase)| {
        close(value.as_f64().unwrap(), figures(&ran, &ran.manifest.phases[phase])[0])
    }));
}
