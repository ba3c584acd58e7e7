//! An NVMe controller that this process has to itself: started, asked what it is, given queues, and shut down (NVM Express Base
//! Specification 2.0, 3.5 and 3.6).

use crate::error::ControllerError;
use crate::event::{Event, EventKind};
use crate::function::Function;
use crate::limits::Limits;
use crate::memory::{DmaMemory, PAGE_BYTES};
use crate::queue::{Place, QueuePair};
use crate::registers::{
    health, Capabilities, Health, ACQ, ALL_ONES, AQA, ASQ, CAP, CC, CC_ENABLE, CC_ENTRY_SIZES,
    CC_SHUTDOWN_MASK, CC_SHUTDOWN_NORMAL, CSTS, CSTS_READY, CSTS_SHUTDOWN_COMPLETE, CSTS_SHUTDOWN_MASK,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use testdrive_nvme::{
    abort, create_completion_queue, create_submission_queue, delete_completion_queue,
    delete_submission_queue, identify, queue_counts_of, set_number_of_queues, ControllerIdentity,
    IdentifyWhat, NamespaceIdentity, NvmCommand, NvmLimits, IDENTIFY_BYTES,
};

/// Entries of the admin queue; one command at a time is in it.
const ADMIN_ENTRIES: usize = 16;
/// How long a command of the admin queue may take.
const ADMIN_LIMIT: Duration = Duration::from_secs(20);
/// How long an abort may take: the drive has just left a command without an answer, and the reset that comes next needs no answer.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
/// How long a normal shutdown may take.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(15);
/// More queue pairs than any host has threads that submit.
const PAIRS_MAX: u32 = 256;
/// Pauses while a register is waited for.
const PAUSE: Duration = Duration::from_micros(200);

/// A controller that was started, with one of its namespaces.
pub struct Controller<F: Function> {
    function: F,
    capabilities: Capabilities,
    identity: ControllerIdentity,
    namespace_id: u32,
    namespace: NamespaceIdentity,
    limits: Limits,
    pairs: u16,
    admin: Mutex<Admin>,
    /// Counts resets: a queue of an earlier generation is not the controller's any more.
    generation: AtomicU64,
    failed: AtomicBool,
    events: Mutex<Vec<Event>>,
}

/// The admin queue, and what only its owner may change.
struct Admin {
    queue: QueuePair,
    data: DmaMemory,
    free_pairs: Vec<u16>,
}

impl<F: Function> Controller<F> {
    /// Resets and starts the controller, and chooses a namespace: the one asked for, or the only one.
    ///
    /// # Errors
    /// When it does not start or answer, lacks something that this driver needs, or the namespace is not there or has metadata. It is
    /// stopped then.
    pub fn start(function: F, namespace: Option<u32>) -> Result<Controller<F>, ControllerError> {
        let cap = function.read64(CAP);
        if cap == u64::MAX {
            return Err(ControllerError::Gone);
        }
        let capabilities = Capabilities::decode(cap);
        check(&capabilities)?;
        let entries = ADMIN_ENTRIES.min(capabilities.queue_entries_max as usize);
        let queue = QueuePair::new(&function, &capabilities, 0, entries, IDENTIFY_BYTES)?;
        let admin = Admin { queue, data: function.allocate(PAGE_BYTES)?, free_pairs: Vec::new() };
        let mut controller = Controller {
            function,
            capabilities,
            identity: ControllerIdentity::default(),
            namespace_id: 0,
            namespace: NamespaceIdentity::default(),
            limits: Limits::default(),
            pairs: 0,
            admin: Mutex::new(admin),
            generation: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            events: Mutex::new(Vec::new()),
        };
        // On an error the controller is dropped, which stops it.
        controller.enable(&mut controller.lock())?;
        controller.learn(namespace)?;
        Ok(controller)
    }

    /// Asks what the controller and the namespace are, and how many queues there may be.
    fn learn(&mut self, namespace: Option<u32>) -> Result<(), ControllerError> {
        let bytes = self.identify(IdentifyWhat::Controller)?;
        self.identity = ControllerIdentity::parse(&bytes);
        self.namespace_id = self.choose(namespace)?;
        let bytes = self.identify(IdentifyWhat::Namespace(self.namespace_id))?;
        self.namespace = NamespaceIdentity::parse(&bytes);
        // Controllers before version 2.0 need not know this structure; their trims have no limits of their own.
        let nvm = self.identify(IdentifyWhat::NvmController);
        let nvm = nvm.map_or(NvmLimits::default(), |bytes| NvmLimits::parse(&bytes));
        self.limits =
            Limits::of(self.namespace_id, &self.identity, &self.namespace, &nvm, &self.capabilities)?;
        let pairs = self.ask_for_queues(&mut self.lock())?;
        let interrupts = self.function.interrupts();
        // Each polled queue does without a vector; with interrupts each has its own, after the admin queue's.
        self.pairs = if interrupts > 0 { pairs.min(interrupts.saturating_sub(1)) } else { pairs };
        if self.pairs == 0 {
            return Err(ControllerError::Unsupported(
                "the drive has no I/O queue for us: name its block device instead".into(),
            ));
        }
        let free = (1..=self.pairs).rev().collect();
        self.lock().free_pairs = free;
        Ok(())
    }

    fn ask_for_queues(&self, admin: &mut Admin) -> Result<u16, ControllerError> {
        let within = u32::from(self.capabilities.pairs_within(self.function.registers_bytes()));
        let wanted = within.clamp(1, PAIRS_MAX);
        let granted = self.execute(admin, "grant queues", &set_number_of_queues(wanted), ADMIN_LIMIT)?;
        let (submission, completion) = queue_counts_of(granted);
        Ok(submission.min(completion).min(wanted) as u16)
    }

    fn choose(&self, asked: Option<u32>) -> Result<u32, ControllerError> {
        let list = self.identify(IdentifyWhat::ActiveNamespaces(0))?;
        let ids = list.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
        let active: Vec<u32> = ids.take_while(|id| *id != 0).collect();
        let names = || active.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match (asked, active.as_slice()) {
            (_, []) => Err(ControllerError::Unsupported(
                "the drive has no active namespace: make one with nvme-cli".into(),
            )),
            (Some(asked), active) if active.contains(&asked) => Ok(asked),
            (Some(asked), _) => Err(ControllerError::Unsupported(format!(
                "there is no namespace {asked}: the drive has {}",
                names()
            ))),
            (None, [only]) => Ok(*only),
            (None, _) => Err(ControllerError::Unsupported(format!(
                "the drive has the namespaces {}: choose one with ?namespace=N",
                names()
            ))),
        }
    }

    /// What the controller is.
    pub fn identity(&self) -> &ControllerIdentity {
        &self.identity
    }

    /// The namespace that was chosen.
    pub fn namespace(&self) -> (u32, &NamespaceIdentity) {
        (self.namespace_id, &self.namespace)
    }

    /// How long its commands may be.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many queue pairs there are for I/O.
    pub fn pairs(&self) -> u16 {
        self.pairs
    }

    /// The function that it is on.
    pub fn function(&self) -> &F {
        &self.function
    }

    /// What its registers say that it can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether it is lost: gone, or not to be brought back by a reset.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Takes what went wrong so far.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().expect("no holder of this lock panics"))
    }

    pub(crate) fn note(&self, event: Event) {
        self.events.lock().expect("no holder of this lock panics").push(event);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Admin> {
        self.admin.lock().expect("no holder of this lock panics")
    }

    /// Stops the controller and starts it again with an empty admin queue; I/O queues are gone then.
    fn enable(&self, admin: &mut Admin) -> Result<(), ControllerError> {
        self.disable()?;
        admin.queue.restart();
        let entries = admin.queue.entries();
        self.function.write32(AQA, (entries - 1) << 16 | (entries - 1));
        self.function.write64(ASQ, admin.queue.submission_address());
        self.function.write64(ACQ, admin.queue.completion_address());
        let page = (PAGE_BYTES.trailing_zeros() - 12) << 7;
        self.function.write32(CC, CC_ENTRY_SIZES | page | CC_ENABLE);
        let ready = |status: u32| status & CSTS_READY != 0;
        self.wait_for(ready, "become ready", self.capabilities.timeout, Some("while it started"))
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
        let began = Instant::now();
        loop {
            let status = self.function.read32(CSTS);
            match (health(&self.function), fatal) {
                (Health::Gone, _) => return Err(ControllerError::Gone),
                (Health::Fatal, Some(when)) => return Err(ControllerError::Fatal(when)),
                _ => {}
            }
            if reached(status) {
                return Ok(());
            }
            if began.elapsed() > limit {
                return Err(ControllerError::NotReady { what, limit });
            }
            thread::sleep(PAUSE);
        }
    }

    /// Sends one command of the admin queue and waits for its answer; dword 0 of it.
    fn execute(
        &self,
        admin: &mut Admin,
        what: &'static str,
        command: &NvmCommand,
        limit: Duration,
    ) -> Result<u32, ControllerError> {
        self.execute_at(admin, what, command, None, limit)
    }

    /// The same; `address` takes the place of a pointer to data, for the commands that create queues.
    fn execute_at(
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

    fn identify(&self, what: IdentifyWhat) -> Result<[u8; IDENTIFY_BYTES], ControllerError> {
        let mut admin = self.lock();
        self.execute(&mut admin, "say what it is", &identify(what), ADMIN_LIMIT)?;
        let mut bytes = [0; IDENTIFY_BYTES];
        admin.data.read(0, &mut bytes);
        Ok(bytes)
    }

    /// Rings for a queue pair, made known to the controller.
    ///
    /// # Errors
    /// When all pairs are taken, there is no memory, or the controller refuses.
    pub(crate) fn create_pair(&self, entries: usize) -> Result<(QueuePair, u64), ControllerError> {
        let mut admin = self.lock();
        let id = admin.free_pairs.pop().ok_or(ControllerError::NoQueue(self.pairs))?;
        let transfer_bytes_max = self.limits.transfer_bytes_max();
        let made = QueuePair::new(&self.function, &self.capabilities, id, entries, transfer_bytes_max)
            .map_err(ControllerError::from)
            .and_then(|pair| self.announce(&mut admin, &pair).map(|()| pair));
        if made.is_err() {
            admin.free_pairs.push(id);
        }
        made.map(|pair| (pair, self.generation()))
    }

    fn announce(&self, admin: &mut Admin, pair: &QueuePair) -> Result<(), ControllerError> {
        let (id, entries) = (pair.id(), pair.entries());
        let vector = self.function.interrupt(id).map(|_| id);
        let (command, at) = (create_completion_queue(id, entries, vector), Some(pair.completion_address()));
        self.execute_at(admin, "create a completion queue", &command, at, ADMIN_LIMIT)?;
        let (command, at) = (create_submission_queue(id, entries, id), Some(pair.submission_address()));
        let made = self.execute_at(admin, "create a submission queue", &command, at, ADMIN_LIMIT);
        if made.is_err() {
            let _ =
                self.execute(admin, "delete a completion queue", &delete_completion_queue(id), ADMIN_LIMIT);
        }
        made.map(|_| ())
    }

    /// Makes a pair known again after a reset; the tags of what was in flight. Its rings are as new.
    ///
    /// # Errors
    /// When the controller is lost, or refuses.
    pub(crate) fn reconnect(&self, pair: &mut QueuePair) -> Result<(Vec<u32>, u64), ControllerError> {
        let mut admin = self.lock();
        if self.has_failed() {
            return Err(ControllerError::Lost);
        }
        let lost = pair.restart();
        self.announce(&mut admin, pair)?;
        Ok((lost, self.generation()))
    }

    /// Deletes the queues of a pair, so that its memory may go. Where the controller does not, it is stopped.
    pub(crate) fn delete_pair(&self, pair: &QueuePair, generation: u64) {
        let mut admin = self.lock();
        if generation == self.generation() && !self.has_failed() {
            let id = pair.id();
            let deleted = self
                .execute(&mut admin, "delete a submission queue", &delete_submission_queue(id), ADMIN_LIMIT)
                .and_then(|_| {
                    let command = delete_completion_queue(id);
                    self.execute(&mut admin, "delete a completion queue", &command, ADMIN_LIMIT)
                });
            if deleted.is_err() {
                self.give_up();
            }
        }
        admin.free_pairs.push(pair.id());
    }

    /// Asks for the abort of a command; whether the controller says that it did.
    ///
    /// # Errors
    /// When it does not answer this either.
    pub(crate) fn abort(&self, queue: u16, cid: u16) -> Result<bool, ControllerError> {
        let result = self.execute(&mut self.lock(), "abort a command", &abort(queue, cid), ABORT_LIMIT)?;
        Ok(result & 1 == 0)
    }

    /// Resets the controller, unless that was done since the generation that the caller knows. All I/O queues are gone then, and
    /// have to be reconnected.
    ///
    /// # Errors
    /// When it does not come back: it is lost then, and cut off from memory.
    pub(crate) fn reset(&self, known: u64, now_ns: &dyn Fn() -> i64) -> Result<(), ControllerError> {
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
        let back = self.enable(&mut admin).and_then(|()| self.ask_for_queues(&mut admin).map(|_| ()));
        let kind = match &back {
            Err(ControllerError::Gone) => EventKind::ControllerGone,
            _ => EventKind::ControllerReset,
        };
        self.note(Event { kind, start_ns, end_ns: now_ns(), commands: 0 });
        back.inspect_err(|_| self.give_up())
    }

    /// The controller is lost: whatever it does, it must not reach memory any more.
    fn give_up(&self) {
        self.failed.store(true, Ordering::Release);
        // The way that the specification has for it first.
        let _ = self.disable();
        self.function.cut_off();
    }

    /// Tells the controller that power may go, and waits until it is ready for that.
    fn shut_down(&self) -> Result<(), ControllerError> {
        let configuration = self.function.read32(CC);
        if configuration == ALL_ONES {
            return Err(ControllerError::Gone);
        }
        if configuration & CC_ENABLE != 0 {
            self.function.write32(CC, configuration & !CC_SHUTDOWN_MASK | CC_SHUTDOWN_NORMAL);
            let complete = |status: u32| status & CSTS_SHUTDOWN_MASK == CSTS_SHUTDOWN_COMPLETE;
            self.wait_for(complete, "shut down", SHUTDOWN_LIMIT, Some("while it shut down"))?;
        }
        self.disable()
    }
}

impl<F: Function> Drop for Controller<F> {
    fn drop(&mut self) {
        if !self.has_failed() {
            if let Err(error) = self.shut_down() {
                eprintln!("testdrive: the drive was not shut down in order: {error}");
            }
        }
        self.function.cut_off();
    }
}

fn check(capabilities: &Capabilities) -> Result<(), ControllerError> {
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
    Ok(())
}
