//! What a format or a sanitize of a controller erases beside the namespace that was named. It is asked while the kernel's driver still has
//! the controller, since what is on the others has to be looked at then.

use crate::guard::{handle, reopen, Access};
use crate::nvme_admin::{AdminError, AdminQueue, NvmeAdmin};
use crate::nvme_siblings::check_all_seen;
use crate::passthru::CharacterAdmin;
use crate::refusal::Refusal;
use crate::sysfs::{BlockDevice, SystemRoots};
use std::sync::Arc;

/// Whether every namespace of the controller is erased by what a run may do, which is then every one that was looked at.
///
/// # Errors
/// When the drive does not say, or has a namespace that the kernel does not show.
pub(crate) fn erases_all(
    given: &str,
    access: Access,
    chosen: &BlockDevice,
    roots: &SystemRoots,
) -> Result<bool, Refusal> {
    if !matches!(access, Access::Format | Access::Sanitize) {
        return Ok(false);
    }
    let unanswered = |error: AdminError| {
        Refusal::Drive(format!(
            "{given} does not say what it is ({error}): check the drive and the kernel's log"
        ))
    };
    let node = handle(&roots.dev.join(&chosen.name)).and_then(|node| reopen(&node, false, 0));
    let node = node.map_err(|error| unanswered(AdminError::Path(error)))?;
    let active = erased(access, &mut CharacterAdmin::new(Arc::new(node))).map_err(unanswered)?;
    match active {
        None => Ok(false),
        Some(active) => check_all_seen(given, chosen, &active, roots).map(|()| true),
    }
}

/// Every namespace of a drive that erases them all; `None` of one that erases the one that it is told.
fn erased(access: Access, queue: &mut dyn AdminQueue) -> Result<Option<Vec<u32>>, AdminError> {
    let mut admin = NvmeAdmin::new(queue, 0);
    match access.is_of_all(&admin.controller()?) {
        true => admin.active_namespaces().map(Some),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci_queues::PciQueues;
    use crate::NvmeTarget;
    use testdrive_recording::DriveIdentity;
    use testdrive_userspace::double::{Double, Model};
    use testdrive_userspace::Controller;

    fn erased_by(access: Access, format_is_of_all: bool) -> Option<Vec<u32>> {
        let model = Model { namespaces: vec![1, 4], format_is_of_all, ..Model::default() };
        let controller = Controller::start(Double::new(model), Some(4)).unwrap();
        let drive = PciQueues::new(controller, DriveIdentity::default(), access, 1);
        erased(access, &mut *drive.admin()).unwrap()
    }

    #[test]
    fn a_sanitize_is_of_every_namespace_and_a_format_where_the_drive_says_so() {
        assert_eq!(erased_by(Access::Sanitize, false), Some(vec![1, 4]));
        assert_eq!(erased_by(Access::Format, true), Some(vec![1, 4]));
        assert_eq!(erased_by(Access::Format, false), None);
        assert_eq!(erased_by(Access::Write, true), None);
    }
}
