//! The node of a device that sysfs named. A name in /dev is whatever somebody made of it, as in a container that was given another drive's
//! node under this one's name: what is opened by name is checked by number, before anything is looked at or claimed.

use crate::guard::refusal::{Reason, Refusal};
use crate::guard::{cannot_open, handle};
use crate::sysfs::{BlockDevice, SystemRoots};
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Why a node is not that of its device.
#[derive(Debug)]
pub(crate) enum NodeError {
    /// It cannot be opened.
    Open(PathBuf, io::Error),
    /// It is another's.
    Other(Reason),
}

impl NodeError {
    pub(crate) fn reason(self) -> Reason {
        match self {
            NodeError::Open(path, error) => {
                Reason::Unknown(format!("its node {} cannot be opened: {error}", path.display()))
            }
            NodeError::Other(reason) => reason,
        }
    }

    pub(crate) fn refusal(self, given: &str) -> Refusal {
        match self {
            NodeError::Open(path, error) => cannot_open(&path, &error),
            NodeError::Other(reason) => Refusal::because(given, reason),
        }
    }
}

/// A handle of the node of a block device, that can neither read nor write.
///
/// # Errors
/// When there is no node of its name, or it has another number.
pub(crate) fn open_node(device: &BlockDevice, roots: &SystemRoots) -> Result<File, NodeError> {
    let path = roots.dev.join(device.name.replace('!', "/"));
    let node = handle(&path).map_err(|error| NodeError::Open(path, error))?;
    match roots.number_of_handle(&node) {
        Some(number) if number == device.number => Ok(node),
        found => Err(NodeError::Other(Reason::OtherNode {
            node: device.node().display().to_string(),
            found,
            number: device.number,
        })),
    }
}
