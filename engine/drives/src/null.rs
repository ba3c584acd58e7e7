//! The null drive: everything completes at once. It measures what the tool itself costs.

use crate::clock::Clock;
use crate::drive::{Drive, SubmitError, Wait};
use std::io;
use testdrive_core::{Command, Completion, Opcode};
use testdrive_recording::DriveIdentity;

/// A drive that completes every command at the next poll.
pub struct NullDrive {
    identity: DriveIdentity,
    clock: Clock,
    queued: Vec<u32>,
    kicked: usize,
    depth: usize,
}

impl NullDrive {
    /// A queue of `depth` slots.
    pub fn new(identity: DriveIdentity, clock: Clock, depth: usize) -> NullDrive {
        NullDrive { identity, clock, queued: Vec::with_capacity(depth), kicked: 0, depth }
    }
}

impl Drive for NullDrive {
    fn identity(&self) -> &DriveIdentity {
        &self.identity
    }

    fn supports(&self, _opcode: Opcode) -> bool {
        true
    }

    #[inline]
    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    #[inline]
    fn submit(&mut self, slot: u32, _command: &Command) -> Result<(), SubmitError> {
        if self.queued.len() == self.depth {
            return Err(SubmitError::Full);
        }
        self.queued.push(slot);
        Ok(())
    }

    #[inline]
    fn kick(&mut self) -> io::Result<()> {
        self.kicked = self.queued.len();
        Ok(())
    }

    #[inline]
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.kicked > 0 {
            let complete_ns = self.clock.now_ns();
            completions.extend(self.queued.drain(..self.kicked).map(|slot| Completion {
                slot,
                complete_ns,
                status: 0,
            }));
            self.kicked = 0;
        } else if let Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns) = wait {
            self.clock.wait_until_ns(deadline_ns);
        }
        Ok(())
    }
}
