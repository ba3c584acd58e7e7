//! A controller taken from the kernel for a run, and given back at its end.

use crate::guard::refusal::{Reason, Refusal};
use crate::guard::OpenRequest;
use crate::nvme::background::Background;
use crate::nvme::target::NvmeTarget;
use crate::passthru::CharacterAdmin;
use crate::pci::guard::{self, Claimed};
use crate::pci::namespaces::{wait_for_namespaces, AdminOf};
use crate::pci::queues::PciQueues;
use crate::pci::vfio_users::vfio_users;
use crate::sysfs::SystemRoots;
use crate::target::TargetError;
use crate::uri::PciUri;
use std::io;
use std::sync::Arc;
use testdrive_recording::{DriveEvents, DriveIdentity, Warning};
use testdrive_userspace::lease::{release, Lease, Released};
use testdrive_userspace::pci::{Bdf, PciFunction};
use testdrive_userspace::vfio::{HugePages, VfioFunction, VfioOptions};
use testdrive_userspace::{Controller, ControllerError, NowNs};

/// A controller that was taken from the kernel's driver. It goes back when it is told to, or this is dropped.
pub struct PciTarget {
    /// There until it was given back.
    queues: Option<PciQueues>,
    lease: Option<Lease>,
    function: PciFunction,
    roots: SystemRoots,
    /// How many namespaces the kernel showed.
    namespaces: usize,
    /// What makes figures less valid than they look.
    pub(crate) warnings: Vec<Warning>,
    /// What the kernel had set, which our reset undid.
    pub(crate) by_kernel: Background,
    /// What went wrong when it was given back.
    last_events: Option<DriveEvents>,
}

impl PciTarget {
    /// Takes a controller, if nothing speaks against it, and starts it.
    ///
    /// # Errors
    /// With every reason against it, or what failed; the kernel's driver has it then.
    pub fn open(request: &OpenRequest<'_>, uri: &PciUri, roots: &SystemRoots) -> Result<PciTarget, Refusal> {
        PciTarget::open_asking(request, uri, roots, &|file| Box::new(CharacterAdmin::new(Arc::new(file))))
    }

    /// The same, with the drive's own answers had otherwise, as on a host that was laid out by hand.
    ///
    /// # Errors
    /// As [`PciTarget::open`].
    pub fn open_asking(
        request: &OpenRequest<'_>,
        uri: &PciUri,
        roots: &SystemRoots,
        admin_of: AdminOf<'_>,
    ) -> Result<PciTarget, Refusal> {
        let given = &request.uri.given;
        let pci = guard::pci_roots(roots);
        let Claimed { function, identity, namespace, claims, erases_all, by_kernel } =
            guard::claim(request, uri, roots, &pci, admin_of)?;
        let count = claims.len();
        let failed = |error: io::Error| Refusal::Drive(format!("{given} cannot be driven: {error}"));
        let pages = if uri.without_iommu { Some(Arc::new(HugePages::new().map_err(failed)?)) } else { None };
        let kept: Vec<_> = pages.iter().map(|pages| pages.as_fd()).collect();
        let lease = Lease::take(&function, &kept, || drop(claims))
            .map_err(|error| guard::lease_refusal(given, &error))?;
        // From here on the lease goes back with whatever error comes: it is dropped after what is opened below.
        let options = VfioOptions { interrupts: uri.interrupts, without_iommu: pages.clone() };
        let opened = VfioFunction::open(&function, &options).map_err(|error| match error.kind() {
            // The host or the drive has not what was asked for.
            io::ErrorKind::Unsupported => Refusal::Usage(format!("{given}: {error}")),
            _ => failed(error),
        })?;
        let started = match request.access.erases() {
            true => Controller::start_to_format(opened, Some(namespace)),
            false => Controller::start(opened, Some(namespace)),
        };
        let controller = started.map_err(|error| match error {
            ControllerError::Unsupported(message) => Refusal::Usage(format!("{given}: {message}")),
            error => failed(error.into()),
        })?;
        let mut identity = same_drive(given, identity, &controller)?;
        if request.access.is_of_all(controller.identity()) && !erases_all {
            let what = "it says that a format is of every namespace, and did not say so to the kernel";
            let reasons = vec![Reason::Unknown(what.into())];
            return Err(Refusal::Unsafe { target: given.clone(), reasons });
        }
        identity.path = "userspace".into();
        let settings = &mut identity.settings;
        settings.insert("direct".into(), true.into());
        settings.insert("iommu".into(), (!uri.without_iommu).into());
        settings.insert("interrupts".into(), uri.interrupts.into());
        settings.insert("namespace".into(), namespace.into());
        settings.insert("queue_pairs".into(), controller.pairs().into());
        settings.insert("host_memory_buffer_bytes".into(), controller.host_memory_bytes().into());
        let queues = PciQueues::new(controller, identity, request.access, uri.trim_ranges);
        let warnings = queues.set_now().warnings(given, NvmeTarget::controller(&queues), Some(&by_kernel));
        Ok(PciTarget {
            queues: Some(queues),
            warnings,
            by_kernel,
            lease: Some(lease),
            function,
            roots: roots.clone(),
            namespaces: count,
            last_events: None,
        })
    }

    /// What queues are opened with.
    ///
    /// # Panics
    /// Never before it was given back.
    pub fn queues(&self) -> &PciQueues {
        self.queues.as_ref().expect("the controller is there until it was given back")
    }

    /// The same, to take over what a format made of the drive.
    ///
    /// # Panics
    /// Never before it was given back.
    pub fn queues_mut(&mut self) -> &mut PciQueues {
        self.queues.as_mut().expect("the controller is there until it was given back")
    }

    /// Takes what went wrong between the driver and the controller, to the end, where that was; `None` where nothing did.
    pub fn take_events(&mut self) -> Option<DriveEvents> {
        self.queues.as_ref().map_or_else(|| self.last_events.take(), PciQueues::take_events)
    }

    /// Gives the controller back to the kernel's driver, and waits until the drive is there again; that was done where it was called before.
    /// Where a thread still has a queue, the kernel would wait for it: the guardian gives the drive back after our end then.
    ///
    /// # Errors
    /// When the drive is gone, or the kernel does not take it.
    pub fn give_back(&mut self, now_ns: NowNs<'_>) -> Result<(), TargetError> {
        let Some(lease) = self.lease.take() else { return Ok(()) };
        let Some(events) = self.queues.take().and_then(|queues| queues.retire(now_ns)) else {
            std::mem::forget(lease);
            return Ok(());
        };
        self.last_events = events;
        lease.give_back().map_err(|error| TargetError::Drive(error.to_string()))?;
        wait_for_namespaces(&self.function, &self.roots, self.namespaces);
        Ok(())
    }
}

impl Drop for PciTarget {
    fn drop(&mut self) {
        // Nobody is left to take what is noted.
        if let Err(error) = self.give_back(&|| 0) {
            eprintln!("testdrive: {error}");
        }
    }
}

/// The identity that the drive tells itself, which must be that of the block device that was looked at.
fn same_drive(
    given: &str,
    seen: DriveIdentity,
    controller: &Controller<VfioFunction>,
) -> Result<DriveIdentity, Refusal> {
    let told = controller.identity();
    let (_, namespace) = controller.namespace();
    let own = DriveIdentity {
        uri: seen.uri.clone(),
        model: told.model.clone(),
        serial: told.serial.clone(),
        firmware: told.firmware.clone(),
        capacity_bytes: namespace.size_bytes(),
        logical_block_bytes: namespace.block_bytes().into(),
        physical_block_bytes: seen.physical_block_bytes,
        ..DriveIdentity::default()
    };
    let of = |drive: &DriveIdentity| {
        (drive.model.clone(), drive.serial.clone(), drive.capacity_bytes, drive.logical_block_bytes)
    };
    // A drive without a serial is known to the kernel by another name.
    let serial_differs = !own.serial.is_empty() && own.serial != seen.serial;
    if serial_differs
        || own.model != seen.model
        || own.capacity_bytes != seen.capacity_bytes
        || own.logical_block_bytes != seen.logical_block_bytes
    {
        let what = format!("it says that it is {:?}, and the kernel saw {:?}", of(&own), of(&seen));
        return Err(Refusal::Unsafe { target: given.to_string(), reasons: vec![Reason::Unknown(what)] });
    }
    Ok(DriveIdentity { serial: seen.serial, ..own })
}

/// What became of a controller that was to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// Its address, in full.
    pub address: String,
    /// The driver that has it now.
    pub driver: String,
    /// Whether that driver did not have it before.
    pub restored: bool,
}

/// Gives a controller back to the kernel's driver that a killed run left behind, or that somebody bound to vfio-pci by hand.
///
/// # Errors
/// When there is none at the address, a run has it, or the kernel does not bind its driver.
pub fn give_back(address: &str) -> Result<GivenBack, TargetError> {
    let bdf = Bdf::parse(address).ok_or_else(|| {
        TargetError::Usage(format!(
            "'{address}' is no PCI address, such as 0000:01:00.0 ('lspci -D' lists them)"
        ))
    })?;
    let roots = SystemRoots::default();
    let pci = guard::pci_roots(&roots);
    let function = guard::check_class(bdf, &pci)?;
    let released = release(&pci, bdf, |function| vfio_users(function, &roots))
        .map_err(|error| guard::lease_refusal(address, &error))?;
    let (driver, restored) = match released {
        Released::Bound(driver) => (driver, false),
        Released::Restored(driver) => (driver, true),
    };
    if restored {
        wait_for_namespaces(&function, &roots, 1);
    }
    Ok(GivenBack { address: bdf.to_string(), driver, restored })
}
