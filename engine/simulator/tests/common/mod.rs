//! What every test of the drive needs: commands, a drive of round numbers, and closed loops.

#![allow(dead_code, reason = "each test file uses its own part")]

use testdrive_core::{Command, Completion, Flags, Opcode, SplitMix64, KIB};
use testdrive_simulator::{Model, SimulatedDrive};

pub fn command(opcode: Opcode, offset_bytes: u64, length_bytes: u64) -> Command {
    Command { offset_bytes, length_bytes, opcode, flags: Flags::NONE }
}

pub const FLUSH: Command =
    Command { offset_bytes: 0, length_bytes: 0, opcode: Opcode::Flush, flags: Flags::NONE };

/// A model whose every part costs nothing but what the test sets.
pub fn idle_model(overrides: &[(&str, &str)]) -> Model {
    let mut model = Model::builtin("enterprise-mixed").unwrap();
    let zero = [
        "firmware_read",
        "firmware_read_page",
        "firmware_write",
        "firmware_write_page",
        "firmware_metadata",
        "read_pipeline",
        "acknowledge",
        "trim_per_range",
        "trim_per_page",
        "nand_read_spread",
    ];
    model.set_all(zero.map(|key| (key, "0ns"))).unwrap();
    let fast = [("host_link", "1000000GB/s"), ("channel", "1000000GB/s")];
    let rest = [
        ("nand_read_time", "fixed"),
        ("programs_per_host_page", "1"),
        ("programs_per_moved_page", "1"),
        ("erase", "0ns"),
        ("suspends", "0"),
        ("initial_state", "written"),
    ];
    model.set_all(fast.into_iter().chain(rest).chain(overrides.iter().copied())).unwrap();
    model
}

/// Runs one command on a drive that has nothing else to do; returns its latency.
pub fn latency_alone_ns(drive: &mut SimulatedDrive, now_ns: i64, command: &Command) -> i64 {
    drive.submit(now_ns, 0, command);
    let completion = drive.pop_completed(i64::MAX).expect("a submitted command completes");
    assert_eq!(drive.in_flight(), 0);
    completion.complete_ns - now_ns
}

/// All that is in flight, to its end.
pub fn drain(drive: &mut SimulatedDrive) -> Vec<Completion> {
    std::iter::from_fn(|| drive.pop_completed(i64::MAX)).collect()
}

/// What a closed loop measured after its warm-up.
pub struct Measured {
    pub ios_per_s: f64,
    pub latency_mean_ns: f64,
}

/// Keeps `depth` commands in flight until `warm_up + ios` have completed.
pub fn closed_loop(
    drive: &mut SimulatedDrive,
    depth: u32,
    warm_up: u64,
    ios: u64,
    mut next: impl FnMut() -> Command,
) -> Measured {
    let mut submitted_ns = vec![0_i64; depth as usize];
    for slot in 0..depth {
        drive.submit(0, slot, &next());
    }
    let (mut start_ns, mut now_ns, mut latency_sum_ns) = (0, 0, 0);
    for completed in 0..warm_up + ios {
        let completion = drive.pop_completed(i64::MAX).expect("a closed loop never runs dry");
        assert_eq!(completion.status, 0);
        now_ns = completion.complete_ns;
        if completed == warm_up {
            start_ns = now_ns;
        }
        if completed >= warm_up {
            latency_sum_ns += now_ns - submitted_ns[completion.slot as usize];
        }
        submitted_ns[completion.slot as usize] = now_ns;
        drive.submit(now_ns, completion.slot, &next());
    }
    Measured {
        ios_per_s: (ios - 1) as f64 * 1e9 / (now_ns - start_ns) as f64,
        latency_mean_ns: latency_sum_ns as f64 / ios as f64,
    }
}

/// Commands of 4 KiB at random places of the drive.
pub fn random_4k(opcode: Opcode, capacity_bytes: u64, seed: u64) -> impl FnMut() -> Command {
    let mut random = SplitMix64::new(seed);
    move || command(opcode, random.below(capacity_bytes / (4 * KIB)) * 4 * KIB, 4 * KIB)
}

/// Commands of 128 KiB, one behind the other, again and again over the drive.
pub fn sequential_128k(opcode: Opcode, capacity_bytes: u64) -> impl FnMut() -> Command {
    let mut index = 0;
    move || {
        let offset_bytes = index % (capacity_bytes / (128 * KIB)) * 128 * KIB;
        index += 1;
        command(opcode, offset_bytes, 128 * KIB)
    }
}

pub fn assert_close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let off = measured / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{what}: {measured:.0} against {expected:.0}, off by {:.2} %",
        off * 100.0
    );
}
