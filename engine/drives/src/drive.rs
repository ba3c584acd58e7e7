//! The trait that every path to a drive implements.

use crate::buffers::WriteData;
use crate::clock::Clock;
use testdrive_core::{Command, Completion, Opcode};
use testdrive_recording::{DriveCounters, DriveEvents, DriveIdentity};

/// How long [`Drive::poll`] may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Take what has completed and return.
    No,
    /// Return as soon as something completes or the drive's clock reaches this time, whichever is first, and be there to the
    /// microsecond: real drives are waited for awake.
    Until(i64),
    /// The same, but there is nothing to be in time for: the thread may sleep, and leave its CPU to whatever serves the drive.
    Asleep(i64),
}

/// Why a command could not be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The path's queue is full: poll, then try again.
    #[error("the queue is full")]
    Full,
    /// The path cannot do this opcode at all; the run accounts it as unsupported.
    #[error("the path cannot issue this opcode")]
    Unsupported,
    /// The command would write to a drive that was opened for reading only: nothing was issued.
    #[error("the drive was opened for reading only")]
    ReadOnly,
}

/// How a queue to a real drive is made.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// The run's clock; queues of one run share its origin.
    pub clock: Clock,
    /// Slots: the most commands in flight.
    pub depth: usize,
    /// The longest transfer.
    pub io_bytes_max: u64,
    /// What writes carry.
    pub data: WriteData,
    /// From which its random bytes follow: queues of one drive have seeds of their own.
    pub data_seed: u64,
    /// Whether each write gets fresh bytes, before its time of submission. It takes a buffer of the longest transfer for each slot.
    pub refill: bool,
}

/// One queue to one drive, used by one thread.
///
/// The caller names each command by a slot, which must be free: below the depth that the drive was opened with, and not
/// submitted again before its completion was polled. `submit` only queues; `kick` hands everything queued to the device, at the
/// latest with the `poll` that has to follow at once. The caller reads `now_ns` just before `kick`: that is the time of submission
/// of the whole batch.
pub trait Drive {
    /// What the drive is. The same for every queue of it.
    fn identity(&self) -> &DriveIdentity;

    /// Whether `submit` accepts this opcode.
    fn supports(&self, opcode: Opcode) -> bool;

    /// How many trims that are handed over together may share a command, where the user asked for that: a burst of them is not cut shorter.
    fn trims_together(&self) -> usize {
        1
    }

    /// The drive's clock, in nanoseconds from an origin of its own: the host's for real drives, virtual for modelled ones.
    fn now_ns(&self) -> i64;

    /// Whether the drive is no longer there, asked after an I/O failed: the kernel fails the I/Os of a drive that was pulled with
    /// errors that a drive that is there can have too.
    fn is_gone(&self) -> bool {
        false
    }

    /// What the drive counted of itself so far, as SMART has it; `None` where the path does not ask.
    fn counters(&self) -> Option<DriveCounters> {
        None
    }

    /// Takes what the drive logged of its own work so far, on its clock; `None` where it keeps no log. What it counts is up to date
    /// afterwards.
    fn take_events(&mut self) -> Option<DriveEvents> {
        None
    }

    /// Makes the drive give up commands that it has not answered for as long as an I/O may take, where the path can; false where it
    /// cannot. What they come to is appended to `completions`: the status of an abort, or `ETIMEDOUT` where the drive had to be reset,
    /// and `ECANCELED` for others that were in flight then.
    ///
    /// # Errors
    /// When the path itself fails: the run ends as failed.
    fn rescue(&mut self, slots: &[u32], completions: &mut Vec<Completion>) -> std::io::Result<bool> {
        let _ = (slots, completions);
        Ok(false)
    }

    /// When a command was begun that has just been polled, where the path hands commands to threads of its own: their system call may
    /// begin long after `kick`, when the host has no CPU for them, and that is no time of the drive's. `None` is at `kick`.
    fn begun_ns(&self, slot: u32) -> Option<i64> {
        let _ = slot;
        None
    }

    /// Queues a command.
    ///
    /// # Errors
    /// When the queue is full, the opcode unsupported or the drive read-only: the command is then not queued.
    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError>;

    /// Hands all queued commands to the device.
    ///
    /// # Errors
    /// When the path itself fails (not a command on it): the run ends as failed.
    fn kick(&mut self) -> std::io::Result<()>;

    /// Appends what has completed to `completions`.
    ///
    /// # Errors
    /// When the path itself fails: the run ends as failed.
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> std::io::Result<()>;
}
