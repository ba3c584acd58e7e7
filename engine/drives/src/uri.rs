//! The URI that names a drive: what kind it is, where, and with which options. Text only: nothing is opened here.

use crate::size::{parse_size_bytes, SizeError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use testdrive_userspace::pci::Bdf;

/// The capacity of `null:` where none is given: beyond that of any drive that traces come from.
pub const NULL_SIZE_BYTES: u64 = 1 << 40;

/// How I/O reaches a block device or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEngine {
    /// io_uring.
    IoUring,
    /// Threads that pread and pwrite.
    Sync,
}

/// What kind of drive, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveKind {
    /// A block device.
    Block {
        /// Its node under /dev.
        path: PathBuf,
    },
    /// An NVMe namespace, by the kernel's driver and past its block layer.
    Passthru {
        /// Its character device.
        path: PathBuf,
        /// How many trims that are handed over together may share a command.
        trim_ranges: u32,
        /// Whether completions are polled for; `None` leaves that to the kernel's version.
        polled: Option<bool>,
    },
    /// An NVMe controller, by our own driver.
    Pci(PciUri),
    /// A regular file that stands in for a drive.
    File {
        /// Its path.
        path: PathBuf,
        /// The size to make it, if it is not there.
        size_bytes: Option<u64>,
    },
    /// A modelled drive.
    Sim {
        /// The model's name.
        name: String,
        /// What differs from the model's own parameters; the model checks keys and values.
        settings: BTreeMap<String, String>,
        /// The file of the state that it goes on from.
        state: Option<PathBuf>,
    },
    /// Completes at once.
    Null {
        /// The capacity that it claims.
        size_bytes: u64,
    },
}

/// An NVMe controller, and how it is to be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciUri {
    /// Its address.
    pub bdf: Bdf,
    /// The namespace; may be left out where there is one.
    pub namespace: Option<u32>,
    /// Whether queues interrupt, so that their threads may sleep.
    pub interrupts: bool,
    /// Whether to do without an IOMMU.
    pub without_iommu: bool,
    /// How many trims that are handed over together may share a command; 1 gives each its own.
    pub trim_ranges: u32,
}

/// A drive's URI, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveUri {
    /// As given.
    pub given: String,
    /// What and where.
    pub kind: DriveKind,
    /// Which engine was asked for; `None` leaves the choice to whoever opens the drive.
    pub engine: Option<IoEngine>,
}

/// Why a text is not a drive's URI. All of these are mistakes of usage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// A path that is neither under /dev nor marked as a file.
    #[error("'{0}' is not under /dev: for a file write file:{0}, for a drive give its node under /dev ('testdrive drives' lists them)")]
    BarePath(String),
    /// No known kind.
    #[error("'{0}' names no drive: give /dev/NAME, pci:ADDRESS, file:PATH?size=4GiB, sim:NAME or null: ('testdrive drives' lists the drives of this host)")]
    Unknown(String),
    /// An option that this kind does not have.
    #[error("'{given}' has the option '{key}', which is not one of its own: use {allowed}")]
    UnknownOption {
        /// As given.
        given: String,
        /// The option.
        key: String,
        /// The options that there are.
        allowed: &'static str,
    },
    /// An option that is not `key=value`, or is there twice, or has a strange value.
    #[error("'{given}': {reason}")]
    BadOption {
        /// As given.
        given: String,
        /// What is wrong and what to write.
        reason: String,
    },
}

impl DriveUri {
    /// Takes a URI apart. The options stand behind the last `?`, so a path that holds one is written with another at its end.
    ///
    /// # Errors
    /// When the text names no drive, names one that this version does not drive, or has an option that makes no sense.
    pub fn parse(given: &str) -> Result<DriveUri, UriError> {
        let (place, query) = given.rsplit_once('?').unwrap_or((given, ""));
        let mut options = Options::parse(given, query)?;
        let mut engine = None;
        let kind = if place.starts_with('/') {
            if !place.starts_with("/dev/") || place.len() == "/dev/".len() {
                return Err(UriError::BarePath(place.into()));
            }
            if is_namespace(place) {
                let (trim_ranges, polled) = (options.trim_ranges()?, options.yes_or_no("polled")?);
                options.finish("trim_ranges=256 or polled=yes")?;
                DriveKind::Passthru { path: place.into(), trim_ranges, polled }
            } else {
                engine = options.engine()?;
                options.finish("engine=sync or engine=io_uring")?;
                DriveKind::Block { path: place.into() }
            }
        } else if let Some(path) = place.strip_prefix("file:").filter(|path| !path.is_empty()) {
            let size_bytes = options.size_bytes()?;
            engine = options.engine()?;
            options.finish("size=4GiB, engine=sync or engine=io_uring")?;
            DriveKind::File { path: path.into(), size_bytes }
        } else if let Some(address) = place.strip_prefix("pci:") {
            let bdf = Bdf::parse(address).ok_or_else(|| {
                options.bad(format!(
                    "'{address}' is no PCI address, such as 0000:01:00.0 ('lspci -D' lists them)"
                ))
            })?;
            let uri = PciUri {
                bdf,
                namespace: options.namespace()?,
                interrupts: options.yes_or_no("interrupts")?.unwrap_or(false),
                without_iommu: options.yes_or_no("noiommu")?.unwrap_or(false),
                trim_ranges: options.trim_ranges()?,
            };
            options.finish("namespace=1, interrupts=yes, trim_ranges=256 or noiommu=yes")?;
            DriveKind::Pci(uri)
        } else if let Some(name) = place.strip_prefix("sim:").filter(|name| !name.is_empty()) {
            let state = options.pairs.remove("state").map(PathBuf::from);
            DriveKind::Sim { name: name.into(), settings: options.pairs, state }
        } else if place == "null:" {
            let size_bytes = options.size_bytes()?.unwrap_or(NULL_SIZE_BYTES);
            options.finish("size=1TiB")?;
            DriveKind::Null { size_bytes }
        } else if !place.contains(':') && (place.contains('/') || place.contains('.')) {
            return Err(UriError::BarePath(place.into()));
        } else {
            return Err(UriError::Unknown(given.into()));
        };
        Ok(DriveUri { given: given.into(), kind, engine })
    }
}

/// Whether a path is an NVMe namespace's character device, by the name that the kernel gives it.
fn is_namespace(place: &str) -> bool {
    let parts: Vec<&str> = place.strip_prefix("/dev/ng").unwrap_or_default().split('n').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 2 && parts.iter().all(is_number)
}

/// The options behind the question mark, taken out one by one; what is left is unknown.
struct Options {
    given: String,
    pairs: BTreeMap<String, String>,
}

impl Options {
    fn parse(given: &str, query: &str) -> Result<Options, UriError> {
        let bad = |reason| UriError::BadOption { given: given.into(), reason };
        let mut pairs = BTreeMap::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option
                .split_once('=')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
                .ok_or_else(|| bad(format!("the option '{option}' is not of the form key=value")))?;
            if pairs.insert(key.to_string(), value.to_string()).is_some() {
                return Err(bad(format!("the option '{key}' is there twice: keep one")));
            }
        }
        Ok(Options { given: given.into(), pairs })
    }

    fn bad(&self, reason: String) -> UriError {
        UriError::BadOption { given: self.given.clone(), reason }
    }

    fn engine(&mut self) -> Result<Option<IoEngine>, UriError> {
        match self.pairs.remove("engine").as_deref() {
            None => Ok(None),
            Some("io_uring") => Ok(Some(IoEngine::IoUring)),
            Some("sync") => Ok(Some(IoEngine::Sync)),
            Some(other) => Err(self.bad(format!("engine '{other}' is not one: use sync or io_uring"))),
        }
    }

    fn trim_ranges(&mut self) -> Result<u32, UriError> {
        let Some(text) = self.pairs.remove("trim_ranges") else { return Ok(1) };
        match text.parse() {
            Ok(ranges) if (1..=256).contains(&ranges) => Ok(ranges),
            _ => Err(self.bad(format!(
                "trim_ranges={text} is no number from 1 to 256, the most that a command takes"
            ))),
        }
    }

    fn namespace(&mut self) -> Result<Option<u32>, UriError> {
        let Some(text) = self.pairs.remove("namespace") else { return Ok(None) };
        match text.parse() {
            Ok(id) if id > 0 && id < u32::MAX => Ok(Some(id)),
            _ => Err(self.bad(format!("namespace={text} is no namespace's number: they count from 1"))),
        }
    }

    fn yes_or_no(&mut self, key: &str) -> Result<Option<bool>, UriError> {
        match self.pairs.remove(key).as_deref() {
            None => Ok(None),
            Some("no") => Ok(Some(false)),
            Some("yes") => Ok(Some(true)),
            Some(other) => Err(self.bad(format!("{key}={other} is neither yes nor no"))),
        }
    }

    fn size_bytes(&mut self) -> Result<Option<u64>, UriError> {
        let Some(text) = self.pairs.remove("size") else { return Ok(None) };
        let size_bytes = parse_size_bytes(&text).map_err(|error: SizeError| self.bad(error.to_string()))?;
        if size_bytes % 512 != 0 {
            let below = size_bytes / 512 * 512;
            let reason = format!(
                "size={text} is {size_bytes} bytes, not a multiple of 512, the smallest block: the nearest below is size={below}"
            );
            return Err(self.bad(reason));
        }
        Ok(Some(size_bytes))
    }

    fn finish(self, allowed: &'static str) -> Result<(), UriError> {
        match self.pairs.into_keys().next() {
            None => Ok(()),
            Some(key) => Err(UriError::UnknownOption { given: self.given, key, allowed }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> DriveKind {
        DriveUri::parse(text).unwrap().kind
    }

    fn message(text: &str) -> String {
        DriveUri::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_the_design_is_understood() {
        assert_eq!(kind("/dev/nvme0n1"), DriveKind::Block { path: "/dev/nvme0n1".into() });
        let file = DriveKind::File { path: "a b/x.img".into(), size_bytes: Some(4 << 30) };
        assert_eq!(kind("file:a b/x.img?size=4GiB&engine=sync"), file);
        assert_eq!(kind("file:x"), DriveKind::File { path: "x".into(), size_bytes: None });
        let settings = BTreeMap::from([("capacity".to_string(), "16GiB".to_string())]);
        assert_eq!(
            kind("sim:trim-storm?capacity=16GiB"),
            DriveKind::Sim { name: "trim-storm".into(), settings: settings.clone(), state: None }
        );
        assert_eq!(
            kind("sim:trim-storm?state=a b/x.state&capacity=16GiB"),
            DriveKind::Sim { name: "trim-storm".into(), settings, state: Some("a b/x.state".into()) }
        );
        assert_eq!(kind("null:"), DriveKind::Null { size_bytes: 1 << 40 });
        assert_eq!(kind("null:?size=2TB"), DriveKind::Null { size_bytes: 2_000_000_000_000 });
    }

    #[test]
    fn the_engine_is_what_was_asked_for_or_left_open() {
        let engine = |text| DriveUri::parse(text).unwrap().engine;
        assert_eq!(engine("/dev/sda"), None);
        assert_eq!(engine("/dev/sda?engine=sync"), Some(IoEngine::Sync));
        assert_eq!(engine("file:x?engine=io_uring"), Some(IoEngine::IoUring));
        assert!(message("/dev/sda?engine=aio").contains("use sync or io_uring"));
    }

    #[test]
    fn a_path_with_a_question_mark_is_written_with_another_behind_it() {
        assert_eq!(kind("file:what?.img?"), DriveKind::File { path: "what?.img".into(), size_bytes: None });
    }

    #[test]
    fn a_bare_path_is_told_how_to_be_a_file() {
        assert!(message("/srv/x.img").contains("write file:/srv/x.img"));
        assert!(message("x.img").contains("write file:x.img"));
        assert!(message("./x?size=1GiB").contains("write file:./x"));
        assert!(message("/dev/").contains("not under /dev"));
    }

    #[test]
    fn a_namespace_is_told_by_its_name_and_may_share_commands_among_trims() {
        let passthru =
            |trim_ranges, polled| DriveKind::Passthru { path: "/dev/ng0n1".into(), trim_ranges, polled };
        assert_eq!(kind("/dev/ng0n1"), passthru(1, None));
        assert_eq!(kind("/dev/ng0n1?trim_ranges=256&polled=no"), passthru(256, Some(false)));
        assert_eq!(kind("/dev/ng0n1?polled=yes"), passthru(1, Some(true)));
        assert!(message("/dev/ng0n1?polled=maybe").contains("neither yes nor no"));
        assert!(message("/dev/ng0n1?trim_ranges=0").contains("trim_ranges=0"));
        assert!(message("/dev/ng0n1?trim_ranges=257").contains("from 1 to 256"));
        assert!(message("/dev/ng0n1?engine=sync").contains("the option 'engine'"));
        // Only NVMe's own names are meant.
        assert_eq!(kind("/dev/ngate"), DriveKind::Block { path: "/dev/ngate".into() });
    }

    #[test]
    fn a_controller_is_named_by_its_address() {
        let bdf = Bdf::parse("0000:01:00.0").unwrap();
        let plain = PciUri { bdf, namespace: None, interrupts: false, without_iommu: false, trim_ranges: 1 };
        assert_eq!(kind("pci:0000:01:00.0"), DriveKind::Pci(plain));
        assert_eq!(kind("pci:01:00.0?interrupts=no"), DriveKind::Pci(plain));
        let all =
            PciUri { namespace: Some(2), interrupts: true, without_iommu: true, trim_ranges: 256, ..plain };
        assert_eq!(
            kind("pci:0000:01:00.0?namespace=2&interrupts=yes&noiommu=yes&trim_ranges=256"),
            DriveKind::Pci(all)
        );
        assert!(message("pci:nvme0").contains("'nvme0' is no PCI address"));
        assert!(message("pci:01:00.0?namespace=0").contains("count from 1"));
        assert!(message("pci:01:00.0?trim_ranges=0").contains("from 1 to 256"));
        assert!(message("pci:01:00.0?noiommu=1").contains("neither yes nor no"));
        assert!(message("pci:01:00.0?engine=sync").contains("the option 'engine'"));
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        assert!(message("floppy").contains("names no drive"));
        assert!(message("file:").contains("names no drive"));
        assert!(message("sim:?capacity=1GiB").contains("names no drive"));
        assert!(message("null:x").contains("names no drive"));
        assert!(message("").contains("names no drive"));
        assert!(message("/dev/sda?size=1GiB").contains("the option 'size'"));
        assert!(message("file:x?size=4G").contains("4GiB (binary)"));
        assert!(message("file:x?size=1000").contains("size=512"));
        assert!(message("file:x?size").contains("key=value"));
        assert!(message("file:x?size=1GiB&size=2GiB").contains("twice"));
    }
}
