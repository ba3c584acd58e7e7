//! What a submitting thread takes its I/Os from.

use testdrive_core::Command;

/// One I/O, placed on the drive, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What to issue.
    pub command: Command,
    /// Timed: when, from the phase's start. Gated: the think time after the gate opens. Closed loop: unused.
    pub due_ns: i64,
    /// Gated: completions to wait for. Otherwise 0.
    pub gate: u64,
    /// Place in the source's order.
    pub sequence: u64,
    /// What the row carries as `stream`.
    pub stream: i32,
    /// Which of several generators made it.
    pub part: u16,
    /// Whether its completion counts for gates: it does where the source saw it complete.
    pub opens_gates: bool,
}

/// What [`Source::peek`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// The next I/O.
    Ready(Planned),
    /// Nothing yet: it is still being decoded.
    Starved,
    /// Nothing yet, since another submitter's I/Os come first.
    HeldBack,
    /// There are no more.
    End,
}

/// A stream of planned I/Os, in the order of issue.
pub trait Source {
    /// The next I/O, which stays next until [`Source::take`].
    fn peek(&mut self) -> Peek;
    /// Takes what was peeked.
    fn take(&mut self);
    /// An I/O that a generator made has completed, at a time from the phase's start; told where the orders ask for it.
    fn completed(&mut self, _part: u16, _at_ns: i64) {}
    /// The time is over: what has a time of its own is to be found by it, whether or not it waits for a completion.
    fn release(&mut self) {}
}
