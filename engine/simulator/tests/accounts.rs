//! What the drive tells of itself, its log and its counters, against what is known to have happened.

mod common;

use common::{closed_loop, command, drain, idle_model, random_4k};
use testdrive_core::{Opcode, KIB, MIB};
use testdrive_simulator::{DriveEvent, EventKind, Model, SimulatedDrive};

fn busy_ns(events: &[DriveEvent]) -> i64 {
    events.iter().map(|event| event.busy_ns).sum()
}

fn amount(events: &[DriveEvent]) -> u64 {
    events.iter().map(|event| event.amount).sum()
}

#[test]
fn trims_served_at_once_are_logged_to_the_nanosecond() {
    let trims = [("trim_mode", "firmware"), ("trim_per_range", "20us"), ("trim_per_page", "0.7us")];
    let mut drive = SimulatedDrive::new(idle_model(&trims));
    for slot in 0..4_000 {
        drive.submit(5, slot, &command(Opcode::Trim, u64::from(slot) * 2 * MIB, 2 * MIB));
    }
    let end_ns = drain(&mut drive).last().unwrap().complete_ns;
    let (events, dropped) = drive.take_events(end_ns);
    assert!(dropped.is_empty() && events.iter().all(|event| event.kind == EventKind::TrimService));
    assert_eq!((busy_ns(&events), amount(&events)), (4_000 * (20_000 + 512 * 700), 4_000 * 512));
    assert_eq!((events[0].start_ns, events.last().unwrap().end_ns), (5, 5 + busy_ns(&events)));
    assert_eq!(events.len(), 2, "1.5 s in pieces of a second");
}

#[test]
fn trims_in_the_background_are_logged_with_their_share_of_the_time() {
    let trims = [
        ("trim_mode", "background"),
        ("trim_per_page", "1us"),
        ("trim_slice", "1ms"),
        ("trim_share", "0.25"),
    ];
    let mut drive = SimulatedDrive::new(idle_model(&trims));
    drive.submit(0, 0, &command(Opcode::Trim, 0, 400 * MIB));
    drain(&mut drive);
    let pages = 400 * MIB / (4 * KIB);
    // A read long after lets the drive do what it still has to do.
    drive.submit(10_000_000_000, 0, &command(Opcode::Read, 0, 4 * KIB));
    let (events, _) = drive.take_events(10_000_000_000);
    assert_eq!((busy_ns(&events), amount(&events)), (pages as i64 * 1_000, pages));
    let span_ns = events.last().unwrap().end_ns - events[0].start_ns;
    let off_ns = span_ns - 4 * busy_ns(&events);
    assert!(off_ns.abs() <= 4_000_000, "{span_ns} ns, off by {off_ns} ns");
}

#[test]
fn trims_that_are_free_and_drives_with_room_log_nothing() {
    let overrides = [("trim_mode", "free"), ("initial_state", "empty"), ("capacity", "64MiB")];
    let mut drive = SimulatedDrive::new(idle_model(&overrides));
    for at in 0..256 {
        drive.submit(0, 2 * at, &command(Opcode::Write, u64::from(at) * 64 * KIB, 64 * KIB));
        drive.submit(0, 2 * at + 1, &command(Opcode::Trim, u64::from(at) * 64 * KIB, 64 * KIB));
    }
    drain(&mut drive);
    assert_eq!(drive.take_events(i64::MAX).0, []);
}

/// A drive of a gigabyte in steady state, after some overwriting.
fn overwritten(overrides: &[(&str, &str)]) -> (SimulatedDrive, i64) {
    let sizes = [("capacity", "1GiB"), ("superblocks", "500"), ("initial_state", "steady"), ("op", "0.07")];
    let model = idle_model(&[&sizes, overrides].concat());
    let mut drive = SimulatedDrive::new(model);
    let (mut next, mut last_ns) = (random_4k(Opcode::Write, 1 << 30, 3), 0);
    closed_loop(&mut drive, 32, 0, 200_000, &mut next);
    drain(&mut drive).iter().for_each(|done| last_ns = last_ns.max(done.complete_ns));
    (drive, last_ns)
}

#[test]
fn garbage_collection_is_logged_with_every_page_that_was_programmed_for_it() {
    let (mut drive, end_ns) = overwritten(&[]);
    let unit_pages = u64::from(drive.model().parameters().unit_pages());
    let programmed = drive.counters().moved_programs * unit_pages;
    let (mut events, dropped) = drive.take_events(end_ns);
    assert!(dropped.is_empty());
    // A closed loop writes faster than the NAND takes it, which is logged too.
    events.retain(|event| event.kind != EventKind::WriteBufferFull);
    assert!(events.iter().all(|event| event.kind == EventKind::GarbageCollection));
    assert_eq!(amount(&events), programmed);
    // At 7 % spare three of four programs are of moved pages, so that hardly a moment is without one.
    let span_ns = end_ns - events[0].start_ns;
    assert!(busy_ns(&events) > span_ns * 9 / 10, "{} of {span_ns} ns", busy_ns(&events));
    assert!(busy_ns(&events) <= span_ns);
}

/// The sums that SMART has, against the model's own and against what was asked for.
#[test]
fn write_amplification_by_the_drives_counters_is_that_of_its_pages() {
    let (drive, _) = overwritten(&[]);
    let counters = drive.counters();
    assert_eq!(counters.host.written_bytes, (200_000 + 32) * 4 * KIB);
    assert_eq!(counters.pages.host_pages * 4 * KIB, counters.host.written_bytes);
    let ratio = drive.nand_written_bytes() as f64 / counters.host.written_bytes as f64;
    assert_eq!(ratio, counters.pages.write_amplification());
    assert!((7.0..8.0).contains(&ratio), "{ratio}");
}

#[test]
fn what_the_drive_programs_for_itself_counts_as_written_to_the_nand() {
    let model =
        idle_model(&[("capacity", "1GiB"), ("initial_state", "empty"), ("programs_per_host_page", "1.25")]);
    let mut drive = SimulatedDrive::new(model);
    for slot in 0..1_024 {
        drive.submit(0, slot, &command(Opcode::Write, u64::from(slot) * 192 * KIB, 192 * KIB));
    }
    drain(&mut drive);
    assert_eq!(drive.counters().host.written_bytes, 192 * MIB);
    assert_eq!(drive.nand_written_bytes(), 240 * MIB);
}

#[test]
fn only_what_was_done_is_counted_for_the_host() {
    let mut model = Model::builtin("enterprise-mixed").unwrap();
    model.set("capacity", "1GiB").unwrap();
    let mut drive = SimulatedDrive::new(model);
    let commands = [
        command(Opcode::Read, 0, 8 * KIB),
        command(Opcode::Read, 1 << 30, 4 * KIB),
        command(Opcode::Write, 0, 16 * KIB),
        command(Opcode::Write, 1, 16 * KIB),
        command(Opcode::Trim, 4 * KIB, 32 * KIB),
        command(Opcode::WriteZeroes, 0, 64 * KIB),
    ];
    for (slot, command) in commands.iter().enumerate() {
        drive.submit(0, slot as u32, command);
    }
    drain(&mut drive);
    let host = drive.counters().host;
    assert_eq!((host.read_bytes, host.written_bytes), (8 * KIB, 16 * KIB));
    assert_eq!((host.trims, host.trimmed_bytes), (1, 32 * KIB));
}
