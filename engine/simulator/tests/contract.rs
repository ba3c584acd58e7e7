//! What every caller relies on, whatever the model and the commands.

mod common;

use common::{closed_loop, command, drain, idle_model, latency_alone_ns, random_4k, FLUSH};
use proptest::prelude::*;
use testdrive_core::{Command, Completion, Flags, Opcode, SplitMix64, KIB, MIB};
use testdrive_simulator::{Model, SimulatedDrive};

/// A built-in model, made small enough that its limits are reached.
fn small(name: &str, seed: u64) -> Model {
    let mut model = Model::builtin(name).unwrap();
    let seed = seed.to_string();
    model
        .set_all([("capacity", "64MiB"), ("queue_depth", "8"), ("write_buffer", "256KiB"), ("seed", &seed)])
        .unwrap();
    model
}

fn any_command() -> impl Strategy<Value = Command> {
    let opcode = prop::sample::select(Opcode::ALL.to_vec());
    // Some reach beyond the 64 MiB, some are no whole blocks, some are empty.
    (0_u64..70 * MIB / 512, 0_u64..4096, opcode, 0_u8..4, any::<bool>()).prop_map(
        |(offset, length, opcode, flags, aligned)| Command {
            offset_bytes: offset * 512 + u64::from(!aligned) * 100,
            length_bytes: if opcode == Opcode::Flush { 0 } else { length * 512 },
            opcode,
            flags: Flags(flags),
        },
    )
}

type Step = (i64, Command, Option<i64>);

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let gap_ns = prop_oneof![Just(0_i64), 0_i64..10_000, 0_i64..20_000_000];
    let poll_ns = prop::option::of(0_i64..5_000_000);
    prop::collection::vec((gap_ns, any_command(), poll_ns), 1..120)
}

/// Submits each step in a slot of its own; `polled` also asks for completions in between, up to the next submission at most.
fn run(model: &Model, steps: &[Step], polled: bool) -> (Vec<Completion>, SimulatedDrive) {
    let mut drive = SimulatedDrive::new(model.clone());
    let (mut now_ns, mut done) = (-5_000_000, Vec::new());
    for (slot, (gap_ns, command, poll_ns)) in steps.iter().enumerate() {
        if let (true, Some(poll_ns)) = (polled, poll_ns) {
            let until_ns = now_ns + *poll_ns.min(gap_ns);
            while let Some(completion) = drive.pop_completed(until_ns) {
                assert!(completion.complete_ns <= until_ns);
                done.push(completion);
            }
        }
        now_ns += gap_ns;
        drive.submit(now_ns, slot as u32, command);
    }
    done.extend(drain(&mut drive));
    (done, drive)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_slot_completes_exactly_once_in_time_order_and_after_its_submission(
        steps in any_steps(), name in prop::sample::select(Model::builtin_names().collect::<Vec<_>>()), seed in 0_u64..1000,
    ) {
        let (done, drive) = run(&small(name, seed), &steps, true);
        prop_assert_eq!(drive.in_flight(), 0);
        prop_assert!(done.windows(2).all(|pair| pair[0].complete_ns <= pair[1].complete_ns));
        let mut slots: Vec<u32> = done.iter().map(|done| done.slot).collect();
        slots.sort_unstable();
        prop_assert_eq!(slots, (0..steps.len() as u32).collect::<Vec<_>>());
        let submitted_ns: Vec<i64> =
            steps.iter().scan(-5_000_000, |now_ns, step| { *now_ns += step.0; Some(*now_ns) }).collect();
        for completion in &done {
            prop_assert!(completion.complete_ns > submitted_ns[completion.slot as usize]);
            let command = steps[completion.slot as usize].1;
            let end_bytes = command.offset_bytes + command.length_bytes;
            let empty = command.length_bytes == 0 || command.offset_bytes % 512 != 0;
            let expected = match command.opcode {
                Opcode::Flush => 0,
                _ if empty || !drive_accepts(name, &command) => 22,
                _ if end_bytes > 64 * MIB => 5,
                _ => 0,
            };
            prop_assert_eq!(completion.status, expected, "{:?}", command);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_completions_however_they_are_asked_for(
        steps in any_steps(), name in prop::sample::select(Model::builtin_names().collect::<Vec<_>>()), seed in 0_u64..1000,
    ) {
        let model = small(name, seed);
        let (first, first_drive) = run(&model, &steps, true);
        let (second, second_drive) = run(&model, &steps, false);
        prop_assert_eq!(first, second);
        prop_assert_eq!(first_drive.counters(), second_drive.counters());
    }
}

/// Whether the command is whole blocks of the model.
fn drive_accepts(name: &str, command: &Command) -> bool {
    let block = Model::builtin(name).unwrap().parameters().logical_block_bytes;
    command.offset_bytes.is_multiple_of(block) && command.length_bytes.is_multiple_of(block)
}

/// The bytes of a run that has reads, writes, trims and flushes.
fn trace_of(seed: &str) -> Vec<u8> {
    let mut model = Model::builtin("consumer-qlc").unwrap();
    model.set("seed", seed).unwrap();
    let mut drive = SimulatedDrive::new(model);
    let mut random = SplitMix64::new(99);
    let mut bytes = Vec::new();
    for index in 0..20_000_u32 {
        let opcode = Opcode::ALL[random.below(4) as usize];
        let length_bytes = if opcode == Opcode::Flush { 0 } else { (1 + random.below(32)) * 4 * KIB };
        let command = command(opcode, random.below(1 << 20) * 4 * KIB, length_bytes);
        drive.submit(i64::from(index) * 20_000, index, &command);
        while let Some(done) = drive.pop_completed(i64::from(index) * 20_000) {
            bytes.extend(done.slot.to_le_bytes());
            bytes.extend(done.complete_ns.to_le_bytes());
        }
    }
    bytes
}

#[test]
fn a_run_is_the_same_to_the_byte_from_the_same_seed_and_another_from_another() {
    assert_eq!(trace_of("7"), trace_of("7"));
    assert_ne!(trace_of("7"), trace_of("8"));
}

#[test]
fn nothing_completes_before_the_time_that_was_announced() {
    let mut drive = SimulatedDrive::new(small("consumer-dramless", 1));
    assert_eq!(drive.next_completion_ns(), None);
    let mut next = random_4k(Opcode::Read, 64 * MIB, 1);
    for slot in 0..20 {
        drive.submit(0, slot, &next());
    }
    let (mut completed, mut steps) = (0, 0);
    while let Some(next_ns) = drive.next_completion_ns() {
        assert_eq!(drive.pop_completed(next_ns - 1), None);
        completed += u32::from(drive.pop_completed(next_ns).is_some());
        steps += 1;
    }
    assert_eq!(completed, 20);
    assert!(steps < 20 * 10, "each step brings the drive on: {steps}");
}

#[test]
fn what_was_in_time_for_one_question_is_not_given_for_an_earlier_one() {
    let mut drive = SimulatedDrive::new(idle_model(&[("nand_read", "10us")]));
    drive.submit(0, 0, &command(Opcode::Read, 0, 4 * KIB));
    drive.submit(20_000, 1, &command(Opcode::Read, MIB, 4 * KIB));
    assert_eq!(drive.pop_completed(9_000), None);
    assert_eq!(drive.pop_completed(15_000).map(|done| (done.slot, done.complete_ns)), Some((0, 10_002)));
}

#[test]
#[should_panic(expected = "slot 3 was submitted while in flight")]
fn a_slot_in_flight_cannot_be_submitted_again() {
    let mut drive = SimulatedDrive::new(idle_model(&[("nand_read", "10us")]));
    drive.submit(0, 3, &command(Opcode::Read, 0, 4 * KIB));
    drive.submit(1, 3, &command(Opcode::Read, 0, 4 * KIB));
}

#[test]
#[should_panic(expected = "after 10 ns")]
fn time_cannot_run_backwards() {
    let mut drive = SimulatedDrive::new(idle_model(&[]));
    drive.submit(10, 0, &FLUSH);
    drive.submit(9, 1, &FLUSH);
}

#[test]
fn a_full_drive_of_4_tib_costs_no_memory_before_it_is_used() {
    let mut model = Model::builtin("enterprise-mixed").unwrap();
    model.set("capacity", "4TiB").unwrap();
    let mut drive = SimulatedDrive::new(model);
    assert_eq!(drive.model().parameters().capacity_bytes, 4 << 40);
    let measured = closed_loop(&mut drive, 8, 10, 100, random_4k(Opcode::Read, 4 << 40, 1));
    assert!(measured.ios_per_s > 0.0);
    assert!(latency_alone_ns(&mut SimulatedDrive::new(small("sata", 1)), 0, &FLUSH) > 0);
}
