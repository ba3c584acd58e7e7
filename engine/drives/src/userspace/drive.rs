//! A queue of our own driver as a path to a drive.

use super::pieces::{cut, Piece};
use super::slots::Slots;
use super::supports;
use crate::buffers::{Buffers, Region};
use crate::clock::Clock;
use crate::drive::{Drive, QueueOptions, SubmitError, Wait};
use crate::nvme::commands::flushes_first;
use crate::trims::Trims;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_nvme::TrimLimits;
use testdrive_recording::DriveIdentity;
use testdrive_userspace::{Answer, Controller, Function, Limits, Place, Queue};

/// Marks the tag of a command of ranges, whose number is below; other tags are slots.
const TRIM_TAG: u32 = 1 << 31;
/// More memory than this is not taken for ranges: a burst that needs more waits for its turn.
const RANGES_BYTES_MAX: usize = 4 << 20;
/// How often a loop that waits looks whether the controller is well: the register takes a microsecond.
const CHECK_NS: i64 = 10_000_000;
/// How long a waiting loop spins before it lets others have the CPU, where there is nothing to be in time for.
const SPIN_NS: i64 = 50_000;
/// A sleeper is woken at least so often, to look whether the controller is well.
const SLEEP_MAX_NS: i64 = CHECK_NS;

/// How a queue is used.
#[derive(Clone, Copy, Debug)]
pub struct UserspaceOptions {
    /// Whether the guard let the drive be written to.
    pub writable: bool,
    /// How many trims that are handed over together may share a command; 1 gives each its own.
    pub trim_ranges: u32,
}

/// A queue of our own on a controller.
pub struct UserspaceDrive<F: Function> {
    identity: DriveIdentity,
    writable: bool,
    clock: Clock,
    limits: Limits,
    queue: Queue<F>,
    // Behind the queue, whose end is that of the controller's access to them.
    buffers: Buffers,
    trims: Trims,
    slots: Slots,
    /// What is to go, in order, with its slot.
    waiting: VecDeque<(u32, Piece)>,
    checked_ns: i64,
}

impl<F: Function> UserspaceDrive<F> {
    /// A queue of `depth` slots.
    ///
    /// # Errors
    /// When the controller has no queue left, or the host no memory that the drive can reach.
    pub fn new(
        controller: &Arc<Controller<F>>,
        mut identity: DriveIdentity,
        UserspaceOptions { writable, trim_ranges }: UserspaceOptions,
        options: &QueueOptions,
    ) -> io::Result<UserspaceDrive<F>> {
        let QueueOptions { clock, depth, .. } = *options;
        let queue = Queue::open(controller, depth)?;
        let function = controller.function();
        let buffers = Buffers::for_dma(options, |length| function.allocate(length))?;
        let limits = controller.limits();
        let told = limits.trims.unwrap_or_default();
        let trim_limits = TrimLimits { ranges: told.ranges.min(trim_ranges as usize), ..told };
        let commands = depth.min(RANGES_BYTES_MAX / trim_limits.place_bytes());
        let trims = Trims::new(commands, trim_limits, |length| function.allocate(length).map(Region::over))?;
        let settings = &mut identity.settings;
        settings.insert("polled_completions".into(), (!queue.interrupts()).into());
        settings.insert("queue_entries".into(), queue.entries().into());
        settings.insert("transfer_bytes_max".into(), limits.transfer_bytes_max().into());
        settings.insert("trim_ranges".into(), trim_limits.ranges.into());
        Ok(UserspaceDrive {
            identity,
            writable,
            clock,
            limits,
            queue,
            buffers,
            trims,
            slots: Slots::new(depth),
            waiting: VecDeque::with_capacity(depth),
            checked_ns: clock.now_ns(),
        })
    }

    /// Cuts a command into pieces, to go with the next kick; how many.
    fn cut(&mut self, slot: u32, command: &Command, buffer: *const u8) -> Option<usize> {
        let waiting = &mut self.waiting;
        cut(&self.limits, command, buffer, |piece| waiting.push_back((slot, piece)))
    }

    /// Moves what waits into the queue, as far as there is room, and tells the drive. Trims are gathered and go last, since a burst of
    /// them ends here.
    fn send(&mut self) {
        if self.queue.is_stale() || self.is_gone() {
            // The controller does not know this queue: what waits is looked after when it is polled.
            return;
        }
        while let Some(&(slot, piece)) = self.waiting.front() {
            if let Piece::Range(range) = piece {
                if !self.trims.add(slot, range) {
                    break;
                }
            } else if !self.queue.has_room() {
                break;
            }
            match piece {
                Piece::Plain(command) => self.queue.push(&command, Place::None, slot),
                Piece::Read(command, buffer) => {
                    let (memory, offset) = self.buffers.dma_of(false, buffer);
                    self.queue.push(&command, Place::Data { memory, offset }, slot);
                }
                Piece::Write(command, buffer) => {
                    let (memory, offset) = self.buffers.dma_of(true, buffer);
                    self.queue.push(&command, Place::Data { memory, offset }, slot);
                }
                Piece::Range(_) => {}
            }
            self.waiting.pop_front();
        }
        self.trims.close();
        while self.queue.has_room() {
            let Some((index, command, ranges)) = self.trims.take(self.limits.namespace) else { break };
            let (memory, offset) = self.trims.dma_of(ranges);
            self.queue.push(&command, Place::Data { memory, offset }, index | TRIM_TAG);
        }
        self.queue.ring();
    }

    /// Takes what the drive answered.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        let UserspaceDrive { queue, slots, trims, .. } = self;
        // What a controller that was given up had answered is taken when everything else is ended.
        let reaped = match queue.controller().has_failed() {
            true => Ok(()),
            false => queue.reap(|answer| settle(slots, trims, answer.tag, |_| answer.status.recorded())),
        };
        if self.slots.has_done() {
            let complete_ns = self.clock.now_ns();
            while let Some((slot, status)) = self.slots.take_done() {
                self.finish(slot, status, complete_ns, completions);
            }
        }
        reaped
    }

    /// All pieces of a slot were answered: goes on with the write behind a flush, or completes it.
    fn finish(&mut self, slot: u32, status: i32, complete_ns: i64, completions: &mut Vec<Completion>) {
        if let (Some((command, buffer)), 0) = (self.slots.take_after_flush(slot), status) {
            let pieces = self.cut(slot, &command, buffer as *const u8).unwrap_or(0);
            self.slots.goes_on(slot, pieces);
            if pieces > 0 {
                return;
            }
        }
        self.slots.free(slot);
        completions.push(Completion { slot, complete_ns, status });
    }

    /// Counts commands that a reset took away.
    fn lose(&mut self, tags: &[u32], status_of: impl Fn(u32) -> i32) {
        for tag in tags {
            settle(&mut self.slots, &mut self.trims, *tag, &status_of);
        }
    }

    /// The controller is lost: what it did not answer before ends.
    fn lose_all(&mut self) {
        let UserspaceDrive { queue, slots, trims, .. } = self;
        queue.abandon(|answer| settle(slots, trims, answer.tag, |_| answer.status.recorded()));
        self.waiting.clear();
        self.trims.clear();
        self.slots.end_all(libc::ENODEV);
    }

    /// Takes the queue's place again where another thread had the controller reset, and looks now and then whether it is well.
    fn look_after(&mut self) {
        if self.queue.controller().has_failed() {
            return self.lose_all();
        }
        let UserspaceDrive { queue, slots, trims, .. } = self;
        let take = |answer: Answer| settle(slots, trims, answer.tag, |_| answer.status.recorded());
        let lost = if queue.is_stale() {
            queue.reconnect(take).map(|lost| (lost, libc::ECANCELED))
        } else {
            let now_ns = self.clock.now_ns();
            if now_ns - self.checked_ns < CHECK_NS {
                return;
            }
            self.checked_ns = now_ns;
            let clock = self.clock;
            queue.check(&|| clock.now_ns(), take).map(|lost| (lost, libc::EIO))
        };
        match lost {
            Ok((lost, status)) => self.lose(&lost, |_| status),
            Err(_) => self.lose_all(),
        }
    }

    /// Waits a little, as the caller may.
    fn pause(&self, wait: Wait, since_ns: i64, left_ns: i64) {
        match wait {
            Wait::Asleep(_)
                if self.queue.in_flight() > 0
                    && self.queue.sleep(Duration::from_nanos(left_ns.min(SLEEP_MAX_NS) as u64)) => {}
            Wait::Asleep(_) if self.clock.now_ns() - since_ns > SPIN_NS => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}

impl<F: Function> Drive for UserspaceDrive<F> {
    fn identity(&self) -> &DriveIdentity {
        &self.identity
    }

    fn supports(&self, opcode: Opcode) -> bool {
        supports(&self.limits, opcode)
    }

    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn trims_together(&self) -> usize {
        self.trims.ranges_max()
    }

    fn is_gone(&self) -> bool {
        self.queue.controller().has_failed()
    }

    fn rescue(&mut self, slots: &[u32], completions: &mut Vec<Completion>) -> io::Result<bool> {
        let clock = self.clock;
        let mut answers = Vec::new();
        let groups = self.trims.commands_of(slots).map(|index| index | TRIM_TAG);
        let tags: Vec<u32> = slots.iter().copied().chain(groups).collect();
        let lost = self.queue.rescue(&tags, &|| clock.now_ns(), |answer| answers.push(answer));
        for Answer { tag, status, .. } in answers {
            settle(&mut self.slots, &mut self.trims, tag, |_| status.recorded());
        }
        match lost {
            Ok(lost) => {
                self.lose(&lost, |slot| if slots.contains(&slot) { libc::ETIMEDOUT } else { libc::ECANCELED })
            }
            Err(_) => self.lose_all(),
        }
        self.reap(completions)?;
        Ok(true)
    }

    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError> {
        if self.slots.is_full() {
            return Err(SubmitError::Full);
        }
        if command.opcode.modifies() && !self.writable {
            return Err(SubmitError::ReadOnly);
        }
        if !self.supports(command.opcode) {
            return Err(SubmitError::Unsupported);
        }
        let length = command.length_bytes as usize;
        let buffer = match command.opcode {
            Opcode::Read => self.buffers.for_read(length).cast_const(),
            Opcode::Write => self.buffers.for_write(slot, length),
            Opcode::Trim | Opcode::Flush | Opcode::WriteZeroes => std::ptr::null(),
        };
        let flush_first = flushes_first(command);
        let pieces = if flush_first {
            // What the range is worth is found when its turn comes; a flush has no range.
            let aligned = self.limits.block.range(command.offset_bytes, command.length_bytes).is_some();
            let flush =
                Command { opcode: Opcode::Flush, offset_bytes: 0, length_bytes: 0, flags: Flags::NONE };
            aligned.then(|| self.cut(slot, &flush, std::ptr::null())).flatten()
        } else {
            self.cut(slot, command, buffer)
        };
        let after_flush = flush_first.then_some((*command, buffer as usize));
        self.slots.begin(slot, pieces.unwrap_or(0), after_flush);
        // What is not whole blocks, the kernel refuses with this, too.
        match pieces {
            None => self.slots.end_at_once(slot, libc::EINVAL),
            Some(0) => self.slots.end_at_once(slot, 0),
            Some(_) => {}
        }
        Ok(())
    }

    fn kick(&mut self) -> io::Result<()> {
        self.send();
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        let (before, since_ns) = (completions.len(), self.clock.now_ns());
        loop {
            self.look_after();
            self.reap(completions)?;
            if !self.waiting.is_empty() || self.trims.has_ready() {
                self.send();
            }
            let (Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns)) = wait else { return Ok(()) };
            let left_ns = deadline_ns - self.clock.now_ns();
            if completions.len() > before || left_ns <= 0 {
                return Ok(());
            }
            if self.slots.busy() == 0 {
                if self.is_gone() {
                    // No I/O is there to fail, and none may come for hours.
                    return Err(io::Error::from_raw_os_error(libc::ENODEV));
                }
                self.clock.wait_until_ns(deadline_ns);
                return Ok(());
            }
            self.pause(wait, since_ns, left_ns);
        }
    }
}

/// Counts the end of a command of the drive: of a piece of a slot, or of the ranges of several.
fn settle(slots: &mut Slots, trims: &mut Trims, tag: u32, status_of: impl Fn(u32) -> i32) {
    if tag & TRIM_TAG == 0 {
        slots.answered(tag, status_of(tag));
    } else {
        trims.done(tag & !TRIM_TAG, |slot| slots.answered(slot, status_of(slot)));
    }
}
