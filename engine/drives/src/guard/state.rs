//! What a look at a block device brings to light: who uses it, what it carries, and whether it can be claimed.

use crate::guard::refusal::{reasons_of_usage, signature_names, Reason};
use crate::guard::signatures::Signature;
use crate::guard::usage::{Snapshot, Usage};
use crate::guard::{blkid, probe};
use crate::guard::{reopen, reopen_direct};
use crate::ioctl::geometry;
use crate::sysfs::BlockDevice;
use std::fs::File;

/// What a look at a block device brought to light.
pub(crate) struct State {
    /// Who uses it.
    pub usage: Usage,
    /// What it carries.
    pub signatures: Vec<Signature>,
    /// The partitions that the kernel knows.
    pub partitions: Vec<String>,
    /// What stands against writing to it whatever the consent, beyond its usage.
    other: Vec<Reason>,
}

impl State {
    /// Looks at a device without writing. Its claim is tried where nobody is known to use it, for a moment.
    pub(crate) fn look(device: &BlockDevice, handle: &File, snapshot: &Snapshot) -> State {
        let usage = snapshot.usage_of_device(device);
        let partitions =
            if device.is_partition() { Vec::new() } else { device.partitions().unwrap_or_default() };
        let partitions = partitions.into_iter().map(|partition| partition.name).collect();
        let mut state = State { usage, signatures: Vec::new(), partitions, other: Vec::new() };
        if device.is_read_only() {
            state.other.push(Reason::ReadOnly);
        }
        match reopen_direct(handle, false, 0) {
            Ok((file, _)) => state.read(&file),
            Err(error) => state.other.push(Reason::Unknown(format!("it cannot be read: {error}"))),
        }
        let is_free = reasons_of_usage(&state.usage).is_empty();
        let claim = reopen(handle, false, libc::O_EXCL);
        if is_free && claim.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) {
            state.other.push(Reason::Busy(state.usage.openers.clone()));
        }
        state
    }

    /// Reads a device through a file that is open already.
    pub(crate) fn read_through(device: &BlockDevice, file: &File, usage: Usage) -> State {
        let mut state = State::unread(device, usage);
        state.read(file);
        state
    }

    fn unread(device: &BlockDevice, usage: Usage) -> State {
        // Partitions that cannot be listed are in the usage as unknown.
        let partitions =
            if device.is_partition() { Vec::new() } else { device.partitions().unwrap_or_default() };
        let partitions = partitions.into_iter().map(|partition| partition.name).collect();
        State { usage, signatures: Vec::new(), partitions, other: Vec::new() }
    }

    fn read(&mut self, file: &File) {
        match geometry(file) {
            Ok(geometry) => {
                self.signatures = probe::probe(file, geometry.capacity_bytes);
                blkid::join(file, &mut self.signatures);
                if geometry.read_only && !self.other.contains(&Reason::ReadOnly) {
                    self.other.push(Reason::ReadOnly);
                }
            }
            Err(error) => self.other.push(Reason::Unknown(format!("it does not tell its size: {error}"))),
        }
    }

    /// Every reason against writing, whatever the first consent.
    pub(crate) fn reasons(&self, erase_signatures: bool) -> Vec<Reason> {
        let mut reasons = reasons_of_usage(&self.usage);
        reasons.extend(self.other.iter().cloned());
        let carried = signature_names(&self.signatures, &self.partitions);
        if !carried.is_empty() && !erase_signatures {
            reasons.push(Reason::Signatures(carried));
        }
        reasons
    }
}
