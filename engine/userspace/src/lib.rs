//! A driver for NVMe controllers in user space: the function taken from its kernel driver through VFIO, the controller started, queues
//! in memory that it reaches by itself, and no operating system between a command and the drive.
//!
//! From the bottom: [`pci`] and [`lease`] take the function from its driver and give it back whatever happens; [`vfio`] opens it;
//! [`memory`] and [`prp`] say where data are; [`registers`], [`Controller`] and [`QueuePair`] speak NVMe; [`Queue`] is what a submitting
//! thread holds. All above [`Function`] runs as well on a controller in memory, which tests use.

mod controller;
#[cfg(any(test, feature = "double"))]
pub mod double;
mod error;
mod event;
mod function;
mod handle;
pub mod lease;
mod limits;
pub mod memory;
mod note;
pub mod pci;
mod prp;
mod queue;
pub mod registers;
pub mod vfio;
mod waiting;

pub use controller::Controller;
pub use error::ControllerError;
pub use event::{Event, EventKind};
pub use function::Function;
pub use handle::{NowNs, Queue};
pub use limits::Limits;
pub use queue::{Answer, Place, QueuePair};
