//! Opening a namespace for passthrough: the guard looks at the block device of the same namespace, and its claim comes first.

use super::device::{PassthruDevice, PassthruOptions};
use super::ioctl::{namespace_id, CharacterAdmin};
use super::limits::CommandLimits;
use crate::guard::{cannot_open, handle, open_block, reopen, OpenRequest};
use crate::nvme_admin::{AdminError, NvmeAdmin};
use crate::nvme_siblings;
use crate::openers::{openers, Opened};
use crate::refusal::{Reason, Refusal};
use crate::sysfs::{BlockDevice, DeviceNumber, SystemRoots};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use testdrive_nvme::{BlockSize, ControllerIdentity, NamespaceIdentity, NvmLimits};

/// The block device of the namespace that a character device number is of: the kernel gives both the same numbers in their names, and the
/// same controller or subsystem.
///
/// # Errors
/// When it is no NVMe namespace, or has no block device.
pub(crate) fn block_of_character(number: DeviceNumber, roots: &SystemRoots) -> io::Result<BlockDevice> {
    let unknown = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let directory = std::fs::canonicalize(roots.sys.join("dev/char").join(number.to_string()))?;
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let numbers = name.strip_prefix("ng").ok_or_else(|| unknown(format!("{name} is no NVMe namespace")))?;
    let block_name = format!("nvme{numbers}");
    let disk = roots.whole_disks()?.into_iter().find(|disk| disk.name == block_name);
    let disk = disk.ok_or_else(|| unknown(format!("{name} has no block device {block_name}")))?;
    let own = std::fs::canonicalize(directory.join("device"))?;
    if disk.link("device").is_none_or(|other| other != own) {
        return Err(unknown(format!("{name} and {block_name} are not of the same controller")));
    }
    Ok(disk)
}

/// Opens a namespace for a run.
///
/// # Errors
/// As [`crate::guard::open_for_run`]: what speaks against the block device speaks against this path.
pub(crate) fn open(
    request: &OpenRequest<'_>,
    path: &Path,
    options: PassthruOptions,
    roots: &SystemRoots,
) -> Result<PassthruDevice, Refusal> {
    let given = &request.uri.given;
    let character = handle(path).map_err(|error| cannot_open(path, &error))?;
    let number = character_number(path, &character)?;
    let unknown =
        |what: String| Refusal::Unsafe { target: given.clone(), reasons: vec![Reason::Unknown(what)] };
    let disk = block_of_character(number, roots).map_err(|error| unknown(error.to_string()))?;
    refuse_zoned(given, &disk)?;
    refuse_other_writers(request, number, roots)?;
    let mut guarded = open_block(request, &roots.dev.join(&disk.name), roots)?;
    let writes = request.access.writes();
    let character = reopen(&character, writes, 0).map_err(|error| cannot_open(path, &error))?;
    let character = Arc::new(character);
    let nsid = same_namespace(&character, &guarded.device.file)
        .map_err(|error| unknown(format!("{given} and {} differ: {error}", disk.name)))?;

    let failed = |error: AdminError| {
        Refusal::Drive(format!(
            "{given} does not say what it is ({error}): check the drive and the kernel's log"
        ))
    };
    let mut queue = CharacterAdmin::new(Arc::clone(&character));
    let mut admin = NvmeAdmin::new(&mut queue, nsid);
    let controller = admin.controller().map_err(failed)?;
    let namespace = admin.namespace().map_err(failed)?;
    let limits = admin.limits();
    let mut others = Vec::new();
    if request.access.is_of_all(&controller) {
        others = nvme_siblings::claim(request, &disk, roots)?;
        let active = admin.active_namespaces().map_err(failed)?;
        nvme_siblings::check_all_seen(given, &disk, &active, roots)?;
    }
    guarded.device.identity.path = "nvme_passthrough".into();
    let mut device = PassthruDevice {
        block: guarded.device,
        others,
        access: request.access,
        options,
        character,
        disk: disk.clone(),
        nsid,
        block_size: BlockSize::new(512).expect("512 is a block"),
        limits: CommandLimits::none(),
        controller: Arc::default(),
        namespace: Arc::default(),
    };
    device.take(controller, namespace, &limits, &disk).map_err(|error| error.of(given))?;
    Ok(device)
}

/// Why a namespace cannot be driven as it is.
pub(crate) enum Unfit {
    /// Another way has to be taken.
    Usage(String),
    /// Something is wrong with the drive.
    Drive(String),
}

impl Unfit {
    pub(crate) fn of(self, given: &str) -> Refusal {
        match self {
            Unfit::Usage(what) => Refusal::Usage(format!("{given} {what}")),
            Unfit::Drive(what) => Refusal::Drive(format!("{given} {what}")),
        }
    }
}

impl PassthruDevice {
    /// Takes over what drive and kernel say of the namespace, which have to agree.
    pub(super) fn take(
        &mut self,
        controller: ControllerIdentity,
        namespace: NamespaceIdentity,
        limits: &NvmLimits,
        disk: &BlockDevice,
    ) -> Result<(), Unfit> {
        if namespace.has_metadata() {
            return Err(Unfit::Usage(
                "is formatted with metadata or protection information, which this path does not transfer: give its block device, or format it without".into(),
            ));
        }
        let identity = &mut self.block.identity;
        let block_size = BlockSize::new(namespace.block_bytes()).ok_or_else(|| {
            Unfit::Drive(format!(
                "says that its blocks have {} bytes: check the drive",
                namespace.block_bytes()
            ))
        })?;
        let (size, block) = (namespace.size_bytes(), u64::from(block_size.bytes()));
        if (size, block) != (identity.capacity_bytes, identity.logical_block_bytes) {
            return Err(Unfit::Drive(format!(
                "says that it has {size} bytes in blocks of {block}, and the kernel {} in blocks of {}: have the kernel look again (nvme ns-rescan)",
                identity.capacity_bytes, identity.logical_block_bytes
            )));
        }
        self.block_size = block_size;
        self.limits = CommandLimits::of(&controller, limits, block_size, disk);
        let settings = &mut identity.settings;
        settings.insert("direct".into(), true.into());
        settings.insert("namespace_id".into(), self.nsid.into());
        settings.insert("transfer_bytes_max".into(), (u64::from(self.limits.transfer_blocks) * block).into());
        settings
            .insert("write_zeroes_bytes_max".into(), (u64::from(self.limits.zeroes_blocks) * block).into());
        settings.insert("trim_ranges".into(), self.options.trim_ranges.into());
        self.controller = Arc::new(controller);
        self.namespace = Arc::new(namespace);
        Ok(())
    }
}

/// The number of a character device, or what to write instead for anything else.
fn character_number(path: &Path, handle: &File) -> Result<DeviceNumber, Refusal> {
    let metadata = handle.metadata().map_err(|error| cannot_open(path, &error))?;
    if metadata.file_type().is_char_device() {
        return Ok(DeviceNumber::from_raw(metadata.rdev()));
    }
    let path = path.display();
    Err(Refusal::Usage(format!(
        "{path} is no character device: 'testdrive drives' lists the drives of this host"
    )))
}

/// Zones are written in an order of their own.
fn refuse_zoned(given: &str, disk: &BlockDevice) -> Result<(), Refusal> {
    match disk.attribute("queue/zoned") {
        Some(zoned) if zoned != "none" => Err(Refusal::Usage(format!(
            "{given} has zones ({zoned}), which this path does not know: give its block device"
        ))),
        _ => Ok(()),
    }
}

/// Commands of others by the character device pass every claim.
fn refuse_other_writers(
    request: &OpenRequest<'_>,
    number: DeviceNumber,
    roots: &SystemRoots,
) -> Result<(), Refusal> {
    if !request.access.writes() {
        return Ok(());
    }
    let open = openers(roots, |opened| opened == Opened::Character(number));
    let writers: Vec<String> = open.iter().filter(|each| each.writable).map(|each| each.name()).collect();
    let reasons = if writers.is_empty() { Vec::new() } else { vec![Reason::Busy(writers)] };
    Refusal::unless_empty(&request.uri.given, reasons)
}

fn same_namespace(character: &File, block: &File) -> io::Result<u32> {
    let (own, other) = (namespace_id(character)?, namespace_id(block)?);
    if own == other {
        Ok(own)
    } else {
        Err(io::Error::other(format!("namespaces {own} and {other}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A host with a controller whose namespace has a block and a character device, and a stray character device.
    fn host() -> (tempfile::TempDir, SystemRoots) {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path().to_path_buf();
        let controller = sys.join("devices/nvme/nvme0");
        for name in ["nvme0n1", "ng0n1", "ng0n2"] {
            fs::create_dir_all(controller.join(name)).unwrap();
            symlink("..", controller.join(name).join("device")).unwrap();
        }
        fs::write(controller.join("nvme0n1/dev"), "259:0\n").unwrap();
        fs::create_dir_all(sys.join("dev/char")).unwrap();
        fs::create_dir_all(sys.join("block")).unwrap();
        symlink(controller.join("nvme0n1"), sys.join("block/nvme0n1")).unwrap();
        symlink(controller.join("ng0n1"), sys.join("dev/char/240:0")).unwrap();
        symlink(controller.join("ng0n2"), sys.join("dev/char/240:1")).unwrap();
        symlink(&controller, sys.join("dev/char/241:0")).unwrap();
        let roots = SystemRoots { sys, ..SystemRoots::default() };
        (folder, roots)
    }

    fn found(minor: u32, major: u32) -> io::Result<BlockDevice> {
        let (_folder, roots) = host();
        block_of_character(DeviceNumber { major, minor }, &roots)
    }

    #[test]
    fn a_character_device_leads_to_the_block_device_of_its_namespace() {
        assert_eq!(found(0, 240).unwrap().name, "nvme0n1");
    }

    #[test]
    fn a_namespace_without_a_block_device_and_a_controller_are_refused() {
        assert!(found(1, 240).unwrap_err().to_string().contains("ng0n2 has no block device nvme0n2"));
        assert!(found(0, 241).unwrap_err().to_string().contains("nvme0 is no NVMe namespace"));
        assert!(found(9, 240).is_err());
    }

    #[test]
    fn a_block_device_of_another_controller_is_not_taken_for_it() {
        let (_folder, roots) = host();
        let other = roots.sys.join("devices/nvme/nvme7");
        fs::create_dir_all(&other).unwrap();
        let link = roots.sys.join("devices/nvme/nvme0/nvme0n1/device");
        fs::remove_file(&link).unwrap();
        symlink(&other, &link).unwrap();
        let error = block_of_character(DeviceNumber { major: 240, minor: 0 }, &roots).unwrap_err();
        assert!(error.to_string().contains("not of the same controller"), "{error}");
    }
}
