//! The drives of this host, with whether each may be erased and every reason why not.

use crate::drive_paths::{namespace_of, paths_of, DrivePath};
use crate::guard::node::{open_node, NodeError};
use crate::guard::refusal::Reason;
use crate::guard::signatures::Signature;
use crate::guard::state::State;
use crate::guard::usage::{Snapshot, Usage};
use crate::identity::{backing_file, erase_name, features, identify};
use crate::pci::away::drives_away;
use crate::sysfs::{BlockDevice, SystemRoots};
use serde::Serialize;
use std::io;
use std::path::PathBuf;

/// One drive, as `testdrive-engine drives` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveListing {
    /// What to give as `--drive`.
    pub uri: String,
    /// Every way to it, its block device first.
    pub paths: Vec<DrivePath>,
    /// Model name, empty where there is none.
    pub model: String,
    /// Serial number, empty where there is none.
    pub serial: String,
    /// Firmware revision, empty where there is none.
    pub firmware: String,
    /// Capacity.
    pub capacity_bytes: u64,
    /// The smallest unit that can be addressed.
    pub logical_block_bytes: u64,
    /// The smallest unit that is written without a read first.
    pub physical_block_bytes: u64,
    /// Whether writes are refused by the kernel.
    pub read_only: bool,
    /// Whether it seeks.
    pub rotational: bool,
    /// The longest trim that it takes; 0 where it takes none.
    pub discard_max_bytes: u64,
    /// Mount points of it and its partitions.
    pub mounted: Vec<String>,
    /// Devices that are built on it.
    pub holders: Vec<String>,
    /// Whether it, or a partition of it, is swap.
    pub swap: bool,
    /// What it carries, partition tables among them.
    pub signatures: Vec<Signature>,
    /// `gpt`, `dos` or null.
    pub partition_table: Option<String>,
    /// The partitions that the kernel knows.
    pub partitions: Vec<String>,
    /// The file or device under a loop device.
    pub backing_file: Option<PathBuf>,
    /// What `--erase` must say.
    pub erase_name: String,
    /// Whether `--erase` with that name is enough to write to it.
    pub erasable: bool,
    /// Every reason why it is not.
    pub refusals: Vec<String>,
}

/// Every block device that could be tested, and NVMe drives that the kernel's driver does not have. Block devices without capacity
/// (unattached loop devices, empty readers) are left out.
///
/// # Errors
/// When the kernel's tables cannot be read, as without /sys or /proc.
pub fn list_drives() -> io::Result<Vec<DriveListing>> {
    list_with_roots(&SystemRoots::default())
}

/// The same, with the kernel's file systems elsewhere.
///
/// # Errors
/// As [`list_drives`].
pub fn list_with_roots(roots: &SystemRoots) -> io::Result<Vec<DriveListing>> {
    let snapshot = Snapshot::take(roots)?.with_openers(None);
    let disks = roots.whole_disks()?.into_iter().filter(|disk| disk.size_bytes() > 0);
    let mut found: Vec<(Option<(String, String)>, DriveListing)> = Vec::new();
    for disk in disks {
        let (namespace, listing) = (namespace_of(&disk), entry(&disk, &snapshot, roots)?);
        match found.iter_mut().find(|(other, _)| other.is_some() && *other == namespace) {
            Some((_, first)) => first.join(listing),
            None => found.push((namespace, listing)),
        }
    }
    Ok(found.into_iter().map(|(_, listing)| listing).chain(drives_away(roots)).collect())
}

impl DriveListing {
    /// Takes in what is the same drive by another block device, as where the kernel does not join the controllers of a namespace: what
    /// stands against one stands against both.
    fn join(&mut self, other: DriveListing) {
        fn add<T: PartialEq>(own: &mut Vec<T>, others: Vec<T>) {
            for each in others {
                if !own.contains(&each) {
                    own.push(each);
                }
            }
        }
        add(&mut self.paths, other.paths);
        add(&mut self.mounted, other.mounted);
        add(&mut self.holders, other.holders);
        add(&mut self.signatures, other.signatures);
        add(&mut self.partitions, other.partitions);
        add(&mut self.refusals, other.refusals);
        self.swap |= other.swap;
        self.read_only |= other.read_only;
        self.erasable &= other.erasable;
    }
}

fn entry(disk: &BlockDevice, snapshot: &Snapshot, roots: &SystemRoots) -> io::Result<DriveListing> {
    let uri = disk.node().display().to_string();
    let identity = identify(&uri, disk)?;
    let features = features(disk)?;
    let (usage, signatures, partitions, reasons) = match open_node(disk, roots) {
        Ok(handle) => {
            let state = State::look(disk, &handle, snapshot);
            let reasons = state.reasons(false);
            (state.usage, state.signatures, state.partitions, reasons)
        }
        Err(error) => unopened(disk, snapshot, error),
    };
    Ok(DriveListing {
        erase_name: erase_name(&identity.serial, &disk.node()),
        paths: paths_of(disk, roots),
        uri,
        model: identity.model,
        serial: identity.serial,
        firmware: identity.firmware,
        capacity_bytes: identity.capacity_bytes,
        logical_block_bytes: identity.logical_block_bytes,
        physical_block_bytes: identity.physical_block_bytes,
        read_only: reasons.contains(&Reason::ReadOnly),
        rotational: features.rotational,
        discard_max_bytes: features.discard_max_bytes,
        mounted: usage.mounted,
        holders: usage.holders,
        swap: !usage.swaps.is_empty(),
        partition_table: partition_table(&signatures),
        signatures,
        partitions,
        backing_file: backing_file(disk),
        erasable: reasons.is_empty(),
        refusals: reasons.iter().map(Reason::to_string).collect(),
    })
}

/// What is known of a disk whose node cannot even be named.
fn unopened(
    disk: &BlockDevice,
    snapshot: &Snapshot,
    error: NodeError,
) -> (Usage, Vec<Signature>, Vec<String>, Vec<Reason>) {
    let usage = snapshot.usage_of_device(disk);
    let partitions = disk.partitions().unwrap_or_default().into_iter().map(|each| each.name).collect();
    let mut reasons = crate::guard::refusal::reasons_of_usage(&usage);
    if disk.is_read_only() {
        reasons.push(Reason::ReadOnly);
    }
    reasons.push(error.reason());
    (usage, Vec::new(), partitions, reasons)
}

/// GPT wins over the DOS table that protects it.
fn partition_table(signatures: &[Signature]) -> Option<String> {
    let has = |name: &str| signatures.iter().any(|each| each.is_partition_table && each.name == name);
    ["gpt", "dos"].into_iter().find(|name| has(name)).map(str::to_string)
}
