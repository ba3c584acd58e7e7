//! Why a drive is not opened: each reason a sentence that says what was found and what to do now.

use crate::guard::signatures::Signature;
use crate::guard::usage::Usage;
use crate::sysfs::DeviceNumber;
use std::fmt;

/// One reason not to write to, or not to use, a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A file system on it is mounted. Never overridable.
    Mounted(Vec<String>),
    /// Other devices are built on it. Never overridable.
    Held(Vec<String>),
    /// It is swap. Never overridable.
    Swap(Vec<String>),
    /// Another process has claimed it, or has it open for writing. Never overridable.
    Busy(Vec<String>),
    /// It cannot be written. Never overridable.
    ReadOnly,
    /// The recording would be written to the drive that is measured. Never overridable.
    RecordingOnIt(String),
    /// A `file:` leads to a block device. Never overridable: a drive is named as a drive.
    BlockDevice {
        /// Whether it was through a link.
        linked: bool,
        /// The device's own path.
        node: String,
    },
    /// Whether it is free could not be found out. Never overridable.
    Unknown(String),
    /// The kernel does not tell what a process has mapped, which may be this drive. Never overridable.
    Hanging(u32),
    /// The node of its name is another device's. Never overridable.
    OtherNode {
        /// The node.
        node: String,
        /// What it leads to; `None` where that is no block device.
        found: Option<DeviceNumber>,
        /// The drive's own number.
        number: DeviceNumber,
    },
    /// What the kernel's page cache holds of it, or of what shares its bytes, cannot be written to the drive first. Never overridable.
    Cached {
        /// The block device whose cache it is.
        name: String,
        /// What the kernel answered.
        error: String,
    },
    /// No consent was given.
    NoConsent {
        /// What consent must name.
        name: String,
    },
    /// Consent was given to another drive.
    WrongConsent {
        /// What was named.
        given: String,
        /// What consent must name.
        name: String,
    },
    /// It carries something, and the second consent was not given.
    Signatures(Vec<String>),
    /// Another namespace of the same drive would be erased, too, and this stands against it.
    Sibling {
        /// Its block device.
        name: String,
        /// What stands against it.
        reason: Box<Reason>,
    },
    /// The whole drive would be erased, and it has a namespace that this host does not show. Never overridable.
    HiddenNamespace(u32),
    /// The whole drive would be erased, and it has controllers that this host does not have. Never overridable.
    HiddenControllers(Vec<u16>),
    /// Its controller is not with the kernel's driver, so that what is on it cannot be seen. Never overridable.
    NotKernels {
        /// Who has it.
        driver: String,
        /// The controller's address.
        bdf: String,
    },
    /// It has a namespace that the kernel does not show. Never overridable.
    NotShown(u32),
    /// Its namespaces were others at the end of the look at them than at its start.
    Changed,
    /// So many virtual functions of it are enabled. Never overridable.
    VirtualFunctions(u32),
    /// Other functions of its IOMMU group are with their drivers. Never overridable.
    SharedGroup(Vec<String>),
    /// Its namespaces are reached through other controllers, too. Never overridable.
    OtherControllers(Vec<String>),
}

impl Reason {
    /// Whether consent could lift it.
    pub fn is_overridable(&self) -> bool {
        match self {
            Reason::NoConsent { .. } | Reason::WrongConsent { .. } | Reason::Signatures(_) => true,
            Reason::Sibling { reason, .. } => reason.is_overridable(),
            _ => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Mounted(places) => {
                write!(f, "it is mounted at {}: unmount it first (umount), or name another drive", places.join(", "))
            }
            Reason::Held(holders) => write!(
                f,
                "it is held by {}: stop what is built on it first (vgchange -an, mdadm --stop, cryptsetup close, losetup -d, nvmetcli clear)",
                holders.join(", ")
            ),
            Reason::Swap(paths) => write!(f, "it is in use as swap ({}): turn that off first (swapoff)", paths.join(", ")),
            Reason::Busy(who) if who.is_empty() => {
                write!(f, "another process or the kernel has claimed it: find it with 'lsof' or 'fuser -v' and stop it first")
            }
            Reason::Busy(who) => write!(f, "it is in use by {}: stop that first", who.join(", ")),
            Reason::ReadOnly => write!(
                f,
                "it is read-only: make it writable first (blockdev --setrw, or the drive's own write protection), or run a job that only reads"
            ),
            Reason::RecordingOnIt(output) => write!(
                f,
                "the recording {output} would be written to this very drive and disturb what is measured: put the output on another drive"
            ),
            Reason::BlockDevice { linked, node } => {
                let how = if *linked { "it is a link to the block device" } else { "it is the block device" };
                write!(f, "{how} {node}, not a file: if you mean that drive, name it as {node}, with --erase")
            }
            Reason::Unknown(what) => {
                write!(f, "whether it is free cannot be told ({what}): run as root with /sys and /proc mounted, or name another drive")
            }
            Reason::Hanging(pid) => write!(
                f,
                "process {pid} hangs in the kernel, so that nobody can tell whether it has this drive in its memory (mmap): end it, or what it waits for, such as a network server that does not answer, or restart the host"
            ),
            Reason::OtherNode { node, found, number } => {
                let found = found.map_or("no block device".into(), |found| format!("device {found}"));
                write!(
                    f,
                    "{node} leads to {found}, and this drive is {number}, so that another drive would be looked at in its place: make the node anew (rm {node}; mknod {node} b {} {}), or give the container this drive's own",
                    number.major, number.minor
                )
            }
            Reason::Cached { name, error } => write!(
                f,
                "what the kernel's page cache holds of {name} cannot be written back and forgotten ({error}), and could reach the drive later: run as root, give the container its node, or, of a partition, remove it (partx -d)"
            ),
            Reason::HiddenNamespace(nsid) => write!(
                f,
                "the whole drive would be erased, and it has a namespace {nsid} that this host has no block device of, so that what is on it cannot be looked at: attach it to this host first (nvme attach-ns), or delete it (nvme delete-ns)"
            ),
            Reason::HiddenControllers(ids) => write!(
                f,
                "the whole drive would be erased, and it has controllers that this host does not have (identifiers {}), by which another host or a virtual machine may be using it: take it away from them first, and connect its other port here or switch it off",
                ids.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
            ),
            Reason::NoConsent { name } => write!(
                f,
                "this run would overwrite it and nobody consented: if nothing on it is needed, add '--erase {name}'"
            ),
            Reason::WrongConsent { given, name } => write!(
                f,
                "--erase names '{given}', but this is '{name}': check that it is the drive you mean, then give '--erase {name}'"
            ),
            Reason::Sibling { name, reason } => {
                write!(f, "the whole drive would be erased, and of its other namespace {name}: {reason}")
            }
            Reason::NotKernels { driver, bdf } if !["vfio-pci", "no driver"].contains(&driver.as_str()) => write!(
                f,
                "the driver '{driver}' has it, not the kernel's nvme, so what is on it cannot be seen: have whoever bound it give it back as it was taken (with SPDK, scripts/setup.sh reset; with driverctl, unset-override {bdf}), or do it by hand (in /sys/bus/pci/devices/{bdf}: echo > driver_override, echo {bdf} > driver/unbind; then echo {bdf} > /sys/bus/pci/drivers_probe)"
            ),
            Reason::NotKernels { driver, bdf } => write!(
                f,
                "{driver} has it, not the kernel's nvme, so what is on it cannot be seen: give it back first with 'testdrive drives --release {bdf}'"
            ),
            Reason::NotShown(nsid) => write!(
                f,
                "it has a namespace {nsid} that this host has no block device of, so that whether it is in use cannot be seen: have the kernel look again (nvme ns-rescan), or detach it (nvme detach-ns)"
            ),
            Reason::Changed => write!(
                f,
                "its namespaces changed while they were looked at: wait until the kernel shows all of them (nvme list), and try again"
            ),
            Reason::VirtualFunctions(count) => write!(
                f,
                "it has {count} virtual functions enabled, which would go offline with it, whoever uses them: take them from their users and disable them first (echo 0 > sriov_numvfs in its directory in /sys/bus/pci/devices), or name the block device"
            ),
            Reason::SharedGroup(others) => write!(
                f,
                "it shares its IOMMU group with {}: unbind these first (driverctl set-override ADDRESS none), or move the drive to another slot",
                others.join(", ")
            ),
            Reason::OtherControllers(names) => write!(
                f,
                "its namespaces are also reached through {}, by which others could still use them: detach those first, or name the block device",
                names.join(", ")
            ),
            Reason::Signatures(names) => write!(
                f,
                "it carries {}: if that is not needed, add '--erase-signatures', or clear it first (wipefs)",
                names.join(", ")
            ),
        }
    }
}

/// Why a drive was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense: the drive is not there, or is not what its URI says.
    Usage(String),
    /// It is not safe.
    Unsafe {
        /// The drive as given.
        target: String,
        /// Every reason, not only the first.
        reasons: Vec<Reason>,
    },
    /// The drive, or the system under it, failed.
    Drive(String),
}

impl Refusal {
    /// The name of the class in the engine's progress output.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::Usage(_) => "usage",
            Refusal::Unsafe { .. } => "refused",
            Refusal::Drive(_) => "drive",
        }
    }

    /// The exit status of a run that ends so.
    pub fn exit_status(&self) -> u8 {
        match self {
            Refusal::Usage(_) => 2,
            Refusal::Unsafe { .. } => 3,
            Refusal::Drive(_) => 4,
        }
    }

    /// The reasons for which it is unsafe; none for the other classes.
    pub fn reasons(&self) -> &[Reason] {
        match self {
            Refusal::Unsafe { reasons, .. } => reasons,
            _ => &[],
        }
    }

    /// Not safe, for one reason.
    pub(crate) fn because(target: &str, reason: Reason) -> Refusal {
        Refusal::Unsafe { target: target.to_string(), reasons: vec![reason] }
    }

    /// `Ok` where there is no reason.
    pub(crate) fn unless_empty(target: &str, reasons: Vec<Reason>) -> Result<(), Refusal> {
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Unsafe { target: target.to_string(), reasons }),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Usage(message) | Refusal::Drive(message) => f.write_str(message),
            Refusal::Unsafe { target, reasons } if reasons.len() == 1 => {
                write!(f, "{target} is refused: {}", reasons[0])
            }
            Refusal::Unsafe { target, reasons } => {
                write!(f, "{target} is refused for {} reasons:", reasons.len())?;
                reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// The reasons in how a device or file is in use.
pub(crate) fn reasons_of_usage(usage: &Usage) -> Vec<Reason> {
    let named = |names: &Vec<String>, reason: fn(Vec<String>) -> Reason| {
        (!names.is_empty()).then(|| reason(names.clone()))
    };
    let known = [
        named(&usage.mounted, Reason::Mounted),
        named(&usage.holders, Reason::Held),
        named(&usage.swaps, Reason::Swap),
        named(&usage.writers, Reason::Busy),
    ];
    let unknown = usage.unknown.iter().cloned().map(Reason::Unknown);
    known.into_iter().flatten().chain(unknown).chain(usage.hanging.map(Reason::Hanging)).collect()
}

/// The signatures as a message lists them.
pub(crate) fn signature_names(signatures: &[Signature], partitions: &[String]) -> Vec<String> {
    let mut names: Vec<String> = signatures
        .iter()
        .map(|found| {
            let what = if found.is_partition_table { "a partition table" } else { "a signature" };
            let place = found.offset_bytes.map_or(String::new(), |offset| format!(" at byte {offset}"));
            format!("{what} of {}{place}", found.name)
        })
        .collect();
    if !partitions.is_empty() {
        names.push(format!("partitions ({})", partitions.join(", ")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_documented_exit_status() {
        let refused = Refusal::Unsafe { target: "/dev/x".into(), reasons: vec![Reason::ReadOnly] };
        assert_eq!((refused.kind(), refused.exit_status()), ("refused", 3));
        assert_eq!(Refusal::Usage(String::new()).exit_status(), 2);
        assert_eq!(Refusal::Drive(String::new()).exit_status(), 4);
    }

    #[test]
    fn every_reason_is_told() {
        let reasons = vec![Reason::Mounted(vec!["/srv".into()]), Reason::NoConsent { name: "S4EW".into() }];
        let text = Refusal::Unsafe { target: "/dev/x".into(), reasons }.to_string();
        assert!(text.starts_with("/dev/x is refused for 2 reasons:\n  - it is mounted at /srv: "), "{text}");
        assert!(text.contains("--erase S4EW"), "{text}");
    }

    #[test]
    fn only_consent_can_be_given_later() {
        assert!(Reason::Signatures(Vec::new()).is_overridable());
        for reason in [Reason::Mounted(Vec::new()), Reason::ReadOnly, Reason::Busy(Vec::new())] {
            assert!(!reason.is_overridable());
        }
    }
}
