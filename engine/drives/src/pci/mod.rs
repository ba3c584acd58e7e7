//! NVMe drives that are taken from the kernel's driver: what has to be true of them before, their queues, and the way back.

pub(crate) mod away;
pub(crate) mod guard;
pub(crate) mod namespaces;
pub(crate) mod queues;
pub(crate) mod target;
mod vfio_users;
mod whole;
