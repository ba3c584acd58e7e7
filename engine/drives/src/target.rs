//! A drive opened for a run, whichever path leads to it.

use crate::device::Device;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    Write,
}
#[derive(Clone, Debug, Default)]
pub struct Consent {
    pub erase: Option<String>,
    pub erase_signatures: bool,
}
use crate::sim::SimDrive;
use crate::uri::{DriveKind, DriveUri, IoEngine};
use std::path::Path;
use testdrive_core::Opcode;
use testdrive_recording::{DriveIdentity, Warning};
use testdrive_simulator::Model;

/// An open drive.
pub enum Target {
    /// Completes at once.
    Null(DriveIdentity),
    /// A model in virtual time: one queue, whose state lasts over phases.
    Sim(Box<SimDrive>),
    /// A block device or file.
    Device {
        /// The drive.
        device: Device,
        /// How its queues are made.
        engine: IoEngine,
    },
}

/// Why a drive could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URI, the model or the options make no sense.
    #[error("{0}")]
    Usage(String),
    /// The drive must not be written, or must not be used now.
    #[error("{0}")]
    Refused(String),
    /// The system would not open it.
    #[error("{0}")]
    Drive(String),
}

impl Target {
    /// Opens a drive; the guard decides whether it may be written. `output` is where the recording will be: never on this drive.
    ///
    /// # Errors
    /// When the URI is wrong, the guard refuses, or the system does.
    pub fn open(
        uri: &str,
        access: Access,
        consent: &Consent,
        output: Option<&Path>,
    ) -> Result<Target, TargetError> {
        let parsed = DriveUri::parse(uri).map_err(|error| TargetError::Usage(error.to_string()))?;
        match &parsed.kind {
            DriveKind::Null { size_bytes } => Ok(Target::Null(null_identity(uri, *size_bytes))),
            DriveKind::Sim { name, settings } => {
                let model = Model::builtin(name).and_then(|mut model| {
                    model.set_all(settings.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
                    Ok(model)
                });
                let model = model.map_err(|error| TargetError::Usage(format!("{uri}: {error}")))?;
                Ok(Target::Sim(Box::new(SimDrive::new(uri, model))))
            }
            DriveKind::Block { .. } | DriveKind::File { .. } => {
                let _ = (access, consent, output);
                Err(TargetError::Usage("pending".into()))
            }
        }
    }

    /// What the drive is.
    pub fn identity(&self) -> &DriveIdentity {
        match self {
            Target::Null(identity) => identity,
            Target::Sim(drive) => crate::Drive::identity(&**drive),
            Target::Device { device, .. } => &device.identity,
        }
    }

    /// The opcodes that its path cannot issue.
    pub fn unsupported(&self) -> Vec<Opcode> {
        match self {
            Target::Null(_) | Target::Sim(_) => Vec::new(),
            Target::Device { device, .. } => {
                Opcode::ALL.into_iter().filter(|opcode| !device.supports(*opcode)).collect()
            }
        }
    }

    /// What makes figures from this target less valid than they look.
    pub fn warnings(&self) -> Vec<Warning> {
        let Target::Device { device, .. } = self else { return Vec::new() };
        let _ = device;
        Vec::new()
    }
}

fn null_identity(uri: &str, size_bytes: u64) -> DriveIdentity {
    DriveIdentity {
        uri: uri.into(),
        path: "null".into(),
        model: "null drive".into(),
        capacity_bytes: size_bytes,
        logical_block_bytes: 512,
        physical_block_bytes: 512,
        ..DriveIdentity::default()
    }
}
