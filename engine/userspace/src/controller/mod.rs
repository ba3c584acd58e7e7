//! An NVMe controller that this process has to itself: started, asked what it is, given queues, and shut down (NVM Express Base
//! Specification 2.0, 3.5 and 3.6).

mod admin;
mod host_memory;
mod pairs;
mod state;

use crate::error::ControllerError;
use crate::event::{Event, EventKind};
use crate::function::Function;
use crate::limits::Limits;
use crate::registers::Capabilities;
use admin::{Admin, ADMIN_LIMIT};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use testdrive_nvme::{
    queue_counts_of, set_number_of_queues, ControllerIdentity, IdentifyWhat, NamespaceIdentity, NvmLimits,
};

/// More queue pairs than any host has threads that submit.
const PAIRS_MAX: u32 = 256;

/// A controller that was started, with one of its namespaces.
pub struct Controller<F: Function> {
    function: F,
    capabilities: Capabilities,
    identity: ControllerIdentity,
    namespace_id: u32,
    /// What the namespace is, which a format changes.
    geometry: Mutex<Geometry>,
    pairs: u16,
    admin: Mutex<Admin>,
    /// Counts resets: a queue of an earlier generation is not the controller's any more.
    generation: AtomicU64,
    failed: AtomicBool,
    events: Mutex<Vec<Event>>,
}

/// A namespace, and how long the commands to it may be.
#[derive(Clone, Default)]
struct Geometry {
    namespace: NamespaceIdentity,
    limits: Limits,
}

impl<F: Function> Controller<F> {
    /// Resets and starts the controller, and chooses a namespace: the one asked for, or the only one.
    ///
    /// # Errors
    /// When it does not start or answer, lacks something that this driver needs, or the namespace is not there or has metadata. It is
    /// stopped then.
    pub fn start(function: F, namespace: Option<u32>) -> Result<Controller<F>, ControllerError> {
        let controller = Controller::start_to_format(function, namespace)?;
        controller.check_blocks()?;
        Ok(controller)
    }

    /// The same of a namespace that may have metadata, which a format takes away. It has no queues until then.
    ///
    /// # Errors
    /// As [`Controller::start`], but for metadata.
    pub fn start_to_format(function: F, namespace: Option<u32>) -> Result<Controller<F>, ControllerError> {
        let capabilities = Capabilities::of(&function).ok_or(ControllerError::Gone)?;
        state::check(&capabilities, function.registers_bytes())?;
        let admin = Admin::new(&function, &capabilities)?;
        let mut controller = Controller {
            function,
            capabilities,
            identity: ControllerIdentity::default(),
            namespace_id: 0,
            geometry: Mutex::default(),
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
        self.look()?;
        let pairs = self.ask_for_queues(&mut self.lock())?;
        let interrupts = self.function.interrupts();
        // Each polled queue does without a vector; with interrupts each has its own, after the admin queue's.
        self.pairs = if interrupts > 0 { pairs.min(interrupts.saturating_sub(1)) } else { pairs };
        if self.pairs == 0 {
            return Err(ControllerError::Unsupported(
                "the drive has no I/O queue for us: name its block device instead".into(),
            ));
        }
        let mut admin = self.lock();
        admin.free_pairs = (1..=self.pairs).rev().collect();
        self.lend_memory(&mut admin)
    }

    /// Asks what the namespace is now, as after a format. Queues that are there already keep to what it was.
    ///
    /// # Errors
    /// When the drive does not say, or the namespace cannot be driven any more, as with metadata.
    pub fn look_again(&self) -> Result<(), ControllerError> {
        self.look()?;
        self.check_blocks()
    }

    /// Whether its blocks are data alone, as those that are transferred have to be.
    pub(crate) fn check_blocks(&self) -> Result<(), ControllerError> {
        match self.geometry().namespace.has_metadata() {
            false => Ok(()),
            true => Err(ControllerError::Unsupported(format!(
                "namespace {} has metadata or protection information, which testdrive does not handle: format it without (a phase of method 'format', or nvme format)",
                self.namespace_id
            ))),
        }
    }

    fn look(&self) -> Result<(), ControllerError> {
        let bytes = self.identify(IdentifyWhat::Namespace(self.namespace_id))?;
        let namespace = NamespaceIdentity::parse(&bytes);
        let nvm = match self.identify(IdentifyWhat::NvmController) {
            Ok(bytes) => NvmLimits::parse(&bytes),
            // Controllers before version 2.0 need not know this structure; their trims have no limits of their own.
            Err(ControllerError::Refused { .. }) => NvmLimits::default(),
            Err(error) => return Err(error),
        };
        let limits = Limits::of(self.namespace_id, &self.identity, &namespace, &nvm, &self.capabilities)?;
        *self.geometry() = Geometry { namespace, limits };
        Ok(())
    }

    fn geometry(&self) -> MutexGuard<'_, Geometry> {
        self.geometry.lock().expect("no holder of this lock panics")
    }

    fn ask_for_queues(&self, admin: &mut Admin) -> Result<u16, ControllerError> {
        // More than have their doorbells within reach are never used, whatever is granted.
        let within = u32::from(self.capabilities.pairs_within(self.function.registers_bytes()));
        let wanted = within.clamp(1, PAIRS_MAX);
        let granted = self.execute(admin, "grant queues", &set_number_of_queues(wanted), ADMIN_LIMIT)?;
        let (submission, completion) = queue_counts_of(granted);
        Ok(submission.min(completion).min(within).min(wanted) as u16)
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
    pub fn namespace(&self) -> (u32, NamespaceIdentity) {
        (self.namespace_id, self.geometry().namespace.clone())
    }

    /// How long its commands may be.
    pub fn limits(&self) -> Limits {
        self.geometry().limits
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

    /// Counts commands of a queue that will never be answered with the reset that took them away: the last.
    fn count_lost(&self, commands: usize) {
        let is_reset =
            |event: &&mut Event| matches!(event.kind, EventKind::ControllerReset | EventKind::ControllerGone);
        let mut events = self.events.lock().expect("no holder of this lock panics");
        if let Some(event) = events.iter_mut().rev().find(is_reset) {
            event.commands += commands as u64;
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Admin> {
        self.admin.lock().expect("no holder of this lock panics")
    }
}
