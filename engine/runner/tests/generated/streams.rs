//! Several streams in one phase: each has its mix, its lengths and its times, and rows tell them apart.

use crate::{Bench, Ran, MIB, SIM};
use serde_json::{json, Value};
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_recording::Status;

const SECOND_NS: i64 = 1_000_000_000;

fn constant(rate_iops: f64) -> Value {
    json!({"process": "constant", "rate_iops": rate_iops})
}

/// Small reads, large reads and large writes, as a database makes them.
fn streams() -> Value {
    json!([
        {"name": "reads", "block_bytes": {"from": 1_500, "to": 4_000}, "arrivals": constant(2_000.0), "threads": 3},
        {"name": "large-reads", "block_bytes": 131_072, "arrivals": constant(20.0)},
        {"name": "large-writes", "block_bytes": 131_072, "read_share": 0.0, "arrivals": constant(20.0)},
    ])
}

fn phase(streams: &Value, rest: Value) -> Value {
    let mut phase = json!({"kind": "synthetic", "duration_ns": SECOND_NS, "streams": streams});
    phase.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    phase
}

fn of(ran: &Ran, stream: i32) -> Vec<&IoRecord> {
    ran.rows.iter().filter(|row| row.stream == stream).collect()
}

/// Intended times of a stream from the phase's start.
fn times(ran: &Ran, stream: i32) -> Vec<i64> {
    let start_ns = ran.manifest.phases[0].start_ns;
    let mut times: Vec<i64> = of(ran, stream).iter().map(|row| row.intended_ns - start_ns).collect();
    times.sort_unstable();
    times
}

#[test]
fn each_stream_has_its_mix_its_lengths_and_its_times() {
    let bench = Bench::new();
    let ran = bench.phase(SIM, phase(&streams(), json!({})));
    assert_eq!((ran.outcome.status, ran.accounting("arrivals_not_issued")), (Status::Complete, &json!(0)));
    assert_eq!(ran.accounting("streams"), &json!(["reads", "large-reads", "large-writes"]));
    let block_bytes = i64::try_from(ran.manifest.drive.as_ref().unwrap().logical_block_bytes).unwrap();
    let up = |bytes: i64| (bytes + block_bytes - 1) / block_bytes * block_bytes;
    let (least, most) = (up(1_500), up(4_000));
    for row in of(&ran, 0) {
        assert_eq!(
            (row.opcode, row.length_bytes % block_bytes, row.offset_bytes % block_bytes),
            (Opcode::Read, 0, 0)
        );
        assert!((least..=most).contains(&row.length_bytes));
    }
    for (stream, opcode) in [(1, Opcode::Read), (2, Opcode::Write)] {
        assert!(of(&ran, stream).iter().all(|row| {
            (row.opcode, row.length_bytes, row.offset_bytes % 131_072) == (opcode, 131_072, 0)
        }));
    }
    // Each has its rate to the nanosecond, and those of one rate are a third of a gap apart.
    assert_eq!(times(&ran, 0), (0..2_000).map(|k| k * 500_000).collect::<Vec<_>>());
    let third_ns = 50_000_000.0 / 3.0;
    for stream in [1, 2] {
        let wanted: Vec<i64> =
            (0..20).map(|k| (f64::from(k) * 5e7 + f64::from(stream) * third_ns).round() as i64).collect();
        assert_eq!(times(&ran, stream), wanted);
    }
}

#[test]
fn lengths_of_a_range_are_as_likely_each_in_steps_of_the_block() {
    let bench = Bench::new();
    let stream =
        json!([{"block_bytes": {"from": 1, "to": 32_768, "step": 8_192}, "arrivals": constant(20_000.0)}]);
    let ran = bench.phase(SIM, phase(&stream, json!({})));
    for length_bytes in [8_192, 16_384, 24_576, 32_768] {
        let share =
            of(&ran, 0).iter().filter(|row| row.length_bytes == length_bytes).count() as f64 / 20_000.0;
        assert!((share - 0.25).abs() < 0.015, "{share} of {length_bytes}");
    }
    assert!(of(&ran, 0).iter().all(|row| row.offset_bytes % 8_192 == 0));
}

#[test]
fn submitters_share_all_streams_and_their_schedule_stays() {
    let bench = Bench::new();
    for uri in ["null:?size=64MiB", &bench.file_drive(64)] {
        let ran = bench.phase(uri, phase(&streams(), json!({"threads": 2, "duration_ns": SECOND_NS / 4})));
        let not_issued = ran.accounting("arrivals_not_issued").as_u64().unwrap();
        assert_eq!(ran.rows.len() as u64 + not_issued, 510);
        assert_eq!((ran.accounting("threads"), ran.accounting("submitters")), (&json!(2), &json!(2)));
        assert!(times(&ran, 0).iter().enumerate().all(|(k, time_ns)| *time_ns >= k as i64 * 500_000));
    }
}

#[test]
fn threads_of_act_go_in_phase() {
    let bench = Bench::new();
    let act = json!([{"arrivals": {"process": "act", "rate_iops": 1_000}, "threads": 10}]);
    let ran = bench.phase(SIM, phase(&act, json!({})));
    let found = times(&ran, 0);
    assert_eq!(found.len(), 1_000);
    assert!(found
        .chunks_exact(10)
        .enumerate()
        .all(|(k, ten)| ten.iter().all(|time_ns| *time_ns == k as i64 * 10_000_000)));
}

#[test]
fn a_thread_of_act_waits_for_its_io_and_what_did_not_go_is_counted() {
    let bench = Bench::new();
    // Each of two threads is due every 2 us, which is far more than the model does.
    let act = json!([{"arrivals": {"process": "act", "rate_iops": 1_000_000}, "threads": 2}]);
    let ran = bench.phase(SIM, phase(&act, json!({"duration_ns": SECOND_NS / 20})));
    let mut rows = of(&ran, 0);
    rows.sort_by_key(|row| row.submit_ns);
    let mut ends_ns: Vec<i64> = rows.iter().map(|row| row.submit_ns + row.latency_ns).collect();
    ends_ns.sort_unstable();
    assert!(rows.len() > 10, "{}", rows.len());
    // The third goes once one of the first two has completed, and so on.
    assert!(rows[2..].iter().zip(&ends_ns).all(|(row, end_ns)| row.submit_ns >= *end_ns));
    let not_issued = ran.accounting("arrivals_not_issued").as_u64().unwrap();
    assert_eq!(rows.len() as u64 + not_issued, 50_000);
}

#[test]
fn a_thread_of_act_that_waits_until_the_end_of_the_phase_is_too_late() {
    let bench = Bench::new();
    // The drive does nothing from 0.2 s on until long after the phase.
    let stalled = format!("{SIM}&fault_stall_at_ns={}&fault_stall_ns={}", SECOND_NS / 5, 3 * SECOND_NS);
    let act = |max_lag_ns: i64| {
        let arrivals = json!({"process": "act", "rate_iops": 1_000});
        json!([{"arrivals": arrivals, "threads": 1, "max_lag_ns": max_lag_ns}])
    };
    let ran = bench.phase(&stalled, phase(&act(SECOND_NS / 2), json!({})));
    assert_eq!(ran.outcome.status, Status::Failed);
    let lag_ns = ran.accounting("cannot_keep_up")["lag_ns"].as_i64().unwrap();
    assert!((SECOND_NS / 2..=SECOND_NS).contains(&lag_ns), "{lag_ns}");
    let ran = bench.phase(&stalled, phase(&act(2 * SECOND_NS), json!({})));
    assert_eq!((ran.outcome.status, ran.accounting("cannot_keep_up")), (Status::Complete, &Value::Null));
}

#[test]
fn a_thread_may_go_on_after_its_completion_beside_streams_with_times() {
    let bench = Bench::new();
    let think_ns = 1_000_000;
    let chained = json!([
        {"name": "reads", "arrivals": constant(1_000.0)},
        {"name": "scan", "pattern": "sequential", "block_bytes": 131_072, "threads": 2,
         "arrivals": {"process": "after_completion", "think_ns": think_ns}},
    ]);
    for uri in [SIM, "null:?size=64MiB"] {
        // A host that has no time for a whole phase is asked again.
        let attempts = if uri == SIM { 1 } else { 20 };
        let mut runs = (0..attempts).map(|_| {
            let ran = bench.phase(uri, phase(&chained, json!({"duration_ns": SECOND_NS / 5})));
            assert_eq!(ran.outcome.status, Status::Complete);
            ran
        });
        let ran = runs.find(|ran| of(ran, 1).len() > 10).expect("the scan goes on after its first I/Os");
        let mut scan = of(&ran, 1);
        scan.sort_by_key(|row| row.submit_ns);
        // Two threads, each in its half of the drive, one after the other.
        for half in [0, 1] {
            let mine: Vec<_> =
                scan.iter().filter(|row| row.offset_bytes / (32 * MIB as i64) == half).collect();
            for pair in mine.windows(2) {
                let complete_ns = pair[0].submit_ns + pair[0].latency_ns;
                assert_eq!(pair[1].intended_ns, complete_ns + think_ns);
                assert_eq!(pair[1].offset_bytes, pair[0].offset_bytes + 131_072);
            }
        }
    }
}

#[test]
fn the_stream_that_is_too_late_is_named_with_its_time() {
    let bench = Bench::new();
    let mut late = streams();
    late[2]["arrivals"]["rate_iops"] = json!(1_000_000);
    late[2]["max_lag_ns"] = json!(20_000_000);
    let ran = bench.phase(SIM, phase(&late, json!({"max_in_flight": 64})));
    assert_eq!(ran.outcome.status, Status::Failed);
    let reason = ran.outcome.reason.clone().unwrap();
    assert!(
        reason.starts_with("the drive cannot keep up: an I/O of the stream 'large-writes' is 0.02"),
        "{reason}"
    );
    let found = ran.accounting("cannot_keep_up");
    assert_eq!(found["stream"], "large-writes");
    assert!((20_000_000..SECOND_NS).contains(&found["at_ns"].as_i64().unwrap()), "{found}");
    assert_eq!(found["max_lag_ns"], 20_000_000);

    // Without a limit of its own, a stream may be as late as it gets.
    late[2]["max_lag_ns"] = Value::Null;
    let ran = bench.phase(SIM, phase(&late, json!({"max_in_flight": 64, "duration_ns": SECOND_NS / 10})));
    assert_eq!((ran.outcome.status, ran.accounting("cannot_keep_up")), (Status::Complete, &Value::Null));
}

/// A stream whose threads, more than I/Os may be in flight, begin at once.
fn many_in_phase(threads: u32) -> Value {
    let act = json!([{"arrivals": {"process": "act", "rate_iops": 40_960}, "threads": threads}]);
    phase(&act, json!({"max_in_flight": 64, "duration_ns": SECOND_NS / 20}))
}

#[test]
fn threads_that_begin_at_once_may_be_as_many_as_a_large_host_has() {
    let ran = Bench::new().phase(SIM, many_in_phase(4_096));
    assert_eq!((ran.outcome.status, ran.rows.len()), (Status::Complete, 4_096));
}

#[test]
fn streams_that_make_no_sense_are_refused_by_name() {
    let bench = Bench::new();
    let with = |key: &str, value: Value| {
        let mut streams = streams();
        streams[1][key] = value;
        phase(&streams, json!({}))
    };
    let many: Vec<Value> = (0..17).map(|_| json!({"arrivals": constant(1.0)})).collect();
    let chained = json!({"process": "after_completion"});
    for (phase, wanted) in [
        (with("block_bytes", json!(1_000)), "streams[1] ('large-reads'): block_bytes is 1000"),
        (with("block_bytes", json!({"from": 5, "to": 4})), "from is 5"),
        (
            with("arrivals", json!({"process": "recording", "recording": "x.rec"})),
            "arrivals.process is recording",
        ),
        (with("arrivals", json!({"process": "act", "rate_iops": 0})), "rate_iops is 0"),
        (many_in_phase(4_097), "threads is 4097"),
        (with("arrivals", Value::Null), "invalid type: null"),
        (with("threads", json!(65)), "threads is 65"),
        (with("max_lag_ns", json!(0)), "max_lag_ns is 0"),
        (with("name", json!("reads")), "the name of a stream is reads"),
        (with("depth", json!(4)), "unknown field `depth`"),
        (phase(&streams(), json!({"read_share": 0.5})), "read_share is given beside streams"),
        (phase(&streams(), json!({"arrivals": constant(5.0)})), "arrivals is given beside streams"),
        (phase(&streams(), json!({"ios": 5})), "ios is given beside streams"),
        (phase(&streams(), json!({"duration_ns": null})), "an end is absent"),
        (phase(&streams(), json!({"refill": true, "max_in_flight": 16_384})), "refill is true"),
        (phase(&json!(many), json!({})), "the number of streams is 17"),
        (json!({"kind": "synthetic", "ios": 5, "arrivals": chained}), "arrivals is after_completion"),
    ] {
        let refused = bench.run(json!({"uri": SIM}), json!([phase])).err().unwrap();
        assert!(refused.message.contains(wanted), "{}", refused.message);
    }
}

#[test]
fn forced_writes_are_flagged_in_their_rows_and_take_until_their_data_are_durable() {
    let forced = |fua: bool| {
        json!([
            {"name": "reads", "arrivals": constant(500.0)},
            {"name": "writes", "read_share": 0.0, "fua": fua, "arrivals": constant(50.0)},
        ])
    };
    // Programs take so long that a write which waits for one cannot be missed.
    let drive = "sim:sata?capacity=64MiB&program=5ms&power_loss_protection=";
    let latencies = |fua: bool, protected: bool| {
        let ran = Bench::new().phase(&format!("{drive}{protected}"), phase(&forced(fua), json!({})));
        assert!(of(&ran, 0).iter().all(|row| row.flags == Flags::NONE));
        let writes = of(&ran, 1);
        assert!(writes.len() >= 49 && writes.iter().all(|row| row.flags.contains(Flags::FUA) == fua));
        writes.iter().map(|row| row.latency_ns).collect::<Vec<_>>()
    };
    let least = |latencies: Vec<i64>| latencies.into_iter().min().unwrap();
    assert!(least(latencies(true, false)) >= 5_000_000);
    assert!(least(latencies(false, false)) < 1_000_000);
    assert!(least(latencies(true, true)) < 1_000_000);
}

#[test]
fn what_cannot_be_forced_is_refused() {
    let refused =
        |phase: Value| Bench::new().run(json!({"uri": SIM}), json!([phase])).err().unwrap().to_string();
    let reads = json!([{"name": "reads", "fua": true, "arrivals": constant(500.0)}]);
    assert!(refused(phase(&reads, json!({})))
        .contains("streams[0] ('reads'): fua is true: give false without writes"));
    assert!(refused(phase(&streams(), json!({"fua": true}))).contains("fua is given beside streams"));
}
