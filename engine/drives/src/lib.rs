//! Drives: the trait, one file for each path to a drive, and the guard that decides whether a drive may be written.

mod beneath;
mod blkid;
mod buffers;
mod clock;
mod device;
mod drive;
mod file_kind;
pub mod guard;
mod guard_file;
mod identity;
mod ioctl;
mod listing;
mod made_file;
mod mounts;
mod null;
pub mod nvme_admin;
mod nvme_siblings;
mod openers;
mod passthru;
mod probe;
mod refusal;
mod ring;
pub mod signatures;
mod sim;
mod sim_state;
mod size;
mod state;
mod sync;
pub mod sysfs;
mod target;
mod uri;
mod uring;
mod usage;

pub use beneath::{devices_beneath, devices_beneath_path};
pub use buffers::WriteData;
pub use clock::Clock;
pub use device::{Device, DeviceKind};
pub use drive::{Drive, QueueOptions, SubmitError, Wait};
pub use identity::identify;
pub use listing::{list_drives, list_with_roots, DriveListing};
pub use made_file::MadeFile;
pub use null::NullDrive;
pub use passthru::{
    CharacterAdmin, EraseError, FeatureChoice, FeaturesSet, PassthruDevice, PassthruDrive, PassthruOptions,
};
pub use refusal::{Reason, Refusal};
pub use sim::SimDrive;
pub use sim_state::SimStateError;
pub use size::{parse_size_bytes, size_text, SizeError};
pub use sync::SyncDrive;
pub use target::{Access, Consent, Target, TargetError};
pub use uri::{DriveKind, DriveUri, IoEngine, UriError};
pub use uring::UringDrive;
