//! When an I/O may go, and what becomes of those that did not go in time.

use super::Worker;
use crate::orders::{GaveUp, Pacing};
use crate::source::{Peek, Planned, Source};
use testdrive_drives::Drive;
use testdrive_recording::Status;

/// When an I/O may go.
pub(super) enum Due {
    /// At this time.
    At(i64),
    /// At once: it has no time of its own.
    Now,
    /// Not before another has completed.
    AfterCompletion,
}

impl<D: Drive, S: Source> Worker<'_, '_, D, S> {
    /// When the source's next I/O may go.
    #[inline]
    pub(super) fn due_ns(&mut self, planned: &Planned, now_ns: i64) -> Due {
        match self.orders.pacing {
            Pacing::Timed => Due::At(self.orders.start_ns.saturating_add(planned.due_ns)),
            Pacing::Closed(depth) if self.in_flight() >= depth => Due::AfterCompletion,
            Pacing::Closed(_) => match &self.throttle {
                None => Due::Now,
                Some(throttle) => {
                    let start_ns = self.orders.start_ns;
                    Due::At(start_ns.saturating_add(throttle.allowed_ns(now_ns - start_ns)))
                }
            },
            Pacing::Gated if planned.gate == 0 => {
                Due::At(self.orders.start_ns.saturating_add(planned.due_ns))
            }
            Pacing::Gated if self.completed.count() < planned.gate => Due::AfterCompletion,
            Pacing::Gated => match self.completed.time_ns(planned.gate) {
                Some(opened_ns) => Due::At(opened_ns.saturating_add(planned.due_ns)),
                None => Due::Now,
            },
        }
    }

    /// The time is over: counts what was due before, but did not go.
    pub(super) fn count_overdue(&mut self, now_ns: i64) {
        if !self.orders.counts_overdue || self.orders.pacing != Pacing::Timed {
            return;
        }
        let end_ns = self.orders.end_ns.map_or(now_ns, |end_ns| end_ns.min(now_ns));
        self.source.release();
        let mut too_late = None;
        while !self.shared.stop.requested() {
            match self.source.peek() {
                Peek::Ready(planned) if self.orders.start_ns.saturating_add(planned.due_ns) < end_ns => {
                    let lag_ns = end_ns - self.orders.start_ns.saturating_add(planned.due_ns);
                    if too_late.is_none() && lag_ns > self.orders.max_lag.of(planned.stream) {
                        too_late = Some((planned.stream, lag_ns));
                    }
                    self.source.take();
                    self.report.overdue += 1;
                }
                // What waits for a completion had no time yet.
                Peek::HeldBack if self.orders.tells_completions => break,
                Peek::Starved | Peek::HeldBack => std::thread::yield_now(),
                Peek::Ready(_) | Peek::End => break,
            }
        }
        // What waited for a completion until the end was never looked at.
        if let Some((stream, lag_ns)) = too_late {
            self.give_up(stream, end_ns, lag_ns);
        }
    }

    /// An open loop is later than it may be.
    pub(super) fn give_up(&mut self, stream: i32, now_ns: i64, lag_ns: i64) {
        let max_lag_ns = self.orders.max_lag.of(stream);
        let at_ns = now_ns - self.orders.start_ns;
        let (lag_s, at_s) = (lag_ns as f64 / 1e9, at_ns as f64 / 1e9);
        let names = self.shared.stream_names.lock().expect("no holder of this lock panics");
        let name = usize::try_from(stream).ok().and_then(|stream| names.get(stream));
        let whose = name.map(|name| format!(" of the stream '{name}'")).unwrap_or_default();
        let message = format!(
            "the drive cannot keep up: an I/O{whose} is {lag_s:.3} s behind its time, {at_s:.3} s into the phase, \
             and max_lag_ns is {max_lag_ns}"
        );
        drop(names);
        self.report.gave_up = Some(GaveUp { stream, at_ns, lag_ns, max_lag_ns });
        self.shared.stop.request(Status::Failed, message);
    }
}
