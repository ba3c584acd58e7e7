//! The other namespaces of a drive: a format or a sanitize may erase them, too, so the guard looks at each of them first.

use crate::guard::{handle, reopen, OpenRequest};
use crate::refusal::{reasons_of_usage, Reason, Refusal};
use crate::state::State;
use crate::sysfs::{BlockDevice, SystemRoots};
use crate::usage::Snapshot;
use std::fs::File;
use std::sync::Arc;

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
        let node = handle(&roots.dev.join(&sibling.name)).map_err(unknown)?;
        let state = State::look(&sibling, &node, &snapshot);
        let mut found = state.reasons(request.consent.erase_signatures);
        if found.is_empty() {
            match reopen(&node, true, libc::O_EXCL) {
                Ok(claim) => claims.push((sibling.clone(), Arc::new(claim))),
                Err(error) => found.push(Reason::Unknown(format!("it cannot be claimed: {error}"))),
            }
        }
        let name = sibling.name;
        reasons.extend(
            found.into_iter().map(|reason| Reason::Sibling { name: name.clone(), reason: reason.into() }),
        );
    }
    // Once more, now that nobody can mount one of them.
    for (sibling, _) in &claims {
        let usage = Snapshot::take(roots).map_err(unknown)?.with_openers(None).usage_of_device(sibling);
        let sibling_reason =
            |reason: Reason| Reason::Sibling { name: sibling.name.clone(), reason: reason.into() };
        reasons.extend(reasons_of_usage(&usage).into_iter().map(sibling_reason));
    }
    Refusal::unless_empty(given, reasons)?;
    Ok(claims.into_iter().map(|(_, claim)| claim).collect())
}

/// Looks whether every namespace that the controller has is one that was looked at: what the kernel does not show cannot be told free.
///
/// # Errors
/// When there is one more.
pub(crate) fn check_all_seen(
    given: &str,
    disk: &BlockDevice,
    active: &[u32],
    roots: &SystemRoots,
) -> Result<(), Refusal> {
    let unknown =
        |what: String| Refusal::Unsafe { target: given.into(), reasons: vec![Reason::Unknown(what)] };
    let others = siblings(disk, roots).map_err(|error| unknown(error.to_string()))?;
    let seen: Vec<u64> =
        std::iter::once(disk).chain(&others).filter_map(|each| each.attribute_number("nsid")).collect();
    match active.iter().find(|nsid| !seen.contains(&u64::from(**nsid))) {
        None => Ok(()),
        Some(nsid) => Err(unknown(format!(
            "the drive has a namespace {nsid} that this host has no block device of, and it would be erased, too"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::DeviceNumber;
    use std::fs;
    use std::os::unix::fs::symlink;

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

    #[test]
    fn a_namespace_that_the_host_does_not_show_is_not_erased_unseen() {
        let (_folder, roots) =
            host(&[("nvme0n1", 0, "nvme0", "nqn.a\n", "1\n"), ("nvme0n2", 1, "nvme0", "nqn.a\n", "2\n")]);
        let disk = first(&roots);
        assert!(check_all_seen("/dev/ng0n1", &disk, &[1, 2], &roots).is_ok());
        let refusal = check_all_seen("/dev/ng0n1", &disk, &[1, 2, 5], &roots).unwrap_err();
        assert_eq!(refusal.exit_status(), 3);
        assert!(refusal.to_string().contains("has a namespace 5 that this host"), "{refusal}");
    }
}
