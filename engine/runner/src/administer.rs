//! Phases that are one command to the drive: a format, a sanitize. No I/O is issued, and nothing is in flight.

use crate::error::RunError;
use crate::event::{Event, PhaseName, Progress};
use crate::job::PhaseJob;
use crate::job_prepare::{PrepareJob, PrepareMethod, PurgeHow};
use crate::phase::PhaseContext;
use crate::phase_outcome::PhaseOutcome;
use crate::warnings;
use crate::watch::interruption;
use serde_json::{json, Map, Value};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use testdrive_drives::{Access, EraseError, NvmeTarget, Target};
use testdrive_nvme::{SanitizeStatus, SecureErase};
use testdrive_recording::{DriveIdentity, Status};

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

/// Has the drive do it, and waits for the end of it.
///
/// A format is waited for whatever signal comes, since nobody knows what would be left of a drive that is reset in the midst of one. A
/// sanitize goes on in the drive by itself: a signal ends the run.
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
    let mut findings = carry_out(what, device, &mut Following { context, start_ns, tell })?;
    if let PhaseJob::Prepare(PrepareJob { method: PrepareMethod::Purge, how, .. }) = job {
        findings.insert("purge".into(), json!(how));
    }
    let end_ns = context.clock.now_ns();
    Ok(PhaseOutcome { start_ns, end_ns, findings, ..PhaseOutcome::default() })
}

fn carry_out(
    what: Administration,
    device: &mut dyn NvmeTarget,
    following: &mut Following<'_, '_>,
) -> Result<Map<String, Value>, RunError> {
    let (key, finding) = match what {
        Administration::Format(block_bytes, erase) => {
            let format = format(device, block_bytes, erase, following)?;
            device.look_again().map_err(run_error)?;
            ("format", format)
        }
        Administration::Sanitize => ("sanitize", sanitize(device, following)?),
    };
    Ok(Map::from_iter([(key.to_string(), finding)]))
}

/// Who is told how far the drive is, and where signals come from.
struct Following<'a, 'c> {
    context: &'a PhaseContext<'c>,
    start_ns: i64,
    tell: &'a mut dyn FnMut(Event),
}

impl Following<'_, '_> {
    fn progress(&mut self, done_share: Option<f64>) {
        let elapsed_ns = self.context.clock.now_ns() - self.start_ns;
        let phase = self.context.index;
        (self.tell)(Event::Progress(Progress { phase, elapsed_ns, done_share, ..Progress::default() }));
    }

    /// Whether a signal has come or the run is to stop otherwise. The first time, the run is told so, with what becomes of the drive.
    fn stops(&self, consequence: &str) -> bool {
        let signal = self.context.signal.load(Ordering::Relaxed);
        let stop = &self.context.shared.stop;
        if signal != 0 && !stop.requested() {
            stop.request(Status::Interrupted, format!("{}: {consequence}", interruption(signal)));
        }
        stop.requested()
    }
}

/// The command returns when it is done, so that it waits on a thread of its own.
fn format(
    device: &dyn NvmeTarget,
    block_bytes: Option<u64>,
    erase: SecureErase,
    following: &mut Following<'_, '_>,
) -> Result<Value, RunError> {
    let format = thread::scope(|scope| {
        let formatting = scope.spawn(|| device.format(block_bytes, erase));
        // A drive that gives no answer while it is busy is not asked again.
        let (mut tells, mut warned) = (true, false);
        while !formatting.is_finished() {
            thread::sleep(LOOK_INTERVAL);
            let share = if tells { device.format_done_share() } else { Ok(None) };
            tells = share.is_ok();
            following.progress(share.unwrap_or(None));
            if following.stops("the format was waited for") && !warned {
                warned = true;
                (following.tell)(Event::Warning(warnings::format_goes_on(&device.identity().uri)));
            }
        }
        formatting.join().expect("the formatting thread panicked")
    });
    let format = format.map_err(run_error)?;
    Ok(json!({"logical_block_bytes": format.block_bytes, "lba_format": format.index, "secure_erase": erase}))
}

/// The command returns at once; the drive's log tells when it is done.
fn sanitize(device: &dyn NvmeTarget, following: &mut Following<'_, '_>) -> Result<Value, RunError> {
    const GOES_ON: &str = "the sanitize goes on in the drive, which refuses I/O until it is done (nvme sanitize-log shows how far it is)";
    let action = device.start_sanitize().map_err(run_error)?;
    loop {
        thread::sleep(LOOK_INTERVAL);
        let log = device.sanitize_log().map_err(run_error)?;
        match log.status {
            SanitizeStatus::Running if following.stops(GOES_ON) => {
                return Ok(json!({"action": action, "status": log.status}));
            }
            SanitizeStatus::Running => following.progress(Some(log.done_share())),
            SanitizeStatus::Done => return Ok(json!({"action": action, "status": log.status})),
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
#[path = "administer_tests.rs"]
mod tests;
