//! Commands of the admin queue.

use super::{Admin, Controller};
use crate::error::ControllerError;
use crate::function::Function;
use crate::queue::Place;
use crate::registers::{health, Health};
use std::thread;
use std::time::{Duration, Instant};
use testdrive_nvme::{identify, IdentifyWhat, NvmCommand, IDENTIFY_BYTES};

/// How long a command of the admin queue may take.
pub(super) const ADMIN_LIMIT: Duration = Duration::from_secs(20);
/// Pauses while an answer is waited for.
const PAUSE: Duration = Duration::from_micros(200);

impl<F: Function> Controller<F> {
    /// Sends one command of the admin queue and waits for its answer; dword 0 of it.
    pub(super) fn execute(
        &self,
        admin: &mut Admin,
        what: &'static str,
        command: &NvmCommand,
        limit: Duration,
    ) -> Result<u32, ControllerError> {
        self.execute_at(admin, what, command, None, limit)
    }

    /// The same; `address` takes the place of a pointer to data, for the commands that create queues.
    pub(super) fn execute_at(
        &self,
        admin: &mut Admin,
        what: &'static str,
        command: &NvmCommand,
        address: Option<u64>,
        limit: Duration,
    ) -> Result<u32, ControllerError> {
        let Admin { queue, data, .. } = admin;
        if !queue.has_room() {
            return Err(ControllerError::Silent { what, limit });
        }
        let place = match (address, command.data_bytes) {
            (Some(address), _) => Place::Address(address),
            (None, 0) => Place::None,
            (None, _) => Place::Data { memory: data, offset: 0 },
        };
        let cid = queue.push(command, place, 0);
        queue.ring(&self.function);
        let began = Instant::now();
        loop {
            let mut answer = None;
            queue.reap(&self.function, |each| answer = (each.cid == cid).then_some(each).or(answer))?;
            if let Some(answer) = answer {
                return match answer.status.is_success() {
                    true => Ok(answer.result),
                    false => Err(ControllerError::Refused { what, status: answer.status }),
                };
            }
            match health(&self.function) {
                Health::Good => {}
                Health::Fatal => return Err(ControllerError::Fatal("when it was asked something")),
                Health::Gone => return Err(ControllerError::Gone),
            }
            if began.elapsed() > limit {
                return Err(ControllerError::Silent { what, limit });
            }
            thread::sleep(PAUSE);
        }
    }

    pub(super) fn identify(&self, what: IdentifyWhat) -> Result<[u8; IDENTIFY_BYTES], ControllerError> {
        let mut admin = self.lock();
        self.execute(&mut admin, "say what it is", &identify(what), ADMIN_LIMIT)?;
        let mut bytes = [0; IDENTIFY_BYTES];
        admin.data.read(0, &mut bytes);
        Ok(bytes)
    }
}
