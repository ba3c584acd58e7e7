//! What NVMe drives are asked and told by any path that has an admin queue.

pub mod admin;
pub(crate) mod background;
pub(crate) mod commands;
pub(crate) mod controller_watch;
pub(crate) mod erase;
pub(crate) mod features;
pub(crate) mod siblings;
pub(crate) mod target;
