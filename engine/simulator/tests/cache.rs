//! The SLC cache: where the knee is, what is before and behind it, and what idle time gives back.

mod common;

use common::{assert_close, command, idle_model, latency_alone_ns, sequential_128k};
use testdrive_core::{Opcode, KIB, MIB};
use testdrive_simulator::{EventKind, Model, SimulatedDrive};

/// Sixteen dies: units of 64 KiB in 0.25 ms before the knee, of 192 KiB in 3 ms behind it.
fn cached(overrides: &[(&str, &str)]) -> Model {
    let mut model = idle_model(&[
        ("channels", "4"),
        ("dies_per_channel", "4"),
        ("capacity", "16GiB"),
        ("initial_state", "empty"),
        ("slc_static_share", "0.0625"),
        ("slc_program", "250us"),
        ("program", "3ms"),
        ("slc_unit", "64KiB"),
        ("slc_idle", "100ms"),
        ("write_buffer", "8MiB"),
    ]);
    model.set_all(overrides.iter().copied()).unwrap();
    model
}

/// Bytes a second before and behind the knee, and the bytes written until the knee, of a long sequential write.
fn plateaus_and_knee(drive: &mut SimulatedDrive, total_bytes: u64) -> (f64, f64, f64) {
    let mut next = sequential_128k(Opcode::Write, drive.model().parameters().capacity_bytes);
    for slot in 0..32 {
        drive.submit(0, slot, &next());
    }
    let mut times_ns = Vec::new();
    for _ in 0..total_bytes / (128 * KIB) {
        let done = drive.pop_completed(i64::MAX).unwrap();
        times_ns.push(done.complete_ns as f64);
        drive.submit(done.complete_ns, done.slot, &next());
    }
    let rate = |from: usize, to: usize| {
        (to - from) as f64 * (128 * KIB) as f64 * 1e9 / (times_ns[to] - times_ns[from])
    };
    let last = times_ns.len() - 1;
    let (fast, slow) = (rate(last / 50, last / 20), rate(last * 3 / 4, last));
    // Two straight lines meet where the time lost against the fast one begins to grow.
    let total = last as f64 * (128 * KIB) as f64;
    let knee = (total / slow - times_ns[last] / 1e9) / (1.0 / slow - 1.0 / fast);
    (fast, slow, knee)
}

#[test]
fn a_full_cache_shows_as_a_knee_between_two_plateaus() {
    let fast = 16.0 * 65536.0 / 250e-6;
    // Past the cache, or through it: three units of the cache and one of what they are folded into.
    for (when_full, slow) in
        [("direct", 16.0 * 196_608.0 / 3e-3), ("fold", 16.0 * 196_608.0 / (3e-3 + 3.0 * 250e-6))]
    {
        let mut drive = SimulatedDrive::new(cached(&[("slc_when_full", when_full)]));
        let (fast_measured, slow_measured, knee) = plateaus_and_knee(&mut drive, 4 << 30);
        assert_close("before the knee", fast_measured, fast, 0.02);
        assert_close("behind the knee", slow_measured, slow, 0.02);
        assert_close(when_full, knee, f64::from(1 << 30), 0.02);
        let kind = if when_full == "fold" { EventKind::SlcFolding } else { EventKind::SlcFull };
        assert!(drive.take_events(i64::MAX).0.iter().any(|event| event.kind == kind), "{when_full}");
    }
}

#[test]
fn a_dynamic_cache_lends_the_cells_that_hold_nothing() {
    // All that is written stays in it until it is full, at x = share * (capacity - x) / 3.
    let mut drive = SimulatedDrive::new(cached(&[("slc_static_share", "0"), ("slc_dynamic_share", "0.6")]));
    let (_, _, knee) = plateaus_and_knee(&mut drive, 8 << 30);
    assert_close("knee", knee, 0.2 * 16.0 / 1.2 * f64::from(1 << 30), 0.02);
    let mut model =
        cached(&[("slc_static_share", "0"), ("slc_dynamic_share", "0.6"), ("initial_state", "written")]);
    model.set("programs_per_host_page", "1").unwrap();
    let mut drive = SimulatedDrive::new(model);
    latency_alone_ns(&mut drive, 0, &command(Opcode::Write, 0, 8 * MIB));
    assert_eq!(drive.counters().cached_programs, 0, "a full drive lends nothing");
}

#[test]
fn an_idle_drive_empties_its_cache_and_a_busy_one_does_not() {
    let mut drive = SimulatedDrive::new(cached(&[]));
    for index in 0..64 {
        latency_alone_ns(
            &mut drive,
            index * 50_000_000,
            &command(Opcode::Write, index as u64 * 8 * MIB, 8 * MIB),
        );
    }
    assert_eq!(drive.counters().folded_programs, 0, "writes came every 50 ms");
    // At half of the NAND's time: 512 MiB at 16 dies * 192 KiB / 3 ms / 2 take a second.
    let idle_ns = 64 * 50_000_000 + 1_500_000_000;
    latency_alone_ns(&mut drive, idle_ns, &command(Opcode::Read, 0, 4 * KIB));
    let counters = drive.counters();
    assert_close("folded", counters.pages.folded_pages as f64, 64.0 * 2048.0, 0.01);
    assert_eq!(counters.pages.moved_pages, 0);
    let (events, _) = drive.take_events(idle_ns);
    let folding_ns: i64 =
        events.iter().filter(|event| event.kind == EventKind::SlcFolding).map(|event| event.busy_ns).sum();
    assert_close("folding", folding_ns as f64 / 1e6, 1_024.0, 0.05);
}

#[test]
fn what_is_overwritten_in_the_cache_is_not_folded() {
    let mut drive = SimulatedDrive::new(cached(&[]));
    for index in 0..16 {
        latency_alone_ns(&mut drive, index * 10_000_000, &command(Opcode::Write, 0, 8 * MIB));
    }
    latency_alone_ns(&mut drive, 10_000_000_000, &command(Opcode::Read, 0, 4 * KIB));
    let folded = drive.counters().pages.folded_pages;
    assert!((1900..=2048).contains(&folded), "{folded} of the last 2048 pages");
}

/// The built-in models, a tenth of their size: the knees of the reference figures and the rates behind them.
#[test]
fn the_consumer_models_have_the_knees_and_the_rates_of_the_reference_figures() {
    for (name, knee_gb, slow_mb_per_s) in [
        ("consumer-dramless", 160.0, 550.0),
        ("consumer-dramless-small-slc", 15.0, 840.0),
        ("consumer-highend", 113.0, 1750.0),
        ("consumer-qlc", 70.0, 100.0),
    ] {
        let mut model = Model::builtin(name).unwrap();
        let tenth = (model.parameters().capacity_bytes / 40_960 * 4096).to_string();
        model.set_all([("capacity_bytes", tenth.as_str()), ("initial_state", "empty")]).unwrap();
        let mut drive = SimulatedDrive::new(model);
        let (_, slow, knee) = plateaus_and_knee(&mut drive, (knee_gb * 0.2e9) as u64);
        println!("{name}: knee at {:.1} GB of the whole, then {:.0} MB/s", knee / 1e8, slow / 1e6);
        assert_close(name, knee / 1e6, knee_gb * 100.0, 0.05);
        assert_close(name, slow / 1e6, slow_mb_per_s, 0.05);
    }
}
