//! What a drive draws, what a budget costs, and when it gets too hot.

mod common;

use common::{assert_close, closed_loop, command, idle_model, latency_alone_ns, random_4k};
use testdrive_core::{Opcode, KIB};
use testdrive_simulator::{EventKind, Model, SimulatedDrive};

/// 1 W idle and 3 W active; programs of 48 pages at 250 mW for 2 ms are 0.5 mJ.
fn powered(overrides: &[(&str, &str)]) -> Model {
    let mut model = idle_model(&[
        ("capacity", "8GiB"),
        ("nand_read", "50us"),
        ("program", "2ms"),
        ("power_idle_mw", "1000"),
        ("power_active_mw", "3000"),
        ("power_limit_mw", "0"),
        ("nand_supply_mv", "2500"),
        ("nand_read_ma", "20"),
        ("nand_program_ma", "100"),
    ]);
    model.set_all(overrides.iter().copied()).unwrap();
    model
}

#[test]
fn energy_is_that_of_being_on_and_of_every_operation() {
    let mut drive = SimulatedDrive::new(powered(&[]));
    closed_loop(&mut drive, 32, 0, 50_000, random_4k(Opcode::Read, 8 << 30, 1));
    let end_ns = common::drain(&mut drive).last().unwrap().complete_ns;
    // Waking up books what was drawn until then.
    drive.submit(end_ns + 10_000_000_000, 0, &command(Opcode::Read, 0, 4 * KIB));
    let counters = drive.counters();
    let expected_uj = 3e-3 * end_ns as f64 + 1e-3 * 10e9 + counters.nand_reads as f64 * 0.05 * 50.0;
    assert_close("energy", counters.energy_uj as f64, expected_uj, 1e-5);
    let series = drive.power_series();
    assert_eq!(series.energy_pj.iter().sum::<u64>() / 1_000_000, counters.energy_uj);
    let idle_mw = series.energy_pj[series.energy_pj.len() - 2] / series.interval_ns.cast_unsigned();
    assert_eq!(idle_mw, 1000);
}

#[test]
fn a_power_limit_lets_so_many_programs_run_as_it_pays_for() {
    // A watt over the active drive pays for 2,000 programs a second, of 32,000 that the dies could do.
    let mut drive = SimulatedDrive::new(powered(&[("power_limit_mw", "4000")]));
    let next = random_4k(Opcode::Write, 8 << 30, 2);
    let measured = closed_loop(&mut drive, 32, 20_000, 100_000, next);
    assert_close("writes", measured.ios_per_s, 2_000.0 * 48.0, 0.02);
    let energy_w = drive.counters().energy_uj as f64 / 1e6;
    let seconds = 120_000.0 / measured.ios_per_s;
    assert!(energy_w / seconds < 4.3, "{energy_w} J in {seconds} s");
    let (events, _) = drive.take_events(i64::MAX);
    assert!(events.iter().any(|event| event.kind == EventKind::PowerLimit && event.amount > 0));
}

#[test]
fn a_drive_that_sleeps_takes_its_time_to_wake_up() {
    let mut drive = SimulatedDrive::new(powered(&[
        ("power_sleep_after", "1s"),
        ("power_sleep_exit", "30ms"),
        ("power_sleep_mw", "20"),
    ]));
    let read = command(Opcode::Read, 0, 4 * KIB);
    assert_eq!(latency_alone_ns(&mut drive, 0, &read) / 1_000, 50);
    assert_eq!(latency_alone_ns(&mut drive, 900_000_000, &read) / 1_000, 50);
    assert_eq!(latency_alone_ns(&mut drive, 11_000_000_000, &read) / 1_000, 30_050);
}

/// Programs at full load of 64 dies draw about 15 W: at 4 degrees a watt from 25 the throttle at 70 comes after -RC ln(1 - 45 / (P R)).
#[test]
fn a_drive_under_load_is_throttled_when_it_gets_too_hot_and_released_when_it_cooled_down() {
    let mut drive = SimulatedDrive::new(powered(&[
        ("thermal_resistance_mc_per_w", "4000"),
        ("thermal_time_constant", "2s"),
        ("thermal_ambient_mc", "25000"),
        ("thermal_throttle_mc", "70000"),
        ("thermal_release_mc", "60000"),
        ("thermal_throttled_mw", "4000"),
        ("over_provisioning", "0.9"),
        ("initial_state", "empty"),
        ("trim_mode", "free"),
    ]));
    // Over and over the same megabytes, so that nothing needs to be moved.
    let mut next = common::sequential_128k(Opcode::Write, 64 << 20);
    for slot in 0..32 {
        drive.submit(0, slot, &next());
    }
    let (mut throttled_ns, mut before_pj) = (None, 0);
    let mut completions = 0_u64;
    while throttled_ns.is_none() {
        let done = drive.pop_completed(i64::MAX).unwrap();
        completions += 1;
        if drive.temperature_c().unwrap() >= 70.0 {
            throttled_ns = Some(done.complete_ns);
            before_pj = drive.power_series().energy_pj.iter().sum();
        }
        drive.submit(done.complete_ns, done.slot, &next());
    }
    let throttled_s = throttled_ns.unwrap() as f64 / 1e9;
    let power_w = before_pj as f64 / 1e12 / throttled_s;
    let expected_s = -2.0 * (1.0 - 45.0 / (power_w * 4.0)).ln();
    assert!(power_w > 12.0, "{power_w} W");
    assert_close("time to throttle", throttled_s * 1e3, expected_s * 1e3, 0.02);
    let full = completions as f64 / throttled_s;
    // A second later it is at a fraction of the rate.
    let (start_ns, mut after) = (throttled_ns.unwrap(), 0);
    loop {
        let done = drive.pop_completed(i64::MAX).unwrap();
        after += 1;
        drive.submit(done.complete_ns, done.slot, &next());
        if done.complete_ns > start_ns + 300_000_000 {
            break;
        }
    }
    assert!(f64::from(after) / 0.3 < 0.3 * full, "{after} in 0.3 s against {full} a second");
    let (events, _) = drive.take_events(i64::MAX);
    let throttles: u64 = events
        .iter()
        .filter(|event| event.kind == EventKind::ThermalThrottle)
        .map(|event| event.amount)
        .sum();
    assert_eq!(throttles, 1);
}
