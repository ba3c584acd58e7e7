//! The admin queue: commands of any thread, each of which waits for its own answer.

use super::host_memory::HostMemory;
use super::Controller;
use crate::error::ControllerError;
use crate::function::Function;
use crate::memory::{DmaMemory, PAGE_BYTES};
use crate::queue::{Place, QueuePair};
use crate::registers::{health, Capabilities, Health};
use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use testdrive_nvme::{identify, AdminOpcode, IdentifyWhat, NvmCommand, Status, IDENTIFY_BYTES};

/// Entries of the queue: a command that takes hours, some that ask meanwhile, and those that were never answered.
const ENTRIES: usize = 32;
/// How long a command may take of which the driver has to know the answer before it goes on.
pub(super) const ADMIN_LIMIT: Duration = Duration::from_secs(20);
/// Pauses while an answer is waited for: short at first, and longer for what takes long.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(10));

/// The queue, what is asked by it, and what only its owner may change.
pub(super) struct Admin {
    queue: QueuePair,
    /// A page for the answer to each command that can be in flight, by its identifier: one that nobody waits for any more has its page
    /// until it is answered, since the controller may still write there.
    data: DmaMemory,
    /// Numbers of I/O queue pairs that nobody has.
    pub(super) free_pairs: Vec<u16>,
    next_ticket: u32,
    /// How many bytes each command in flight brings, by its ticket.
    awaited: BTreeMap<u32, usize>,
    answers: BTreeMap<u32, Answered>,
    /// What features were set to, by feature: a reset makes them what they were.
    features: BTreeMap<u8, NvmCommand>,
    /// Whether the host is being obeyed that wants the controller back: the last commands are answered all the same.
    pub(super) is_leaving: bool,
    /// What the drive was lent.
    pub(super) host_memory: Option<HostMemory>,
    /// Whether it was lost by a reset from which it did not come back: what is in flight goes with that.
    pub(super) lost_by_reset: bool,
}

/// An answer that was not fetched yet.
struct Answered {
    status: Status,
    result: u32,
    bytes: Vec<u8>,
}

impl Admin {
    pub(super) fn new(function: &impl Function, capabilities: &Capabilities) -> io::Result<Admin> {
        let entries = ENTRIES.min(capabilities.queue_entries_max as usize);
        Ok(Admin {
            queue: QueuePair::new(function, capabilities, 0, entries, PAGE_BYTES)?,
            data: function.allocate((entries - 1) * PAGE_BYTES)?,
            free_pairs: Vec::new(),
            next_ticket: 0,
            awaited: BTreeMap::new(),
            answers: BTreeMap::new(),
            features: BTreeMap::new(),
            is_leaving: false,
            host_memory: None,
            lost_by_reset: false,
        })
    }

    /// Notes that a feature was set, to be set again after a reset.
    pub(super) fn keep_feature(&mut self, command: &NvmCommand) {
        self.features.insert(command.cdw[0] as u8, *command);
    }

    /// Where its rings are for the controller, which was stopped, and their size. They are as new; nothing is in flight any more, and
    /// whoever still waits is told.
    pub(super) fn restart(&mut self) -> (u64, u64, u32) {
        self.queue.restart(|_| {});
        self.awaited.clear();
        self.answers.clear();
        (self.queue.submission_address(), self.queue.completion_address(), self.queue.entries())
    }

    /// Sends a command; its ticket, or `None` where there is no room. `address` takes the place of a pointer to data.
    fn send(&mut self, function: &impl Function, command: &NvmCommand, address: Option<u64>) -> Option<u32> {
        if !self.queue.has_room() {
            return None;
        }
        let length = command.data_bytes as usize;
        assert!(length <= PAGE_BYTES, "an answer of {length} bytes, and there is a page for it");
        let offset = usize::from(self.queue.next_cid()) * PAGE_BYTES;
        self.data.write(offset, &[0; PAGE_BYTES]);
        let place = match (address, length) {
            (Some(address), _) => Place::Address(address),
            (None, 0) => Place::None,
            (None, _) => Place::Data { memory: &self.data, offset },
        };
        let ticket = self.next_ticket;
        self.next_ticket = ticket.wrapping_add(1);
        self.queue.push(command, place, ticket);
        self.queue.ring(function);
        self.awaited.insert(ticket, length);
        Some(ticket)
    }

    /// Takes what was answered, to whomever.
    fn collect(&mut self, function: &impl Function) -> io::Result<()> {
        let Admin { queue, data, awaited, answers, .. } = self;
        queue.reap(function, |answer| {
            // Nobody waits for it any more.
            let Some(length) = awaited.remove(&answer.tag) else { return };
            let mut bytes = vec![0; length];
            data.read(usize::from(answer.cid) * PAGE_BYTES, &mut bytes);
            answers.insert(answer.tag, Answered { status: answer.status, result: answer.result, bytes });
        })
    }
}

/// A command that was sent, and how long its answer is waited for.
struct Sent {
    what: &'static str,
    ticket: u32,
    began: Instant,
    limit: Duration,
}

impl Sent {
    fn pause(&self) {
        let (shortest, longest) = PAUSES;
        thread::sleep((self.began.elapsed() / 32).clamp(shortest, longest));
    }
}

impl<F: Function> Controller<F> {
    fn send(
        &self,
        admin: &mut Admin,
        what: &'static str,
        (command, address): (&NvmCommand, Option<u64>),
        limit: Duration,
    ) -> Result<Sent, ControllerError> {
        // What was given up and answered late makes room.
        admin.collect(&self.function)?;
        let ticket = admin.send(&self.function, command, address);
        let ticket = ticket.ok_or(ControllerError::Silent { what, limit })?;
        Ok(Sent { what, ticket, began: Instant::now(), limit })
    }

    /// The answer to a command, if it is there.
    fn answer(&self, admin: &mut Admin, sent: &Sent) -> Result<Option<Answered>, ControllerError> {
        let Sent { what, ticket, began, limit } = *sent;
        // Before the look: what came while this thread was held up is seen.
        let is_over = began.elapsed() > limit;
        admin.collect(&self.function)?;
        if let Some(answered) = admin.answers.remove(&ticket) {
            return match answered.status {
                status if status.is_success() => Ok(Some(answered)),
                status => Err(ControllerError::Refused { what, status }),
            };
        }
        let error = match health(&self.function) {
            _ if self.has_failed() => ControllerError::Lost,
            _ if !admin.awaited.contains_key(&ticket) => ControllerError::Interrupted(what),
            Health::Fatal => ControllerError::Fatal("when it was asked something"),
            Health::Gone => ControllerError::Gone,
            Health::WantedBack if !admin.is_leaving => ControllerError::WantedBack,
            _ if is_over => ControllerError::Silent { what, limit },
            Health::WantedBack | Health::Good => return Ok(None),
        };
        admin.awaited.remove(&ticket);
        Err(error)
    }

    /// Sends one command and waits for its answer; dword 0 of it. Nobody else uses the queue meanwhile.
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
        let sent = self.send(admin, what, (command, address), limit)?;
        loop {
            if let Some(answered) = self.answer(admin, &sent)? {
                return Ok(answered.result);
            }
            sent.pause();
        }
    }

    /// Sends one command and waits for its answer, at most so long; dword 0 of it. Its data are copied to `data`, which is as long as
    /// the command says, and at most a page. Others may ask something meanwhile: a format takes hours. A feature that was set is set again
    /// after a reset.
    ///
    /// # Errors
    /// When the drive refuses, does not answer within the limit, or is reset meanwhile. A command without an answer is left to the
    /// drive: nothing is aborted or reset for it.
    ///
    /// # Panics
    /// With other lengths.
    pub fn ask(
        &self,
        what: &'static str,
        command: &NvmCommand,
        data: &mut [u8],
        limit: Duration,
    ) -> Result<u32, ControllerError> {
        assert_eq!(data.len(), command.data_bytes as usize, "the buffer is that of the command");
        if self.has_failed() {
            return Err(ControllerError::Lost);
        }
        let sent = self.send(&mut self.lock(), what, (command, None), limit)?;
        loop {
            let mut admin = self.lock();
            if let Some(answered) = self.answer(&mut admin, &sent)? {
                data.copy_from_slice(&answered.bytes);
                if command.opcode == AdminOpcode::SetFeatures as u8 {
                    admin.keep_feature(command);
                }
                return Ok(answered.result);
            }
            drop(admin);
            sent.pause();
        }
    }

    /// Sets what was set of features before a reset.
    pub(super) fn set_features_again(&self, admin: &mut Admin) -> Result<(), ControllerError> {
        for command in admin.features.clone().into_values() {
            self.execute(admin, "set a feature again", &command, ADMIN_LIMIT)?;
        }
        Ok(())
    }

    pub(super) fn identify(&self, what: IdentifyWhat) -> Result<Box<[u8; IDENTIFY_BYTES]>, ControllerError> {
        let mut bytes = Box::new([0; IDENTIFY_BYTES]);
        self.ask("say what it is", &identify(what), &mut bytes[..], ADMIN_LIMIT)?;
        Ok(bytes)
    }
}
