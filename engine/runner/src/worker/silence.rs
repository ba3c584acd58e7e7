//! Drives that do not answer: how they are found, and how long a loop that ends waits for them.

use super::{Worker, WATCH_NS};
use crate::slot::Slot;
use crate::source::Source;
use std::sync::atomic::Ordering;
use testdrive_core::NO_COMPLETION;
use testdrive_drives::{Drive, Wait};
use testdrive_recording::Status;

impl<D: Drive, S: Source> Worker<'_, '_, D, S> {
    /// Ends the run where an I/O has waited for too long and the drive cannot be brought to give it up.
    pub(super) fn end_if_silent(&mut self, now_ns: i64) {
        if !self.is_silent(now_ns) {
            return;
        }
        // The loop itself may have been held up, by the recorder or by the host: what completed meanwhile is taken first.
        if self.drive.poll(Wait::No, &mut self.completions).is_ok() {
            self.record_completions();
        }
        if self.is_silent(now_ns) && self.rescue(now_ns) {
            return;
        }
        if let Some(oldest_ns) = self.oldest_ns().filter(|_| self.is_silent(now_ns)) {
            let waited_s = (now_ns - oldest_ns) as f64 / 1e9;
            let message = format!("the drive has not answered an I/O for {waited_s:.1} s");
            self.shared.stop.request(Status::Failed, message);
        }
    }

    /// Has the drive give up what it does not answer, where its path can; what comes of that is recorded. False where nothing did, and
    /// nothing ever will.
    fn rescue(&mut self, now_ns: i64) -> bool {
        let is_overdue = |slot: &Slot| slot.busy && now_ns - slot.submit_ns >= self.orders.io_timeout_ns;
        let overdue: Vec<u32> =
            (0..).zip(&self.slots).filter(|(_, slot)| is_overdue(slot)).map(|(index, _)| index).collect();
        let rescued = self.drive.rescue(&overdue, &mut self.completions);
        let is_over = self.completions.is_empty() && self.drive.is_gone();
        self.record_completions();
        rescued.map(|rescued| rescued && !is_over).unwrap_or_else(|error| {
            self.shared.stop.request(Status::Failed, format!("the path to the drive failed: {error}"));
            false
        })
    }

    /// When the oldest outstanding I/O was submitted.
    fn oldest_ns(&self) -> Option<i64> {
        self.slots.iter().filter(|slot| slot.busy).map(|slot| slot.submit_ns).min()
    }

    fn is_silent(&self, now_ns: i64) -> bool {
        self.oldest_ns().is_some_and(|oldest_ns| now_ns - oldest_ns > self.orders.io_timeout_ns)
    }

    /// After a stop: waits for what is in flight, as long as an I/O may take.
    pub(super) fn drain(&mut self) {
        let since_ns = self.oldest_ns().unwrap_or(0).min(self.drive.now_ns());
        let mut deadline_ns = since_ns.saturating_add(self.orders.io_timeout_ns);
        while self.in_flight() > 0 {
            // Polled at least once, also when the time is over: the loop may have been held up, not the drive.
            let wait = Wait::Until(deadline_ns.min(self.drive.now_ns() + WATCH_NS));
            if self.drive.poll(wait, &mut self.completions).is_err() {
                return;
            }
            self.record_completions();
            if self.drive.now_ns() >= deadline_ns {
                if self.in_flight() == 0 || !self.rescue(self.drive.now_ns()) {
                    return;
                }
                // What was submitted later has until its own time.
                deadline_ns =
                    self.oldest_ns().unwrap_or(deadline_ns).saturating_add(self.orders.io_timeout_ns);
            }
        }
    }

    /// Records what never completed, with the time that it was waited for.
    pub(super) fn abandon_outstanding(&mut self) {
        for slot in self.slots.iter().filter(|slot| slot.busy) {
            self.rows.push(&slot.row(NO_COMPLETION, libc::ETIMEDOUT, self.orders.phase));
            self.shared.errors.fetch_add(1, Ordering::Relaxed);
            self.report.unanswered += 1;
        }
    }
}
