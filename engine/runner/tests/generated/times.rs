//! Open loops and their schedules, closed loops and their limits, and rests.

use crate::{Bench, Ran, SIM};
use serde_json::{json, Value};
use testdrive_core::IoRecord;
use testdrive_recording::Status;

const SECOND_NS: i64 = 1_000_000_000;

fn reads(rest: Value) -> Value {
    let mut phase = json!({"kind": "synthetic", "duration_ns": SECOND_NS});
    phase.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    phase
}

/// Intended times from the phase's start, in order.
fn intended(ran: &Ran) -> Vec<i64> {
    let start_ns = ran.manifest.phases[0].start_ns;
    let mut times: Vec<i64> = ran.rows.iter().map(|row| row.intended_ns - start_ns).collect();
    times.sort_unstable();
    times
}

fn lateness_max(rows: &[IoRecord]) -> i64 {
    rows.iter().map(|row| row.submit_ns - row.intended_ns).max().unwrap()
}

#[test]
fn a_constant_rate_is_kept_to_the_nanosecond_in_virtual_time() {
    let bench = Bench::new();
    for threads in [1, 4] {
        let rate = json!({"process": "constant", "rate_iops": 2_000});
        let ran = bench.phase(SIM, reads(json!({"arrivals": rate, "threads": threads})));
        assert_eq!(ran.outcome.status, Status::Complete);
        assert_eq!(intended(&ran), (0..2_000).map(|k| k * 500_000).collect::<Vec<_>>());
        assert_eq!((lateness_max(&ran.rows), ran.accounting("arrivals_not_issued")), (0, &json!(0)));
        assert_eq!(ran.rows.iter().map(|row| row.stream).max(), Some(threads - 1));
    }
}

#[test]
fn real_drives_get_their_ios_at_their_times_from_each_thread() {
    let bench = Bench::new();
    let arrivals = json!({"process": "constant", "rate_iops": 5_000});
    let phase = json!({"arrivals": arrivals, "threads": 2, "duration_ns": SECOND_NS / 5});
    for uri in ["null:?size=64MiB", &bench.file_drive(64)] {
        let ran = bench.phase(uri, reads(phase.clone()));
        let not_issued = ran.accounting("arrivals_not_issued").as_u64().unwrap();
        assert_eq!(ran.rows.len() as u64 + not_issued, 1_000);
        let times = intended(&ran);
        assert!(
            times.iter().all(|time_ns| time_ns % 200_000 == 0)
                && times.windows(2).all(|two| two[0] != two[1])
        );
        assert!(ran.rows.iter().all(|row| row.submit_ns >= row.intended_ns));
    }
}

#[test]
fn a_drive_that_cannot_keep_up_makes_ios_late_and_what_never_went_is_counted() {
    let bench = Bench::new();
    let arrivals = json!({"process": "constant", "rate_iops": 10_000_000});
    let phase = json!({"arrivals": arrivals, "max_in_flight": 64, "duration_ns": SECOND_NS / 20, "block_bytes": 65_536});
    let ran = bench.phase(SIM, reads(phase.clone()));
    assert_eq!(ran.outcome.status, Status::Complete);
    let not_issued = ran.accounting("arrivals_not_issued").as_u64().unwrap();
    assert_eq!(ran.rows.len() as u64 + not_issued, 500_000);
    assert!(not_issued > 400_000 && lateness_max(&ran.rows) > SECOND_NS / 25);

    let mut strict = phase;
    strict["max_lag_ns"] = json!(10_000_000);
    let ran = bench.phase(SIM, reads(strict));
    assert_eq!(ran.outcome.status, Status::Failed);
    let reason = ran.outcome.reason.unwrap();
    assert!(reason.starts_with("the drive cannot keep up: an I/O is 0.010 s behind its time"), "{reason}");
    assert!(ran.manifest.phases[0].end_ns < SECOND_NS / 50);
    assert!(lateness_max(&ran.rows) <= 10_000_000);
}

#[test]
fn poisson_arrivals_come_at_their_mean_rate_and_another_run_may_have_the_same_times() {
    let bench = Bench::new();
    let poisson = json!({"process": "poisson", "rate_iops": 5_000});
    let first = bench.phase(SIM, reads(json!({"arrivals": poisson, "threads": 2})));
    assert!((4_700..5_300).contains(&first.rows.len()), "{}", first.rows.len());
    let again = bench.phase(SIM, reads(json!({"arrivals": poisson, "threads": 2})));
    assert_eq!(intended(&again), intended(&first));
    let kept = bench.path("kept.rec");
    std::fs::rename(bench.path("run.rec"), &kept).unwrap();

    // The times of the recording, with other places and another mix; it ends with the recording.
    let times = json!({"process": "recording", "recording": kept});
    let phase =
        json!({"kind": "synthetic", "arrivals": times, "read_share": 0, "threads": 3, "block_bytes": 8192});
    let taken = bench.phase(SIM, phase.clone());
    assert_eq!((taken.outcome.status, intended(&taken)), (Status::Complete, intended(&first)));
    assert!(taken
        .rows
        .iter()
        .all(|row| row.length_bytes == 8192 && row.opcode == testdrive_core::Opcode::Write));
    assert_eq!(taken.rows.iter().map(|row| row.stream).max(), Some(2));
    assert!(taken.manifest.source.is_empty());
    let null = bench.phase("null:?size=64MiB", phase);
    assert_eq!(intended(&null), intended(&first));
}

#[test]
fn a_closed_loop_keeps_to_its_limits() {
    let bench = Bench::new();
    for (rest, ios) in [
        (json!({"rate_limit_iops": 1_000}), 1_000),
        (json!({"rate_limit_bytes_per_s": 8_192_000, "rate_limit_iops": 5_000}), 2_000),
        (json!({"rate_limit_iops": 1_000, "threads": 4}), 1_000),
    ] {
        // Never ahead by more than what a millisecond allows.
        let ran = bench.phase(SIM, reads(rest.clone()));
        assert!((ios..=ios + 8).contains(&ran.rows.len()), "{} of {ios}", ran.rows.len());
        assert_eq!(lateness_max(&ran.rows), 0);
        // The same on a host's clock, which is no measure of how much is done: a busy host may be far behind.
        let mut counted = rest;
        (counted["ios"], counted["duration_ns"]) = (json!(ios / 4), json!(60 * SECOND_NS));
        let ran = bench.phase("null:?size=64MiB", reads(counted));
        let start_ns = ran.manifest.phases[0].start_ns;
        let mut submitted: Vec<i64> = ran.rows.iter().map(|row| row.submit_ns - start_ns).collect();
        submitted.sort_unstable();
        assert_eq!((submitted.len(), lateness_max(&ran.rows)), (ios / 4, 0));
        let due_ns = |k: usize| k.saturating_sub(8) as i64 * SECOND_NS / ios as i64;
        assert!(submitted.iter().enumerate().all(|(k, time_ns)| *time_ns >= due_ns(k)), "{submitted:?}");
    }
}

#[test]
fn a_loop_rests_when_it_is_off() {
    let bench = Bench::new();
    let rest = json!({"on_ns": 200_000_000, "off_ns": 300_000_000, "depth": 4});
    let ran = bench.phase(SIM, reads(rest.clone()));
    let start_ns = ran.manifest.phases[0].start_ns;
    let into = |row: &IoRecord| (row.submit_ns - start_ns) % 500_000_000;
    assert!(ran.rows.iter().all(|row| into(row) < 200_000_000));
    let second = ran.rows.iter().map(|row| row.submit_ns - start_ns).find(|time_ns| *time_ns >= 200_000_000);
    assert_eq!(second, Some(500_000_000));

    let mut counted = rest.clone();
    counted["cycles"] = json!(3);
    let ran = bench
        .run(
            json!({"uri": SIM}),
            json!([{"kind": "synthetic", "cycles": 3, "on_ns": 200_000_000,
        "off_ns": 300_000_000, "depth": 4}, reads(counted)]),
        )
        .unwrap();
    let [alone, within] = &ran.manifest.phases[..] else { panic!("two phases") };
    assert_eq!(alone.end_ns - alone.start_ns, 1_500_000_000);
    // A time that is shorter comes first.
    assert_eq!(within.end_ns - within.start_ns, SECOND_NS);
    let turns: std::collections::BTreeSet<i64> = ran
        .rows
        .iter()
        .filter(|row| row.phase == 0)
        .map(|row| (row.submit_ns - alone.start_ns) / 500_000_000)
        .collect();
    assert_eq!(turns.into_iter().collect::<Vec<_>>(), [0, 1, 2]);

    let mut open = rest;
    open["arrivals"] = json!({"process": "constant", "rate_iops": 1_000});
    let ran = bench.phase(SIM, reads(open));
    let times: Vec<i64> = (0..400).map(|k| k % 200 * 1_000_000 + k / 200 * 500_000_000).collect();
    assert_eq!(intended(&ran), times);
}

#[test]
fn times_that_make_no_sense_are_refused() {
    let bench = Bench::new();
    let constant = json!({"process": "constant", "rate_iops": 5});
    for (rest, wanted) in [
        (json!({"arrivals": {"process": "constant", "rate_iops": 0}}), "rate_iops is 0"),
        (json!({"arrivals": {"process": "uniform", "rate_iops": 5}}), "unknown variant `uniform`"),
        (json!({"arrivals": {"process": "recording", "recording": "/nowhere.rec"}}), "/nowhere.rec"),
        (json!({"arrivals": constant, "rate_limit_iops": 5}), "rate_limit_iops is 5"),
        (json!({"arrivals": constant, "threads": 3, "max_in_flight": 2}), "threads is 3"),
        (json!({"max_lag_ns": 5}), "max_lag_ns is 5"),
        (json!({"on_ns": 5}), "one of on_ns and off_ns is absent"),
        (json!({"on_ns": 5, "off_ns": 0}), "off_ns is 0"),
        (json!({"cycles": 5}), "cycles is 5"),
        (json!({"on_ns": 5, "off_ns": 5, "cycles": 0}), "cycles is 0"),
        (json!({"on_ns": 5, "off_ns": i64::MAX / 1_000, "cycles": 5}), "cycles is 5"),
        (json!({"rate_limit_bytes_per_s": -1}), "rate_limit_bytes_per_s is -1"),
    ] {
        let refused = bench.run(json!({"uri": SIM}), json!([reads(rest)])).err().unwrap();
        assert!(refused.message.contains(wanted), "{}", refused.message);
        assert!(refused.message.starts_with("phase "), "{}", refused.message);
    }
}

#[test]
fn a_limit_below_one_io_in_the_life_of_a_clock_lets_one_io_go() {
    let bench = Bench::new();
    let limited = |ios: Option<u64>, duration_ns: i64| {
        let rest = json!({"rate_limit_bytes_per_s": 0.001, "block_bytes": 32 << 20, "duration_ns": duration_ns, "ios": ios});
        reads(rest)
    };
    assert_eq!(bench.phase(SIM, limited(None, SECOND_NS / 50)).rows.len(), 1);
    // A host may have no time for the run in the whole of a short phase; one that waits for an I/O has it.
    let null = "null:?size=64MiB";
    assert!(bench.phase(null, limited(None, SECOND_NS / 50)).rows.len() <= 1);
    assert_eq!(bench.phase(null, limited(Some(1), 60 * SECOND_NS)).rows.len(), 1);
}
