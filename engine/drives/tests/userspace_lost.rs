//! What a drive had answered before its controller was reset or lost, by whichever queue: each I/O has one end, and its own.

use std::sync::Arc;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_drives::{Clock, Drive, QueueOptions, UserspaceDrive, UserspaceOptions, Wait, WriteData};
use testdrive_recording::DriveIdentity;
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::Controller;

/// Two queues of one controller.
fn open() -> (Double, [UserspaceDrive<Double>; 2]) {
    let double = Double::new(Model::default());
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    let options = QueueOptions {
        clock: Clock::start(),
        depth: 8,
        io_bytes_max: 1 << 20,
        data: WriteData::Incompressible,
        data_seed: 1,
        refill: false,
    };
    let how = UserspaceOptions { writable: true, trim_ranges: 8 };
    let queue = || UserspaceDrive::new(&controller, DriveIdentity::default(), how, &options).unwrap();
    (double, [queue(), queue()])
}

fn command(opcode: Opcode, offset_bytes: u64, length_bytes: u64) -> Command {
    Command { offset_bytes, length_bytes, opcode, flags: Flags::NONE }
}

fn submit(drive: &mut impl Drive, first_slot: u32, commands: &[Command]) {
    for (slot, command) in (first_slot..).zip(commands) {
        drive.submit(slot, command).unwrap();
    }
    drive.kick().unwrap();
}

/// Waits until the controller has answered so many commands of I/O queues.
fn wait_for_answers(double: &Double, count: usize) {
    while double.io_answers() < count {
        std::thread::yield_now();
    }
}

fn statuses(completions: &[Completion]) -> Vec<(u32, i32)> {
    let mut statuses: Vec<_> =
        completions.iter().map(|completion| (completion.slot, completion.status)).collect();
    statuses.sort_unstable();
    statuses
}

/// Has one queue end what it waits for in vain.
fn give_up(drive: &mut impl Drive) -> Vec<(u32, i32)> {
    submit(drive, 0, &[command(Opcode::Flush, 0, 0)]);
    let mut completions = Vec::new();
    assert!(drive.rescue(&[0], &mut completions).unwrap());
    statuses(&completions)
}

#[test]
fn what_was_answered_before_the_controller_was_lost_completes_once_and_as_it_was_answered() {
    let (double, [mut one, mut other]) = open();
    let answered = [
        command(Opcode::Write, 0, 4096),
        command(Opcode::Trim, 65_536, 4096),
        command(Opcode::Trim, 81_920, 4096),
    ];
    submit(&mut other, 0, &answered);
    // The trims share a command.
    wait_for_answers(&double, 2);
    double.set_faults(Faults { silent: true, never_ready: true, ..Faults::default() });
    submit(&mut other, 3, &[command(Opcode::Read, 0, 4096), command(Opcode::Trim, 0, 4096)]);
    assert_eq!((give_up(&mut one), one.is_gone()), (vec![(0, 19)], true));
    let mut completions = Vec::new();
    other.poll(Wait::No, &mut completions).unwrap();
    assert_eq!(statuses(&completions), [(0, 0), (1, 0), (2, 0), (3, 19), (4, 19)]);
    // Nothing comes twice, and what comes now ends at once, without a word to the controller.
    let fetched = double.io_commands().len();
    submit(&mut other, 0, &[command(Opcode::Read, 0, 4096)]);
    completions.clear();
    (0..3).for_each(|_| other.poll(Wait::No, &mut completions).unwrap());
    // Who waits for what is due in an hour learns that there is no drive any more.
    let later_ns = other.now_ns() + 3_600_000_000_000;
    assert_eq!(other.poll(Wait::Until(later_ns), &mut completions).unwrap_err().raw_os_error(), Some(19));
    assert_eq!((statuses(&completions), double.io_commands().len()), (vec![(0, 19)], fetched));
}

#[test]
fn a_write_that_was_done_before_another_queue_had_the_controller_reset_is_not_recorded_as_cancelled() {
    let (double, [mut one, mut other]) = open();
    let writes = [command(Opcode::Write, 0, 4096), command(Opcode::Write, 8192, 4096)];
    submit(&mut other, 0, &writes);
    wait_for_answers(&double, 2);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    submit(&mut other, 2, &[command(Opcode::Write, 16_384, 4096)]);
    assert_eq!(give_up(&mut one), [(0, 110)]);
    double.set_faults(Faults::default());
    let mut completions = Vec::new();
    other.poll(Wait::No, &mut completions).unwrap();
    assert_eq!(statuses(&completions), [(0, 0), (1, 0), (2, 125)]);
    assert!(double.content(0, 4096).iter().any(|byte| *byte != 0), "it was done");
}

#[test]
fn what_was_answered_before_the_controller_failed_by_itself_keeps_its_status() {
    let (double, [mut one, _other]) = open();
    submit(&mut one, 0, &[command(Opcode::Write, 0, 4096)]);
    wait_for_answers(&double, 1);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    submit(&mut one, 1, &[command(Opcode::Write, 8192, 4096)]);
    double.fail();
    double.set_faults(Faults::default());
    let (mut completions, deadline_ns) = (Vec::new(), one.now_ns() + 60_000_000_000);
    while completions.len() < 2 {
        assert!(one.now_ns() < deadline_ns);
        one.poll(Wait::Until(deadline_ns), &mut completions).unwrap();
    }
    assert_eq!(statuses(&completions), [(0, 0), (1, 5)]);
}
