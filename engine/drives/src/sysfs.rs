//! Block devices as the kernel shows them: one directory of sysfs each.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where the kernel's file systems are. Other places than the usual serve tests, on trees laid out by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemRoots {
    /// sysfs.
    pub sys: PathBuf,
    /// procfs.
    pub proc: PathBuf,
    /// Device nodes.
    pub dev: PathBuf,
}

impl Default for SystemRoots {
    fn default() -> Self {
        SystemRoots { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

/// A block device's number, which, unlike its name, cannot be made to mean another by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver's.
    pub major: u32,
    /// The device's.
    pub minor: u32,
}

impl DeviceNumber {
    /// From `st_dev` or `st_rdev`.
    pub fn from_raw(raw: u64) -> DeviceNumber {
        DeviceNumber { major: libc::major(raw), minor: libc::minor(raw) }
    }

    /// From `8:1`.
    pub fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// One block device: a whole disk or a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The kernel's name, such as `nvme0n1` or `sda1`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    directory: PathBuf,
}

impl SystemRoots {
    /// The block device of a number.
    ///
    /// # Errors
    /// When sysfs does not have it, or does not say what a guard must know.
    pub fn block_device(&self, number: DeviceNumber) -> io::Result<BlockDevice> {
        BlockDevice::at(&self.sys.join("dev/block").join(number.to_string()))
    }

    /// Every whole disk, sorted by name.
    ///
    /// # Errors
    /// When sysfs cannot be listed.
    pub fn whole_disks(&self) -> io::Result<Vec<BlockDevice>> {
        let mut disks = Vec::new();
        for entry in fs::read_dir(self.sys.join("block"))? {
            // A disk that is unplugged meanwhile is no error of the listing.
            disks.extend(BlockDevice::at(&entry?.path()).ok());
        }
        disks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(disks)
    }

    /// The number of the block device that a path leads to, or `None` where it leads to none. Links are followed.
    pub fn number_of_path(&self, path: &Path) -> Option<DeviceNumber> {
        let path = self.dev_path(path);
        self.number_of_node(&fs::metadata(&path).ok()?, &path)
    }

    /// The number of the block device that an open handle names, or `None` where that is none.
    pub(crate) fn number_of_handle(&self, handle: &File) -> Option<DeviceNumber> {
        let path = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        self.number_of_node(&handle.metadata().ok()?, &path)
    }

    fn number_of_node(&self, metadata: &fs::Metadata, path: &Path) -> Option<DeviceNumber> {
        if metadata.file_type().is_block_device() {
            return Some(DeviceNumber::from_raw(metadata.rdev()));
        }
        // A tree laid out for a test has ordinary files as nodes: their names are looked up in its sysfs.
        if self.dev == Path::new("/dev") || !path.starts_with(&self.dev) {
            return None;
        }
        let canonical = fs::canonicalize(path).ok()?;
        let name = canonical.file_name()?.to_str()?.to_string();
        Some(BlockDevice::at(&self.sys.join("class/block").join(name)).ok()?.number)
    }

    /// A path under /dev, in the tree that these roots name.
    pub(crate) fn dev_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix("/dev").map_or_else(|_| path.to_path_buf(), |below| self.dev.join(below))
    }
}

impl BlockDevice {
    fn at(link: &Path) -> io::Result<BlockDevice> {
        let directory = fs::canonicalize(link)?;
        let number = DeviceNumber::parse(&fs::read_to_string(directory.join("dev"))?).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} has no device number", directory.display()),
            )
        })?;
        let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(BlockDevice { name, number, directory })
    }

    /// The device's node. The kernel writes `!` in a name where the node has a directory.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// An attribute, trimmed; `None` where there is none.
    pub fn attribute(&self, relative: &str) -> Option<String> {
        let text = self.attribute_bytes(relative)?;
        Some(
            String::from_utf8_lossy(&text).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_string(),
        )
    }

    /// An attribute as it is.
    pub fn attribute_bytes(&self, relative: &str) -> Option<Vec<u8>> {
        fs::read(self.directory.join(relative)).ok()
    }

    /// Where a link in its directory leads.
    pub fn link(&self, relative: &str) -> Option<PathBuf> {
        fs::canonicalize(self.directory.join(relative)).ok()
    }

    /// A number of an attribute.
    pub fn attribute_number(&self, relative: &str) -> Option<u64> {
        self.attribute(relative)?.parse().ok()
    }

    /// Whether it is a partition of another device.
    pub fn is_partition(&self) -> bool {
        self.directory.join("partition").exists()
    }

    /// The whole disk: itself, unless it is a partition.
    ///
    /// # Errors
    /// When it is a partition whose disk sysfs does not have.
    pub fn whole_disk(&self) -> io::Result<BlockDevice> {
        match self.directory.parent().filter(|_| self.is_partition()) {
            Some(parent) => BlockDevice::at(parent),
            None => Ok(self.clone()),
        }
    }

    /// Its partitions, by name.
    ///
    /// # Errors
    /// When its directory cannot be listed.
    pub fn partitions(&self) -> io::Result<Vec<BlockDevice>> {
        let mut partitions = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.join("partition").exists() {
                partitions.push(BlockDevice::at(&path)?);
            }
        }
        partitions.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(partitions)
    }

    /// Names of the devices that are built on it (device mapper, md, bcache).
    ///
    /// # Errors
    /// When the kernel's list cannot be read: the device must then not be taken for free.
    pub fn holders(&self) -> io::Result<Vec<String>> {
        self.names_in("holders")
    }

    /// The devices that it is built on.
    pub fn slaves(&self) -> Vec<BlockDevice> {
        let names = self.names_in("slaves").unwrap_or_default();
        names
            .iter()
            .filter_map(|name| BlockDevice::at(&self.directory.join("slaves").join(name)).ok())
            .collect()
    }

    fn names_in(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.directory.join(folder))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Capacity. sysfs counts in units of 512 bytes whatever the drive's block.
    pub fn size_bytes(&self) -> u64 {
        self.attribute_number("size").unwrap_or(0) * 512
    }

    /// Whether it can only be read: its own switch, or its disk's.
    pub fn is_read_only(&self) -> bool {
        let own = self.attribute("ro").as_deref() == Some("1");
        own || self.is_partition()
            && self.whole_disk().is_ok_and(|whole| whole.attribute("ro").as_deref() == Some("1"))
    }

    /// The file or device that a loop device stands on; `None` where it is none, or not attached.
    pub fn loop_backing_file(&self) -> Option<PathBuf> {
        let text = self.attribute("loop/backing_file")?;
        Some(PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text)))
    }
}
