//! The write buffer: how long a burst lasts, what flush and FUA wait for, and what reads find there.

mod common;

use common::{assert_close, closed_loop, command, drain, idle_model, latency_alone_ns, random_4k, FLUSH};
use testdrive_core::{Command, Flags, Opcode, KIB, MIB};
use testdrive_simulator::{Model, SimulatedDrive};

/// Sixteen dies, each with units of 16 KiB.
fn small_units(overrides: &[(&str, &str)]) -> Model {
    let mut model = idle_model(&[
        ("channels", "4"),
        ("dies_per_channel", "4"),
        ("program_unit_bytes", "16384"),
        ("power_loss_protection", "false"),
        ("program", "1ms"),
        ("write_buffer", "4MiB"),
    ]);
    model.set_all(overrides.iter().copied()).unwrap();
    model
}

/// When the first write of a burst at `in_per_s` waits for the buffer.
fn burst_ns(model: Model, in_per_s: f64) -> i64 {
    let mut drive = SimulatedDrive::new(model);
    for index in 0.. {
        let now_ns = (index as f64 * 4096e9 / in_per_s) as i64;
        drive.submit(now_ns, index, &command(Opcode::Write, u64::from(index) * 4 * KIB, 4 * KIB));
        // The host link takes a nanosecond.
        if drive.pop_completed(now_ns + 1).is_none() {
            return now_ns;
        }
    }
    unreachable!("a burst faster than the NAND fills the buffer");
}

#[test]
fn a_burst_lasts_for_the_buffer_over_what_comes_in_less_what_goes_out() {
    let out_per_s = 16.0 * 16384.0 / 1e-3;
    for (buffer_mib, times_out) in [(4, 2.0), (4, 10.0), (16, 1.5)] {
        let model = small_units(&[("write_buffer_bytes", &(buffer_mib * MIB).to_string())]);
        let measured_ns = burst_ns(model, times_out * out_per_s) as f64;
        let expected_ns = (buffer_mib * MIB) as f64 / (out_per_s * (times_out - 1.0)) * 1e9;
        // Places come back a unit at a time from each die, and a unit holds its places while it is programmed.
        let granularity = 16.0 * 16384.0 / (buffer_mib * MIB) as f64 * times_out;
        assert_close("burst", measured_ns, expected_ns, granularity.max(0.01));
        assert!(measured_ns <= expected_ns, "no burst outlasts its buffer");
    }
}

#[test]
fn writes_settle_at_what_the_dies_program() {
    for (overrides, programs_per_page) in [
        (&[("programs_per_host_page", "3")][..], 3.0),
        // Reclaiming at 28 % from the first write on, and parity for what it moves.
        (&[("initial_state", "steady"), ("op", "28%")][..], 2.48),
        (
            &[("initial_state", "steady"), ("op", "28%"), ("programs_per_moved_page", "1.5")][..],
            1.0 + 1.48 * 1.5,
        ),
    ] {
        let mut model = small_units(overrides);
        model.set("capacity", "8GiB").unwrap();
        let next = random_4k(Opcode::Write, model.parameters().capacity_bytes, 1);
        let mut drive = SimulatedDrive::new(model);
        let measured = closed_loop(&mut drive, 32, 5_000, 200_000, next);
        assert_close("random writes", measured.ios_per_s, 16.0 * 4.0 / 1e-3 / programs_per_page, 0.015);
        let counters = drive.counters();
        let programs = counters.host_programs + counters.moved_programs + counters.overhead_programs;
        let expected = programs_per_page * counters.host_programs as f64;
        assert_close("programs", programs as f64, expected, 0.015);
    }
}

/// Zeroes against random data, where the NAND is the limit: as many more as the drive compresses.
#[test]
fn compressible_data_is_written_faster_by_the_ratio_to_which_it_compresses() {
    let rate = |share: f64| {
        let mut model =
            small_units(&[("compresses_to", "0.125"), ("capacity", "8GiB"), ("initial_state", "empty")]);
        model
            .set_all([
                ("program_unit", "256KiB"),
                ("program", "16ms"),
                ("erase_block", "1MiB"),
                ("write_buffer", "128MiB"),
            ])
            .unwrap();
        let next = random_4k(Opcode::Write, 8 << 30, 1);
        let mut drive = SimulatedDrive::new(model);
        drive.set_stored_share(share);
        let measured = closed_loop(&mut drive, 64, 100_000, 400_000, next);
        let written = drive.nand_written_bytes() as f64 / drive.counters().host.written_bytes as f64;
        assert_close("bytes to the NAND", written * 1e3, share.max(0.125) * 1e3, 0.02);
        measured.ios_per_s
    };
    let whole = rate(1.0);
    assert_close("random data", whole, 16.0 * 64.0 / 16e-3, 0.02);
    // A unit is closed when a whole page might not fit any more: of 64 pages that leaves half of one or so.
    for (share, ratio) in [(0.5, 2.0), (0.125, 8.0), (0.0, 8.0)] {
        assert_close("compressed data", rate(share), whole * ratio, 0.03);
    }
}

#[test]
fn erases_take_their_share_of_the_dies() {
    // A block of 64 units of 1 ms, erased in 16 ms for every one that is written.
    let mut model = small_units(&[("initial_state", "steady"), ("erase", "16ms")]);
    model.set_all([("erase_block", "1MiB"), ("capacity", "8GiB"), ("op", "28%")]).unwrap();
    let next = random_4k(Opcode::Write, model.parameters().capacity_bytes, 1);
    let mut drive = SimulatedDrive::new(model);
    let measured = closed_loop(&mut drive, 32, 5_000, 200_000, next);
    let per_page_s = 2.48 * (1e-3 + 16e-3 / 64.0) / (16.0 * 4.0);
    assert_close("random writes", measured.ios_per_s, 1.0 / per_page_s, 0.02);
}

#[test]
fn a_flush_waits_until_what_is_buffered_is_programmed() {
    let mut drive = SimulatedDrive::new(small_units(&[]));
    assert_eq!(latency_alone_ns(&mut drive, 0, &FLUSH), 0, "nothing is buffered");
    assert_eq!(latency_alone_ns(&mut drive, 10, &command(Opcode::Write, 0, 4 * KIB)), 1);
    let flush_ns = latency_alone_ns(&mut drive, 20, &FLUSH);
    assert_eq!(flush_ns / 1_000, 1_000, "one program, though the unit is not full");
    assert_eq!(latency_alone_ns(&mut drive, 1 << 30, &FLUSH), 0, "all of it is durable by now");
}

#[test]
fn a_flush_waits_for_earlier_writes_only() {
    let mut drive = SimulatedDrive::new(small_units(&[("channels", "1"), ("dies_per_channel", "1")]));
    drive.submit(0, 0, &command(Opcode::Write, 0, 4 * KIB));
    drive.submit(10, 1, &FLUSH);
    drive.submit(20, 2, &command(Opcode::Write, MIB, 64 * KIB));
    drive.submit(30, 3, &FLUSH);
    let done = drain(&mut drive);
    let at_us = |slot| done.iter().find(|done| done.slot == slot).unwrap().complete_ns / 1_000;
    assert_eq!((at_us(0), at_us(1), at_us(2), at_us(3)), (0, 1_000, 0, 5_000));
}

#[test]
fn power_loss_protection_makes_flush_and_fua_instant() {
    let mut drive = SimulatedDrive::new(small_units(&[("power_loss_protection", "true")]));
    latency_alone_ns(&mut drive, 0, &command(Opcode::Write, 0, 4 * KIB));
    assert_eq!(latency_alone_ns(&mut drive, 10, &FLUSH), 0);
    let forced = Command { flags: Flags::FUA | Flags::PREFLUSH, ..command(Opcode::Write, 0, 4 * KIB) };
    assert_eq!(latency_alone_ns(&mut drive, 20, &forced), 1);
}

#[test]
fn fua_waits_for_its_own_data_and_preflush_for_what_came_before() {
    let mut drive = SimulatedDrive::new(small_units(&[]));
    let write = command(Opcode::Write, 0, 4 * KIB);
    let with = |flags| Command { flags, ..write };
    assert_eq!(latency_alone_ns(&mut drive, 0, &with(Flags::FUA)) / 1_000, 1_000);
    // Nothing is buffered, and without FUA the write's own data may stay there.
    let base_ns = 1 << 30;
    assert_eq!(latency_alone_ns(&mut drive, base_ns, &with(Flags::PREFLUSH)), 1);
    assert_eq!(latency_alone_ns(&mut drive, base_ns + 10, &with(Flags::PREFLUSH)) / 1_000, 1_000);
    assert_eq!(latency_alone_ns(&mut drive, 2 * base_ns, &with(Flags::PREFLUSH | Flags::FUA)) / 1_000, 2_000);
}

#[test]
fn reads_of_buffered_pages_come_from_dram() {
    let mut drive = SimulatedDrive::new(small_units(&[("nand_read", "50us")]));
    latency_alone_ns(&mut drive, 0, &command(Opcode::Write, 0, 8 * KIB));
    assert_eq!(latency_alone_ns(&mut drive, 100, &command(Opcode::Read, 0, 8 * KIB)), 1);
    assert_eq!((drive.counters().nand_reads, drive.counters().buffered_pages_read), (0, 2));
    latency_alone_ns(&mut drive, 200, &FLUSH);
    assert_eq!(latency_alone_ns(&mut drive, 1 << 30, &command(Opcode::Read, 0, 8 * KIB)) / 1_000, 50);
    assert_eq!(drive.counters().nand_reads, 1);
}

#[test]
fn a_write_larger_than_the_buffer_passes_through_it() {
    let mut drive = SimulatedDrive::new(small_units(&[("write_buffer_bytes", "262144")]));
    let latency_ns = latency_alone_ns(&mut drive, 0, &command(Opcode::Write, 0, 4 * MIB));
    // Sixteen dies, of which each programs a unit a millisecond; what is in the buffer at the end need not be programmed.
    let rounds = (4 * MIB - 256 * KIB) / (16 * 16 * KIB);
    assert_eq!(latency_ns / 1_000_000, rounds as i64);
}
