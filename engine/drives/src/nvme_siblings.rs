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
