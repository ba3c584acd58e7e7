//! The events of all I/Os in the order of time.
//!
//! Each kind of event is a pass of its own over the source, in the order of that event, and the passes are merged: an I/O that
//! takes minutes holds up nothing, and a drive that falls behind by a million I/Os fills no memory.

use super::super::{EncodeError, Order, Rows, Source};
use std::iter::Peekable;
use testdrive_core::IoRecord;

/// What happens to an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The workload asks for it.
    Queue,
    /// The device gets it.
    Issue,
    /// The device is done with it.
    Complete,
}

impl Step {
    const ALL: [Step; 3] = [Step::Queue, Step::Issue, Step::Complete];

    fn order(self) -> Order {
        match self {
            // A source may say that an I/O was intended after it was submitted; an event of it cannot.
            Step::Queue => Order::Began,
            Step::Issue => Order::Submit,
            Step::Complete => Order::Completion,
        }
    }

    /// When it happens to an I/O.
    pub fn time_ns(self, row: &IoRecord) -> i64 {
        match self {
            Step::Queue => row.intended_ns.min(row.submit_ns),
            Step::Issue => row.submit_ns,
            Step::Complete => row.submit_ns.saturating_add(row.latency_ns.max(0)),
        }
    }

    /// Where it stands among what happens at the same time: completions first, since what is submitted then may be to the same
    /// place; but never before the I/O's own issue.
    fn rank(self, row: &IoRecord) -> u8 {
        match self {
            Step::Complete if row.latency_ns > 0 => 0,
            Step::Queue => 1,
            Step::Issue => 2,
            Step::Complete => 3,
        }
    }
}

/// Which events a source can tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub queue: bool,
    pub issue: bool,
    pub complete: bool,
}

impl Steps {
    /// What the source has columns for.
    pub fn of(source: &dyn Source) -> Result<Steps, EncodeError> {
        let steps = Steps {
            queue: !source.lacks("intended_ns"),
            issue: !source.lacks("submit_ns"),
            complete: !source.lacks("latency_ns"),
        };
        if !steps.queue && !steps.issue {
            let message = "the recording has neither intended_ns nor submit_ns, so that nothing can be put in the order of time";
            return Err(EncodeError::Usage(message.into()));
        }
        Ok(steps)
    }

    /// The event that every I/O has.
    pub fn first(self) -> Step {
        if self.queue {
            Step::Queue
        } else {
            Step::Issue
        }
    }

    fn has(self, step: Step) -> bool {
        match step {
            Step::Queue => self.queue,
            Step::Issue => self.issue,
            Step::Complete => self.complete,
        }
    }
}

/// All events of a source, merged.
pub(super) struct Merge<'s> {
    passes: Vec<(Step, Peekable<Rows<'s>>)>,
}

impl<'s> Merge<'s> {
    pub fn new(source: &'s dyn Source, steps: Steps) -> Result<Merge<'s>, EncodeError> {
        let mut passes = Vec::new();
        for step in Step::ALL.into_iter().filter(|step| steps.has(*step)) {
            passes.push((step, source.rows(step.order()).map_err(EncodeError::Source)?.peekable()));
        }
        Ok(Merge { passes })
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<(Step, IoRecord), EncodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut first: Option<((i64, u8), usize)> = None;
        for (index, (step, rows)) in self.passes.iter_mut().enumerate() {
            let place = match rows.peek() {
                None => continue,
                Some(Ok(row)) => (step.time_ns(row), step.rank(row)),
                // What cannot be read is told at once.
                Some(Err(_)) => (i64::MIN, 0),
            };
            if first.is_none_or(|(earliest, _)| place < earliest) {
                first = Some((place, index));
            }
        }
        let (_, index) = first?;
        let (step, rows) = &mut self.passes[index];
        let row = rows.next()?;
        Some(row.map(|row| (*step, row)).map_err(EncodeError::Source))
    }
}
