//! What a format or a sanitize of a controller erases beside the namespace that was named. It is asked while the kernel's driver still has
//! the controller, since what is on the others has to be looked at then.

use crate::guard::refusal::{Reason, Refusal};
use crate::guard::Access;
use crate::nvme::admin::{AdminError, AdminQueue, NvmeAdmin};
use crate::nvme::siblings::check_all_seen;
use crate::sysfs::{BlockDevice, SystemRoots};
use testdrive_nvme::ControllerIdentity;

/// Whether every namespace of the drive is erased by what a run may do, which is then every one that the kernel shows. `queue` is the
/// controller's.
///
/// # Errors
/// When the drive does not say, or has more than the kernel shows.
pub(crate) fn erases_all(
    given: &str,
    access: Access,
    chosen: &BlockDevice,
    queue: &mut dyn AdminQueue,
    roots: &SystemRoots,
) -> Result<bool, Refusal> {
    let mut admin = NvmeAdmin::new(queue, 0);
    let of_all = of_all(access, &mut admin).map_err(|error| {
        Refusal::because(given, Reason::Unknown(format!("the drive does not say what it erases: {error}")))
    })?;
    match of_all {
        None => Ok(false),
        Some(controller) => check_all_seen(given, chosen, &controller, &mut admin, roots).map(|()| true),
    }
}

/// What a controller is that erases all of its drive; `None` of one that erases the namespace that it is told.
fn of_all(
    access: Access,
    admin: &mut NvmeAdmin<'_, dyn AdminQueue + '_>,
) -> Result<Option<ControllerIdentity>, AdminError> {
    let controller = admin.controller()?;
    Ok(access.is_of_all(&controller).then_some(controller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::queues::PciQueues;
    use crate::NvmeTarget;
    use testdrive_recording::DriveIdentity;
    use testdrive_userspace::double::{Double, Model};
    use testdrive_userspace::Controller;

    fn erases_all_by(access: Access, format_is_of_all: bool) -> bool {
        let model = Model { namespaces: vec![1, 4], format_is_of_all, ..Model::default() };
        let controller = Controller::start(Double::new(model), Some(4)).unwrap();
        let drive = PciQueues::new(controller, DriveIdentity::default(), access, 1);
        let mut queue = drive.admin();
        let mut admin = NvmeAdmin::new(&mut *queue as &mut dyn AdminQueue, 0);
        of_all(access, &mut admin).unwrap().is_some()
    }

    #[test]
    fn a_sanitize_is_of_every_namespace_and_a_format_where_the_drive_says_so() {
        assert!(erases_all_by(Access::Sanitize, false));
        assert!(erases_all_by(Access::Format, true));
        assert!(!erases_all_by(Access::Format, false));
        assert!(!erases_all_by(Access::Write, true));
    }
}
