//! A drive that is saved and restored goes on as if nothing had happened.

mod common;

use common::{closed_loop, command, drain, idle_model, latency_alone_ns, random_4k, FLUSH};
use proptest::prelude::*;
use testdrive_core::{Command, Completion, Flags, Opcode, SplitMix64, KIB, MIB};
use testdrive_simulator::{Model, SimulatedDrive, StateError};

fn saved(drive: &SimulatedDrive) -> Vec<u8> {
    let mut bytes = Vec::new();
    drive.save(77, &mut bytes).unwrap();
    bytes
}

fn restored(drive: &SimulatedDrive) -> SimulatedDrive {
    let (other, now_ns) = SimulatedDrive::restore(drive.model(), &saved(drive)[..]).unwrap();
    assert_eq!(now_ns, 77);
    other
}

/// Whatever commands, from a seed: all opcodes and flags, at random places and times.
fn work(drive: &mut SimulatedDrive, start_ns: i64, count: u32, seed: u64) -> Vec<Completion> {
    let pages = drive.model().parameters().capacity_bytes / (4 * KIB);
    let (mut random, mut now_ns) = (SplitMix64::new(seed), start_ns);
    for slot in 0..count {
        now_ns += random.below(200_000) as i64;
        let opcode = Opcode::ALL[random.below(16).min(4) as usize];
        let opcode = if random.below(2) == 0 { Opcode::Write } else { opcode };
        let length = 1 + random.below(64);
        let offset = random.below(pages - length);
        let bytes = if opcode == Opcode::Flush { 0 } else { length * 4 * KIB };
        let flags = if random.below(20) == 0 { Flags::FUA } else { Flags::NONE };
        drive.submit(now_ns, slot, &Command { flags, ..command(opcode, offset * 4 * KIB, bytes) });
    }
    drain(drive)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_drive_goes_on_byte_for_byte(
        name in prop::sample::select(Model::builtin_names().collect::<Vec<_>>()), seed in 0_u64..1_000_000,
        initial in prop::sample::select(vec!["empty", "written", "steady"]), idle_ns in 0_i64..50_000_000,
    ) {
        let mut model = Model::builtin(name).unwrap();
        let seed_text = seed.to_string();
        // So small that garbage is collected and buffers fill within the test.
        model.set_all([("capacity", "64MiB"), ("superblocks", "40"), ("initial_state", initial), ("seed", &seed_text)]).unwrap();
        let mut drive = SimulatedDrive::new(model);
        let before = work(&mut drive, 0, 1_500, seed);
        let end_ns = before.last().unwrap().complete_ns;
        let mut other = restored(&drive);
        prop_assert_eq!(work(&mut drive, end_ns + idle_ns, 1_500, seed + 1), work(&mut other, end_ns + idle_ns, 1_500, seed + 1));
        prop_assert_eq!(drive.counters(), other.counters());
        prop_assert_eq!(drive.take_events(i64::MAX), other.take_events(i64::MAX));
        // Both restored, since that begins the times of faults anew. Not printed where it fails: these are many bytes.
        prop_assert!(saved(&restored(&drive)) == saved(&restored(&other)));
    }

    #[test]
    fn bytes_that_are_no_state_are_refused_without_a_panic(cut in 0_usize..100_000, flips in prop::collection::vec((0_usize..100_000, 1_u8..=255), 0..4)) {
        let drive = SimulatedDrive::new(idle_model(&[("capacity", "8MiB"), ("superblocks", "8")]));
        let mut bytes = saved(&drive);
        let cut = cut % (bytes.len() + 1);
        let damaged = cut < bytes.len();
        bytes.truncate(cut);
        for (at, flip) in flips {
            if let Some(byte) = bytes.get_mut(at % cut.max(1)) {
                *byte ^= flip;
            }
        }
        let restored = SimulatedDrive::restore(drive.model(), &bytes[..]);
        prop_assert!(!damaged || restored.is_err());
    }
}

#[test]
fn work_that_trims_left_and_units_that_are_being_gathered_are_saved_too() {
    let overrides = [
        ("trim_mode", "background"),
        ("trim_per_page", "1us"),
        ("trim_share", "0.1"),
        ("power_loss_protection", "false"),
        ("program", "3ms"),
    ];
    let mut drive = SimulatedDrive::new(idle_model(&overrides));
    drive.submit(0, 0, &command(Opcode::Trim, 0, 512 * MIB));
    drive.submit(0, 1, &command(Opcode::Write, 1 << 30, 36 * KIB));
    let end_ns = drain(&mut drive).last().unwrap().complete_ns;
    assert!(drive.counters().trim_owed_ns > 0);
    let mut other = restored(&drive);
    assert_eq!(other.counters().trim_owed_ns, drive.counters().trim_owed_ns);
    for drive in [&mut drive, &mut other] {
        drive.submit(end_ns, 0, &FLUSH);
    }
    let (flushed, also) = (drain(&mut drive), drain(&mut other));
    assert!(flushed[0].complete_ns >= end_ns + 3_000_000);
    assert_eq!(flushed, also);
}

#[test]
fn a_state_of_another_drive_is_refused_and_says_how_they_differ() {
    let drive = SimulatedDrive::new(idle_model(&[("capacity", "64MiB")]));
    let bytes = saved(&drive);
    let refusal = |model: &Model| match SimulatedDrive::restore(model, &bytes[..]) {
        Err(StateError::OtherDrive(message)) => message,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let mut other = drive.model().clone();
    other.set_all([("capacity", "32MiB"), ("seed", "5")]).unwrap();
    assert_eq!(
        refusal(&other),
        "it is of a drive with capacity_bytes=67108864, seed=1, not with capacity_bytes=33554432, seed=5"
    );
    assert!(
        refusal(&Model::builtin("sata").unwrap()).contains("of the model 'enterprise-mixed', not of 'sata'")
    );
}

/// Faults belong to the run: a drive is prepared without them, and what went wrong in one run does not go wrong in the next.
#[test]
fn a_restored_drive_has_the_faults_of_its_own_run_from_its_beginning_on() {
    let read = command(Opcode::Read, 0, 4 * KIB);
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("capacity", "64MiB"),
        ("nand_read", "50us"),
        ("fault_stall_at", "5s"),
        ("fault_stall", "1s"),
        ("fault_gone_at", "20s"),
    ]));
    drive.submit(0, 0, &command(Opcode::Write, 4 * KIB, 4 * KIB));
    drain(&mut drive);
    let mut bytes = Vec::new();
    drive.save(3_000_000_000, &mut bytes).unwrap();
    let mut model = drive.model().clone();
    let faults = [("fault_gone_at", "0ns"), ("fault_stall_at", "4s"), ("fault_power_loss_at", "9s")];
    model.set_all(faults.into_iter().chain([("fault_power_loss", "1s")])).unwrap();
    let (mut other, now_ns) = SimulatedDrive::restore(&model, &bytes[..]).unwrap();
    assert_eq!(now_ns, 3_000_000_000);
    // Neither the stall at 5 s of the other run, nor that the drive was gone at 20 s.
    let latency_us =
        |drive: &mut SimulatedDrive, at_s: i64| latency_alone_ns(drive, at_s * 1_000_000_000, &read) / 1_000;
    assert_eq!(latency_us(&mut other, 5), 50);
    assert_eq!(latency_us(&mut other, 7), 1_000_050);
    assert_eq!(latency_us(&mut other, 12), 1_000_050, "power was lost");
    assert_eq!(latency_us(&mut other, 30), 50);
    assert_eq!(other.version_of(0), Some(0));
}

#[test]
fn a_drive_with_commands_in_flight_is_not_saved() {
    let mut drive = SimulatedDrive::new(idle_model(&[("capacity", "64MiB")]));
    drive.submit(0, 0, &command(Opcode::Read, 0, 4 * KIB));
    let refused = drive.save(0, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.to_string(), "1 commands are in flight: a drive is saved once all have completed");
}

#[test]
fn a_state_takes_room_for_what_was_written_and_no_more() {
    let mut drive = SimulatedDrive::new(idle_model(&[("capacity", "1TiB"), ("initial_state", "steady")]));
    assert!(saved(&drive).len() < 1_000_000, "{}", saved(&drive).len());
    let mut next = random_4k(Opcode::Write, 64 * MIB, 1);
    closed_loop(&mut drive, 8, 0, 20_000, &mut next);
    drain(&mut drive);
    assert!(saved(&drive).len() < 4_000_000, "{}", saved(&drive).len());
}
