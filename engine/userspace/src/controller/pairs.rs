//! Queue pairs for I/O: made known to the controller, again after a reset, and deleted.

use super::admin::{Admin, ADMIN_LIMIT};
use super::Controller;
use crate::error::ControllerError;
use crate::function::Function;
use crate::queue::{Answer, QueuePair};
use std::time::Duration;
use testdrive_nvme::{
    abort, create_completion_queue, create_submission_queue, delete_completion_queue, delete_submission_queue,
};

/// How long an abort may take: the drive has just left a command without an answer, and the reset that comes next needs no answer.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
/// How long the deletion of a queue may take where somebody waits for the drive.
const DELETE_LIMIT: Duration = Duration::from_secs(2);

impl<F: Function> Controller<F> {
    /// Rings for a queue pair, made known to the controller.
    ///
    /// # Errors
    /// When all pairs are taken, there is no memory, the controller refuses, or the namespace has metadata.
    pub(crate) fn create_pair(&self, entries: usize) -> Result<(QueuePair, u64), ControllerError> {
        self.check_blocks()?;
        let mut admin = self.lock();
        if self.has_failed() {
            return Err(ControllerError::Lost);
        }
        let id = admin.free_pairs.pop().ok_or(ControllerError::NoQueue(self.pairs))?;
        let transfer_bytes_max = self.limits().transfer_bytes_max();
        let made = QueuePair::new(&self.function, &self.capabilities, id, entries, transfer_bytes_max)
            .map_err(ControllerError::from)
            .and_then(|pair| self.announce(&mut admin, &pair).map(|()| pair));
        if made.is_err() {
            admin.free_pairs.push(id);
        }
        made.map(|pair| (pair, self.generation()))
    }

    /// Makes a pair known. On an error the controller knows nothing of it, so that its memory may go: where that is not certain, it is
    /// given up.
    fn announce(&self, admin: &mut Admin, pair: &QueuePair) -> Result<(), ControllerError> {
        let made = self.create_both(admin, pair);
        made.inspect_err(|error| {
            if !matches!(error, ControllerError::Refused { .. }) {
                self.give_up();
            }
        })
    }

    fn create_both(&self, admin: &mut Admin, pair: &QueuePair) -> Result<(), ControllerError> {
        let (id, entries) = (pair.id(), pair.entries());
        let vector = self.function.interrupt(id).map(|_| id);
        let (command, at) = (create_completion_queue(id, entries, vector), Some(pair.completion_address()));
        self.execute_at(admin, "create a completion queue", &command, at, ADMIN_LIMIT)?;
        let (command, at) = (create_submission_queue(id, entries, id), Some(pair.submission_address()));
        let made = self.execute_at(admin, "create a submission queue", &command, at, ADMIN_LIMIT);
        if let Err(ControllerError::Refused { .. }) = made {
            let command = delete_completion_queue(id);
            if self.execute(admin, "delete a completion queue", &command, ADMIN_LIMIT).is_err() {
                self.give_up();
            }
        }
        made.map(|_| ())
    }

    /// Makes a pair known again after a reset. What was answered before goes to `take`; returned are the tags of what was not. Its rings
    /// are as new.
    ///
    /// # Errors
    /// When the controller is lost, or refuses.
    pub(crate) fn reconnect(
        &self,
        pair: &mut QueuePair,
        take: impl FnMut(Answer),
    ) -> Result<(Vec<u32>, u64), ControllerError> {
        let mut admin = self.lock();
        if self.has_failed() {
            return Err(ControllerError::Lost);
        }
        let lost = pair.restart(take);
        self.count_lost(lost.len());
        // A queue that was there and is refused now: the controller is not what it was before its reset.
        self.announce(&mut admin, pair).inspect_err(|_| self.give_up())?;
        Ok((lost, self.generation()))
    }

    /// Empties the rings of a pair whose controller was given up. What was answered before goes to `take`; all else will never be.
    pub(crate) fn abandon(&self, pair: &mut QueuePair, take: impl FnMut(Answer)) {
        // Whoever gives the controller up holds this until it writes no more.
        let stopped = self.lock();
        let lost = pair.restart(take);
        if stopped.lost_by_reset {
            self.count_lost(lost.len());
        }
    }

    /// Deletes the queues of a pair, so that its memory may go. Where the controller does not, it is stopped.
    pub(crate) fn delete_pair(&self, pair: &QueuePair, generation: u64) {
        let mut admin = self.lock();
        let is_known = generation == self.generation() && !self.has_failed();
        if is_known && self.delete_queues(&mut admin, pair.id(), ADMIN_LIMIT).is_err() {
            self.give_up();
        }
        admin.free_pairs.push(pair.id());
    }

    /// Deletes the queues of every pair that somebody has: the controller answers or aborts what is in flight on a submission queue before
    /// it is gone (Base 5.6). Ends with the first command that gets no answer.
    pub(super) fn delete_all_queues(&self, admin: &mut Admin) {
        let is_used = |id: &u16| !admin.free_pairs.contains(id);
        let used: Vec<u16> = (1..=self.pairs).filter(is_used).collect();
        for id in used {
            match self.delete_queues(admin, id, DELETE_LIMIT) {
                // One that was not made again after a reset is not there.
                Ok(()) | Err(ControllerError::Refused { .. }) => {}
                Err(_) => break,
            }
        }
    }

    fn delete_queues(&self, admin: &mut Admin, id: u16, limit: Duration) -> Result<(), ControllerError> {
        self.execute(admin, "delete a submission queue", &delete_submission_queue(id), limit)?;
        self.execute(admin, "delete a completion queue", &delete_completion_queue(id), limit).map(drop)
    }

    /// Asks for the abort of a command; whether the controller says that it did.
    ///
    /// # Errors
    /// When it does not answer this either.
    pub(crate) fn abort(&self, queue: u16, cid: u16) -> Result<bool, ControllerError> {
        let result = self.execute(&mut self.lock(), "abort a command", &abort(queue, cid), ABORT_LIMIT)?;
        Ok(result & 1 == 0)
    }
}
