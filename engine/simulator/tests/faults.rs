//! Faults that are asked for come as they were asked for.

mod common;

use common::{assert_close, command, drain, idle_model, latency_alone_ns, random_4k, FLUSH};
use testdrive_core::{Command, Completion, Flags, Opcode, KIB, MIB};
use testdrive_simulator::{EventKind, SimulatedDrive};

fn read(offset_bytes: u64) -> Command {
    command(Opcode::Read, offset_bytes, 4 * KIB)
}

#[test]
fn reads_fail_in_their_range_at_their_rate_and_nowhere_else() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("fault_read_error_offset_bytes", "1048576"),
        ("fault_read_error_length", "1MiB"),
        ("fault_read_error_rate", "20%"),
    ]));
    let mut failed = 0;
    for index in 0..40_000_u64 {
        let offset_bytes = index % 1024 * 4 * KIB;
        let now_ns = index as i64 * 1_000_000;
        drive.submit(now_ns, 0, &read(offset_bytes));
        let status = drive.pop_completed(i64::MAX).unwrap().status;
        if status != 0 {
            assert_eq!(status, 5);
            assert!((MIB..2 * MIB).contains(&offset_bytes), "{offset_bytes}");
            failed += 1;
        }
    }
    assert_close("failed", f64::from(failed), 2_000.0, 0.1);
    let write = command(Opcode::Write, MIB, 4 * KIB);
    for index in 0..100 {
        drive.submit((50_000 + index) * 1_000_000, 0, &write);
        assert_eq!(drive.pop_completed(i64::MAX).unwrap().status, 0);
    }
}

#[test]
fn outliers_come_at_their_rate_and_are_as_late_as_asked_for() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("nand_read", "50us"),
        ("fault_outlier_rate", "0.01"),
        ("fault_outlier", "7ms"),
    ]));
    let mut next = random_4k(Opcode::Read, 1 << 30, 1);
    let late = (0..50_000)
        .map(|index| latency_alone_ns(&mut drive, index * 10_000_000, &next()))
        .filter(|latency_ns| {
            assert!([50_002, 7_050_002].contains(latency_ns), "{latency_ns}");
            *latency_ns > 1_000_000
        })
        .count();
    assert_close("outliers", late as f64, 500.0, 0.15);
}

#[test]
fn a_stall_holds_up_what_comes_meanwhile_until_it_ends() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("nand_read", "50us"),
        ("fault_stall_at", "2s"),
        ("fault_stall", "300ms"),
    ]));
    assert_eq!(latency_alone_ns(&mut drive, 1_990_000_000, &read(0)) / 1_000, 50);
    for (slot, at_ms) in [2_000, 2_200, 2_301].into_iter().enumerate() {
        drive.submit(at_ms * 1_000_000, slot as u32, &read(slot as u64 * MIB));
    }
    let times_us: Vec<i64> = drain(&mut drive).iter().map(|done| done.complete_ns / 1_000).collect();
    assert_eq!(times_us, [2_300_050, 2_300_050, 2_301_050]);
    let (events, _) = drive.take_events(i64::MAX);
    let stall = events.iter().find(|event| event.kind == EventKind::Stall).unwrap();
    assert_eq!((stall.start_ns, stall.end_ns), (2_000_000_000, 2_300_000_000));
}

#[test]
fn stalls_that_repeat_come_at_their_period_to_the_nanosecond() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("nand_read", "50us"),
        ("fault_stall_at", "1s"),
        ("fault_stall", "100ms"),
        ("fault_stall_every", "2s"),
    ]));
    // A read every 10 ms: of each period the ten that come within a stall wait for its end.
    let mut done = Vec::new();
    for index in 0..1_000_u32 {
        let at_ns = i64::from(index) * 10_000_000;
        done.extend(std::iter::from_fn(|| drive.pop_completed(at_ns)));
        drive.submit(at_ns, index, &read(u64::from(index) * MIB));
    }
    done.extend(drain(&mut drive));
    assert_eq!(done.len(), 1_000);
    for Completion { slot, complete_ns, .. } in done {
        let at_ns = i64::from(slot) * 10_000_000;
        let wait_ns = (100_000_000 - (at_ns + 1_000_000_000) % 2_000_000_000).max(0);
        assert_eq!((complete_ns - at_ns) / 1_000, 50 + wait_ns / 1_000, "at {at_ns} ns");
    }
    let (events, _) = drive.take_events(10_000_000_000);
    let stalls: Vec<i64> =
        events.iter().filter(|event| event.kind == EventKind::Stall).map(|event| event.start_ns).collect();
    assert_eq!(stalls, [1, 3, 5, 7, 9].map(|second| second * 1_000_000_000));
}

#[test]
fn a_drive_that_disappears_fails_what_is_in_flight_and_what_comes() {
    let mut drive = SimulatedDrive::new(idle_model(&[("nand_read", "50us"), ("fault_gone_at", "1s")]));
    assert_eq!(latency_alone_ns(&mut drive, 0, &read(0)) / 1_000, 50);
    for slot in 0..10 {
        drive.submit(999_990_000, slot, &read(u64::from(slot) * MIB));
    }
    let done = drain(&mut drive);
    assert_eq!(done.len(), 10);
    assert!(done.iter().all(|done| (done.complete_ns, done.status) == (1_000_000_000, 19)));
    assert!(drive.is_gone());
    drive.submit(2_000_000_000, 3, &command(Opcode::Write, 0, 4 * KIB));
    let done = drive.pop_completed(i64::MAX).unwrap();
    assert_eq!((done.status, done.complete_ns), (19, 2_000_000_001));
}

/// Three writes of a page before the power goes at one second: one flushed, one forced through, one only acknowledged.
fn after_a_loss_of_power(protected: &str) -> (SimulatedDrive, [Option<u32>; 4], [Option<u32>; 4]) {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("keep_contents", "true"),
        ("power_loss_protection", protected),
        ("fault_power_loss_at", "1s"),
        ("fault_power_loss", "2s"),
        ("nand_read", "50us"),
    ]));
    let write = |page: u64| command(Opcode::Write, page * 4 * KIB, 4 * KIB);
    latency_alone_ns(&mut drive, 0, &write(0));
    latency_alone_ns(&mut drive, 10_000_000, &write(2));
    latency_alone_ns(&mut drive, 20_000_000, &FLUSH);
    latency_alone_ns(&mut drive, 100_000_000, &Command { flags: Flags::FUA, ..write(1) });
    latency_alone_ns(&mut drive, 200_000_000, &write(2));
    latency_alone_ns(&mut drive, 300_000_000, &command(Opcode::Trim, 0, 4 * KIB));
    latency_alone_ns(&mut drive, 400_000_000, &write(3));
    let versions = |drive: &SimulatedDrive| [0, 1, 2, 3].map(|page| drive.version_of(page));
    let before = versions(&drive);
    drive.submit(999_999_000, 7, &read(1 << 30));
    let cut = drive.pop_completed(i64::MAX).unwrap();
    assert_eq!((cut.complete_ns, cut.status), (1_000_000_000, 5), "what was in flight failed");
    let after = versions(&drive);
    (drive, before, after)
}

#[test]
fn power_loss_takes_back_what_was_acknowledged_but_not_durable() {
    let (mut drive, before, after) = after_a_loss_of_power("false");
    assert_eq!(before, [Some(0), Some(3), Some(4), Some(5)]);
    assert_eq!(after, [Some(0), Some(3), Some(2), Some(0)]);
    // It starts again for two seconds, and then works as before.
    assert_eq!(latency_alone_ns(&mut drive, 1_500_000_000, &read(0)) / 1_000, 1_500_000);
    assert_eq!(latency_alone_ns(&mut drive, 4_000_000_000, &read(4 * KIB)) / 1_000, 50);
    latency_alone_ns(&mut drive, 5_000_000_000, &command(Opcode::Write, 8 * KIB, 4 * KIB));
    assert!(latency_alone_ns(&mut drive, 6_000_000_000, &FLUSH) > 1_000_000);
    assert_eq!(drive.version_of(2), Some(6));
    let (events, _) = drive.take_events(i64::MAX);
    assert!(events.iter().any(|event| event.kind == EventKind::PowerLoss && event.amount == 2));
}

#[test]
fn power_loss_protection_keeps_what_was_acknowledged() {
    let (_, before, after) = after_a_loss_of_power("true");
    assert_eq!(before, after);
    let drive = SimulatedDrive::new(idle_model(&[]));
    assert_eq!(drive.version_of(0), None, "contents are kept only where asked for");
}

#[test]
fn a_loss_of_power_under_load_leaves_a_drive_that_works() {
    let mut model = idle_model(&[
        ("fault_power_loss_at", "50ms"),
        ("fault_power_loss", "10ms"),
        ("keep_contents", "true"),
        ("capacity", "1GiB"),
        ("initial_state", "steady"),
        ("power_loss_protection", "false"),
        ("housekeeping_period", "20ms"),
        ("housekeeping", "1ms"),
    ]);
    model.set_all([("trim_mode", "background"), ("trim_per_page", "10us"), ("nand_read", "50us")]).unwrap();
    let mut drive = SimulatedDrive::new(model);
    let (mut reads, mut writes) = (random_4k(Opcode::Read, 1 << 30, 1), random_4k(Opcode::Write, 1 << 30, 2));
    let (mut failed, mut done) = (0, 0);
    for index in 0..20_000_u32 {
        let command = match index % 10 {
            0 => FLUSH,
            1 => command(Opcode::Trim, u64::from(index) * 16 * KIB, 16 * KIB),
            2..6 => reads(),
            _ => writes(),
        };
        drive.submit(i64::from(index) * 10_000, index, &command);
        while let Some(completion) = drive.pop_completed(i64::from(index) * 10_000) {
            (failed, done) = (failed + u32::from(completion.status != 0), done + 1);
        }
    }
    for completion in drain(&mut drive) {
        (failed, done) = (failed + u32::from(completion.status != 0), done + 1);
    }
    assert_eq!(done, 20_000);
    assert!(failed > 0 && failed < 2_000, "{failed} were in flight");
}
