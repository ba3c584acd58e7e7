//! A ring and what is on it: what is queued for the kernel, and what is in flight.

use crate::ring::{self, build_ring};
use io_uring::{cqueue, squeue, IoUring};
use std::io;
use std::mem::ManuallyDrop;

/// The most entries that a ring holds back for one system call.
const ENTRIES_MAX: u32 = 1024;
/// The most completions that a ring has room for.
const COMPLETIONS_MAX: u32 = 32_768;

/// One of the rings of a queue, and what is on it. Dropping it leaves the ring to the end of the process, unless [`Lane::close`] was called.
pub(crate) struct Lane<S: squeue::EntryMarker = squeue::Entry, C: cqueue::EntryMarker = cqueue::Entry> {
    /// The ring itself.
    pub ring: ManuallyDrop<IoUring<S, C>>,
    in_flight_max: usize,
    queued: usize,
    in_flight: usize,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Lane<S, C> {
    /// A ring for so many entries in flight, as far as there can be, with the names of its flags.
    pub fn new(entries: usize, polled: bool) -> io::Result<(Lane<S, C>, Vec<&'static str>)> {
        let completions =
            u32::try_from(entries).map_err(io::Error::other)?.next_power_of_two().min(COMPLETIONS_MAX);
        let (ring, flags) = build_ring(completions.min(ENTRIES_MAX), completions, polled)?;
        let (ring, in_flight_max) = (ManuallyDrop::new(ring), completions as usize);
        Ok((Lane { ring, in_flight_max, queued: 0, in_flight: 0 }, flags))
    }

    /// Operations whose completion was not seen.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether there are entries that the kernel has not taken yet.
    pub fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Whether there is room for an operation of so many entries.
    #[inline]
    pub fn has_room_for(&mut self, entries: usize) -> bool {
        let in_flight_max = self.in_flight_max;
        let queue = self.ring.submission();
        self.in_flight < in_flight_max && queue.capacity() - queue.len() >= entries
    }

    /// Queues an operation, which may be several entries that are linked.
    ///
    /// # Panics
    /// When there is no room: [`Lane::has_room_for`] is asked before.
    ///
    /// # Safety
    /// What the entries point to must live until its completion.
    #[inline]
    pub unsafe fn push<'e>(&mut self, entries: impl IntoIterator<Item = &'e S>)
    where
        S: 'e,
    {
        let mut queue = self.ring.submission();
        for entry in entries {
            // SAFETY: passed on to the caller.
            unsafe { queue.push(entry) }.expect("the caller looked for room");
            self.queued += 1;
        }
        drop(queue);
        self.in_flight += 1;
    }

    /// Lets the kernel bring completions in, and hands it what it would not take before.
    pub fn collect(&mut self) -> io::Result<()> {
        if self.in_flight > 0 {
            self.queued -= ring::collect(&self.ring, self.queued)?;
        }
        Ok(())
    }

    /// Submits what is queued and sleeps until something completes, or so long; false where this kernel cannot limit a wait, and
    /// nothing was done.
    pub fn sleep(&mut self, left_ns: u64) -> io::Result<bool> {
        let submitted = ring::sleep(&self.ring, left_ns)?;
        self.queued -= submitted.unwrap_or(0).min(self.queued);
        Ok(submitted.is_some())
    }

    /// Hands every completion that is there to `take`, which says whether it ends an operation. `first` is called before, if there is
    /// any, for what all of them have in common.
    #[inline]
    pub fn reap<T: Copy>(&mut self, first: impl FnOnce() -> T, mut take: impl FnMut(&C, T) -> bool) {
        let queue = self.ring.completion();
        if queue.is_empty() {
            return;
        }
        let common = first();
        for entry in queue {
            self.in_flight -= usize::from(take(&entry, common));
        }
    }

    /// Closes the ring.
    ///
    /// # Safety
    /// Nothing is done with the lane afterwards. Nothing may be in flight: closing would wait for it, without an end where a drive is dead.
    pub unsafe fn close(&mut self) {
        // SAFETY: the caller does nothing with it any more.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
    }
}
