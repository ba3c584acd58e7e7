//! The submitting loop: what is due goes to the drive, what completes goes to the recorder, and nothing else happens here.

use crate::gates::DepthMeter;
use crate::job::OnError;
use crate::recorder::RowQueue;
use crate::source::{Peek, Planned, Source};
use crate::stop::Stop;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use testdrive_core::{Completion, Flags, Histogram, IoRecord, Opcode, OpcodeCounts, NO_COMPLETION};
use testdrive_drives::{Drive, SubmitError, Wait};
use testdrive_recording::Status;

/// I/Os handed over in one go: more would delay the first of them.
const BATCH_MAX: usize = 64;
/// How often a waiting loop looks for a stop or a silent drive, on the drive's clock.
const WATCH_NS: i64 = 20_000_000;
/// How long a starved submitter of a real drive looks for completions before it looks for I/Os again.
const STARVED_WAIT_NS: i64 = 2_000;

/// What decides when the next I/O goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At its own time from the phase's start.
    Timed,
    /// Once enough have completed, and after its think time.
    Gated,
    /// As soon as fewer than this are in flight.
    Closed(usize),
}

/// What every worker of a phase shares.
pub struct Shared {
    /// When to stop.
    pub stop: Stop,
    /// The greatest sequence number submitted so far, plus one.
    pub sequence_max: AtomicU64,
    /// For the progress: the drive's clock, I/Os done, bytes done, errors, in flight.
    pub now_ns: AtomicI64,
    /// Completed I/Os.
    pub ios: AtomicU64,
    /// Completed bytes.
    pub bytes: AtomicU64,
    /// Failed I/Os.
    pub errors: AtomicU64,
    /// Outstanding I/Os of the last worker that said so.
    pub in_flight: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            stop: Stop::default(),
            sequence_max: AtomicU64::new(0),
            now_ns: AtomicI64::new(0),
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
        }
    }
}

/// What a worker is told.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// When to issue.
    pub pacing: Pacing,
    /// Slots.
    pub depth: usize,
    /// Several workers share the source's order.
    pub shared_order: bool,
    /// The phase's start on the drive's clock.
    pub start_ns: i64,
    /// Stop submitting then.
    pub end_ns: Option<i64>,
    /// A drive that is silent for so long is dead.
    pub io_timeout_ns: i64,
    /// What an error does.
    pub on_error: OnError,
    /// The rows' phase.
    pub phase: u16,
}

/// What a worker did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Handed to the drive.
    pub issued: OpcodeCounts,
    /// In-flight depth.
    pub depth: DepthMeter,
    /// Submissions before one that stands earlier in the source.
    pub order_inversions: u64,
    /// First and last scheduled time.
    pub intended_ns: Option<(i64, i64)>,
    /// First and last submission.
    pub submitted_ns: Option<(i64, i64)>,
    /// I/Os that were given up: the kernel still has them.
    pub unanswered: u64,
    /// When the source had nothing decoded though it had not ended.
    pub starved: u64,
    /// When the recorder's queue was full, so that the loop had to wait.
    pub recorder_waits: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    intended_ns: i64,
    submit_ns: i64,
    planned: Planned,
    busy: bool,
}

/// Completion times that gates still need.
#[derive(Default)]
struct Completed {
    times_ns: VecDeque<i64>,
    dropped: u64,
}

impl Completed {
    fn count(&self) -> u64 {
        self.dropped + self.times_ns.len() as u64
    }

    /// When the `number`-th completion came, counting from 1; gates only grow, so earlier ones are forgotten.
    fn time_ns(&mut self, number: u64) -> Option<i64> {
        while self.dropped + 1 < number && !self.times_ns.is_empty() {
            self.times_ns.pop_front();
            self.dropped += 1;
        }
        self.times_ns.get(usize::try_from(number.checked_sub(self.dropped + 1)?).ok()?).copied()
    }
}

/// One submitting loop.
pub struct Worker<'d, 'a, D, S> {
    drive: &'d mut D,
    source: S,
    orders: Orders,
    shared: &'a Shared,
    rows: RowQueue<'a>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    batch: Vec<u32>,
    completions: Vec<Completion>,
    completed: Completed,
    report: Report,
    virtual_time: bool,
    watched_ns: i64,
}

/// When the loop has to act next.
enum Next {
    /// More can be submitted at once.
    Now,
    /// Nothing to submit before this time.
    At(i64),
    /// The source has nothing decoded.
    Starved,
    /// Nothing more to submit.
    Ended,
}

impl<'d, 'a, D: Drive, S: Source> Worker<'d, 'a, D, S> {
    /// A loop over one queue of a drive.
    pub fn new(drive: &'d mut D, source: S, orders: Orders, shared: &'a Shared, rows: RowQueue<'a>) -> Self {
        let blank = Planned {
            command: testdrive_core::Command {
                offset_bytes: 0,
                length_bytes: 0,
                opcode: Opcode::Read,
                flags: Flags::NONE,
            },
            due_ns: 0,
            gate: 0,
            sequence: 0,
            stream: 0,
            opens_gates: false,
        };
        let virtual_time = drive.identity().modelled;
        Worker {
            drive,
            source,
            orders,
            shared,
            rows,
            slots: vec![Slot { intended_ns: 0, submit_ns: 0, planned: blank, busy: false }; orders.depth],
            free: (0..orders.depth as u32).rev().collect(),
            batch: Vec::with_capacity(BATCH_MAX),
            completions: Vec::with_capacity(orders.depth),
            completed: Completed::default(),
            report: Report::default(),
            virtual_time,
            watched_ns: orders.start_ns,
        }
    }

    /// Runs until the source has ended and everything has completed, or the run stops.
    pub fn run(mut self) -> (Report, RowQueue<'a>, Option<Histogram>) {
        let mut ended = false;
        while !ended || self.in_flight() > 0 {
            if self.shared.stop.requested() {
                self.drain();
                break;
            }
            let next = if ended { Next::Ended } else { self.submit_due() };
            ended = ended || matches!(next, Next::Ended);
            if let Err(error) = self.step(next) {
                self.shared.stop.request(Status::Failed, format!("the path to the drive failed: {error}"));
            }
        }
        self.abandon_outstanding();
        let now_ns = self.drive.now_ns();
        self.report.depth.change(now_ns, 0);
        self.shared.now_ns.store(now_ns, Ordering::Relaxed);
        self.report.recorder_waits = self.rows.waits();
        let histogram = self.rows.take_histogram();
        (self.report, self.rows, histogram)
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Submits everything that is due, in one batch.
    fn submit_due(&mut self) -> Next {
        let now_ns = self.drive.now_ns();
        if self.orders.end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
            return Next::Ended;
        }
        let next = loop {
            let planned = match self.source.peek() {
                Peek::Ready(planned) => planned,
                Peek::Starved => break Next::Starved,
                Peek::End => break Next::Ended,
            };
            let intended_ns = match self.due_ns(&planned) {
                Due::At(due_ns) if due_ns > now_ns => break Next::At(due_ns),
                Due::At(due_ns) => due_ns,
                Due::Now => now_ns,
                Due::AfterCompletion => break Next::At(i64::MAX),
            };
            let Some(&slot) = self.free.last() else { break Next::At(i64::MAX) };
            match self.drive.submit(slot, &planned.command) {
                Ok(()) => self.took(slot, intended_ns, planned),
                Err(SubmitError::Full) => break Next::At(i64::MAX),
                Err(error) => {
                    let name = planned.command.opcode.name();
                    self.shared.stop.request(
                        Status::Failed,
                        format!("a {name} was refused by the drive's path: {error}"),
                    );
                    break Next::Ended;
                }
            }
            if self.batch.len() == BATCH_MAX {
                break Next::Now;
            }
        };
        if !self.batch.is_empty() {
            self.hand_over();
        }
        next
    }

    #[inline]
    fn due_ns(&mut self, planned: &Planned) -> Due {
        match self.orders.pacing {
            Pacing::Timed => Due::At(self.orders.start_ns + planned.due_ns),
            Pacing::Closed(depth) if self.in_flight() >= depth => Due::AfterCompletion,
            Pacing::Closed(_) => Due::Now,
            Pacing::Gated if planned.gate == 0 => Due::At(self.orders.start_ns + planned.due_ns),
            Pacing::Gated if self.completed.count() < planned.gate => Due::AfterCompletion,
            Pacing::Gated => match self.completed.time_ns(planned.gate) {
                Some(opened_ns) => Due::At(opened_ns + planned.due_ns),
                None => Due::Now,
            },
        }
    }

    #[inline]
    fn took(&mut self, slot: u32, intended_ns: i64, planned: Planned) {
        self.source.take();
        self.free.pop();
        self.batch.push(slot);
        self.slots[slot as usize] = Slot { intended_ns, submit_ns: 0, planned, busy: true };
        self.report.issued.add(planned.command.opcode, planned.command.length_bytes);
        if self.orders.shared_order {
            let later = self.shared.sequence_max.fetch_max(planned.sequence + 1, Ordering::Relaxed);
            self.report.order_inversions += u64::from(later > planned.sequence);
        }
    }

    /// Hands the batch to the drive. The time is taken once, just before: it is the submission time of all of them.
    fn hand_over(&mut self) {
        let submit_ns = self.drive.now_ns();
        let closed = matches!(self.orders.pacing, Pacing::Closed(_));
        for &slot in &self.batch {
            let slot = &mut self.slots[slot as usize];
            slot.submit_ns = submit_ns;
            if closed {
                slot.intended_ns = submit_ns;
            }
        }
        let (first, last) = (self.batch[0], self.batch[self.batch.len() - 1]);
        let (first_ns, last_ns) =
            (self.slots[first as usize].intended_ns, self.slots[last as usize].intended_ns);
        let (span_first_ns, _) = *self.report.intended_ns.get_or_insert((first_ns, last_ns));
        self.report.intended_ns = Some((span_first_ns, last_ns));
        let (span_first_ns, _) = *self.report.submitted_ns.get_or_insert((submit_ns, submit_ns));
        self.report.submitted_ns = Some((span_first_ns, submit_ns));
        self.report.depth.change(submit_ns, self.in_flight());
        self.batch.clear();
        if let Err(error) = self.drive.kick() {
            self.shared.stop.request(Status::Failed, format!("the path to the drive failed: {error}"));
        }
    }

    /// Waits for whatever comes next and records what completed.
    fn step(&mut self, next: Next) -> io::Result<()> {
        let wait = match next {
            Next::Now => Wait::No,
            Next::Starved => {
                if self.virtual_time {
                    // Virtual time stands still while the host decodes, or the outcome would depend on the host's speed.
                    std::thread::yield_now();
                    return Ok(());
                }
                self.report.starved += 1;
                Wait::Until(self.drive.now_ns() + STARVED_WAIT_NS)
            }
            Next::At(due_ns) => Wait::Until(self.bounded(due_ns)),
            Next::Ended => Wait::Until(self.bounded(i64::MAX)),
        };
        self.drive.poll(wait, &mut self.completions)?;
        self.record_completions();
        self.watch();
        Ok(())
    }

    /// The deadline of a wait: no later than the next look around, or the phase's end.
    fn bounded(&self, due_ns: i64) -> i64 {
        let now_ns = self.drive.now_ns();
        let end_ns = self.orders.end_ns.filter(|&end_ns| end_ns > now_ns).unwrap_or(i64::MAX);
        due_ns.min(now_ns + WATCH_NS).min(end_ns)
    }

    fn record_completions(&mut self) {
        if self.completions.is_empty() {
            return;
        }
        let mut bytes = 0;
        for completion in &self.completions {
            let slot = &mut self.slots[completion.slot as usize];
            debug_assert!(slot.busy, "slot {} completed twice", completion.slot);
            slot.busy = false;
            self.free.push(completion.slot);
            bytes += slot.planned.command.length_bytes;
            if self.orders.pacing == Pacing::Gated && slot.planned.opens_gates {
                self.completed.times_ns.push_back(completion.complete_ns);
            }
            if completion.status != 0 {
                count_failure(self.shared, self.orders.on_error, slot, completion.status);
            }
            let latency_ns = (completion.complete_ns - slot.submit_ns).max(0);
            self.rows.push(&row(slot, latency_ns, completion.status, self.orders.phase));
        }
        let count = self.completions.len() as u64;
        let now_ns = self.completions[self.completions.len() - 1].complete_ns;
        self.completions.clear();
        let in_flight = self.in_flight();
        self.report.depth.change(now_ns, in_flight);
        self.shared.ios.fetch_add(count, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.now_ns.store(now_ns, Ordering::Relaxed);
        self.shared.in_flight.store(in_flight as u64, Ordering::Relaxed);
    }

    /// Looks now and then for I/Os that the drive does not answer.
    fn watch(&mut self) {
        let now_ns = self.drive.now_ns();
        if now_ns - self.watched_ns < WATCH_NS {
            return;
        }
        self.watched_ns = now_ns;
        self.shared.now_ns.store(now_ns, Ordering::Relaxed);
        let oldest = self.slots.iter().filter(|slot| slot.busy).map(|slot| slot.submit_ns).min();
        if let Some(oldest_ns) = oldest.filter(|oldest_ns| now_ns - oldest_ns > self.orders.io_timeout_ns) {
            let waited_s = (now_ns - oldest_ns) as f64 / 1e9;
            let message = format!("the drive has not answered an I/O for {waited_s:.1} s");
            self.shared.stop.request(Status::Failed, message);
        }
    }

    /// After a stop: waits for what is in flight, as long as an I/O may take.
    fn drain(&mut self) {
        let mut deadline_ns = self.drive.now_ns() + self.orders.io_timeout_ns;
        let oldest = self.slots.iter().filter(|slot| slot.busy).map(|slot| slot.submit_ns).min();
        if let Some(oldest_ns) = oldest {
            deadline_ns = deadline_ns.min(oldest_ns + self.orders.io_timeout_ns);
        }
        while self.in_flight() > 0 && self.drive.now_ns() < deadline_ns {
            let wait = Wait::Until(deadline_ns.min(self.drive.now_ns() + WATCH_NS));
            if self.drive.poll(wait, &mut self.completions).is_err() {
                return;
            }
            self.record_completions();
        }
    }

    /// Records what never completed, with the time that it was waited for.
    fn abandon_outstanding(&mut self) {
        for slot in self.slots.iter().filter(|slot| slot.busy) {
            self.rows.push(&row(slot, NO_COMPLETION, libc::ETIMEDOUT, self.orders.phase));
            self.shared.errors.fetch_add(1, Ordering::Relaxed);
            self.report.unanswered += 1;
        }
    }
}

/// When an I/O may go.
enum Due {
    At(i64),
    Now,
    AfterCompletion,
}

#[inline]
fn row(slot: &Slot, latency_ns: i64, status: i32, phase: u16) -> IoRecord {
    let command = &slot.planned.command;
    IoRecord {
        intended_ns: slot.intended_ns,
        submit_ns: slot.submit_ns,
        latency_ns,
        offset_bytes: command.offset_bytes as i64,
        length_bytes: command.length_bytes as i64,
        stream: slot.planned.stream,
        status,
        phase,
        opcode: command.opcode,
        flags: command.flags,
    }
}

/// Counts a failed I/O, and stops the run where it must not go on.
fn count_failure(shared: &Shared, on_error: OnError, slot: &Slot, status: i32) {
    shared.errors.fetch_add(1, Ordering::Relaxed);
    let gone = matches!(status, libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOMEDIUM | libc::EBADF);
    if gone || on_error == OnError::Stop {
        let command = &slot.planned.command;
        let error = io::Error::from_raw_os_error(status);
        let what = if gone { "the drive is gone" } else { "an I/O failed" };
        let message = format!(
            "{what}: {} of {} bytes at offset {}: {error}",
            command.opcode.name(),
            command.length_bytes,
            command.offset_bytes
        );
        shared.stop.request(Status::Failed, message);
    }
}
