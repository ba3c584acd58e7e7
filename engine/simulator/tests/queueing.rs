//! The drive against queueing theory and against the sum of its parts.

mod common;

use common::{assert_close, closed_loop, command, drain, idle_model, latency_alone_ns, random_4k};
use testdrive_core::{Opcode, KIB};
use testdrive_simulator::SimulatedDrive;

/// A closed network of D equal servers with exponential service S, which N customers visit at random, serves
/// X(N) = (D/S) * N / (N + D - 1) a second: the product form of Gordon and Newell, 1967.
#[test]
fn throughput_of_exponential_dies_is_the_closed_form() {
    let (channels, dies_per_channel, service_ns) = (4, 4, 50_000);
    let model = idle_model(&[
        ("channels", "4"),
        ("dies_per_channel", "4"),
        ("planes_per_die", "1"),
        ("nand_read", "50us"),
        ("nand_read_time", "exponential"),
    ]);
    let dies = f64::from(channels * dies_per_channel);
    for depth in [1, 4, 16, 64, 256] {
        let mut drive = SimulatedDrive::new(model.clone());
        let next = random_4k(Opcode::Read, model.parameters().capacity_bytes, u64::from(depth));
        let measured = closed_loop(&mut drive, depth, 10_000, 150_000, next);
        let customers = f64::from(depth);
        let expected = dies / f64::from(service_ns) * 1e9 * customers / (customers + dies - 1.0);
        assert_close(&format!("depth {depth}"), measured.ios_per_s, expected, 0.01);
        // Little's law: what is in flight is the rate times the time that each takes.
        let in_flight = measured.ios_per_s * measured.latency_mean_ns / 1e9;
        assert_close("customers in flight", in_flight * 1e3, customers * 1e3, 0.01);
    }
}

#[test]
fn throughput_at_depth_is_that_of_the_slowest_single_server() {
    for (overrides, expected_per_s) in [
        ([("firmware_read", "2us"), ("nand_read", "10us")], 500_000.0),
        ([("host_link", "1GB/s"), ("nand_read", "10us")], 1e9 / 4096.0),
        ([("channel", "10MB/s"), ("channels", "1")], 1e7 / 4096.0),
    ] {
        let mut drive = SimulatedDrive::new(idle_model(&overrides));
        let next = random_4k(Opcode::Read, 1 << 40, 1);
        let measured = closed_loop(&mut drive, 64, 1_000, 5_000, next);
        assert_close(overrides[0].0, measured.ios_per_s, expected_per_s, 0.001);
    }
}

#[test]
fn latency_of_a_read_alone_is_the_sum_of_its_parts() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("firmware_read", "1us"),
        ("firmware_read_page", "100ns"),
        ("read_pipeline", "20us"),
        ("nand_read", "50us"),
        ("channel", "800MB/s"),
        ("host_link", "2GB/s"),
    ]));
    let parts_ns = 1_000 + 100 + 20_000 + 50_000 + 4096 * 10 / 8 + 4096 / 2;
    assert_eq!(latency_alone_ns(&mut drive, 0, &command(Opcode::Read, 0, 4 * KIB)), parts_ns);
    // One NAND page: read at once, its four pages one behind the other on the channel.
    let parts_ns = 1_000 + 400 + 20_000 + 50_000 + 4 * 4096 * 10 / 8 + 4 * 4096 / 2;
    assert_eq!(latency_alone_ns(&mut drive, 1 << 30, &command(Opcode::Read, 0, 16 * KIB)), parts_ns);
}

#[test]
fn latency_of_a_write_alone_is_the_sum_of_its_parts() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("firmware_write", "500ns"),
        ("firmware_write_page", "460ns"),
        ("acknowledge", "4us"),
        ("host_link", "2GB/s"),
    ]));
    let parts_ns = 500 + 2 * 460 + 8192 / 2 + 4_000;
    assert_eq!(latency_alone_ns(&mut drive, 0, &command(Opcode::Write, 0, 8 * KIB)), parts_ns);
}

#[test]
fn commands_beyond_the_queue_depth_wait_for_one_to_complete() {
    let one_at_a_time =
        [("queue_depth", "2"), ("nand_read", "10us"), ("channels", "64"), ("planes_per_die", "16")];
    let mut drive = SimulatedDrive::new(idle_model(&one_at_a_time));
    for slot in 0..6 {
        // Far apart, so that no two share a plane by more than chance; the seed is fixed, and here none do.
        drive.submit(0, slot, &command(Opcode::Read, u64::from(slot) << 20, 4 * KIB));
    }
    let times_us: Vec<i64> = drain(&mut drive).iter().map(|done| done.complete_ns / 1_000).collect();
    assert_eq!(times_us, [10, 10, 20, 20, 30, 30]);
}

#[test]
fn times_may_be_negative() {
    let mut drive = SimulatedDrive::new(idle_model(&[("nand_read", "10us")]));
    assert_eq!(latency_alone_ns(&mut drive, -1_000_000, &command(Opcode::Read, 0, 4 * KIB)), 10_000 + 2);
}

#[test]
fn a_read_waits_for_the_program_that_runs_but_overtakes_those_that_wait() {
    let one_die = [
        ("channels", "1"),
        ("dies_per_channel", "1"),
        ("planes_per_die", "1"),
        ("nand_read", "10us"),
        ("program", "1ms"),
    ];
    let units = 3;
    for (reads_before_program, expected_us) in [("0", 3_010), ("1", 1_010)] {
        let mut model = idle_model(&one_die);
        model.set("reads_before_program", reads_before_program).unwrap();
        let unit_bytes = model.parameters().program_unit_bytes;
        let mut drive = SimulatedDrive::new(model);
        for unit in 0..units {
            drive.submit(0, unit, &command(Opcode::Write, u64::from(unit) * unit_bytes, unit_bytes));
        }
        assert_eq!(drive.counters().host_programs, 0, "nothing is programmed before its data is there");
        drive.submit(500_000, 9, &command(Opcode::Read, 1 << 30, 4 * KIB));
        let read = drain(&mut drive).into_iter().find(|done| done.slot == 9).unwrap();
        assert_eq!(
            read.complete_ns / 1_000,
            expected_us,
            "with {reads_before_program} reads before a program"
        );
    }
}

#[test]
fn reads_do_not_hold_up_programs_without_end() {
    let one_plane =
        [("channels", "1"), ("dies_per_channel", "1"), ("planes_per_die", "1"), ("nand_read", "10us")];
    let mut model = idle_model(&one_plane);
    model
        .set_all([("program", "100us"), ("reads_before_program", "4"), ("power_loss_protection", "false")])
        .unwrap();
    let mut drive = SimulatedDrive::new(model);
    for slot in 0..20 {
        drive.submit(0, slot, &command(Opcode::Read, 1 << 30, 4 * KIB));
    }
    drive.submit(1_000, 20, &command(Opcode::Write, 0, 4 * KIB));
    drive.submit(1_500, 21, &common::FLUSH);
    for slot in 22..42 {
        drive.submit(2_000, slot, &command(Opcode::Read, 1 << 30, 4 * KIB));
    }
    let flush = drain(&mut drive).into_iter().find(|done| done.slot == 21).unwrap();
    // The twenty reads that came first, four that overtook, and the program.
    assert_eq!(flush.complete_ns / 1_000, 20 * 10 + 4 * 10 + 100);
}
