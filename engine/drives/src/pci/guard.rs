//! The erase guard of the path without an operating system: everything that is asked of a block device, of every namespace of the
//! controller, before its kernel driver has to let go of it.
//!
//! Taking the driver away takes the drive away from everybody. So a namespace in use is refused for runs that only read, too, and so is
//! one that somebody merely has open.

use crate::guard::node::open_node;
use crate::guard::openers::{openers, Opened, Opener};
use crate::guard::page_cache::write_back;
use crate::guard::refusal::{reasons_of_usage, Reason, Refusal};
use crate::guard::state::State;
use crate::guard::usage::{existing_ancestor, Snapshot};
use crate::guard::{consent_reason, reopen, OpenRequest};
use crate::identity::{erase_name, identify};
use crate::nvme::admin::{AdminQueue, NvmeAdmin};
use crate::nvme::background::Background;
use crate::nvme::target::HAS_METADATA;
use crate::passthru::refuse_zoned;
use crate::pci::namespaces::{
    all_namespaces, choose, namespace_id, queue_of, AdminOf, NAMESPACES_LIMIT, NAMESPACES_SOON,
};
use crate::pci::vfio_users::vfio_users;
use crate::pci::whole::erases_all;
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use crate::uri::PciUri;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;
use testdrive_recording::DriveIdentity;
use testdrive_userspace::lease::{repair, LeaseError};
use testdrive_userspace::pci::{Bdf, PciFunction, Roots, NVME_CLASS};

/// The kernel's driver of NVMe controllers.
const NVME_DRIVER: &str = "nvme";
/// Set where VFIO may be used without an IOMMU.
const NOIOMMU_PARAMETER: &str = "module/vfio/parameters/enable_unsafe_noiommu_mode";

/// A controller that may be taken: nothing speaks against it, and nobody else can claim its namespaces any more.
pub(crate) struct Claimed {
    pub(crate) function: PciFunction,
    /// As the block path has it: what the drive must say of itself once it is ours.
    pub(crate) identity: DriveIdentity,
    pub(crate) namespace: u32,
    /// Ends with the block devices.
    pub(crate) claims: Vec<File>,
    /// Whether what the run may do erases every namespace: each of them was looked at for that.
    pub(crate) erases_all: bool,
    /// What the kernel has set, which the reset by our driver undoes.
    pub(crate) by_kernel: Background,
}

/// Where the driver finds what the guard finds.
pub(crate) fn pci_roots(roots: &SystemRoots) -> Roots {
    Roots { sys: roots.sys.clone(), dev: roots.dev.clone(), ..Roots::default() }
}

/// Looks at a controller and its namespaces, and claims them.
///
/// # Errors
/// With every reason why not. Nothing was changed then, but that a drive which a killed run left behind was given back.
pub(crate) fn claim(
    request: &OpenRequest<'_>,
    uri: &PciUri,
    roots: &SystemRoots,
    pci: &Roots,
    admin_of: AdminOf<'_>,
) -> Result<Claimed, Refusal> {
    let given = &request.uri.given;
    let (function, was_left_behind) = find(given, uri, roots, pci)?;
    check_virtual_functions(given, &function)?;
    check_isolation(given, uri, &function)?;
    let unknown = |error: io::Error| Refusal::because(given, Reason::Unknown(error.to_string()));
    let limit = if was_left_behind { NAMESPACES_LIMIT } else { NAMESPACES_SOON };
    let (namespaces, active) = all_namespaces(given, &function, roots, limit, admin_of)?;
    let chosen = choose(given, uri, &namespaces)?;
    refuse_zoned(given, chosen)?;
    let identity = identify(given, chosen).map_err(unknown)?;
    let snapshot = Snapshot::take(roots).map_err(unknown)?.with_openers(None);
    let mut reasons = shared_with(&function, roots);
    reasons.extend(open_elsewhere(&function, roots));
    if request.access.writes() {
        let name = erase_name(&identity.serial, &chosen.node());
        reasons.extend(consent_reason(request.consent, &[name]));
    }
    check_blocks(request, chosen, roots, admin_of)?;
    let erases_all = request.access.erases()
        && erases_all(given, request.access, chosen, &mut *queue_of(given, chosen, roots, admin_of)?, roots)?;
    let fate = |namespace: &BlockDevice| match namespace.number == chosen.number {
        true if request.access.writes() => Fate::Written,
        false if erases_all => Fate::ErasedToo,
        _ => Fate::Kept,
    };
    let mut claims = Vec::new();
    for namespace in &namespaces {
        let fate = fate(namespace);
        claims.extend(look_and_claim(request, namespace, fate, &snapshot, roots, &mut reasons)?);
    }
    // Somebody who was found by name says more than a claim that failed.
    let is_nameless = |reason: &Reason| matches!(reason, Reason::Busy(who) if who.is_empty());
    if !reasons.iter().all(is_nameless) {
        reasons.retain(|reason| !is_nameless(reason));
    }
    reasons.dedup();
    Refusal::unless_empty(given, reasons)?;
    // Once more, now that nobody can mount one of them or build on it.
    let snapshot = Snapshot::take(roots).map_err(unknown)?.with_openers(None);
    let mut late = Vec::new();
    for (namespace, claim) in namespaces.iter().zip(&claims) {
        // The driver says that the drive has no blocks any more before it lets go of it: what was not written back by then is lost.
        late.extend(write_back(namespace, claim, roots).err());
        let usage = snapshot.usage_of_device(namespace);
        late.extend(reasons_of_usage(&usage));
        let fate = fate(namespace);
        if fate != Fate::Kept {
            let state = State::read_through(namespace, claim, usage);
            late.extend(fate.told(namespace, state.reasons(request.consent.erase_signatures)));
        }
    }
    late.dedup();
    Refusal::unless_empty(given, late)?;
    // And whether those are still all: one that came meanwhile was not looked at.
    let limit = Duration::ZERO;
    if all_namespaces(given, &function, roots, limit, admin_of)? != (namespaces.clone(), active) {
        return Err(Refusal::because(given, Reason::Changed));
    }
    let namespace = namespace_id(chosen);
    let by_kernel = set_by_kernel(&mut *queue_of(given, chosen, roots, admin_of)?);
    Ok(Claimed { function, identity, namespace, claims, erases_all, by_kernel })
}

/// What the kernel has set of what the drive does by itself; nothing where the drive does not tell.
fn set_by_kernel(queue: &mut dyn AdminQueue) -> Background {
    let mut admin = NvmeAdmin::new(queue, 0);
    admin.controller().map_or(Background::default(), |controller| Background::ask(&mut admin, &controller))
}

/// Refuses a namespace that nothing can be transferred to while the kernel still has it, unless the run may format it.
fn check_blocks(
    request: &OpenRequest<'_>,
    chosen: &BlockDevice,
    roots: &SystemRoots,
    admin_of: AdminOf<'_>,
) -> Result<(), Refusal> {
    let given = &request.uri.given;
    let mut queue = queue_of(given, chosen, roots, admin_of)?;
    let namespace = NvmeAdmin::new(&mut *queue, namespace_id(chosen)).namespace().map_err(|error| {
        Refusal::Drive(format!(
            "{given} does not say what its namespace is ({error}): check the drive and the kernel's log"
        ))
    })?;
    match namespace.has_metadata() && !request.access.erases() {
        true => Err(Refusal::Usage(format!("{given} {HAS_METADATA}"))),
        false => Ok(()),
    }
}

/// What becomes of what is on a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing.
    Kept,
    /// It was named, and is written over.
    Written,
    /// Another was named, and a format or sanitize erases this one, too.
    ErasedToo,
}

impl Fate {
    /// What speaks against a namespace, so that whoever named another one knows why.
    fn told(self, namespace: &BlockDevice, reasons: Vec<Reason>) -> Vec<Reason> {
        let of_sibling = |reason| Reason::Sibling { name: namespace.name.clone(), reason: Box::new(reason) };
        match self {
            Fate::Kept | Fate::Written => reasons,
            Fate::ErasedToo => reasons.into_iter().map(of_sibling).collect(),
        }
    }
}

/// Looks at one namespace, and claims it where nobody else has; what speaks against it is added to the reasons. Only one that is written to
/// has to carry nothing, or takes the second consent.
fn look_and_claim(
    request: &OpenRequest<'_>,
    namespace: &BlockDevice,
    fate: Fate,
    snapshot: &Snapshot,
    roots: &SystemRoots,
    reasons: &mut Vec<Reason>,
) -> Result<Option<File>, Refusal> {
    let unknown = |error: io::Error| {
        Refusal::because(&request.uri.given, Reason::Unknown(format!("{}: {error}", namespace.name)))
    };
    let node =
        open_node(namespace, roots).map_err(|error| Refusal::because(&request.uri.given, error.reason()))?;
    reasons.extend(output_on(request, namespace, snapshot));
    let state = State::look(namespace, &node, snapshot);
    reasons.extend(match fate {
        Fate::Kept => reasons_of_usage(&state.usage),
        _ => fate.told(namespace, state.reasons(request.consent.erase_signatures)),
    });
    if !state.usage.openers.is_empty() && state.usage.writers.is_empty() {
        reasons.push(Reason::Busy(state.usage.openers));
    }
    match reopen(&node, false, libc::O_EXCL) {
        Ok(claim) => Ok(Some(claim)),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            reasons.push(Reason::Busy(Vec::new()));
            Ok(None)
        }
        Err(error) => Err(unknown(error)),
    }
}

/// The function, bound to the kernel's driver, and whether a killed run had left it behind: it is given back first then.
fn find(given: &str, uri: &PciUri, roots: &SystemRoots, pci: &Roots) -> Result<(PciFunction, bool), Refusal> {
    let bdf = uri.bdf;
    let function = check_class(bdf, pci)?;
    let was_left_behind = repair(&function, |function| vfio_users(function, roots))
        .map_err(|error| lease_refusal(given, &error))?;
    if was_left_behind {
        eprintln!("testdrive: {bdf} was left behind by a run that was killed, and was given back to the kernel first");
    }
    match function.driver().as_deref() {
        Some(NVME_DRIVER) => Ok((function, was_left_behind)),
        driver => {
            let driver = driver.unwrap_or("no driver").to_string();
            Err(Refusal::because(given, Reason::NotKernels { driver, bdf: bdf.to_string() }))
        }
    }
}

/// The function at an address, which must be an NVMe controller.
///
/// # Errors
/// When there is none, or it is something else.
pub(crate) fn check_class(bdf: Bdf, pci: &Roots) -> Result<PciFunction, Refusal> {
    let function =
        PciFunction::find(pci, bdf).map_err(|_| Refusal::Usage(LeaseError::Absent(bdf).to_string()))?;
    match function.class() {
        Some(NVME_CLASS) => Ok(function),
        class => {
            let class = class.map_or("unknown".into(), |class| format!("{class:06x}"));
            Err(Refusal::Usage(format!(
                "{bdf} is no NVMe controller (its class is {class}, theirs {NVME_CLASS:06x}): 'testdrive drives' lists the drives of this host"
            )))
        }
    }
}

/// Its virtual functions go offline with it, whoever has them.
fn check_virtual_functions(given: &str, function: &PciFunction) -> Result<(), Refusal> {
    match function.attribute("sriov_numvfs").and_then(|text| text.parse().ok()) {
        None | Some(0) => Ok(()),
        Some(count) => Err(Refusal::because(given, Reason::VirtualFunctions(count))),
    }
}

/// What a refusal is made of an error of taking or giving back.
pub(crate) fn lease_refusal(given: &str, error: &LeaseError) -> Refusal {
    match error {
        LeaseError::Absent(_) | LeaseError::NoVfio => Refusal::Usage(error.to_string()),
        LeaseError::InUse { pid, .. } => {
            Refusal::because(given, Reason::Busy(vec![format!("another run (process {pid})")]))
        }
        LeaseError::Used { by, .. } => Refusal::because(given, Reason::Busy(by.clone())),
        LeaseError::OtherDriver { bdf, driver } => {
            Refusal::because(given, Reason::NotKernels { driver: driver.clone(), bdf: bdf.to_string() })
        }
        LeaseError::Gone(_) | LeaseError::Kernel { .. } => Refusal::Drive(error.to_string()),
    }
}

/// Whether the IOMMU lets the controller be handed over, or the user does without one, and the kernel lets them.
fn check_isolation(given: &str, uri: &PciUri, function: &PciFunction) -> Result<(), Refusal> {
    let bdf = function.bdf;
    match (function.iommu_group(), uri.without_iommu) {
        (None, false) => Err(Refusal::Usage(format!(
            "{bdf} has no IOMMU group, so nothing would keep the drive's DMA within bounds: switch the IOMMU on (intel_iommu=on, or in the firmware's setup; docs/direct-paths.md), or, where nothing on this host matters, add noiommu=yes"
        ))),
        (Some(_), true) => Err(Refusal::Usage(format!("{bdf} is behind an IOMMU, which is safer: leave noiommu=yes out"))),
        (Some(_), false) => {
            let unknown = |error: io::Error| Refusal::because(given, Reason::Unknown(format!("its IOMMU group: {error}")));
            let others = function.group_hindrances().map_err(unknown)?;
            if others.is_empty() { Ok(()) } else { Err(Refusal::because(given, Reason::SharedGroup(others))) }
        }
        (None, true) => {
            let allowed = fs::read_to_string(function.roots().sys.join(NOIOMMU_PARAMETER));
            match allowed {
                Ok(text) if matches!(text.trim(), "Y" | "1") => Ok(()),
                _ => Err(Refusal::Usage(format!(
                    "the kernel does not let VFIO do without an IOMMU: 'echo Y > /sys/{NOIOMMU_PARAMETER}' allows it, where the kernel was built with CONFIG_VFIO_NOIOMMU"
                ))),
            }
        }
    }
}

/// Other controllers of the same subsystem: who comes by them still sees the namespaces, and could mount them.
fn shared_with(function: &PciFunction, roots: &SystemRoots) -> Vec<Reason> {
    let own = function.nvme_controllers();
    let is_controller = |name: &str| {
        name.strip_prefix("nvme")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let subsystems = fs::read_dir(roots.sys.join("class/nvme-subsystem")).into_iter().flatten().flatten();
    for subsystem in subsystems {
        let entries = fs::read_dir(subsystem.path()).into_iter().flatten().flatten();
        let names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if !names.iter().any(|name| own.contains(name)) {
            continue;
        }
        let others: Vec<String> =
            names.into_iter().filter(|name| is_controller(name) && !own.contains(name)).collect();
        if !others.is_empty() {
            return vec![Reason::OtherControllers(others)];
        }
    }
    Vec::new()
}

/// Processes that have the controller's own node open. Those that have a namespace's for passthrough are among its openers.
fn open_elsewhere(function: &PciFunction, roots: &SystemRoots) -> Option<Reason> {
    let nodes = function.nvme_controllers().into_iter();
    let number = |name: String| DeviceNumber::parse(&function.attribute(&format!("nvme/{name}/dev"))?);
    let numbers: Vec<DeviceNumber> = nodes.filter_map(number).collect();
    let found =
        openers(roots, |opened| matches!(opened, Opened::Character(number) if numbers.contains(&number)))
            .found;
    let names: Vec<String> = found.iter().map(Opener::name).collect();
    (!names.is_empty()).then_some(Reason::Busy(names))
}

fn output_on(request: &OpenRequest<'_>, namespace: &BlockDevice, snapshot: &Snapshot) -> Option<Reason> {
    let output: &Path = request.output?;
    let disks = snapshot.disks_under(&existing_ancestor(output));
    disks
        .iter()
        .any(|disk| disk.number == namespace.number)
        .then(|| Reason::RecordingOnIt(output.display().to_string()))
}
