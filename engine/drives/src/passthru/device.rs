//! A namespace opened for passthrough, as its queues use it.

use super::ioctl::CharacterAdmin;
use super::limits::CommandLimits;
use super::open::Unfit;
use crate::device::Device;
use crate::guard::Access;
use crate::ioctl::geometry;
use crate::nvme::admin::AdminQueue;
use crate::nvme::commands::CommandMaker;
use crate::nvme::erase::EraseError;
use crate::nvme::target::NvmeTarget;
use crate::sysfs::{BlockDevice, SystemRoots};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testdrive_core::Opcode;
use testdrive_nvme::{BlockSize, ControllerIdentity, NamespaceIdentity};
use testdrive_recording::{DriveIdentity, Warning};

/// How long the kernel may take to see a new block size.
const NOTICE_LIMIT: Duration = Duration::from_secs(30);

/// What the user chose of how commands are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassthruOptions {
    /// How many trims that are handed over together may share a command; 1 gives each its own.
    pub trim_ranges: u32,
    /// Whether completions are polled for; `None` leaves that to the kernel's version.
    pub polled: Option<bool>,
}

impl Default for PassthruOptions {
    fn default() -> Self {
        PassthruOptions { trim_ranges: 1, polled: None }
    }
}

impl PassthruOptions {
    /// Whether to poll for completions of a controller that has queues for it, or none, on a kernel that does so soundly, or not: what
    /// could take the host down is done only where somebody asks.
    pub(super) fn polls(self, has_poll_queues: bool, kernel_is_sound: bool) -> bool {
        has_poll_queues && self.polled.unwrap_or(kernel_is_sound)
    }
}

/// An open namespace. Every queue holds it, so that it stays open, and its block device claimed, until the last is gone.
#[derive(Clone, Debug)]
pub struct PassthruDevice {
    /// The block device of the namespace: claimed where the run writes. Its identity is that of this path.
    pub block: Device,
    /// The claims on the other namespaces that a format or a sanitize would erase, too.
    pub others: Vec<Arc<File>>,
    /// What the run may do.
    pub access: Access,
    /// What makes figures less valid than they look.
    pub warnings: Vec<Warning>,
    /// What the user chose.
    pub options: PassthruOptions,
    pub(super) character: Arc<File>,
    pub(super) disk: BlockDevice,
    pub(super) nsid: u32,
    pub(super) block_size: BlockSize,
    pub(super) limits: CommandLimits,
    pub(super) controller: Arc<ControllerIdentity>,
    pub(super) namespace: Arc<NamespaceIdentity>,
}

impl PassthruDevice {
    /// The descriptor that commands go to.
    pub fn fd(&self) -> RawFd {
        self.character.as_raw_fd()
    }

    /// What commands are of: the namespace itself, first, and every claim.
    pub(super) fn files(&self) -> Vec<RawFd> {
        let claims = std::iter::once(&self.block.file).chain(&self.others);
        std::iter::once(&self.character).chain(claims).map(|file| file.as_raw_fd()).collect()
    }

    /// Has the kernel forget what it knew of the content of everything that was claimed, as [`Device::forget_cached`].
    pub(crate) fn forget_cached(&self, roots: &SystemRoots) {
        self.block.forget_cached(&self.others, roots);
    }

    /// How much one command may carry.
    pub fn limits(&self) -> CommandLimits {
        self.limits
    }

    /// What makes commands for the namespace.
    pub(super) fn commands(&self) -> CommandMaker {
        let CommandLimits { transfer_blocks, zeroes_blocks, trim } = self.limits;
        let (nsid, block, range_blocks) = (self.nsid, self.block_size, trim.range_blocks);
        CommandMaker { nsid, block, transfer_blocks, zeroes_blocks, range_blocks }
    }

    /// Whether the drive has the command of an opcode.
    pub fn supports(&self, opcode: Opcode) -> bool {
        match opcode {
            Opcode::Trim => self.controller.can_deallocate,
            Opcode::WriteZeroes => self.controller.can_write_zeroes,
            Opcode::Read | Opcode::Write | Opcode::Flush => true,
        }
    }
}

impl NvmeTarget for PassthruDevice {
    fn identity(&self) -> &DriveIdentity {
        &self.block.identity
    }

    fn access(&self) -> Access {
        self.access
    }

    fn nsid(&self) -> u32 {
        self.nsid
    }

    fn controller(&self) -> &ControllerIdentity {
        &self.controller
    }

    fn namespace(&self) -> &NamespaceIdentity {
        &self.namespace
    }

    fn admin(&self) -> Box<dyn AdminQueue + Send> {
        Box::new(CharacterAdmin::new(Arc::clone(&self.character)))
    }

    /// The kernel resets a controller that leaves a command of its admin queue without an answer.
    fn may_ask_while_formatting(&self) -> bool {
        false
    }

    /// Waits until the kernel sees the drive as it is now, too.
    fn look_again(&mut self) -> Result<(), EraseError> {
        let device: &dyn NvmeTarget = self;
        let (namespace, controller, limits) = device
            .with_admin(|admin| Ok((admin.namespace()?, admin.controller()?, admin.limits())))
            .map_err(|error| device.failed("does not say what it is", &error))?;
        let began = Instant::now();
        loop {
            let uri = &self.block.identity.uri;
            let seen = geometry(&self.block.file)
                .map_err(|error| EraseError::Drive(format!("{uri} does not tell its size: {error}")))?;
            let agree = seen.capacity_bytes == namespace.size_bytes()
                && seen.logical_block_bytes == u64::from(namespace.block_bytes());
            if agree || began.elapsed() > NOTICE_LIMIT {
                let identity = &mut self.block.identity;
                identity.capacity_bytes = seen.capacity_bytes;
                identity.logical_block_bytes = seen.logical_block_bytes;
                identity.physical_block_bytes = seen.physical_block_bytes;
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let (disk, uri) = (self.disk.clone(), self.block.identity.uri.clone());
        self.take(controller, namespace, &limits, &disk).map_err(|error| match error {
            Unfit::Usage(what) | Unfit::Drive(what) => EraseError::Drive(format!("{uri} {what}")),
        })?;
        match self.hindrance() {
            Some(what) => Err(EraseError::Drive(format!("{uri} {what}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_poll_soundly_polls_only_where_it_was_asked_to() {
        let polls = |polled| {
            let options = PassthruOptions { polled, ..PassthruOptions::default() };
            [(true, true), (true, false), (false, true)].map(|(queues, sound)| options.polls(queues, sound))
        };
        assert_eq!(polls(None), [true, false, false]);
        assert_eq!(polls(Some(true)), [true, true, false]);
        assert_eq!(polls(Some(false)), [false; 3]);
    }
}
