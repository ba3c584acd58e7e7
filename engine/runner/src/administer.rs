//! Phases that are one command to the drive: a format, a sanitize. No I/O is issued, and nothing is in flight.

use crate::error::RunError;
use crate::event::{Event, PhaseName, Progress};
use crate::job::PhaseJob;
use crate::job_prepare::{PrepareJob, PrepareMethod, PurgeHow};
use crate::phase::PhaseContext;
use crate::phase_outcome::PhaseOutcome;
use serde_json::{json, Map, Value};
use std::thread;
use std::time::Duration;
use testdrive_drives::{Access, EraseError, NvmeTarget, Target};
use testdrive_nvme::{SanitizeStatus, SecureErase};
use testdrive_recording::DriveIdentity;

/// How often the drive is asked how far it is.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What a phase has the drive do as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Administration {
    /// Format, with this block size or the present one.
    Format(Option<u64>, SecureErase),
    /// Sanitize.
    Sanitize,
}

impl Administration {
    /// What a phase has the drive do; `None` of a phase that issues I/Os.
    pub fn of(phase: &PhaseJob) -> Option<Administration> {
        let PhaseJob::Prepare(PrepareJob { method, how, logical_block_bytes, .. }) = phase else {
            return None;
        };
        match (method, how) {
            (PrepareMethod::Format, _) => {
                Some(Administration::Format(*logical_block_bytes, SecureErase::None))
            }
            (PrepareMethod::Purge, PurgeHow::Format) => {
                Some(Administration::Format(None, SecureErase::UserData))
            }
            (PrepareMethod::Purge, PurgeHow::Sanitize) => Some(Administration::Sanitize),
            _ => None,
        }
    }

    /// How the drive must be opened for it.
    pub fn access(self) -> Access {
        match self {
            Administration::Format(..) => Access::Format,
            Administration::Sanitize => Access::Sanitize,
        }
    }

    /// What the drive will be afterwards, so that the phases that follow can be checked before anything is erased.
    ///
    /// # Errors
    /// When the drive cannot do it, or its path cannot tell it to.
    pub fn identity_after(self, target: &Target, before: &DriveIdentity) -> Result<DriveIdentity, RunError> {
        let device = device_of(target)?;
        match self {
            Administration::Format(block_bytes, _) => {
                let wanted = block_bytes.unwrap_or(before.logical_block_bytes);
                device.identity_after_format(Some(wanted)).map_err(run_error)
            }
            Administration::Sanitize => device.sanitize_action().map(|_| before.clone()).map_err(run_error),
        }
    }
}

/// Which path erases as a whole.
fn device_of(target: &Target) -> Result<&dyn NvmeTarget, RunError> {
    target.nvme().ok_or_else(|| {
        RunError::usage(format!(
            "{} is not formatted or sanitized by this path: give the drive's NVMe character device, such as /dev/ng0n1, or its PCI address, such as pci:0000:01:00.0",
            target.identity().uri
        ))
    })
}

fn run_error(error: EraseError) -> RunError {
    match error {
        EraseError::Usage(message) => RunError::usage(message),
        EraseError::Drive(message) => RunError::drive(message),
    }
}

/// Has the drive do it, and waits for the end of it: neither can be interrupted.
///
/// # Errors
/// When the drive fails, or cannot do it.
pub fn administer(
    job: &PhaseJob,
    what: Administration,
    target: &mut Target,
    context: &PhaseContext<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<PhaseOutcome, RunError> {
    device_of(target)?;
    let device = target.nvme_mut().expect("it was looked at above");
    let start_ns = context.clock.now_ns();
    context.shared.phase_starts.tell(context.index, start_ns, 0);
    let phase = PhaseName::of(job, context.round.clone());
    tell(Event::Phase { index: context.index, phase, start_ns, planned_ios: Some(0), planned_ns: None });
    let mut progress = |done_share| {
        let elapsed_ns = context.clock.now_ns() - start_ns;
        tell(Event::Progress(Progress {
            phase: context.index,
            elapsed_ns,
            done_share,
            ..Progress::default()
        }));
    };
    let mut findings = Map::new();
    match what {
        Administration::Format(block_bytes, erase) => {
            let format = format(device, block_bytes, erase, &mut progress)?;
            device.look_again().map_err(run_error)?;
            findings.insert("format".into(), format);
        }
        Administration::Sanitize => {
            findings.insert("sanitize".into(), sanitize(device, &mut progress)?);
        }
    }
    if let PhaseJob::Prepare(PrepareJob { method: PrepareMethod::Purge, how, .. }) = job {
        findings.insert("purge".into(), json!(how));
    }
    let end_ns = context.clock.now_ns();
    Ok(PhaseOutcome { start_ns, end_ns, findings, ..PhaseOutcome::default() })
}

/// The command returns when it is done, so that it waits on a thread of its own.
fn format(
    device: &dyn NvmeTarget,
    block_bytes: Option<u64>,
    erase: SecureErase,
    progress: &mut dyn FnMut(Option<f64>),
) -> Result<Value, RunError> {
    let format = thread::scope(|scope| {
        let formatting = scope.spawn(|| device.format(block_bytes, erase));
        while !formatting.is_finished() {
            thread::sleep(LOOK_INTERVAL);
            progress(None);
        }
        formatting.join().expect("the formatting thread panicked")
    });
    let format = format.map_err(run_error)?;
    Ok(json!({"logical_block_bytes": format.block_bytes, "lba_format": format.index, "secure_erase": erase}))
}

/// The command returns at once; the drive's log tells when it is done.
fn sanitize(device: &dyn NvmeTarget, progress: &mut dyn FnMut(Option<f64>)) -> Result<Value, RunError> {
    let action = device.start_sanitize().map_err(run_error)?;
    loop {
        thread::sleep(LOOK_INTERVAL);
        let log = device.sanitize_log().map_err(run_error)?;
        match log.status {
            SanitizeStatus::Running => progress(Some(log.done_share())),
            SanitizeStatus::Done => return Ok(json!({"action": action})),
            SanitizeStatus::Never | SanitizeStatus::Failed | SanitizeStatus::Unknown(_) => {
                let uri = &device.identity().uri;
                let message = format!(
                    "the sanitize of {uri} failed ({:?}): the drive refuses I/O until its failure is cleared (nvme sanitize -a exit-failure)",
                    log.status
                );
                return Err(RunError::drive(message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(phase: Value) -> Option<Administration> {
        Administration::of(&serde_json::from_value(phase).unwrap())
    }

    #[test]
    fn only_formats_and_sanitizes_are_of_the_drive_as_a_whole() {
        let purge = |how| of(json!({"kind": "prepare", "method": "purge", "how": how}));
        assert_eq!(of(json!({"kind": "prepare", "method": "purge"})), None);
        assert_eq!(purge("trim"), None);
        assert_eq!(purge("format"), Some(Administration::Format(None, SecureErase::UserData)));
        assert_eq!(purge("sanitize"), Some(Administration::Sanitize));
        let format = of(json!({"kind": "prepare", "method": "format", "logical_block_bytes": 4096}));
        assert_eq!(format, Some(Administration::Format(Some(4096), SecureErase::None)));
        assert_eq!(format.unwrap().access(), Access::Format);
        assert_eq!(of(json!({"kind": "prepare", "method": "sequential"})), None);
    }

    #[test]
    fn a_path_that_cannot_is_told_which_can() {
        let target =
            Target::open("null:", Access::Write, &testdrive_drives::Consent::default(), None).unwrap();
        let identity = target.identity().clone();
        let error = Administration::Sanitize.identity_after(&target, &identity).unwrap_err();
        assert!(error.to_string().contains("/dev/ng0n1"), "{error}");
    }
}
