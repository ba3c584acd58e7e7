//! A namespace opened for passthrough, as its queues use it.

use super::ioctl::CharacterAdmin;
use super::limits::CommandLimits;
use crate::device::Device;
use crate::guard::Access;
use crate::nvme_admin::NvmeAdmin;
use crate::sysfs::BlockDevice;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use testdrive_core::Opcode;
use testdrive_nvme::{BlockSize, ControllerIdentity, NamespaceIdentity};

/// What the user chose of how commands are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassthruOptions {
    /// How many trims that are handed over together may share a command; 1 gives each its own.
    pub trim_ranges: u32,
}

impl Default for PassthruOptions {
    fn default() -> Self {
        PassthruOptions { trim_ranges: 1 }
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

    /// The namespace's identifier.
    pub fn nsid(&self) -> u32 {
        self.nsid
    }

    /// What the controller said of itself.
    pub fn controller(&self) -> &ControllerIdentity {
        &self.controller
    }

    /// What the namespace said of itself.
    pub fn namespace(&self) -> &NamespaceIdentity {
        &self.namespace
    }

    /// How much one command may carry.
    pub fn limits(&self) -> CommandLimits {
        self.limits
    }

    /// Whether the drive has the command of an opcode.
    pub fn supports(&self, opcode: Opcode) -> bool {
        match opcode {
            Opcode::Trim => self.controller.can_deallocate,
            Opcode::WriteZeroes => self.controller.can_write_zeroes,
            Opcode::Read | Opcode::Write | Opcode::Flush => true,
        }
    }

    /// The admin queue of its controller.
    pub fn admin(&self) -> CharacterAdmin {
        CharacterAdmin::new(Arc::clone(&self.character))
    }

    /// Runs questions or orders by the admin queue.
    pub fn with_admin<T>(&self, body: impl FnOnce(&mut NvmeAdmin<'_, CharacterAdmin>) -> T) -> T {
        let mut queue = self.admin();
        body(&mut NvmeAdmin::new(&mut queue, self.nsid))
    }
}
