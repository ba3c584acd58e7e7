//! A drive opened for a run, whichever path leads to it.

use crate::clock::Clock;
use crate::device::Device;
use crate::guard::refusal::Refusal;
use crate::guard::{open_for_run, GuardedTarget, OpenRequest};
use crate::made_file::MadeFile;
use crate::nvme::controller_watch::ControllerWatch;
use crate::nvme::target::NvmeTarget;
use crate::passthru::{self, PassthruDevice, PassthruOptions};
use crate::pci::target::PciTarget;
use crate::sim::SimDrive;
use crate::sim_state::check_state_path;
use crate::sysfs::SystemRoots;
use crate::uri::{DriveKind, DriveUri, IoEngine};
use crate::uring::UringDrive;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Receiver;
use testdrive_core::Opcode;
use testdrive_recording::{DriveCounters, DriveEvents, DriveIdentity, DriveSample, Warning};
use testdrive_simulator::Model;

pub use crate::guard::{Access, Consent};

/// An open drive.
pub enum Target {
    /// Completes at once.
    Null(DriveIdentity),
    /// A model in virtual time: one queue, whose state lasts over phases.
    Sim(Box<SimDrive>),
    /// An NVMe namespace, past the block layer.
    Passthru(Box<PassthruDevice>),
    /// An NVMe controller, by our own driver.
    Pci(Box<PciTarget>),
    /// A block device or file.
    Device {
        /// The drive.
        device: Device,
        /// How its queues are made.
        engine: IoEngine,
        /// What makes figures from it less valid than they look.
        warnings: Vec<Warning>,
        /// The file, where it was made just now and no run has made use of it yet.
        made: Option<MadeFile>,
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
    /// A file that is made for it goes with the target, unless [`Target::keep_file`] is called.
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
            DriveKind::Sim { name, settings, state } => {
                let wrong = |error: String| TargetError::Usage(format!("{uri}: {error}"));
                let model = model_of(name, settings).map_err(wrong)?;
                let drive = match state {
                    Some(path) => {
                        SimDrive::restored(uri, &model, path).map_err(|error| wrong(error.to_string()))?
                    }
                    None => SimDrive::new(uri, model),
                };
                Ok(Target::Sim(Box::new(drive)))
            }
            DriveKind::Block { .. } => {
                let request = OpenRequest { uri: &parsed, access, consent, output };
                Ok(device_target(open_for_run(&request)?, parsed.engine, None))
            }
            DriveKind::Passthru { path, trim_ranges, polled } => {
                let request = OpenRequest { uri: &parsed, access, consent, output };
                let options = PassthruOptions { trim_ranges: *trim_ranges, polled: *polled };
                let device = passthru::open(&request, path, options, &SystemRoots::default())?;
                Ok(Target::Passthru(Box::new(device)))
            }
            DriveKind::Pci(pci) => {
                let request = OpenRequest { uri: &parsed, access, consent, output };
                Ok(Target::Pci(Box::new(PciTarget::open(&request, pci, &SystemRoots::default())?)))
            }
            DriveKind::File { path, .. } => {
                let request = OpenRequest { uri: &parsed, access, consent, output };
                let guarded = open_for_run(&request)?;
                let made = guarded.created.then(|| MadeFile::new(path, &guarded.device.file).ok()).flatten();
                Ok(device_target(guarded, parsed.engine, made))
            }
        }
    }

    /// Keeps the file that was made for this target, if one was: the run begins.
    pub fn keep_file(&mut self) {
        if let Target::Device { made, .. } = self {
            made.take().into_iter().for_each(MadeFile::keep);
        }
    }

    /// What the drive is.
    pub fn identity(&self) -> &DriveIdentity {
        match self {
            Target::Null(identity) => identity,
            Target::Sim(drive) => crate::Drive::identity(&**drive),
            Target::Passthru(device) => &device.block.identity,
            Target::Pci(target) => &target.queues().identity,
            Target::Device { device, .. } => &device.identity,
        }
    }

    /// What the drive counted of itself so far, where it can be asked between phases.
    pub fn counters(&self) -> Option<DriveCounters> {
        match self {
            Target::Sim(drive) => crate::Drive::counters(&**drive),
            Target::Null(_) | Target::Passthru(_) | Target::Pci(_) | Target::Device { .. } => None,
        }
    }

    /// The drive as its controller's admin queue knows it, where the path leads there.
    pub fn nvme(&self) -> Option<&dyn NvmeTarget> {
        match self {
            Target::Passthru(device) => Some(&**device),
            Target::Pci(target) => Some(target.queues()),
            Target::Null(_) | Target::Sim(_) | Target::Device { .. } => None,
        }
    }

    /// The same, to take over what a format made of it.
    pub fn nvme_mut(&mut self) -> Option<&mut dyn NvmeTarget> {
        match self {
            Target::Passthru(device) => Some(&mut **device),
            Target::Pci(target) => Some(target.queues_mut()),
            Target::Null(_) | Target::Sim(_) | Target::Device { .. } => None,
        }
    }

    /// What an NVMe drive says of itself, with its health now, where the path can ask.
    pub fn account(&self) -> Option<Map<String, Value>> {
        let mut account = self.nvme()?.account();
        if let Target::Pci(target) = self {
            account.insert("by_kernel".into(), json!(target.by_kernel));
        }
        Some(account)
    }

    /// What an NVMe drive says of its health now, where the path can ask.
    pub fn health(&self) -> Option<Map<String, Value>> {
        self.nvme().map(|drive| drive.health())
    }

    /// Takes what the drive logged of its own work so far; `None` where it keeps no log.
    pub fn take_events(&mut self) -> Option<DriveEvents> {
        match self {
            Target::Sim(drive) => crate::Drive::take_events(&mut **drive),
            Target::Pci(target) => target.take_events(),
            Target::Null(_) | Target::Passthru(_) | Target::Device { .. } => None,
        }
    }

    /// A watch over what the kernel's driver does to the drive's controller meanwhile, where it is an NVMe drive that the kernel has.
    pub fn controller_watch(&self) -> Option<ControllerWatch> {
        let device = match self {
            Target::Passthru(device) => &device.block,
            Target::Device { device, .. } => device,
            Target::Null(_) | Target::Sim(_) | Target::Pci(_) => return None,
        };
        ControllerWatch::of(&device.file, &SystemRoots::default())
    }

    /// Lets the drive tell what it measures of itself while a run goes on, where it does. Somebody has to take it.
    pub fn keep_telemetry(&mut self) -> Option<Receiver<DriveSample>> {
        match self {
            Target::Sim(drive) => Some(drive.keep_telemetry()),
            Target::Null(_) | Target::Passthru(_) | Target::Pci(_) | Target::Device { .. } => None,
        }
    }

    /// Ends that: the rest is told, and nobody waits for more.
    pub fn end_telemetry(&mut self) {
        if let Target::Sim(drive) = self {
            drive.end_telemetry();
        }
    }

    /// Gives a drive that was taken from the kernel back to it, and has the kernel forget what it knew of the content of one that was
    /// written: the end of a run that can still be told. Nothing is asked of the target any more but what it logged until then.
    ///
    /// # Errors
    /// When the drive is gone, or the kernel does not take it.
    pub fn give_back(&mut self, clock: Clock) -> Result<(), TargetError> {
        match self {
            Target::Pci(target) => target.give_back(&|| clock.now_ns()),
            Target::Passthru(device) => {
                device.forget_cached(&SystemRoots::default());
                Ok(())
            }
            Target::Device { device, .. } => {
                device.forget_cached(&[], &SystemRoots::default());
                Ok(())
            }
            Target::Null(_) | Target::Sim(_) => Ok(()),
        }
    }

    /// Saves the drive's state in a file, to go on from it in another run.
    ///
    /// # Errors
    /// When the drive is none whose state can be had, or the system refuses.
    pub fn save_state(&self, path: &Path) -> Result<(), TargetError> {
        match self {
            Target::Sim(drive) => drive.save(path).map_err(|error| TargetError::Drive(error.to_string())),
            Target::Null(_) | Target::Passthru(_) | Target::Pci(_) | Target::Device { .. } => {
                Err(TargetError::Usage(self.has_no_state()))
            }
        }
    }

    /// Looks whether the drive's state could be saved in this file, before the run whose end it is to be.
    ///
    /// # Errors
    /// When it could not: a mistake of usage.
    pub fn check_state_path(&self, path: &Path) -> Result<(), TargetError> {
        match self {
            Target::Sim(_) => check_state_path(path).map_err(|error| TargetError::Usage(error.to_string())),
            Target::Null(_) | Target::Passthru(_) | Target::Pci(_) | Target::Device { .. } => {
                Err(TargetError::Usage(self.has_no_state()))
            }
        }
    }

    fn has_no_state(&self) -> String {
        format!("{} has no state that could be saved: only modelled drives (sim:) have", self.identity().uri)
    }

    /// The most queues that there can be at a time, where the path has a limit that a job may meet.
    pub fn queues_max(&self) -> Option<usize> {
        match self {
            Target::Pci(target) => Some(target.queues().pairs().into()),
            Target::Null(_) | Target::Sim(_) | Target::Passthru(_) | Target::Device { .. } => None,
        }
    }

    /// The opcodes that its path cannot issue.
    pub fn unsupported(&self) -> Vec<Opcode> {
        match self {
            Target::Null(_) | Target::Sim(_) => Vec::new(),
            Target::Passthru(device) => {
                Opcode::ALL.into_iter().filter(|opcode| !device.supports(*opcode)).collect()
            }
            Target::Pci(target) => {
                Opcode::ALL.into_iter().filter(|opcode| !target.queues().supports(*opcode)).collect()
            }
            Target::Device { device, .. } => {
                Opcode::ALL.into_iter().filter(|opcode| !device.supports(*opcode)).collect()
            }
        }
    }

    /// What makes figures from this target less valid than they look.
    pub fn warnings(&self) -> &[Warning] {
        match self {
            Target::Device { warnings, .. } => warnings,
            Target::Passthru(device) => &device.warnings,
            Target::Pci(target) => &target.warnings,
            Target::Null(_) | Target::Sim(_) => &[],
        }
    }
}

/// A built-in model by its name, or one of the user's by the path of its file, as set.
fn model_of(name: &str, settings: &BTreeMap<String, String>) -> Result<Model, String> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    let model = if is_path {
        let text = std::fs::read_to_string(name)
            .map_err(|error| format!("the model's file '{name}' cannot be read: {error}"))?;
        Model::from_toml(&text)
    } else {
        Model::builtin(name)
    };
    let mut model = model.map_err(|error| error.to_string())?;
    let settings = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    model.set_all(settings).map_err(|error| error.to_string())?;
    Ok(model)
}

/// Chooses the path to a device: io_uring unless another was asked for or the host forbids it, which is said.
fn device_target(guarded: GuardedTarget, asked: Option<IoEngine>, made: Option<MadeFile>) -> Target {
    let GuardedTarget { mut device, direct, mut warnings, .. } = guarded;
    let engine = match asked {
        Some(engine) => engine,
        None => {
            match UringDrive::is_available() {
                Ok(()) => IoEngine::IoUring,
                Err(error) => {
                    warnings.push(Warning {
                    code: "io_uring_unavailable".into(),
                    message: format!("io_uring cannot be used here ({error}), so I/O goes through blocking threads"),
                    remedy: "allow io_uring (sysctl kernel.io_uring_disabled, or the container's seccomp profile)".into(),
                });
                    IoEngine::Sync
                }
            }
        }
    };
    device.identity.path = match engine {
        IoEngine::IoUring => "io_uring".into(),
        IoEngine::Sync => "sync".into(),
    };
    device.identity.settings.insert("direct".into(), Value::Bool(direct));
    Target::Device { device, engine, warnings, made }
}

impl From<Refusal> for TargetError {
    fn from(refusal: Refusal) -> TargetError {
        let message = refusal.to_string();
        match refusal {
            Refusal::Usage(_) => TargetError::Usage(message),
            Refusal::Unsafe { .. } => TargetError::Refused(message),
            Refusal::Drive(_) => TargetError::Drive(message),
        }
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
