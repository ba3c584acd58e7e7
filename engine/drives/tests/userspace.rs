//! What becomes of a run's commands on our own driver's queues: pieces, order, failures, and a controller that has to be reset.

use std::sync::Arc;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_drives::{Clock, Drive, QueueOptions, UserspaceDrive, UserspaceOptions, Wait, WriteData};
use testdrive_recording::DriveIdentity;
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::Controller;

/// Unrecovered read error, and LBA out of range, as recordings have them.
const UNRECOVERED: i32 = 0x1_0281;
const OUT_OF_RANGE: i32 = 0x1_4080;
const EINVAL: i32 = 22;

fn open(model: Model, depth: usize) -> (Double, UserspaceDrive<Double>) {
    open_with(model, depth, 1)
}

fn open_with(model: Model, depth: usize, trim_ranges: u32) -> (Double, UserspaceDrive<Double>) {
    let double = Double::new(model);
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    let options = QueueOptions {
        clock: Clock::start(),
        depth,
        io_bytes_max: 1 << 20,
        data: WriteData::Incompressible,
        data_seed: 1,
        refill: false,
    };
    let how = UserspaceOptions { writable: true, trim_ranges };
    let drive = UserspaceDrive::new(&controller, DriveIdentity::default(), how, &options).unwrap();
    (double, drive)
}

fn command(opcode: Opcode, offset_bytes: u64, length_bytes: u64) -> Command {
    Command { offset_bytes, length_bytes, opcode, flags: Flags::NONE }
}

fn submit(drive: &mut impl Drive, commands: &[Command]) {
    for (slot, command) in (0..).zip(commands) {
        drive.submit(slot, command).unwrap();
    }
    drive.kick().unwrap();
}

fn wait_for(drive: &mut impl Drive, count: usize) -> Vec<Completion> {
    let (mut completions, deadline_ns) = (Vec::new(), drive.now_ns() + 60_000_000_000);
    while completions.len() < count {
        assert!(drive.now_ns() < deadline_ns, "{} of {count} completions", completions.len());
        drive.poll(Wait::Until(deadline_ns), &mut completions).unwrap();
    }
    completions.sort_by_key(|completion| completion.slot);
    completions
}

fn statuses(completions: &[Completion]) -> Vec<(u32, i32)> {
    completions.iter().map(|completion| (completion.slot, completion.status)).collect()
}

/// Opcode, first block and number of blocks of what the controller fetched.
fn fetched(double: &Double) -> Vec<(u8, u32, u32)> {
    let dword = |entry: &[u8; 64], at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
    let of = |entry: &[u8; 64]| (entry[0], dword(entry, 40), (dword(entry, 48) & 0xffff) + 1);
    double.io_commands().iter().map(of).collect()
}

#[test]
fn a_long_transfer_is_several_commands_and_one_completion() {
    // 64 KiB a command, and a queue that holds fewer of them than there are.
    let (double, mut drive) = open(Model::default(), 2);
    submit(&mut drive, &[command(Opcode::Write, 4096, 1 << 20), command(Opcode::Read, 0, 96 << 10)]);
    assert_eq!(statuses(&wait_for(&mut drive, 2)), [(0, 0), (1, 0)]);
    let expected: Vec<_> =
        (0..16).map(|part| (1, 8 + part * 128, 128)).chain([(2, 0, 128), (2, 128, 64)]).collect();
    assert_eq!(fetched(&double), expected);
    assert!(double.content(4096, 1 << 20).chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
    assert!(double
        .content(0, 4096)
        .iter()
        .chain(&double.content(4096 + (1 << 20), 4096))
        .all(|byte| *byte == 0));
}

#[test]
fn a_failure_of_one_piece_is_the_whole_ios_and_nobody_elses() {
    let (double, mut drive) = open(Model::default(), 8);
    double.set_faults(Faults { bad_block: Some(300), ..Faults::default() });
    let read = |offset, length| command(Opcode::Read, offset, length);
    let beyond = 32_768 * 512;
    submit(&mut drive, &[read(0, 1 << 20), read(0, 64 << 10), read(beyond, 4096), read(beyond - 4096, 8192)]);
    let expected = [(0, UNRECOVERED), (1, 0), (2, OUT_OF_RANGE), (3, OUT_OF_RANGE)];
    assert_eq!(statuses(&wait_for(&mut drive, 4)), expected);
}

#[test]
fn what_is_not_whole_blocks_goes_to_no_drive() {
    let (double, mut drive) = open(Model { block_bytes: 4096, blocks: 4096, ..Model::default() }, 8);
    let preflush = Command { flags: Flags::PREFLUSH, ..command(Opcode::Write, 512, 4096) };
    submit(&mut drive, &[command(Opcode::Read, 512, 4096), command(Opcode::Trim, 0, 512), preflush]);
    assert_eq!(statuses(&wait_for(&mut drive, 3)), [(0, EINVAL), (1, EINVAL), (2, EINVAL)]);
    assert_eq!(fetched(&double), []);
}

#[test]
fn a_write_waits_for_the_flush_before_it() {
    let (double, mut drive) = open(Model::default(), 4);
    for _ in 0..20 {
        let write = Command { flags: Flags::PREFLUSH | Flags::FUA, ..command(Opcode::Write, 0, 4096) };
        submit(&mut drive, &[write]);
        assert_eq!(wait_for(&mut drive, 1)[0].status, 0);
    }
    let opcodes: Vec<u8> = fetched(&double).iter().map(|(opcode, ..)| *opcode).collect();
    assert_eq!(opcodes, [0, 1].repeat(20));
    // Forced unit access, in dword 12.
    assert!(double.io_commands().iter().all(|entry| (entry[51] & 0x40 != 0) == (entry[0] == 1)));
}

#[test]
fn unit_access_is_forced_of_writes_alone() {
    let (double, mut drive) = open(Model::default(), 4);
    let forced = |opcode| Command { flags: Flags::FUA, ..command(opcode, 0, 4096) };
    for opcode in [Opcode::Read, Opcode::WriteZeroes, Opcode::Write] {
        submit(&mut drive, &[forced(opcode)]);
        assert_eq!(wait_for(&mut drive, 1)[0].status, 0);
    }
    // Opcode, and dword 12 above the number of blocks.
    let told: Vec<(u8, u8)> = double.io_commands().iter().map(|entry| (entry[0], entry[51])).collect();
    assert_eq!(told, [(2, 0), (8, 0), (1, 0x40)]);
}

#[test]
fn what_a_reset_takes_away_is_told_apart_from_what_was_waited_for() {
    let (double, mut drive) = open(Model::default(), 8);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    let long = command(Opcode::Read, 0, 1 << 20);
    submit(&mut drive, &[command(Opcode::Flush, 0, 0), command(Opcode::Read, 0, 4096), long]);
    let mut completions = Vec::new();
    assert!(drive.rescue(&[1, 2], &mut completions).unwrap());
    double.set_faults(Faults::default());
    // Of the long one, pieces that did not fit in the queue go after the reset: it ends with the last of them.
    completions.extend(wait_for(&mut drive, 3 - completions.len()));
    completions.sort_by_key(|completion| completion.slot);
    assert_eq!(statuses(&completions), [(0, 125), (1, 110), (2, 110)]);
    submit(&mut drive, &[long, command(Opcode::Write, 0, 4096)]);
    assert_eq!(statuses(&wait_for(&mut drive, 2)), [(0, 0), (1, 0)]);
    assert_eq!((double.starts(), drive.is_gone()), (2, false));
}

#[test]
fn an_abort_that_works_has_the_drives_own_status() {
    let (double, mut drive) = open(Model::default(), 4);
    double.set_faults(Faults { silent: true, aborts_work: true, ..Faults::default() });
    submit(&mut drive, &[command(Opcode::Flush, 0, 0), command(Opcode::Read, 0, 4096)]);
    // The controller has fetched them.
    while double.io_commands().len() < 2 {
        std::thread::yield_now();
    }
    let mut completions = Vec::new();
    assert!(drive.rescue(&[1], &mut completions).unwrap());
    assert_eq!((statuses(&completions), double.starts()), (vec![(1, 0x1_0007)], 1));
    double.set_faults(Faults::default());
    assert_eq!(statuses(&wait_for(&mut drive, 1)), [(0, 0)]);
}

#[test]
fn a_controller_that_fails_by_itself_is_reset_and_one_that_is_lost_ends_everything() {
    let (double, mut drive) = open(Model::default(), 4);
    double.fail();
    submit(&mut drive, &[command(Opcode::Read, 0, 4096)]);
    assert_eq!(statuses(&wait_for(&mut drive, 1)), [(0, 5)]);
    submit(&mut drive, &[command(Opcode::Read, 0, 4096)]);
    assert_eq!(statuses(&wait_for(&mut drive, 1)), [(0, 0)]);
    double.set_faults(Faults { silent: true, never_ready: true, ..Faults::default() });
    submit(&mut drive, &[command(Opcode::Read, 0, 1 << 20), command(Opcode::Flush, 0, 0)]);
    let mut completions = Vec::new();
    assert!(drive.rescue(&[0], &mut completions).unwrap());
    completions.sort_by_key(|completion| completion.slot);
    assert_eq!(statuses(&completions), [(0, 19), (1, 19)]);
    assert!(drive.is_gone());
    // Whatever comes now ends at once.
    submit(&mut drive, &[command(Opcode::Read, 0, 4096)]);
    assert_eq!(statuses(&wait_for(&mut drive, 1)), [(0, 19)]);
}

/// The numbers of ranges of the deallocates that the controller fetched.
fn ranges(double: &Double) -> Vec<u32> {
    let entries = double.io_commands();
    entries.iter().filter(|entry| entry[0] == 9).map(|entry| u32::from(entry[40]) + 1).collect()
}

fn burst(count: u64) -> Vec<Command> {
    (0..count).map(|index| command(Opcode::Trim, index * 8192, 4096)).collect()
}

#[test]
fn trims_that_go_together_share_commands_as_far_as_asked_and_told() {
    for (trim_ranges, told, expected) in
        [(1, 0, vec![1; 40]), (256, 0, vec![40]), (16, 0, vec![16, 16, 8]), (256, 32, vec![32, 8])]
    {
        let (double, mut drive) = open_with(Model { trim_ranges: told, ..Model::default() }, 40, trim_ranges);
        double.set_content(0, &[7; 40 * 8192]);
        submit(&mut drive, &burst(40));
        assert!(wait_for(&mut drive, 40).iter().all(|completion| completion.status == 0));
        assert_eq!(ranges(&double), expected);
        let content = double.content(0, 40 * 8192);
        assert!(content.chunks(8192).all(|pair| pair[..4096] == [0; 4096] && pair[4096..] == [7; 4096]));
        let settings = &drive.identity().settings;
        let most = trim_ranges.min(if told == 0 { 256 } else { u32::from(told) });
        assert_eq!(settings["trim_ranges"].as_u64(), Some(most.into()));
    }
}

#[test]
fn trims_that_were_not_handed_over_together_share_no_command() {
    let (double, mut drive) = open_with(Model::default(), 8, 256);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    for (slot, command) in (0..).zip(burst(6)) {
        drive.submit(slot, &command).unwrap();
        if slot % 2 == 1 {
            drive.kick().unwrap();
        }
    }
    double.set_faults(Faults::default());
    assert_eq!(wait_for(&mut drive, 6).len(), 6);
    assert_eq!(ranges(&double), [2, 2, 2]);
}

#[test]
fn a_range_that_fails_is_the_failure_of_all_that_share_its_command() {
    let (_double, mut drive) = open_with(Model::default(), 8, 4);
    let mut commands = burst(8);
    commands[5].offset_bytes = 32_768 * 512;
    submit(&mut drive, &commands);
    let expected: Vec<_> = (0..8).map(|slot| (slot, if slot < 4 { 0 } else { OUT_OF_RANGE })).collect();
    assert_eq!(statuses(&wait_for(&mut drive, 8)), expected);
}

#[test]
fn trims_that_are_never_answered_are_told_by_slot_though_they_share_a_command() {
    let (double, mut drive) = open_with(Model::default(), 8, 256);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    let mut commands = burst(3);
    commands.push(command(Opcode::Read, 0, 4096));
    submit(&mut drive, &commands);
    let mut completions = Vec::new();
    assert!(drive.rescue(&[0, 1, 2], &mut completions).unwrap());
    double.set_faults(Faults::default());
    completions.extend(wait_for(&mut drive, 4 - completions.len()));
    completions.sort_by_key(|completion| completion.slot);
    assert_eq!(statuses(&completions), [(0, 110), (1, 110), (2, 110), (3, 125)]);
    submit(&mut drive, &burst(8));
    assert!(wait_for(&mut drive, 8).iter().all(|completion| completion.status == 0));
    // Lost altogether, with some in flight and some that wait.
    double.set_faults(Faults { silent: true, never_ready: true, ..Faults::default() });
    submit(&mut drive, &burst(8));
    let mut completions = Vec::new();
    assert!(drive.rescue(&[0], &mut completions).unwrap());
    assert!(completions.len() == 8 && completions.iter().all(|completion| completion.status == 19));
}
