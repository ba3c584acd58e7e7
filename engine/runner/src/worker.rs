//! The submitting loop: what is due goes to the drive, what completes goes to the recorder, and nothing else happens here.

mod schedule;
mod silence;

use self::schedule::Due;
use crate::completed::Completed;
use crate::orders::{Orders, Pacing, Report, Shared};
use crate::recorder::RowQueue;
use crate::rounds::{RoundTally, Rounds};
use crate::slot::{count_failure, is_gone, Slot};
use crate::source::{Peek, Planned, Source};
use crate::throttle::Throttle;
use std::io;
use std::sync::atomic::Ordering;
use testdrive_core::{Completion, Histogram, Opcode};
use testdrive_drives::{Drive, SubmitError, Wait};
use testdrive_recording::Status;

/// I/Os handed over in one go: more would delay the first of them.
const BATCH_MAX: usize = 64;
/// The same for a closed loop, where more is ready at once than anybody waits for: in small batches the drive works on the first I/Os
/// while the next are handed over.
const CLOSED_BATCH_MAX: usize = 4;
/// How often a waiting loop looks for a stop or a silent drive, on the drive's clock.
const WATCH_NS: i64 = 20_000_000;
/// How long a starved submitter of a real drive looks for completions before it looks for I/Os again.
const STARVED_WAIT_NS: i64 = 2_000;

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
    /// Whether there are only trims in the batch.
    batch_of_trims: bool,
    completions: Vec<Completion>,
    completed: Completed,
    report: Report,
    tally: Option<RoundTally<'a>>,
    throttle: Option<Throttle>,
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
    /// The source's next I/Os belong to other submitters.
    HeldBack,
    /// Nothing more to submit.
    Ended,
}

impl<'d, 'a, D: Drive, S: Source> Worker<'d, 'a, D, S> {
    /// A loop over one queue of a drive.
    pub fn new(drive: &'d mut D, source: S, orders: Orders, shared: &'a Shared, rows: RowQueue<'a>) -> Self {
        let virtual_time = drive.identity().modelled;
        Worker {
            drive,
            source,
            orders,
            shared,
            rows,
            slots: vec![Slot::FREE; orders.depth],
            free: (0..orders.depth as u32).rev().collect(),
            batch: Vec::with_capacity(BATCH_MAX),
            batch_of_trims: false,
            completions: Vec::with_capacity(orders.depth),
            completed: Completed::default(),
            report: Report::default(),
            tally: None,
            throttle: (!orders.limits.are_none()).then(|| Throttle::new(orders.limits)),
            virtual_time,
            watched_ns: orders.start_ns,
        }
    }

    /// The same, in rounds that may end the phase.
    pub fn judged_by(mut self, rounds: Option<&'a Rounds>) -> Self {
        self.tally = rounds.map(|rounds| RoundTally::new(rounds, self.orders.start_ns));
        self
    }

    /// Runs until the source has ended and everything has completed, or the run stops.
    pub fn run(mut self) -> (Report, RowQueue<'a>, Option<Histogram>) {
        let mut ended = false;
        self.wait_for_start();
        while !ended || self.in_flight() > 0 {
            if self.shared.stop.requested() {
                self.drain();
                break;
            }
            let next = if ended { Next::Ended } else { self.submit_due() };
            ended = ended || matches!(next, Next::Ended);
            if ended && self.in_flight() == 0 {
                // A phase that ends while it rests has nothing to wait for.
                break;
            }
            if let Err(error) = self.step(next) {
                self.shared.stop.request(Status::Failed, format!("the path to the drive failed: {error}"));
            }
        }
        self.abandon_outstanding();
        let now_ns = self.drive.now_ns();
        // The phase's end may also be a round's.
        self.tally.as_mut().map(|tally| tally.pass(now_ns));
        self.report.depth.change(now_ns, 0);
        self.shared.now_ns.store(now_ns, Ordering::Relaxed);
        self.report.recorder_waits = self.rows.waits();
        let histogram = self.rows.take_histogram();
        (self.report, self.rows, histogram)
    }

    /// All submitters start together, so also a closed loop waits for the phase's start.
    fn wait_for_start(&mut self) {
        while self.drive.now_ns() < self.orders.start_ns {
            if self.drive.poll(Wait::Until(self.orders.start_ns), &mut self.completions).is_err() {
                return;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Submits everything that is due, in one batch.
    fn submit_due(&mut self) -> Next {
        let now_ns = self.drive.now_ns();
        let over = self.orders.end_ns.is_some_and(|end_ns| now_ns >= end_ns)
            || self.tally.as_mut().is_some_and(|tally| tally.pass(now_ns));
        if over {
            self.count_overdue(now_ns);
            return Next::Ended;
        }
        let closed = matches!(self.orders.pacing, Pacing::Closed(_));
        let batch_max = if closed { CLOSED_BATCH_MAX } else { BATCH_MAX };
        let trims_max = batch_max.max(self.drive.trims_together());
        let next = loop {
            let planned = match self.source.peek() {
                Peek::Ready(planned) => planned,
                Peek::Starved => break Next::Starved,
                Peek::HeldBack => break Next::HeldBack,
                Peek::End => break Next::Ended,
            };
            let more_trims = self.batch_of_trims && planned.command.opcode == Opcode::Trim;
            if self.batch.len() >= if more_trims { trims_max } else { batch_max } {
                break Next::Now;
            }
            let intended_ns = match self.due_ns(&planned, now_ns) {
                Due::At(due_ns) if due_ns > now_ns => break Next::At(due_ns),
                Due::At(due_ns) => due_ns,
                Due::Now => now_ns,
                Due::AfterCompletion => break Next::At(i64::MAX),
            };
            if now_ns - intended_ns > self.orders.max_lag.of(planned.stream) {
                self.give_up(planned.stream, now_ns, now_ns - intended_ns);
                break Next::Ended;
            }
            let Some(&slot) = self.free.last() else { break Next::At(i64::MAX) };
            match self.drive.submit(slot, &planned.command) {
                Ok(()) => self.took(slot, now_ns, intended_ns, planned),
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
        };
        if !self.batch.is_empty() {
            self.hand_over();
        }
        next
    }

    #[inline]
    fn took(&mut self, slot: u32, now_ns: i64, intended_ns: i64, planned: Planned) {
        if let Some(throttle) = &mut self.throttle {
            throttle.took(now_ns - self.orders.start_ns, planned.command.length_bytes);
        }
        self.source.take();
        self.free.pop();
        self.batch_of_trims =
            planned.command.opcode == Opcode::Trim && (self.batch.is_empty() || self.batch_of_trims);
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
        self.shared.in_flight.fetch_add(self.batch.len() as u64, Ordering::Relaxed);
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
            // What the source waits for is a completion, of this submitter's I/Os.
            Next::HeldBack if self.orders.tells_completions => Wait::Until(self.bounded(i64::MAX)),
            Next::HeldBack => Wait::Until(self.drive.now_ns() + STARVED_WAIT_NS),
            // A closed loop with all of its I/Os in flight has no time to keep.
            Next::At(i64::MAX) if matches!(self.orders.pacing, Pacing::Closed(_)) => {
                Wait::Asleep(self.bounded(i64::MAX))
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
            if let Some(begun_ns) = self.drive.begun_ns(completion.slot) {
                slot.begun(begun_ns, matches!(self.orders.pacing, Pacing::Closed(_)));
            }
            bytes += slot.planned.command.length_bytes;
            if self.orders.pacing == Pacing::Gated && slot.planned.opens_gates {
                self.completed.push(completion.complete_ns);
            }
            if self.orders.tells_completions {
                self.source.completed(
                    slot.planned.part,
                    completion.complete_ns.saturating_sub(self.orders.start_ns),
                );
            }
            if completion.status != 0 {
                let gone = is_gone(completion.status) || self.drive.is_gone();
                count_failure(self.shared, self.orders.on_error, slot, completion.status, gone);
            }
            let latency_ns = (completion.complete_ns - slot.submit_ns).max(0);
            if completion.status == 0 {
                let length_bytes = slot.planned.command.length_bytes;
                self.report.completed.add(length_bytes, latency_ns);
                if let Some(tally) = &mut self.tally {
                    tally.add(completion.complete_ns, length_bytes, latency_ns);
                }
            }
            self.rows.push(&slot.row(latency_ns, completion.status, self.orders.phase));
        }
        let count = self.completions.len() as u64;
        let now_ns = self.completions[self.completions.len() - 1].complete_ns;
        self.completions.clear();
        let in_flight = self.in_flight();
        self.report.depth.change(now_ns, in_flight);
        self.shared.in_flight.fetch_sub(count, Ordering::Relaxed);
        self.shared.ios.fetch_add(count, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.now_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Looks around now and then.
    fn watch(&mut self) {
        let now_ns = self.drive.now_ns();
        if now_ns - self.watched_ns < WATCH_NS {
            return;
        }
        self.watched_ns = now_ns;
        self.shared.now_ns.store(now_ns, Ordering::Relaxed);
        self.end_if_silent(now_ns);
    }
}

#[cfg(test)]
#[path = "worker/batch_tests.rs"]
mod batch_tests;
