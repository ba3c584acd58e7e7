//! The path without an operating system: our own driver's queues on an NVMe controller.

use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::drive::{Drive, QueueOptions, SubmitError, Wait};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_nvme::{
    deallocate, encode_ranges, flush, parts, read, write, write_zeroes, LbaRange, NvmCommand, RANGE_BYTES,
};
use testdrive_recording::DriveIdentity;
use testdrive_userspace::memory::DmaMemory;
use testdrive_userspace::{Answer, Controller, Function, Limits, Place, Queue};

/// How often a loop that waits looks whether the controller is well: the register takes a microsecond.
const CHECK_NS: i64 = 10_000_000;
/// How long a waiting loop spins before it lets others have the CPU, where there is nothing to be in time for.
const SPIN_NS: i64 = 50_000;
/// A sleeper is woken at least so often, to look whether the controller is well.
const SLEEP_MAX_NS: i64 = CHECK_NS;

/// What a command transfers.
#[derive(Clone, Copy)]
enum Payload {
    None,
    /// The buffer.
    Read(*const u8),
    /// The buffer.
    Write(*const u8),
    /// The one range of a deallocate, which gets its place when it goes.
    Range(LbaRange),
}

/// One command of the drive, of which a command of the run may take several.
struct Piece {
    slot: u32,
    command: NvmCommand,
    payload: Payload,
}

/// What is known of a command of the run in flight.
#[derive(Clone, Copy, Default)]
struct Slot {
    busy: bool,
    /// Pieces that were not answered yet.
    left: usize,
    /// The first failure's, or 0.
    status: i32,
    /// The write that follows once a flush is done, and its buffer.
    after_flush: Option<(Command, usize)>,
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
    ranges: DmaMemory,
    slots: Vec<Slot>,
    busy: usize,
    /// What is to go, in order.
    waiting: VecDeque<Piece>,
    /// Slots of which no piece is left, with their status.
    done: Vec<(u32, i32)>,
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
        writable: bool,
        options: &QueueOptions,
    ) -> io::Result<UserspaceDrive<F>> {
        let QueueOptions { clock, depth, .. } = *options;
        let queue = Queue::open(controller, depth)?;
        let function = controller.function();
        let buffers = Buffers::for_dma(options, |length| function.allocate(length))?;
        let ranges = function.allocate(queue.entries() as usize * RANGE_BYTES)?;
        let settings = &mut identity.settings;
        settings.insert("polled_completions".into(), (!queue.interrupts()).into());
        settings.insert("queue_entries".into(), queue.entries().into());
        settings.insert("transfer_bytes_max".into(), controller.limits().transfer_bytes_max().into());
        Ok(UserspaceDrive {
            identity,
            writable,
            clock,
            limits: *controller.limits(),
            queue,
            buffers,
            ranges,
            slots: vec![Slot::default(); depth],
            busy: 0,
            waiting: VecDeque::with_capacity(depth),
            done: Vec::new(),
            checked_ns: clock.now_ns(),
        })
    }

    /// Cuts a command into pieces that the drive takes, to go with the next kick; how many.
    fn cut(&mut self, slot: u32, command: &Command, buffer: *const u8) -> Option<usize> {
        let Limits { namespace, block, .. } = self.limits;
        let (before, block_bytes) = (self.waiting.len(), block.bytes());
        let range = block.range(command.offset_bytes, command.length_bytes)?;
        let mut add = |command, payload| self.waiting.push_back(Piece { slot, command, payload });
        match command.opcode {
            Opcode::Flush => add(flush(namespace), Payload::None),
            Opcode::Read | Opcode::Write => {
                let fua = command.flags.contains(Flags::FUA);
                let mut buffer = buffer;
                for part in parts(range, self.limits.transfer_blocks) {
                    if command.opcode == Opcode::Read {
                        add(read(namespace, part, block_bytes, false), Payload::Read(buffer));
                    } else {
                        add(write(namespace, part, block_bytes, fua), Payload::Write(buffer));
                    }
                    buffer = buffer.wrapping_add(part.blocks as usize * block_bytes as usize);
                }
            }
            Opcode::WriteZeroes => {
                for part in parts(range, self.limits.zeroes_blocks) {
                    add(write_zeroes(namespace, part, false, false), Payload::None);
                }
            }
            Opcode::Trim => {
                let most = self.limits.trims?.range_blocks;
                for part in parts(range, most) {
                    add(deallocate(namespace, 1), Payload::Range(part));
                }
            }
        }
        Some(self.waiting.len() - before)
    }

    /// Moves what waits into the queue, as far as there is room, and tells the drive.
    fn send(&mut self) {
        while self.queue.has_room() {
            let Some(Piece { slot, command, payload }) = self.waiting.pop_front() else { break };
            let (is_write, buffer) = match payload {
                Payload::None => {
                    self.queue.push(&command, Place::None, slot);
                    continue;
                }
                Payload::Range(range) => {
                    let offset = usize::from(self.queue.next_cid()) * RANGE_BYTES;
                    let mut bytes = [0; RANGE_BYTES];
                    encode_ranges(&[range], &mut bytes);
                    self.ranges.write(offset, &bytes);
                    self.queue.push(&command, Place::Data { memory: &self.ranges, offset }, slot);
                    continue;
                }
                Payload::Read(buffer) => (false, buffer),
                Payload::Write(buffer) => (true, buffer),
            };
            let (memory, offset) = self.buffers.dma_of(is_write, buffer);
            self.queue.push(&command, Place::Data { memory, offset }, slot);
        }
        self.queue.ring();
    }

    /// Takes what the drive answered.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        let UserspaceDrive { queue, slots, done, .. } = self;
        let reaped = queue.reap(|answer| answered(slots, done, answer.tag, answer.status.recorded()));
        if !self.done.is_empty() {
            let complete_ns = self.clock.now_ns();
            let mut done = std::mem::take(&mut self.done);
            for (slot, status) in done.drain(..) {
                self.finish(slot, status, complete_ns, completions);
            }
            // The allocation is kept for the next time.
            self.done = done;
        }
        reaped
    }

    /// All pieces of a slot were answered: goes on with the write behind a flush, or completes it.
    fn finish(&mut self, slot: u32, status: i32, complete_ns: i64, completions: &mut Vec<Completion>) {
        let state = &mut self.slots[slot as usize];
        if let (Some((command, buffer)), 0) = (state.after_flush.take(), status) {
            let pieces = self.cut(slot, &command, buffer as *const u8).unwrap_or(0);
            self.slots[slot as usize].left = pieces;
            if pieces > 0 {
                return;
            }
        }
        self.slots[slot as usize] = Slot::default();
        self.busy -= 1;
        completions.push(Completion { slot, complete_ns, status });
    }

    /// Counts pieces that a reset took away.
    fn lose(&mut self, tags: &[u32], status_of: impl Fn(u32) -> i32) {
        for tag in tags {
            answered(&mut self.slots, &mut self.done, *tag, status_of(*tag));
        }
    }

    /// The controller is lost: everything in flight ends.
    fn lose_all(&mut self) {
        self.waiting.clear();
        self.done.clear();
        for (index, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.busy) {
            slot.after_flush = None;
            self.done.push((index as u32, libc::ENODEV));
        }
    }

    /// Takes the queue's place again where another thread had the controller reset, and looks now and then whether it is well.
    fn look_after(&mut self) {
        if self.queue.controller().has_failed() {
            return self.lose_all();
        }
        let lost = if self.queue.is_stale() {
            self.queue.reconnect().map(|lost| (lost, libc::ECANCELED))
        } else {
            let now_ns = self.clock.now_ns();
            if self.queue.in_flight() == 0 || now_ns - self.checked_ns < CHECK_NS {
                return;
            }
            self.checked_ns = now_ns;
            let clock = self.clock;
            self.queue.check(&|| clock.now_ns()).map(|lost| (lost, libc::EIO))
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

    fn is_gone(&self) -> bool {
        self.queue.controller().has_failed()
    }

    fn rescue(&mut self, slots: &[u32], completions: &mut Vec<Completion>) -> io::Result<bool> {
        let clock = self.clock;
        let mut answers = Vec::new();
        let lost = self.queue.rescue(slots, &|| clock.now_ns(), |answer| answers.push(answer));
        for Answer { tag, status, .. } in answers {
            answered(&mut self.slots, &mut self.done, tag, status.recorded());
        }
        match lost {
            Ok(lost) => {
                self.lose(&lost, |tag| if slots.contains(&tag) { libc::ETIMEDOUT } else { libc::ECANCELED })
            }
            Err(_) => self.lose_all(),
        }
        self.reap(completions)?;
        Ok(true)
    }

    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError> {
        if self.busy >= self.slots.len() {
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
        let flush_first = command.opcode == Opcode::Write && command.flags.contains(Flags::PREFLUSH);
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
        self.slots[slot as usize] = Slot { busy: true, left: pieces.unwrap_or(0), status: 0, after_flush };
        self.busy += 1;
        // What is not whole blocks, the kernel refuses with this, too.
        let at_once = match pieces {
            None => Some(libc::EINVAL),
            Some(0) => Some(0),
            Some(_) => None,
        };
        self.done.extend(at_once.map(|status| (slot, status)));
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
            if !self.waiting.is_empty() {
                self.send();
            }
            let (Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns)) = wait else { return Ok(()) };
            let left_ns = deadline_ns - self.clock.now_ns();
            if completions.len() > before || left_ns <= 0 {
                return Ok(());
            }
            if self.busy == 0 {
                self.clock.wait_until_ns(deadline_ns);
                return Ok(());
            }
            self.pause(wait, since_ns, left_ns);
        }
    }
}

/// Counts the answer to a piece of a slot.
fn answered(slots: &mut [Slot], done: &mut Vec<(u32, i32)>, tag: u32, status: i32) {
    let slot = &mut slots[tag as usize];
    slot.left -= 1;
    if slot.status == 0 {
        slot.status = status;
    }
    if slot.left == 0 {
        done.push((tag, slot.status));
    }
}

/// Whether a namespace takes the opcode.
pub(crate) fn supports(limits: &Limits, opcode: Opcode) -> bool {
    match opcode {
        Opcode::Trim => limits.trims.is_some(),
        Opcode::WriteZeroes => limits.write_zeroes,
        Opcode::Read | Opcode::Write | Opcode::Flush => true,
    }
}
