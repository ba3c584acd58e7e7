//! A ring for NVMe commands and what is on it: what is queued for the kernel, and what is in flight.

use super::WideRing;
use crate::ring::{self, build_ring};
use io_uring::squeue;
use std::io;
use std::mem::ManuallyDrop;

/// The most entries that a ring holds back for one system call.
const ENTRIES_MAX: u32 = 1024;
/// The most commands in flight on a ring: long I/Os are many.
const COMMANDS_MAX: u32 = 32_768;

/// One of the rings, and what is on it.
pub(super) struct Lane {
    /// The ring itself.
    pub ring: ManuallyDrop<WideRing>,
    commands_max: usize,
    /// Entries that the kernel has not taken yet.
    pub queued: usize,
    /// Commands whose completion was not seen.
    pub in_flight: usize,
}

impl Lane {
    /// A ring for the commands of so many I/Os, with the names of its flags.
    pub fn new(depth: usize, polled: bool) -> io::Result<(Lane, Vec<&'static str>)> {
        // A long I/O is several commands.
        let commands =
            u32::try_from(depth * 4).map_err(io::Error::other)?.next_power_of_two().min(COMMANDS_MAX);
        let (ring, flags) = build_ring(commands.min(ENTRIES_MAX), commands, polled)?;
        Ok((
            Lane { ring: ManuallyDrop::new(ring), commands_max: commands as usize, queued: 0, in_flight: 0 },
            flags,
        ))
    }

    /// Whether there is room for a command.
    pub fn has_room(&mut self) -> bool {
        let commands_max = self.commands_max;
        let queue = self.ring.submission();
        self.in_flight < commands_max && queue.len() < queue.capacity()
    }

    /// Queues a command.
    ///
    /// # Panics
    /// When there is no room: [`Lane::has_room`] is asked before.
    ///
    /// # Safety
    /// What the entry points to must live until its completion.
    pub unsafe fn push(&mut self, entry: &squeue::Entry128) {
        // SAFETY: passed on to the caller.
        unsafe { self.ring.submission().push(entry) }.expect("the caller looked for room");
        self.queued += 1;
        self.in_flight += 1;
    }

    /// Lets the kernel bring completions in, and hands it what it would not take before.
    pub fn collect(&mut self) -> io::Result<()> {
        if self.in_flight > 0 {
            self.queued -= ring::collect(&self.ring, self.queued)?;
        }
        Ok(())
    }
}
