//! A queue pair in the hands of the thread that drives it: what it needs of the controller, and what happens when that does not answer.

use crate::controller::Controller;
use crate::error::ControllerError;
use crate::event::{Event, EventKind};
use crate::function::Function;
use crate::queue::{Answer, Place, QueuePair};
use crate::registers::{health, Health};
use crate::waiting::look_until;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;
use testdrive_nvme::NvmCommand;

/// More aborts than this are not asked for: a controller that left so many commands without an answer is reset.
const ABORTS_MAX: usize = 4;
/// How long an aborted command may take to say so.
const ABORTED_LIMIT: Duration = Duration::from_secs(1);
/// How long commands in flight may take where the host wants the drive back; the rest ends with their queue.
const LEAVING_LIMIT: Duration = Duration::from_secs(1);

/// The clock of whoever drives the queue, for what is noted.
pub type NowNs<'a> = &'a dyn Fn() -> i64;

/// A queue pair of a controller.
pub struct Queue<F: Function> {
    controller: Arc<Controller<F>>,
    pair: QueuePair,
    generation: u64,
    interrupt: Option<RawFd>,
}

impl<F: Function> Queue<F> {
    /// A pair for `depth` commands in flight, as far as the controller's queues are long enough.
    ///
    /// # Errors
    /// When the controller has no pair left, or does not make one.
    pub fn open(controller: &Arc<Controller<F>>, depth: usize) -> Result<Queue<F>, ControllerError> {
        // A ring is full with one entry free.
        let entries = (depth + 1).clamp(2, controller.capabilities().queue_entries_max.max(2) as usize);
        let (pair, generation) = controller.create_pair(entries)?;
        let interrupt = controller.function().interrupt(pair.id());
        Ok(Queue { controller: Arc::clone(controller), pair, generation, interrupt })
    }

    /// The controller.
    pub fn controller(&self) -> &Arc<Controller<F>> {
        &self.controller
    }

    /// Its number.
    pub fn id(&self) -> u16 {
        self.pair.id()
    }

    /// Commands in flight.
    pub fn in_flight(&self) -> usize {
        self.pair.in_flight()
    }

    /// Whether another command can be pushed.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.pair.has_room()
    }

    /// The identifier that the next command gets; it is below the number of entries.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub fn next_cid(&self) -> u16 {
        self.pair.next_cid()
    }

    /// Entries of its rings.
    pub fn entries(&self) -> u32 {
        self.pair.entries()
    }

    /// Whether the controller interrupts for it.
    pub fn interrupts(&self) -> bool {
        self.interrupt.is_some()
    }

    /// Puts a command into the ring.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub fn push(&mut self, command: &NvmCommand, place: Place<'_>, tag: u32) {
        self.pair.push(command, place, tag);
    }

    /// Tells the controller of everything that was pushed.
    #[inline]
    pub fn ring(&mut self) {
        self.pair.ring(self.controller.function());
    }

    /// Hands every new completion to `take`.
    ///
    /// # Errors
    /// When the controller completes what was not asked of it: it cannot be trusted, and is kept from memory from then on.
    #[inline]
    pub fn reap(&mut self, take: impl FnMut(Answer)) -> io::Result<()> {
        self.pair.reap(self.controller.function(), take).inspect_err(|_| self.controller.distrust())
    }

    /// Whether the controller was reset by another queue's thread, so that what is in flight here will not be answered.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.generation != self.controller.generation()
    }

    /// Takes its place on the controller again after a reset. What was answered before it goes to `take`; returned are the tags of what
    /// was not and never will be, one for each command.
    ///
    /// # Errors
    /// When the controller is lost: [`Queue::abandon`] then tells what had been answered.
    pub fn reconnect(&mut self, take: impl FnMut(Answer)) -> Result<Vec<u32>, ControllerError> {
        let (lost, generation) = self.controller.reconnect(&mut self.pair, take)?;
        self.generation = generation;
        Ok(lost)
    }

    /// Ends everything in flight on a controller that is lost. What was answered before goes to `take`; nothing else will be.
    pub fn abandon(&mut self, take: impl FnMut(Answer)) {
        if self.in_flight() > 0 {
            self.controller.abandon(&mut self.pair, take);
        }
    }

    /// Sleeps until the controller interrupts or the time is over; false where there are no interrupts to be woken by.
    pub fn sleep(&self, limit: Duration) -> bool {
        let Some(fd) = self.interrupt else { return false };
        let mut waited = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let limit =
            libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: one structure is named, and both it and the limit live until the call returns.
        if unsafe { libc::ppoll(&mut waited, 1, &limit, std::ptr::null()) } > 0 {
            let mut count = 0_u64;
            // SAFETY: an eventfd gives eight bytes, for which there is room. It does not block, as there is a count.
            unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
        }
        true
    }

    /// Looks whether the controller is there and well. One that says that it failed, or to which the bus had an error, is reset; what it had
    /// answered before goes to `take` then, and the tags of what it had not are returned, one for each command.
    ///
    /// # Errors
    /// When it is gone, does not come back, or is wanted back by the host: what is in flight is waited for for a moment then, and it is
    /// shut down. [`Queue::abandon`] tells what else it answered.
    pub fn check(
        &mut self,
        now_ns: NowNs<'_>,
        mut take: impl FnMut(Answer),
    ) -> Result<Vec<u32>, ControllerError> {
        let kind = match health(self.controller.function()) {
            Health::Good if self.controller.function().take_bus_error() => EventKind::BusError,
            Health::Good => return Ok(Vec::new()),
            Health::WantedBack => {
                look_until(LEAVING_LIMIT, Duration::from_micros(200), || {
                    if !self.is_stale() {
                        self.reap(&mut take)?;
                    }
                    Ok::<_, io::Error>((self.is_stale() || self.in_flight() == 0).then_some(()))
                })?;
                self.controller.let_go(self.in_flight() as u64, now_ns);
                return Err(ControllerError::WantedBack);
            }
            Health::Fatal => EventKind::ControllerFatalStatus,
            Health::Gone => EventKind::ControllerGone,
        };
        let at_ns = now_ns();
        // That it is gone is noted by the reset, which cannot be done.
        if !self.is_stale() && kind != EventKind::ControllerGone {
            self.controller.note(Event {
                kind,
                start_ns: at_ns,
                end_ns: at_ns,
                commands: self.in_flight() as u64,
            });
        }
        self.controller.reset(self.generation, now_ns)?;
        self.reconnect(take)
    }

    /// Makes the controller give up commands that it does not answer: asks for their abort and, where that does not bring them back,
    /// resets it. What it answers meanwhile goes to `take`; the tags of what a reset took away are returned, one for each command.
    ///
    /// # Errors
    /// When the controller does not come back.
    pub fn rescue(
        &mut self,
        tags: &[u32],
        now_ns: NowNs<'_>,
        mut take: impl FnMut(Answer),
    ) -> Result<Vec<u32>, ControllerError> {
        let cids = |pair: &QueuePair| tags.iter().flat_map(|tag| pair.cids_of(*tag)).collect::<Vec<u16>>();
        let overdue = cids(&self.pair);
        if overdue.is_empty() {
            return Ok(Vec::new());
        }
        let start_ns = now_ns();
        let timeout = EventKind::CommandTimeout;
        self.controller.note(Event {
            kind: timeout,
            start_ns,
            end_ns: start_ns,
            commands: overdue.len() as u64,
        });
        if self.is_stale() {
            // Another queue's thread had the controller reset: it does not know these commands any more.
            return self.reconnect(take);
        }
        let (mut asked, mut aborted) = (0, false);
        for cid in overdue.iter().take(ABORTS_MAX) {
            asked += 1;
            match self.controller.abort(self.pair.id(), *cid) {
                Ok(done) => aborted |= done,
                Err(_) => break,
            }
        }
        look_until(ABORTED_LIMIT, Duration::from_millis(1), || {
            self.reap(&mut take)?;
            Ok::<_, io::Error>((!aborted || cids(&self.pair).is_empty()).then_some(()))
        })?;
        self.controller.note(Event { kind: EventKind::Abort, start_ns, end_ns: now_ns(), commands: asked });
        if cids(&self.pair).is_empty() {
            return Ok(Vec::new());
        }
        self.controller.reset(self.generation, now_ns)?;
        self.reconnect(take)
    }
}

impl<F: Function> Drop for Queue<F> {
    fn drop(&mut self) {
        self.controller.delete_pair(&self.pair, self.generation);
    }
}
