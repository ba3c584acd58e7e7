//! Starting, stopping and resetting a controller (NVM Express Base Specification 2.0, 3.5 to 3.7).

use super::admin::Admin;
use super::Controller;
use crate::error::ControllerError;
use crate::event::{Event, EventKind};
use crate::function::Function;
use crate::handle::NowNs;
use crate::memory::{before_doorbell, PAGE_BYTES};
use crate::registers::{
    health, Capabilities, Health, ACQ, ALL_ONES, AQA, ASQ, CC, CC_ENABLE, CC_ENTRY_SIZES, CC_SHUTDOWN_MASK,
    CC_SHUTDOWN_NORMAL, CSTS, CSTS_READY, CSTS_SHUTDOWN_COMPLETE, CSTS_SHUTDOWN_MASK,
};
use crate::waiting::look_until;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a normal shutdown may take, where the drive does not say that it takes longer.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(15);
/// However long a drive says that it takes, it is not waited for beyond this.
const SHUTDOWN_LIMIT_MAX: Duration = Duration::from_secs(120);
/// Pauses while a register is waited for.
const PAUSE: Duration = Duration::from_micros(200);

impl<F: Function> Controller<F> {
    /// Stops the controller and starts it again with an empty admin queue; I/O queues are gone then.
    pub(super) fn enable(&self, admin: &mut Admin) -> Result<(), ControllerError> {
        self.wait_until_stoppable();
        self.disable()?;
        let (submission, completion, entries) = admin.restart();
        self.function.write32(AQA, (entries - 1) << 16 | (entries - 1));
        self.function.write64(ASQ, submission);
        self.function.write64(ACQ, completion);
        let page = (PAGE_BYTES.trailing_zeros() - 12) << 7;
        // The rings that it is told of are empty.
        before_doorbell();
        self.function.write32(CC, CC_ENTRY_SIZES | page | CC_ENABLE);
        let ready = |status: u32| status & CSTS_READY != 0;
        self.wait_for(ready, "become ready", self.capabilities.timeout, Some("while it started"))
    }

    /// What becomes of a controller that is stopped while it starts, as somebody else may have left it, is undefined (Base 3.1.3.5). One
    /// that does not start at all is stopped all the same.
    fn wait_until_stoppable(&self) {
        let configuration = self.function.read32(CC);
        if configuration != ALL_ONES && configuration & CC_ENABLE != 0 {
            let ready = |status: u32| status & CSTS_READY != 0;
            let _ = self.wait_for(ready, "become ready", self.capabilities.timeout, Some("while it started"));
        }
    }

    /// Stops the controller: from then on it reaches no memory.
    fn disable(&self) -> Result<(), ControllerError> {
        let configuration = self.function.read32(CC);
        if configuration == ALL_ONES {
            return Err(ControllerError::Gone);
        }
        self.function.write32(CC, configuration & !(CC_ENABLE | CC_SHUTDOWN_MASK));
        let stopped = |status: u32| status & CSTS_READY == 0;
        self.wait_for(stopped, "stop", self.capabilities.timeout, None)
    }

    /// Waits for a status; one that is fatal ends the wait where the text says when that is.
    fn wait_for(
        &self,
        reached: impl Fn(u32) -> bool,
        what: &'static str,
        limit: Duration,
        fatal: Option<&'static str>,
    ) -> Result<(), ControllerError> {
        let found = look_until(limit, PAUSE, || {
            let status = self.function.read32(CSTS);
            match (health(&self.function), fatal) {
                (Health::Gone, _) => Err(ControllerError::Gone),
                (Health::Fatal, Some(when)) => Err(ControllerError::Fatal(when)),
                _ => Ok(reached(status).then_some(())),
            }
        });
        found?.ok_or(ControllerError::NotReady { what, limit })
    }

    /// Resets the controller, unless that was done since the generation that the caller knows. All I/O queues are gone then, and
    /// have to be reconnected.
    ///
    /// # Errors
    /// When it does not come back: it is lost then, and cut off from memory.
    pub(crate) fn reset(&self, known: u64, now_ns: NowNs<'_>) -> Result<(), ControllerError> {
        let mut admin = self.lock();
        if self.has_failed() {
            return Err(ControllerError::Lost);
        }
        if self.generation() != known {
            return Ok(());
        }
        // First of all, so that other queues stop waiting for answers that will not come.
        self.generation.fetch_add(1, Ordering::AcqRel);
        let start_ns = now_ns();
        let back = self
            .enable(&mut admin)
            .and_then(|()| self.ask_for_queues(&mut admin))
            .and_then(|_| self.set_features_again(&mut admin));
        let kind = match &back {
            Err(ControllerError::Gone) => EventKind::ControllerGone,
            _ => EventKind::ControllerReset,
        };
        // How many commands it took away is known as each queue is connected again, or ended.
        self.note(Event { kind, start_ns, end_ns: now_ns(), commands: 0 });
        admin.lost_by_reset = back.is_err();
        back.inspect_err(|_| self.give_up())
    }

    /// The controller cannot be trusted: it is given up.
    pub(crate) fn distrust(&self) {
        let _held = self.lock();
        if !self.has_failed() {
            self.give_up();
        }
    }

    /// The controller is lost: whatever it does, it must not reach memory any more. Callers hold the lock of the admin queue, so that whoever
    /// takes it afterwards finds a controller that writes no more.
    pub(super) fn give_up(&self) {
        self.failed.store(true, Ordering::Release);
        // The way that the specification has for it first.
        let _ = self.disable();
        self.function.cut_off();
    }

    /// The host wants the controller back: its queues are deleted, which ends what is in flight on any of them, it is shut down in
    /// order, and is lost to us. Whoever has a queue finds there what was answered. `commands` are those that the caller still waits for.
    pub(crate) fn let_go(&self, commands: u64, now_ns: NowNs<'_>) {
        let mut admin = self.lock();
        if self.has_failed() {
            return;
        }
        let at_ns = now_ns();
        self.note(Event { kind: EventKind::ControllerGone, start_ns: at_ns, end_ns: at_ns, commands });
        // First of all, so that other queues send nothing more: they wait for the lock until this is over.
        self.generation.fetch_add(1, Ordering::AcqRel);
        admin.is_leaving = true;
        // One that does not delete them is stopped with them.
        self.delete_all_queues(&mut admin);
        self.end(&mut admin, now_ns);
    }

    /// Ends the work with a controller of which no queue is left: it is shut down in order, or stopped at least, kept from memory, and is
    /// lost to us. One that was lost before stays so.
    pub fn retire(&self, now_ns: NowNs<'_>) {
        let mut admin = self.lock();
        if !self.has_failed() {
            self.end(&mut admin, now_ns);
        }
    }

    /// Shuts the controller down, or stops it at least, and keeps it from memory. It is lost to us then.
    fn end(&self, admin: &mut Admin, now_ns: NowNs<'_>) {
        let start_ns = now_ns();
        admin.is_leaving = true;
        self.take_memory_back(admin);
        self.failed.store(true, Ordering::Release);
        if let Err(error) = self.shut_down() {
            eprintln!("testdrive: the drive was not shut down in order: {error}");
            let kind = EventKind::ShutdownIncomplete;
            self.note(Event { kind, start_ns, end_ns: now_ns(), commands: 0 });
        }
        self.function.cut_off();
    }

    /// Tells the controller that power may go, and waits until it is ready for that. It is stopped in any case, unless it is gone. One
    /// that never became ready has nothing to bring to an end.
    fn shut_down(&self) -> Result<(), ControllerError> {
        let (configuration, status) = (self.function.read32(CC), self.function.read32(CSTS));
        if configuration == ALL_ONES {
            return Err(ControllerError::Gone);
        }
        if configuration & CC_ENABLE != 0 && status & CSTS_READY != 0 {
            self.function.write32(CC, configuration & !CC_SHUTDOWN_MASK | CC_SHUTDOWN_NORMAL);
            let complete = |status: u32| status & CSTS_SHUTDOWN_MASK == CSTS_SHUTDOWN_COMPLETE;
            let limit = shutdown_limit(self.identity.shutdown_us);
            let complete = self.wait_for(complete, "shut down", limit, Some("while it shut down"));
            // Whatever came of that: it must not be found in the midst of its work by the reset that comes with the end of VFIO.
            let stopped = self.disable();
            return complete.and(stopped);
        }
        self.disable()
    }
}

impl<F: Function> Drop for Controller<F> {
    fn drop(&mut self) {
        match self.has_failed() {
            true => self.function.cut_off(),
            // Nobody is left to take what is noted.
            false => self.retire(&|| 0),
        }
    }
}

/// How long a drive that says that a shutdown takes it so many microseconds (RTD3E; 0 where it does not) is waited for.
fn shutdown_limit(shutdown_us: u32) -> Duration {
    Duration::from_micros(shutdown_us.into()).clamp(SHUTDOWN_LIMIT, SHUTDOWN_LIMIT_MAX)
}

/// Looks whether the controller is one that this driver can drive, with so many bytes of its registers within reach.
pub(super) fn check(capabilities: &Capabilities, registers_bytes: usize) -> Result<(), ControllerError> {
    let page_shift = PAGE_BYTES.trailing_zeros();
    if !capabilities.nvm_command_set {
        return Err(ControllerError::Unsupported(
            "the controller has no NVM command set: it holds no blocks to test".into(),
        ));
    }
    if !(capabilities.page_shift_min..=capabilities.page_shift_max).contains(&page_shift) {
        let smallest = 1_u64 << capabilities.page_shift_min;
        return Err(ControllerError::Unsupported(format!(
            "the controller's pages have at least {smallest} bytes, and this driver's {PAGE_BYTES}: name its block device instead"
        )));
    }
    // Of the admin queue, the submission's and the completion's.
    if capabilities.doorbell(0) + 2 * capabilities.doorbell_stride > registers_bytes {
        return Err(ControllerError::Unsupported(format!(
            "the controller's doorbells are {} bytes apart, too far for this driver: name its block device instead",
            capabilities.doorbell_stride
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_may_take_what_the_drive_says_within_reason() {
        let limits = [0, 8_000_000, 45_000_000, u32::MAX].map(shutdown_limit);
        assert_eq!(limits.map(|limit| limit.as_secs()), [15, 15, 45, 120]);
    }
}
