//! NVMe passthrough, `/dev/ngXnY`: commands of the drive's own command set through the kernel's NVMe driver, below the block layer.
//!
//! The character device has no claim, no mounts and no signatures, but the block device of the same namespace has them: the guard looks
//! at that, and its claim is held as long as any queue.

mod device;
mod drive;
mod ioctl;
mod limits;
mod open;
mod parts;
mod registered;

/// A ring whose entries carry NVMe commands, and whose completions have room for their answers.
type WideRing = io_uring::IoUring<io_uring::squeue::Entry128, io_uring::cqueue::Entry32>;
/// The same, and what is on it.
type WideLane = crate::lane::Lane<io_uring::squeue::Entry128, io_uring::cqueue::Entry32>;

pub use device::{PassthruDevice, PassthruOptions};
pub use drive::PassthruDrive;
pub use ioctl::CharacterAdmin;
pub(crate) use open::{open, refuse_zoned};
