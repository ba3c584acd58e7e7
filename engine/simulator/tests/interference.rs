//! What reads meet: programs that they interrupt or wait for, and housekeeping.

mod common;

use common::{assert_close, command, drain, idle_model, latency_alone_ns, random_4k};
use testdrive_core::{Opcode, SplitMix64, KIB};
use testdrive_simulator::{EventKind, SimulatedDrive};

const ONE_DIE: [(&str, &str); 6] = [
    ("channels", "1"),
    ("dies_per_channel", "1"),
    ("planes_per_die", "1"),
    ("nand_read", "50us"),
    ("program", "2ms"),
    ("suspend", "20us"),
];

#[test]
fn a_read_interrupts_a_program_which_takes_so_much_longer() {
    let mut model = idle_model(&ONE_DIE);
    model.set_all([("suspends", "4"), ("power_loss_protection", "false")]).unwrap();
    let mut drive = SimulatedDrive::new(model);
    drive.submit(0, 0, &command(Opcode::Write, 0, 4 * KIB));
    drive.submit(10, 1, &common::FLUSH);
    drive.submit(500_000, 2, &command(Opcode::Read, 1 << 30, 4 * KIB));
    let done = drain(&mut drive);
    let at_us = |slot| done.iter().find(|done| done.slot == slot).unwrap().complete_ns / 1_000;
    assert_eq!(at_us(2), 500 + 20 + 50);
    assert_eq!(at_us(1), 2_000 + 20 + 50 + 20);
    assert_eq!(drive.counters().suspends, 1);
}

#[test]
fn a_program_is_interrupted_no_more_often_than_the_drive_allows() {
    for (suspends, expected_us) in [("0", 2_000), ("1", 2_090), ("3", 2_270)] {
        let mut model = idle_model(&ONE_DIE);
        model.set_all([("suspends", suspends), ("power_loss_protection", "false")]).unwrap();
        let mut drive = SimulatedDrive::new(model);
        drive.submit(0, 0, &command(Opcode::Write, 0, 4 * KIB));
        drive.submit(10, 1, &common::FLUSH);
        for read in 0..8 {
            drive.submit(100_000 + read * 200_000, 2 + read as u32, &command(Opcode::Read, 1 << 30, 4 * KIB));
        }
        let done = drain(&mut drive);
        let flush = done.iter().find(|done| done.slot == 1).unwrap();
        assert_eq!(flush.complete_ns / 1_000, expected_us, "{suspends} at most");
    }
}

/// Reads at random times on a die that programs a share r of the time: without interruption a read meets a program with that
/// chance and waits for up to all of it; with it, for 20 us.
#[test]
fn interruption_takes_programs_out_of_the_tail_of_reads() {
    let p99_us = |suspends: &str| {
        let mut model = idle_model(&[("nand_read", "50us"), ("program", "2ms"), ("suspend", "20us")]);
        model.set_all([("suspends", suspends), ("capacity", "8GiB")]).unwrap();
        let mut drive = SimulatedDrive::new(model);
        let (mut reads, mut writes) =
            (random_4k(Opcode::Read, 8 << 30, 1), random_4k(Opcode::Write, 8 << 30, 2));
        let mut random = SplitMix64::new(3);
        let mut submitted = Vec::new();
        let mut now_ns = 0;
        for slot in 0..100_000_u32 {
            now_ns += 2 * random.below(10_000) as i64;
            // 80,000 pages a second on 64 dies that take 2 ms for 48: busy for 5 % of the time.
            drive.submit(now_ns, slot, &if slot.is_multiple_of(5) { reads() } else { writes() });
            submitted.push(now_ns);
        }
        let done = drain(&mut drive);
        let is_read = |slot: u32| slot.is_multiple_of(5);
        let mut latencies_ns: Vec<i64> = done
            .iter()
            .filter(|done| is_read(done.slot))
            .map(|done| done.complete_ns - submitted[done.slot as usize])
            .collect();
        latencies_ns.sort_unstable();
        latencies_ns[latencies_ns.len() * 99 / 100] / 1_000
    };
    let (without, with) = (p99_us("0"), p99_us("4"));
    // Of the 5 % that meet a program one in five waits for 1.6 ms or more.
    assert!((1_500..1_800).contains(&without), "{without} us without");
    assert!((70..=125).contains(&with), "{with} us with");
}

#[test]
fn housekeeping_stalls_reads_at_its_period_for_its_length() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("nand_read", "50us"),
        ("housekeeping_period", "500ms"),
        ("housekeeping", "40ms"),
    ]));
    let mut stalls = Vec::new();
    let mut now_ns = 1_000;
    while now_ns < 5_000_000_000 {
        let latency_ns = latency_alone_ns(&mut drive, now_ns, &command(Opcode::Read, 0, 4 * KIB));
        if latency_ns > 1_000_000 {
            stalls.push((now_ns, latency_ns));
        }
        now_ns += latency_ns + 100_000;
    }
    assert_eq!(stalls.len(), 9);
    for (index, (start_ns, latency_ns)) in stalls.iter().enumerate() {
        assert_close("period", (start_ns / 1_000) as f64, 500e3 * (index + 1) as f64, 0.001);
        assert_close("length", (latency_ns / 1_000) as f64, 40_000.0, 0.01);
    }
    let (events, _) = drive.take_events(i64::MAX);
    let spans: Vec<_> = events.iter().filter(|event| event.kind == EventKind::Housekeeping).collect();
    assert_eq!(spans.len(), 9);
    assert!(spans.iter().all(|span| span.end_ns - span.start_ns == 40_000_000));
}
