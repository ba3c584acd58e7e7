//! Drives: the trait, one file for each path to a drive, and the guard that decides whether a drive may be written.

mod blkid;
mod buffers;
mod clock;
mod device;
mod drive;
pub mod guard;
mod guard_file;
mod identity;
mod ioctl;
mod listing;
mod mounts;
mod null;
mod openers;
mod probe;
mod refusal;
pub mod signatures;
mod sim;
mod size;
mod sync;
pub mod sysfs;
mod target;
mod uri;
mod uring;
mod usage;

pub use buffers::WriteData;
pub use clock::Clock;
pub use device::{Device, DeviceKind};
pub use drive::{Drive, QueueOptions, SubmitError, Wait};
pub use listing::{list_drives, list_with_roots, DriveListing};
pub use null::NullDrive;
pub use refusal::{Reason, Refusal};
pub use sim::SimDrive;
pub use sync::SyncDrive;
pub use target::{Access, Consent, Target, TargetError};
pub use uri::{DriveKind, DriveUri, IoEngine, UriError};
pub use uring::UringDrive;
