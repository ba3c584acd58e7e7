//! The namespaces of a controller: those that the drive has, all of which the kernel has to show before any of them can be told free.

use crate::drive_paths::namespace_numbers;
use crate::guard::node::open_node;
use crate::guard::refusal::{Reason, Refusal};
use crate::nvme::admin::{AdminQueue, NvmeAdmin};
use crate::sysfs::{BlockDevice, SystemRoots};
use crate::uri::PciUri;
use std::fs::{self, File};
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use testdrive_userspace::pci::PciFunction;

/// How long the kernel may take to show the namespaces of a controller that was just given back.
pub(crate) const NAMESPACES_LIMIT: Duration = Duration::from_secs(10);
/// The same where nobody is known to have given it back just now: another program, or the host's start, may have.
pub(crate) const NAMESPACES_SOON: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// How the admin queue of a drive is had by the node of one of its namespaces.
pub type AdminOf<'a> = &'a dyn Fn(File) -> Box<dyn AdminQueue>;

/// The admin queue of a drive that the kernel has, by a namespace of it.
///
/// # Errors
/// When the node of the namespace cannot be opened, or is another's.
pub(crate) fn queue_of(
    given: &str,
    namespace: &BlockDevice,
    roots: &SystemRoots,
    admin_of: AdminOf<'_>,
) -> Result<Box<dyn AdminQueue>, Refusal> {
    let node = open_node(namespace, roots).map_err(|error| error.refusal(given))?;
    let file = crate::guard::reopen(&node, false, 0);
    file.map(admin_of).map_err(|error| crate::guard::cannot_open(&namespace.node(), &error))
}

/// The namespaces that the drive has attached to this controller, and their block devices. A driver that has only just got a controller shows
/// them one by one, so that all are waited for.
///
/// # Errors
/// When one of them is not shown within the limit, or the drive does not list them.
pub(crate) fn all_namespaces(
    given: &str,
    function: &PciFunction,
    roots: &SystemRoots,
    limit: Duration,
    admin_of: AdminOf<'_>,
) -> Result<(Vec<BlockDevice>, Vec<u32>), Refusal> {
    let refused = |reason| Refusal::because(given, reason);
    let began = Instant::now();
    loop {
        let shown =
            shown_namespaces(function, roots).map_err(|error| refused(Reason::Unknown(error.to_string())))?;
        let is_over = began.elapsed() > limit;
        // The drive is asked by the first that there is.
        if let Some(first) = shown.first() {
            let mut queue = queue_of(given, first, roots, admin_of)?;
            let active = NvmeAdmin::new(&mut *queue, 0).active_namespaces().map_err(|error| {
                refused(Reason::Unknown(format!("the drive does not list its namespaces: {error}")))
            })?;
            let is_shown = |nsid: &u32| shown.iter().any(|each| namespace_id(each) == *nsid);
            match active.iter().find(|nsid| !is_shown(nsid)) {
                None => return Ok((shown, active)),
                Some(nsid) if is_over => return Err(refused(Reason::NotShown(*nsid))),
                Some(_) => {}
            }
        } else if is_over {
            return Ok((shown, Vec::new()));
        }
        thread::sleep(PAUSE);
    }
}

/// The block devices of the controller's namespaces. A namespace of several controllers has one that is named after its subsystem.
fn shown_namespaces(function: &PciFunction, roots: &SystemRoots) -> io::Result<Vec<BlockDevice>> {
    let mut names = Vec::new();
    for controller in function.nvme_controllers() {
        for entry in fs::read_dir(function.directory().join("nvme").join(controller))? {
            names.extend(head_name(&entry?.file_name().to_string_lossy()));
        }
    }
    let disks = roots.whole_disks()?.into_iter();
    Ok(disks.filter(|disk| names.contains(&disk.name)).collect())
}

/// Waits until the kernel shows so many namespaces again of a controller that was given back: whoever comes next is to find them.
pub(crate) fn wait_for_namespaces(function: &PciFunction, roots: &SystemRoots, count: usize) {
    let began = Instant::now();
    // The driver has the controller, whatever it shows: there is nothing to be done where it shows less.
    while began.elapsed() < NAMESPACES_LIMIT
        && shown_namespaces(function, roots).is_ok_and(|shown| shown.len() < count)
    {
        thread::sleep(PAUSE);
    }
}

/// The name of the block device of a namespace (`nvme0n1`), also of one path to it (`nvme0c1n1`); `None` for anything else.
pub(crate) fn head_name(entry: &str) -> Option<String> {
    if namespace_numbers(entry).is_some() {
        return Some(entry.to_string());
    }
    let (subsystem, path) = entry.split_once('c')?;
    let (controller, namespace) = path.split_once('n')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = format!("{subsystem}n{namespace}");
    (is_number(controller) && namespace_numbers(&name).is_some()).then_some(name)
}

/// The identifier that the kernel has of a namespace.
pub(crate) fn namespace_id(namespace: &BlockDevice) -> u32 {
    namespace.attribute_number("nsid").and_then(|id| u32::try_from(id).ok()).unwrap_or(0)
}

/// The namespace that was named, or the only one.
///
/// # Errors
/// When there is none, or which one is left open.
pub(crate) fn choose<'a>(
    given: &str,
    uri: &PciUri,
    namespaces: &'a [BlockDevice],
) -> Result<&'a BlockDevice, Refusal> {
    let ids: Vec<u32> = namespaces.iter().map(namespace_id).collect();
    let names = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match (uri.namespace, namespaces) {
        (_, []) => Err(Refusal::because(
            given,
            Reason::Unknown(
                "the kernel shows no namespace of this controller, so what is on it cannot be looked at"
                    .into(),
            ),
        )),
        (None, [only]) => Ok(only),
        (None, _) => {
            Err(Refusal::Usage(format!("{given} has the namespaces {names}: choose one with ?namespace=N")))
        }
        (Some(id), _) => match ids.iter().position(|each| *each == id) {
            Some(index) => Ok(&namespaces[index]),
            None => {
                Err(Refusal::Usage(format!("{given}: there is no such namespace, the drive has {names}")))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_and_a_path_to_it_lead_to_one_block_device() {
        assert_eq!(head_name("nvme0n1").as_deref(), Some("nvme0n1"));
        assert_eq!(head_name("nvme3c12n7").as_deref(), Some("nvme3n7"));
        for other in
            ["ng0n1", "nvme0", "nvme0n", "nvmen1", "nvme0n1p1", "nvme0cn1", "hwmon1", "power", "nvme0c1xn1"]
        {
            assert_eq!(head_name(other), None, "{other}");
        }
    }
}
