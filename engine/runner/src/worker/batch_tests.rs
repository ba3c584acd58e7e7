//! How much is handed over in one go, on our own driver and a controller in memory.

use super::*;
use crate::job::OnError;
use crate::job_streams::MaxLag;
use crate::throttle::Limits;
use testdrive_core::{Command, Flags};
use testdrive_drives::{Access, Clock, PciQueues, QueueOptions, WriteData};
use testdrive_recording::DriveIdentity;
use testdrive_userspace::double::{Double, Model};
use testdrive_userspace::Controller;

/// Trims up to here, and reads from there on.
struct TrimsThenReads {
    next: u64,
    trims: u64,
    ios: u64,
}

impl Source for TrimsThenReads {
    fn peek(&mut self) -> Peek {
        if self.next == self.ios {
            return Peek::End;
        }
        let opcode = if self.next < self.trims { Opcode::Trim } else { Opcode::Read };
        let offset_bytes = self.next * 4096;
        let command = Command { opcode, offset_bytes, length_bytes: 4096, flags: Flags::NONE };
        Peek::Ready(Planned {
            command,
            due_ns: 0,
            gate: 0,
            sequence: self.next,
            stream: 0,
            part: 0,
            opens_gates: false,
        })
    }

    fn take(&mut self) {
        self.next += 1;
    }
}

/// The numbers of ranges of the deallocates that a closed loop of trims, then reads, came to.
fn ranges(trim_ranges: u32) -> Vec<u32> {
    let double = Double::new(Model::default());
    let controller = Controller::start(double.clone(), None).unwrap();
    let identity = DriveIdentity { logical_block_bytes: 512, ..DriveIdentity::default() };
    let clock = Clock::uncalibrated();
    let options = QueueOptions {
        clock,
        depth: 60,
        io_bytes_max: 4096,
        data: WriteData::Zero,
        data_seed: 1,
        refill: false,
    };
    let queues = PciQueues::new(controller, identity, Access::Write, trim_ranges);
    let mut drive = queues.open(&options).unwrap();
    let orders = Orders {
        pacing: Pacing::Closed(60),
        depth: 60,
        shared_order: false,
        start_ns: clock.now_ns(),
        end_ns: None,
        limits: Limits::default(),
        max_lag: MaxLag::None,
        tells_completions: false,
        counts_overdue: false,
        io_timeout_ns: 60_000_000_000,
        on_error: OnError::Stop,
        phase: 0,
    };
    let shared = Shared::default();
    let source = TrimsThenReads { next: 0, trims: 50, ios: 60 };
    let rows = RowQueue::without_rows(&shared.stop);
    let (report, ..) = Worker::new(&mut drive, source, orders, &shared, rows).run();
    assert_eq!((report.issued.total().ios, shared.errors.load(Ordering::Relaxed)), (60, 0));
    let entries = double.io_commands();
    assert_eq!(entries.iter().filter(|entry| entry[0] == 2).count(), 10);
    entries.iter().filter(|entry| entry[0] == 9).map(|entry| u32::from(entry[40]) + 1).collect()
}

#[test]
fn trims_fill_the_commands_that_they_may_share_though_a_closed_loop_goes_in_small_batches() {
    assert_eq!(ranges(256), [50]);
    assert_eq!(ranges(16), [16, 16, 16, 2]);
    assert_eq!(ranges(1), [1; 50]);
}
