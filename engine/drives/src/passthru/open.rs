//! Opening a namespace for passthrough: the guard looks at the block device of the same namespace, and its claim comes first.

use super::device::{PassthruDevice, PassthruOptions};
use super::ioctl::{namespace_id, CharacterAdmin};
use super::limits::CommandLimits;
use crate::guard::node::open_node;
use crate::guard::refusal::{Reason, Refusal};
use crate::guard::{cannot_open, handle, open_handle, reopen, OpenRequest};
use crate::nvme::admin::{AdminError, NvmeAdmin};
use crate::nvme::background::Background;
use crate::nvme::siblings;
use crate::nvme::target::NvmeTarget;
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
    let node = open_node(&disk, roots).map_err(|error| error.refusal(given))?;
    let mut guarded = open_handle(request, &disk.node(), node, roots)?;
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
    same_drive(given, &disk, &controller)?;
    let namespace = admin.namespace().map_err(failed)?;
    let limits = admin.limits();
    let warnings = Background::ask(&mut admin, &controller).warnings(given, &controller, None);
    let mut others = Vec::new();
    if request.access.is_of_all(&controller) {
        others = siblings::claim(request, &disk, roots)?;
        siblings::check_all_seen(given, &disk, &controller, &mut admin, roots)?;
    }
    guarded.device.identity.path = "nvme_passthrough".into();
    let mut device = PassthruDevice {
        block: guarded.device,
        others,
        access: request.access,
        warnings,
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
    match device.hindrance() {
        // A format may take it away; that one comes first, whoever runs the phases sees to.
        Some(what) if !request.access.erases() => Err(Unfit::Usage(what.into()).of(given)),
        _ => Ok(device),
    }
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
pub(crate) fn refuse_zoned(given: &str, disk: &BlockDevice) -> Result<(), Refusal> {
    match disk.attribute("queue/zoned") {
        Some(zoned) if zoned != "none" => Err(Refusal::Usage(format!(
            "{given} has zones ({zoned}), which this path does not know: give its block device"
        ))),
        _ => Ok(()),
    }
}

/// Looks whether who answers the commands is the drive that was consented to.
fn same_drive(given: &str, disk: &BlockDevice, controller: &ControllerIdentity) -> Result<(), Refusal> {
    // What cannot be printed is in one of the two only.
    let mut seen = disk.attribute("device/serial").unwrap_or_default();
    seen.retain(|each| (' '..='~').contains(&each));
    if seen == controller.serial {
        return Ok(());
    }
    let what =
        format!("{given} answers as the drive {:?}, and {} is of {seen:?}", controller.serial, disk.name);
    Err(Refusal::because(given, Reason::Unknown(what)))
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

    #[test]
    fn a_drive_that_answers_by_another_serial_is_not_the_one_that_was_consented_to() {
        let disk = |serial: &str| {
            let (folder, roots) = host();
            fs::write(roots.sys.join("devices/nvme/nvme0/serial"), serial).unwrap();
            let disk = block_of_character(DeviceNumber { major: 240, minor: 0 }, &roots).unwrap();
            (folder, disk)
        };
        let controller = ControllerIdentity { serial: "S4EW".into(), ..ControllerIdentity::default() };
        let checked = |serial: &str| {
            let (_folder, disk) = disk(serial);
            same_drive("/dev/ng0n1", &disk, &controller)
        };
        assert_eq!(checked("S4EW                \n"), Ok(()));
        let refusal = checked("S4EX\n").unwrap_err();
        assert!(refusal.to_string().contains("answers as the drive \"S4EW\", and nvme0n1 is of \"S4EX\""));
        assert_eq!(refusal.exit_status(), 3);
    }

    #[test]
    fn a_block_node_that_leads_to_another_disk_is_refused() {
        let (folder, mut roots) = host();
        // What /dev/null has for a number is the character device of this host's namespace.
        symlink(roots.sys.join("devices/nvme/nvme0/ng0n1"), roots.sys.join("dev/char/1:3")).unwrap();
        let other = roots.sys.join("devices/nvme/nvme7/nvme7n1");
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("dev"), "259:7\n").unwrap();
        fs::create_dir_all(roots.sys.join("class/block")).unwrap();
        symlink(&other, roots.sys.join("class/block/nvme7n1")).unwrap();
        roots.dev = folder.path().join("nodes");
        fs::create_dir_all(&roots.dev).unwrap();
        fs::write(roots.dev.join("nvme7n1"), "").unwrap();
        symlink("nvme7n1", roots.dev.join("nvme0n1")).unwrap();
        let uri = crate::DriveUri::parse("/dev/ng0n1").unwrap();
        let consent = crate::Consent { erase: Some("VM7".into()), erase_signatures: true };
        let request =
            OpenRequest { uri: &uri, access: crate::Access::Write, consent: &consent, output: None };
        let refusal = open(&request, Path::new("/dev/null"), PassthruOptions::default(), &roots).unwrap_err();
        assert!(refusal.to_string().contains("leads to device 259:7, and this drive is 259:0"), "{refusal}");
        assert_eq!(refusal.exit_status(), 3);
    }
}
