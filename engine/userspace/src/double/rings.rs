//! The controller's registers, its rings and their doorbells.

use super::logs::Features;
use super::{Entry, State};
use crate::registers::{
    CC_ENABLE, CC_SHUTDOWN_MASK, CSTS_FATAL, CSTS_READY, CSTS_SHUTDOWN_COMPLETE, DOORBELLS,
};
use std::sync::atomic::{fence, Ordering};

#[derive(Default)]
pub(super) struct Submission {
    pub(super) base: u64,
    pub(super) entries: u32,
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) completion: u16,
}

#[derive(Default)]
pub(super) struct Completion {
    pub(super) base: u64,
    pub(super) entries: u32,
    pub(super) tail: u32,
    pub(super) head: u32,
    pub(super) phase: bool,
}

impl State {
    pub(super) fn cap(&self) -> u64 {
        let entries = u64::from(self.model.queue_entries - 1);
        let ready_limit = u64::from(self.model.ready_limit) << 24;
        entries | 1 << 16 | ready_limit | u64::from(self.model.doorbell_stride) << 32 | 1 << 37 | 4 << 52
    }

    /// The status, which is looked at while it starts.
    pub(super) fn status(&mut self) -> u32 {
        if self.starting > 0 {
            self.starting -= 1;
            self.csts |= if self.starting == 0 { CSTS_READY } else { 0 };
        }
        self.csts
    }

    pub(super) fn configure(&mut self, value: u32) {
        let (was, is) = (self.cc & CC_ENABLE != 0, value & CC_ENABLE != 0);
        self.cc = value;
        if was && !is {
            assert_eq!(self.starting, 0, "stopped while it starts, of which nobody knows what comes");
            // A reset: no queue outlives it, and what is pending is never done.
            self.submissions.clear();
            self.completions.clear();
            self.pending.clear();
            self.formatting = None;
            self.features = Features::default();
            self.csts = 0;
        }
        if is && !was && !self.faults.never_ready {
            self.resets += 1;
            assert_eq!(value >> 16 & 0xff, 0x46, "entries of 64 and 16 bytes");
            let (submission, completion) = ((self.aqa & 0xfff) + 1, (self.aqa >> 16 & 0xfff) + 1);
            self.submissions
                .insert(0, Submission { base: self.asq, entries: submission, ..Submission::default() });
            self.completions.insert(
                0,
                Completion { base: self.acq, entries: completion, phase: true, ..Completion::default() },
            );
            match self.faults.starts_slowly {
                true => self.starting = 3,
                false => self.csts |= CSTS_READY,
            }
        }
        if value & CC_SHUTDOWN_MASK != 0 {
            let io_queues = self.submissions.keys().any(|id| *id > 0);
            let deletes = !self.faults.admin_silent && !self.faults.keeps_queues;
            assert!(!(io_queues && deletes), "shut down with queues that it would have deleted");
            self.csts |= if self.faults.fails_to_shut_down { CSTS_FATAL } else { CSTS_SHUTDOWN_COMPLETE };
            self.shutdowns += 1;
        }
    }

    pub(super) fn doorbell(&mut self, offset: usize, value: u32) {
        let index = (offset - DOORBELLS) / (4 << self.model.doorbell_stride);
        let id = (index / 2) as u16;
        if index % 2 == 1 {
            if let Some(queue) = self.completions.get_mut(&id) {
                assert!(value < queue.entries, "a head beyond the queue");
                queue.head = value;
            }
            return;
        }
        if let Some(queue) = self.submissions.get_mut(&id) {
            assert!(value < queue.entries, "a tail beyond the queue");
            queue.tail = value;
        }
        if id == 0 {
            self.serve_admin();
        }
    }

    pub(super) fn fetch(&mut self, id: u16) -> Option<Entry> {
        let queue = self.submissions.get(&id).filter(|queue| queue.head != queue.tail)?;
        let mut entry = [0; 64];
        self.load(queue.base + u64::from(queue.head) * 64, &mut entry);
        let queue = self.submissions.get_mut(&id)?;
        queue.head = (queue.head + 1) % queue.entries;
        Some(entry)
    }

    pub(super) fn complete(&mut self, id: u16, cid: u16, status: u16, result: u32) {
        let Some(submission) = self.submissions.get(&id) else { return };
        let (head, completion) = (submission.head, submission.completion);
        let Some(queue) = self.completions.get(&completion) else { return };
        assert_ne!((queue.tail + 1) % queue.entries, queue.head, "the completion queue is full");
        let at = queue.base + u64::from(queue.tail) * 16;
        let last = u32::from(cid) | u32::from(queue.phase) << 16 | u32::from(status) << 17;
        self.store(at, &result.to_le_bytes());
        self.store(at + 8, &(head | u32::from(id) << 16).to_le_bytes());
        let place = self.resolve(at + 12, 4) as *mut u32;
        // The driver must not see the phase before the rest.
        fence(Ordering::Release);
        // SAFETY: the word lies in registered memory and is aligned, as entries of 16 bytes are.
        unsafe { place.write_volatile(last.to_le()) };
        let queue = self.completions.get_mut(&completion).expect("it was just there");
        queue.tail += 1;
        if queue.tail == queue.entries {
            (queue.tail, queue.phase) = (0, !queue.phase);
        }
    }
}
