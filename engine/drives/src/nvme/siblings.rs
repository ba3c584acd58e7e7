//! The other namespaces of a drive: a format or a sanitize may erase them, too, so the guard looks at each of them first.

use crate::guard::node::open_node;
use crate::guard::page_cache::write_back;
use crate::guard::refusal::{reasons_of_usage, Reason, Refusal};
use crate::guard::state::State;
use crate::guard::usage::Snapshot;
use crate::guard::{reopen, OpenRequest};
use crate::nvme::admin::{AdminQueue, NvmeAdmin};
use crate::sysfs::{BlockDevice, SystemRoots};
use std::fs::{self, File};
use std::sync::Arc;
use testdrive_nvme::ControllerIdentity;

/// The other namespaces of the drive that a disk is of, as far as this host has block devices of them: those of the same subsystem,
/// whichever controller they are seen by.
///
/// # Errors
/// When sysfs cannot be listed.
pub(crate) fn siblings(disk: &BlockDevice, roots: &SystemRoots) -> std::io::Result<Vec<BlockDevice>> {
    let same = |other: &BlockDevice| {
        let subsystem =
            |disk: &BlockDevice| disk.attribute("device/subsysnqn").filter(|name| !name.is_empty());
        let by_name = subsystem(disk).is_some_and(|name| subsystem(other) == Some(name));
        let by_controller = disk.link("device").is_some_and(|own| other.link("device") == Some(own));
        by_name || by_controller
    };
    let others = roots.whole_disks()?.into_iter();
    Ok(others
        .filter(|other| other.number != disk.number && other.name.starts_with("nvme") && same(other))
        .collect())
}

/// Claims every other namespace of the drive, for a run that erases them, too.
///
/// # Errors
/// With every reason of every namespace, as the guard has them for the drive itself. The consent to erase names the drive's serial, which
/// they share; signatures take the second consent.
pub(crate) fn claim(
    request: &OpenRequest<'_>,
    disk: &BlockDevice,
    roots: &SystemRoots,
) -> Result<Vec<Arc<File>>, Refusal> {
    let given = &request.uri.given;
    let unknown = |error: std::io::Error| Refusal::Unsafe {
        target: given.clone(),
        reasons: vec![Reason::Unknown(format!("its other namespaces: {error}"))],
    };
    let snapshot = Snapshot::take(roots).map_err(unknown)?.with_openers(None);
    let (mut reasons, mut claims) = (Vec::new(), Vec::new());
    for sibling in siblings(disk, roots).map_err(unknown)? {
        let mut found = Vec::new();
        match open_node(&sibling, roots) {
            Ok(node) => {
                let state = State::look(&sibling, &node, &snapshot);
                found.extend(state.reasons(request.consent.erase_signatures));
                if found.is_empty() {
                    match reopen(&node, true, libc::O_EXCL) {
                        Ok(claim) => claims.push((sibling.clone(), Arc::new(claim))),
                        Err(error) => found.push(Reason::Unknown(format!("it cannot be claimed: {error}"))),
                    }
                }
            }
            Err(error) => found.push(error.reason()),
        }
        let name = sibling.name;
        reasons.extend(
            found.into_iter().map(|reason| Reason::Sibling { name: name.clone(), reason: reason.into() }),
        );
    }
    // Once more, now that nobody can mount one of them.
    for (sibling, claim) in &claims {
        let usage = Snapshot::take(roots).map_err(unknown)?.with_openers(None).usage_of_device(sibling);
        let sibling_reason =
            |reason: Reason| Reason::Sibling { name: sibling.name.clone(), reason: reason.into() };
        let cached = write_back(sibling, claim, roots).err();
        reasons.extend(reasons_of_usage(&usage).into_iter().chain(cached).map(sibling_reason));
    }
    Refusal::unless_empty(given, reasons)?;
    Ok(claims.into_iter().map(|(_, claim)| claim).collect())
}

/// Looks whether everything that the drive has is something that was looked at: what is on a namespace that the kernel does not show, or who
/// comes by a controller that another host or a virtual machine has, cannot be told.
///
/// # Errors
/// When there is more, or the drive does not say.
pub(crate) fn check_all_seen<Q: AdminQueue + ?Sized>(
    given: &str,
    disk: &BlockDevice,
    controller: &ControllerIdentity,
    admin: &mut NvmeAdmin<'_, Q>,
    roots: &SystemRoots,
) -> Result<(), Refusal> {
    let refused = |reason| Err(Refusal::because(given, reason));
    let untold = |what: &str, error: String| {
        refused(Reason::Unknown(format!("the drive does not list its {what}: {error}")))
    };
    let others = match siblings(disk, roots) {
        Ok(others) => others,
        Err(error) => return refused(Reason::Unknown(error.to_string())),
    };
    let seen: Vec<u64> =
        std::iter::once(disk).chain(&others).filter_map(|each| each.attribute_number("nsid")).collect();
    let namespaces = match admin.all_namespaces(controller) {
        Ok(namespaces) => namespaces,
        Err(error) => return untold("namespaces", error.to_string()),
    };
    if let Some(nsid) = namespaces.into_iter().find(|nsid| !seen.contains(&u64::from(*nsid))) {
        return refused(Reason::HiddenNamespace(nsid));
    }
    let mut hidden = match admin.controllers(controller) {
        Ok(controllers) => controllers,
        Err(error) => return untold("controllers", error.to_string()),
    };
    let own = own_controllers(disk, roots);
    hidden.retain(|id| *id != controller.controller_id && !own.contains(id));
    if hidden.is_empty() {
        Ok(())
    } else {
        refused(Reason::HiddenControllers(hidden))
    }
}

/// The identifiers of the controllers that this host has of the subsystem of a disk.
fn own_controllers(disk: &BlockDevice, roots: &SystemRoots) -> Vec<u16> {
    let Some(subsystem) = disk.attribute("device/subsysnqn").filter(|name| !name.is_empty()) else {
        return Vec::new();
    };
    let controllers = fs::read_dir(roots.sys.join("class/nvme")).into_iter().flatten().flatten();
    let identifier = |controller: fs::DirEntry| {
        let attribute = |name| fs::read_to_string(controller.path().join(name)).ok();
        (attribute("subsysnqn")?.trim() == subsystem).then(|| attribute("cntlid")?.trim().parse().ok())?
    };
    controllers.filter_map(identifier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::admin::{AdminData, AdminError};
    use crate::sysfs::DeviceNumber;
    use std::os::unix::fs::symlink;
    use std::time::Duration;
    use testdrive_nvme::{NvmCommand, Status};

    /// A host with these disks: name, minor number, controller, subsystem's name and namespace identifier.
    fn host(disks: &[(&str, u32, &str, &str, &str)]) -> (tempfile::TempDir, SystemRoots) {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path().to_path_buf();
        for links in ["block", "dev/block"] {
            fs::create_dir_all(sys.join(links)).unwrap();
        }
        for (name, minor, controller, subsystem, nsid) in disks {
            let controller = sys.join("devices").join(controller);
            let directory = controller.join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(controller.join("subsysnqn"), subsystem).unwrap();
            fs::write(directory.join("dev"), format!("259:{minor}\n")).unwrap();
            fs::write(directory.join("nsid"), nsid).unwrap();
            symlink(&controller, directory.join("device")).unwrap();
            symlink(&directory, sys.join("block").join(name)).unwrap();
            symlink(&directory, sys.join("dev/block").join(format!("259:{minor}"))).unwrap();
        }
        let roots = SystemRoots { sys, ..SystemRoots::default() };
        (folder, roots)
    }

    fn first(roots: &SystemRoots) -> BlockDevice {
        roots.block_device(DeviceNumber { major: 259, minor: 0 }).unwrap()
    }

    #[test]
    fn siblings_are_of_the_same_subsystem_or_the_same_controller() {
        let (_folder, roots) = host(&[
            ("nvme0n1", 0, "nvme0", "nqn.a\n", "1\n"),
            ("nvme0n2", 1, "nvme0", "nqn.a\n", "2\n"),
            ("nvme1n3", 2, "nvme1", "nqn.a\n", "3\n"),
            ("nvme2n1", 3, "nvme2", "nqn.b\n", "1\n"),
            ("sda", 4, "target", "nqn.a\n", "1\n"),
        ]);
        let names = |disk: &BlockDevice| -> Vec<String> {
            siblings(disk, &roots).unwrap().into_iter().map(|each| each.name).collect()
        };
        assert_eq!(names(&first(&roots)), ["nvme0n2", "nvme1n3"]);
        // Drives that are older than names are told by their controller.
        let (_folder, roots) = host(&[
            ("nvme0n1", 0, "nvme0", "\n", "1\n"),
            ("nvme0n2", 1, "nvme0", "\n", "2\n"),
            ("nvme1n1", 2, "nvme1", "\n", "1\n"),
        ]);
        let found = siblings(&first(&roots), &roots).unwrap();
        assert_eq!(found.iter().map(|each| &*each.name).collect::<Vec<_>>(), ["nvme0n2"]);
    }

    /// A drive whose controller 1 lists these.
    struct Drive {
        active: Vec<u32>,
        allocated: Option<Vec<u32>>,
        controllers: Option<Vec<u16>>,
    }

    impl AdminQueue for Drive {
        fn admin(
            &mut self,
            command: &NvmCommand,
            data: AdminData<'_>,
            _: Duration,
        ) -> Result<u32, AdminError> {
            let AdminData::Read(bytes) = data else { panic!("{command:?}") };
            let words: Option<Vec<u8>> = match command.cdw[0] & 0xff {
                0x02 => Some(self.active.iter().flat_map(|id| id.to_le_bytes()).collect()),
                0x10 => {
                    self.allocated.as_ref().map(|ids| ids.iter().flat_map(|id| id.to_le_bytes()).collect())
                }
                0x13 => self.controllers.as_ref().map(|ids| {
                    let count = std::iter::once(ids.len() as u16);
                    count.chain(ids.iter().copied()).flat_map(u16::to_le_bytes).collect()
                }),
                _ => None,
            };
            // Invalid field in command, do not retry.
            let words = words.ok_or(AdminError::Status(Status::from_field(0x4002)))?;
            bytes[..words.len()].copy_from_slice(&words);
            Ok(0)
        }
    }

    fn reasons(roots: &SystemRoots, mut drive: Drive) -> Vec<Reason> {
        let controller = ControllerIdentity {
            controller_id: 1,
            can_manage_namespaces: drive.allocated.is_some(),
            may_have_other_controllers: drive.controllers.is_some(),
            ..ControllerIdentity::default()
        };
        let mut admin = NvmeAdmin::new(&mut drive, 1);
        match check_all_seen("/dev/ng0n1", &first(roots), &controller, &mut admin, roots) {
            Ok(()) => Vec::new(),
            Err(refusal) => {
                assert_eq!(refusal.exit_status(), 3);
                refusal.reasons().to_vec()
            }
        }
    }

    #[test]
    fn a_namespace_that_the_host_does_not_show_is_not_erased_unseen() {
        let (_folder, roots) =
            host(&[("nvme0n1", 0, "nvme0", "nqn.a\n", "1\n"), ("nvme0n2", 1, "nvme0", "nqn.a\n", "2\n")]);
        let active = |active: &[u32]| Drive { active: active.into(), allocated: None, controllers: None };
        assert_eq!(reasons(&roots, active(&[1, 2])), []);
        assert_eq!(reasons(&roots, active(&[1, 2, 5])), [Reason::HiddenNamespace(5)]);
        // Of those that are attached to this controller all are there, and yet one more is erased.
        let allocated = |allocated: &[u32]| Drive {
            active: vec![1],
            allocated: Some(allocated.into()),
            controllers: None,
        };
        assert_eq!(reasons(&roots, allocated(&[1, 2])), []);
        assert_eq!(reasons(&roots, allocated(&[1, 2, 3])), [Reason::HiddenNamespace(3)]);
        let told = Reason::HiddenNamespace(3).to_string();
        assert!(told.contains("a namespace 3 that this host has no block device of"), "{told}");
    }

    #[test]
    fn a_controller_that_the_host_does_not_have_may_be_in_use_elsewhere() {
        let (_folder, roots) = host(&[("nvme0n1", 0, "nvme0", "nqn.a\n", "1\n")]);
        for (name, subsystem, id) in [("nvme0", "nqn.a", 1), ("nvme1", "nqn.a", 2), ("nvme2", "nqn.b", 3)] {
            let directory = roots.sys.join("class/nvme").join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("subsysnqn"), format!("{subsystem}\n")).unwrap();
            fs::write(directory.join("cntlid"), format!("{id}\n")).unwrap();
        }
        let controllers =
            |ids: &[u16]| Drive { active: vec![1], allocated: None, controllers: Some(ids.into()) };
        assert_eq!(reasons(&roots, controllers(&[1, 2])), []);
        assert_eq!(reasons(&roots, controllers(&[1, 2, 3, 65])), [Reason::HiddenControllers(vec![3, 65])]);
    }

    #[test]
    fn a_drive_that_does_not_list_what_it_has_is_not_erased() {
        let (_folder, roots) = host(&[("nvme0n1", 0, "nvme0", "nqn.a\n", "1\n")]);
        for (can_manage_namespaces, may_have_other_controllers, what) in
            [(true, false, "does not list its namespaces"), (false, true, "does not list its controllers")]
        {
            let mut drive = Drive { active: vec![1], allocated: None, controllers: None };
            let controller = ControllerIdentity {
                can_manage_namespaces,
                may_have_other_controllers,
                ..ControllerIdentity::default()
            };
            let mut admin = NvmeAdmin::new(&mut drive, 1);
            let refusal =
                check_all_seen("/dev/ng0n1", &first(&roots), &controller, &mut admin, &roots).unwrap_err();
            assert!(refusal.to_string().contains(what), "{refusal}");
            assert_eq!(refusal.exit_status(), 3);
        }
    }
}
