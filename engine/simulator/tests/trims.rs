//! What a storm of trims does to everything else, and what trimmed ranges are afterwards.

mod common;

use common::{assert_close, command, drain, idle_model, latency_alone_ns, random_4k};
use testdrive_core::{Opcode, KIB, MIB};
use testdrive_simulator::{closed_form_write_amplification, SimulatedDrive};

const TRIM_COUNT: u32 = 3_000;
const TRIM_BYTES: u64 = 2 * MIB;
const TRIM_PAGES: i64 = 512;

/// Submits the storm at 0 and a read behind it; returns the drive and when the read was done.
fn read_behind_a_storm_ns(overrides: &[(&str, &str)]) -> (SimulatedDrive, i64) {
    let mut drive = SimulatedDrive::new(idle_model(overrides));
    for slot in 0..TRIM_COUNT {
        drive.submit(0, slot, &command(Opcode::Trim, u64::from(slot) * TRIM_BYTES, TRIM_BYTES));
    }
    drive.submit(0, TRIM_COUNT, &command(Opcode::Read, 1 << 39, 4 * KIB));
    let done = drain(&mut drive);
    assert_eq!(done.len(), TRIM_COUNT as usize + 1);
    let read = done.iter().find(|done| done.slot == TRIM_COUNT).unwrap();
    let read_ns = read.complete_ns;
    (drive, read_ns)
}

#[test]
fn a_storm_in_the_firmware_stalls_for_its_count_times_its_cost() {
    let (_, read_ns) = read_behind_a_storm_ns(&[
        ("trim_mode", "firmware"),
        ("trim_per_range", "20us"),
        ("trim_per_page", "0.7us"),
        ("nand_read", "50us"),
    ]);
    assert_eq!(read_ns, i64::from(TRIM_COUNT) * (20_000 + TRIM_PAGES * 700) + 50_000 + 2);
}

#[test]
fn a_storm_that_is_free_costs_its_commands_only() {
    let overrides = [
        ("trim_mode", "free"),
        ("trim_per_page", "0.7us"),
        ("firmware_metadata", "100ns"),
        ("nand_read", "50us"),
    ];
    let (drive, read_ns) = read_behind_a_storm_ns(&overrides);
    assert_eq!(read_ns, i64::from(TRIM_COUNT) * 100 + 50_000 + 2);
    assert_eq!(drive.counters().trim_owed_ns, 0);
}

/// With work W at a share s in slices of length d, trims end after W/s; meanwhile a read that comes at a random time finds a
/// slice with probability s, and then waits for d/2 on average.
#[test]
fn a_storm_in_the_background_takes_its_share_until_it_is_worked_off() {
    let (work_ns, share, slice_ns) = (i64::from(TRIM_COUNT) * TRIM_PAGES * 1_000, 0.25, 1_000_000_f64);
    let (mut drive, first_ns) = read_behind_a_storm_ns(&[
        ("trim_mode", "background"),
        ("trim_per_page", "1us"),
        ("trim_slice", "1ms"),
        ("trim_share", "0.25"),
        ("nand_read", "10us"),
    ]);
    assert!(
        first_ns <= 1_000_000 + 10_002,
        "the storm is accepted at once: at most one slice is ahead of the read"
    );
    let end_ns = (work_ns as f64 / share) as i64;
    // 1,234,567 ns has no simple ratio to the 4 ms between slices, so that reads sample every moment of them.
    let step_ns = 1_234_567;
    let (mut before, mut wait_sum_ns, mut now_ns) = (0, 0, step_ns);
    while now_ns < end_ns - 4_000_000 {
        wait_sum_ns +=
            latency_alone_ns(&mut drive, now_ns, &command(Opcode::Read, 1 << 39, 4 * KIB)) - 10_002;
        before += 1;
        now_ns += step_ns;
        assert!(drive.counters().trim_owed_ns > 0);
    }
    assert_close("mean wait", wait_sum_ns as f64 / f64::from(before), share * slice_ns / 2.0, 0.02);
    let latency_ns = latency_alone_ns(&mut drive, end_ns + 1, &command(Opcode::Read, 1 << 39, 4 * KIB));
    assert_eq!((latency_ns, drive.counters().trim_owed_ns), (10_002, 0));
}

#[test]
fn trimmed_and_never_written_pages_are_read_without_nand() {
    let mut drive = SimulatedDrive::new(idle_model(&[("initial_state", "empty"), ("nand_read", "50us")]));
    let read = command(Opcode::Read, 0, 16 * KIB);
    assert_eq!(latency_alone_ns(&mut drive, 0, &read), 1);
    latency_alone_ns(&mut drive, 1 << 20, &command(Opcode::Write, 4 * KIB, 192 * KIB));
    // By now the whole unit is programmed and gone from the buffer.
    assert_eq!(latency_alone_ns(&mut drive, 1 << 30, &read) / 1_000, 50);
    for opcode in [Opcode::Trim, Opcode::WriteZeroes] {
        let mut drive = drive.clone();
        latency_alone_ns(&mut drive, 2 << 30, &command(opcode, 4 * KIB, 12 * KIB));
        assert_eq!(latency_alone_ns(&mut drive, 3 << 30, &read), 1, "after {}", opcode.name());
        assert_eq!(drive.counters().nand_reads, 1);
        assert_eq!(drive.counters().unmapped_pages_read, 4 + 1 + 4);
    }
}

/// Trimmed pages are spare: with a share t of the drive trimmed and left so, the ratio of NAND to data grows to a / (1 - t).
#[test]
fn trimmed_pages_add_to_the_over_provisioning() {
    let model =
        idle_model(&[("capacity", "4GiB"), ("op", "7%"), ("initial_state", "steady"), ("program", "1us")]);
    let mut drive = SimulatedDrive::new(model);
    let kept_bytes = (4_u64 << 30) / 5 * 4 / (4 * KIB) * 4 * KIB;
    latency_alone_ns(&mut drive, 0, &command(Opcode::Trim, kept_bytes, (4 << 30) - kept_bytes));
    let mut next = random_4k(Opcode::Write, kept_bytes, 1);
    let (mut now_ns, mut before) = (1_000_000_000, drive.counters().pages);
    for index in 0..6_000_000 {
        if index == 3_000_000 {
            before = drive.counters().pages;
        }
        latency_alone_ns(&mut drive, now_ns, &next());
        now_ns += 1_000;
    }
    let measured = drive.counters().pages.since(&before).write_amplification();
    let expected = closed_form_write_amplification(1.07 / 0.8);
    assert_close("write amplification", measured * 1e3, expected * 1e3, 0.015);
}
