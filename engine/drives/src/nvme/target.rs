//! An NVMe namespace that was opened for a run by a path that reaches its controller's admin queue, whichever path that is.

use crate::guard::Access;
use crate::nvme::admin::{AdminQueue, NvmeAdmin};
use crate::nvme::erase::EraseError;
use testdrive_nvme::{ControllerIdentity, NamespaceIdentity};
use testdrive_recording::DriveIdentity;

/// What is said of a namespace that nothing is transferred to.
pub(crate) const HAS_METADATA: &str = "is formatted with metadata or protection information, which this path does not transfer: give its block device, or begin with a phase that formats it without ('method': 'format')";

/// What a path brings along; what the drive is asked and told by it is the same for all of them (`erase`, `features`).
pub trait NvmeTarget: Sync {
    /// What the drive is, by this path.
    fn identity(&self) -> &DriveIdentity;

    /// What the guard let it be opened for.
    fn access(&self) -> Access;

    /// The namespace's identifier.
    fn nsid(&self) -> u32;

    /// What the controller said of itself.
    fn controller(&self) -> &ControllerIdentity;

    /// What the namespace said of itself.
    fn namespace(&self) -> &NamespaceIdentity;

    /// Why no I/O can be issued to it as it is, and a format has to come first; `None` where it can.
    fn hindrance(&self) -> Option<&'static str> {
        self.namespace().has_metadata().then_some(HAS_METADATA)
    }

    /// The admin queue of its controller.
    fn admin(&self) -> Box<dyn AdminQueue + Send>;

    /// Whether the drive may be asked something while it formats: that it leaves this without an answer must not end in a reset, which
    /// would end the format as well.
    fn may_ask_while_formatting(&self) -> bool;

    /// Takes over what the drive is now, after a format.
    ///
    /// # Errors
    /// When it does not say, or cannot be driven by this path any more.
    fn look_again(&mut self) -> Result<(), EraseError>;
}

impl dyn NvmeTarget + '_ {
    /// Runs questions or orders by the admin queue.
    pub fn with_admin<T>(&self, body: impl FnOnce(&mut NvmeAdmin<'_, dyn AdminQueue + Send>) -> T) -> T {
        let mut queue = self.admin();
        body(&mut NvmeAdmin::new(&mut *queue, self.nsid()))
    }

    pub(crate) fn uri(&self) -> &str {
        &self.identity().uri
    }
}
