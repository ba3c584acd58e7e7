//! A controller of our own, as the threads that submit to it and the phases that erase it as a whole hold it.

use crate::drive::QueueOptions;
use crate::guard::Access;
use crate::nvme::admin::{AdminData, AdminError, AdminQueue};
use crate::nvme::background::Background;
use crate::nvme::erase::EraseError;
use crate::nvme::target::NvmeTarget;
use crate::userspace::{supports, UserspaceDrive, UserspaceOptions};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use testdrive_core::Opcode;
use testdrive_nvme::{ControllerIdentity, HostMemoryBuffer, NamespaceIdentity, NvmCommand};
use testdrive_recording::{DriveEvent, DriveEvents, DriveIdentity};
use testdrive_userspace::vfio::VfioFunction;
use testdrive_userspace::{Controller, ControllerError, Event, Function, NowNs};

/// A controller of our own: queues of it are opened by the threads that submit.
pub struct PciQueues<F: Function = VfioFunction> {
    controller: Arc<Controller<F>>,
    /// What the drive is.
    pub identity: DriveIdentity,
    access: Access,
    trim_ranges: u32,
    namespace: NamespaceIdentity,
}

impl<F: Function> Clone for PciQueues<F> {
    fn clone(&self) -> Self {
        PciQueues {
            controller: Arc::clone(&self.controller),
            identity: self.identity.clone(),
            access: self.access,
            trim_ranges: self.trim_ranges,
            namespace: self.namespace.clone(),
        }
    }
}

impl<F: Function> PciQueues<F> {
    /// Of a controller that the guard let be opened so. `trim_ranges` is how many trims may share a command.
    pub fn new(
        controller: Controller<F>,
        identity: DriveIdentity,
        access: Access,
        trim_ranges: u32,
    ) -> PciQueues<F> {
        let (_, namespace) = controller.namespace();
        PciQueues { controller: Arc::new(controller), identity, access, trim_ranges, namespace }
    }

    /// A queue of it.
    ///
    /// # Errors
    /// As [`UserspaceDrive::new`].
    pub fn open(self, options: &QueueOptions) -> io::Result<UserspaceDrive<F>> {
        let how = UserspaceOptions { writable: self.access.writes(), trim_ranges: self.trim_ranges };
        UserspaceDrive::new(&self.controller, self.identity, how, options)
    }

    /// How many queues it has for I/O.
    pub fn pairs(&self) -> u16 {
        self.controller.pairs()
    }

    /// Whether it takes the opcode.
    pub fn supports(&self, opcode: Opcode) -> bool {
        supports(&self.controller.limits(), opcode)
    }

    /// What the drive does by itself, as it is set now. What it was lent is known also where it does not tell.
    pub(crate) fn set_now(&self) -> Background {
        let device: &dyn NvmeTarget = self;
        let bytes = self.controller.host_memory_bytes();
        let asks = self.controller.identity().host_memory_preferred_bytes > 0;
        let lent = asks.then_some(HostMemoryBuffer { enabled: bytes > 0, bytes });
        let told = device.background();
        Background { host_memory_buffer: told.host_memory_buffer.or(lent), ..told }
    }

    /// Takes what went wrong between the driver and the controller; `None` where nothing did.
    pub fn take_events(&self) -> Option<DriveEvents> {
        events_of(&self.controller)
    }

    /// Shuts the controller down, where nobody else has it any more, and lets go of it. Returned is what went wrong that was not taken
    /// before; `None` where somebody has it.
    pub fn retire(self, now_ns: NowNs<'_>) -> Option<Option<DriveEvents>> {
        let controller = Arc::into_inner(self.controller)?;
        controller.retire(now_ns);
        Some(events_of(&controller))
    }
}

fn events_of<F: Function>(controller: &Controller<F>) -> Option<DriveEvents> {
    let event = |event: Event| DriveEvent {
        kind: event.kind.name().into(),
        start_ns: event.start_ns,
        end_ns: event.end_ns,
        busy_ns: event.end_ns - event.start_ns,
        amount: event.commands,
        unit: "commands".into(),
    };
    let mut events: Vec<DriveEvent> = controller.take_events().into_iter().map(event).collect();
    events.sort_by_key(|event| event.start_ns);
    (!events.is_empty()).then_some(DriveEvents { events, dropped: Vec::new() })
}

impl<F: Function> NvmeTarget for PciQueues<F> {
    fn identity(&self) -> &DriveIdentity {
        &self.identity
    }

    fn access(&self) -> Access {
        self.access
    }

    fn nsid(&self) -> u32 {
        self.controller.limits().namespace
    }

    fn controller(&self) -> &ControllerIdentity {
        self.controller.identity()
    }

    fn namespace(&self) -> &NamespaceIdentity {
        &self.namespace
    }

    fn admin(&self) -> Box<dyn AdminQueue + Send> {
        Box::new(PciAdmin { controller: Arc::downgrade(&self.controller) })
    }

    /// Our driver resets a controller for I/Os alone, of which none is in flight then.
    fn may_ask_while_formatting(&self) -> bool {
        true
    }

    fn look_again(&mut self) -> Result<(), EraseError> {
        let uri = &self.identity.uri;
        self.controller
            .look_again()
            .map_err(|error| EraseError::Drive(format!("{uri} cannot be driven any more: {error}")))?;
        let (_, namespace) = self.controller.namespace();
        let block_bytes = u64::from(namespace.block_bytes());
        let identity = &mut self.identity;
        identity.capacity_bytes = namespace.size_bytes();
        if identity.logical_block_bytes != block_bytes {
            identity.logical_block_bytes = block_bytes;
            // No kernel is there to say what is written without a read first; the drive says it in blocks, where it does.
            identity.physical_block_bytes =
                block_bytes * u64::from(namespace.preferred_write_blocks.unwrap_or(1));
        }
        self.namespace = namespace;
        Ok(())
    }
}

/// The admin queue of a controller of our own, for as long as there is one: it does not keep the drive from going back to the kernel.
pub struct PciAdmin<F: Function> {
    controller: Weak<Controller<F>>,
}

impl<F: Function> AdminQueue for PciAdmin<F> {
    fn admin(
        &mut self,
        command: &NvmCommand,
        data: AdminData<'_>,
        timeout: Duration,
    ) -> Result<u32, AdminError> {
        let controller = self.controller.upgrade().ok_or_else(|| {
            AdminError::Path(io::Error::other("the drive was given back to the kernel already"))
        })?;
        let data = match data {
            AdminData::None => &mut [][..],
            AdminData::Read(bytes) => bytes,
        };
        controller.ask("do as it is told", command, data, timeout).map_err(|error| match error {
            ControllerError::Refused { status, .. } => AdminError::Status(status),
            error => AdminError::Path(error.into()),
        })
    }
}
