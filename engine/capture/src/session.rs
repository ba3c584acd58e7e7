//! A capture from beginning to end.

use crate::ending;
use crate::error::CaptureError;
use crate::prepared::Prepared;
use crate::progress::{Event, FinishedRecording, StartedDevice, Totals};
use crate::recorder::{Recorder, RowSender};
use crate::request::{existing_folder, CaptureRequest};
use crate::target::Target;
use crate::tracefs::Roots;
use crate::watch::{Seen, Setting, Watch};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use testdrive_drives::sysfs::SystemRoots;
use testdrive_recording::{Manifest, RecordingKind, Status, Warning};

/// Where things are on this host.
#[derive(Clone, Debug, Default)]
pub struct HostRoots {
    /// sysfs, procfs and nodes.
    pub system: SystemRoots,
    /// tracefs.
    pub trace: Roots,
}

/// How a capture ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of its recordings.
    pub status: Status,
    /// Why, where that is not as planned.
    pub reason: Option<String>,
}

impl Outcome {
    /// The process's exit status.
    pub fn exit_status(&self) -> u8 {
        match self.status {
            Status::Complete => 0,
            Status::Interrupted => 5,
            Status::Running | Status::Failed => 4,
        }
    }
}

/// Captures until the time is over, the recordings are large enough, or `signal` becomes the number of one.
///
/// # Errors
/// When nothing could be captured. What goes wrong once it runs ends the capture; its recordings are kept, and say so.
pub fn capture(
    request: &CaptureRequest,
    roots: &HostRoots,
    signal: &AtomicUsize,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, CaptureError> {
    let targets = request.targets(&roots.system)?;
    let outputs = request.outputs(&targets)?;
    let prepared = Prepared::new(request, &targets, roots)?;
    let feedback = feedback(&targets, &request.output, &roots.system);
    let (recorders, mut senders) =
        start_recorders(request, &targets, &outputs, prepared.buffer_bytes, &feedback)?;
    for warning in &feedback {
        tell(Event::Warning(warning.clone()));
    }
    let setting = Setting { request, targets: &targets, recorders: &recorders, signal };
    let seen = Watch::start(&setting, prepared, &mut senders).map(|mut watch| {
        tell(started(request, &targets, &outputs, watch.buffer_bytes()));
        let end = watch.run(tell);
        watch.finish(end, tell)
    });
    drop(senders);
    match seen {
        Ok(seen) => Ok(finish(request, &targets, &outputs, recorders, seen, tell)),
        Err(error) => {
            remove(recorders, &outputs, &request.output);
            Err(error)
        }
    }
}

fn started(request: &CaptureRequest, targets: &[Target], outputs: &[PathBuf], buffer_bytes: u64) -> Event {
    let devices = targets.iter().zip(outputs).map(|(target, output)| StartedDevice {
        device: target.name.clone(),
        output: output.clone(),
        drive: target.identity.clone(),
    });
    Event::Started {
        output: request.output.clone(),
        devices: devices.collect(),
        buffer_bytes_per_cpu: buffer_bytes,
        planned_ns: request.planned_ns(),
    }
}

/// Takes recordings away that hold nothing.
fn remove(recorders: Vec<Recorder>, outputs: &[PathBuf], folder: &Path) {
    for (recorder, output) in recorders.into_iter().zip(outputs) {
        drop(recorder.end());
        let _ = std::fs::remove_dir_all(output);
    }
    // With several devices this is the folder of their recordings, with one it is gone already.
    let _ = std::fs::remove_dir(folder);
}

/// Warns of each target whose events the recording itself will make.
fn feedback(targets: &[Target], output: &Path, roots: &SystemRoots) -> Vec<Warning> {
    let folder = existing_folder(output);
    let fed = targets.iter().filter(|target| target.is_beneath_path(&folder, roots));
    fed.map(|target| Warning {
        code: "feedback".into(),
        message: format!(
            "the recording is written to {}, which is captured: the writes of the capture itself are in it",
            target.name
        ),
        remedy: "write it elsewhere with -o: to another device, or to memory such as /dev/shm".into(),
    })
    .collect()
}

fn start_recorders(
    request: &CaptureRequest,
    targets: &[Target],
    outputs: &[PathBuf],
    buffer_bytes: u64,
    feedback: &[Warning],
) -> Result<(Vec<Recorder>, Vec<RowSender>), CaptureError> {
    let together: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
    let (mut recorders, mut senders) = (Vec::new(), Vec::new());
    for (target, output) in targets.iter().zip(outputs) {
        let mut manifest = Manifest::new(RecordingKind::Capture, "clock_monotonic");
        manifest.drive = Some(target.identity.clone());
        for (key, value) in ending::source(target, request.recorded, buffer_bytes, &together) {
            manifest.source.insert(key.into(), value);
        }
        manifest.phases = vec![ending::phase(0, 0)];
        let own = feedback.iter().filter(|warning| warning.message.contains(&target.name));
        manifest.warnings = own.cloned().collect();
        match Recorder::start(output, manifest) {
            Ok((recorder, sender)) => {
                recorders.push(recorder);
                senders.push(sender);
            }
            Err(error) => {
                drop(senders);
                remove(recorders, outputs, &request.output);
                return Err(error);
            }
        }
    }
    Ok((recorders, senders))
}

/// Closes the recordings, each with what is known of it.
fn finish(
    request: &CaptureRequest,
    targets: &[Target],
    outputs: &[PathBuf],
    recorders: Vec<Recorder>,
    seen: Seen,
    tell: &mut dyn FnMut(Event),
) -> Outcome {
    let mut outcome = seen.outcome;
    let (mut counts, mut recordings, mut told) = (Totals::default(), Vec::new(), Vec::new());
    for (((target, output), recorder), decoded) in
        targets.iter().zip(outputs).zip(recorders).zip(&seen.decoded)
    {
        let mut recorded = recorder.end();
        let manifest = recorded.writer.manifest_mut();
        let before = manifest.warnings.len();
        ending::describe(manifest, target, decoded, &seen.facts);
        told.extend(manifest.warnings[before..].iter().cloned());
        let (status, reason) = match &recorded.error {
            Some(error) => (Status::Failed, Some(error.to_string())),
            None => (outcome.status, outcome.reason.clone()),
        };
        match recorded.writer.finish(status, reason) {
            Ok(manifest) => {
                counts.add(&manifest.counts);
                if manifest.status == Status::Failed {
                    outcome = Outcome { status: Status::Failed, reason: manifest.status_reason };
                }
                recordings.push(FinishedRecording {
                    device: target.name.clone(),
                    output: output.clone(),
                    status: manifest.status,
                    counts: manifest.counts,
                    dropped: manifest.dropped,
                });
            }
            Err(error) => outcome = Outcome { status: Status::Failed, reason: Some(error.to_string()) },
        }
    }
    tell_once(told, tell);
    tell(Event::Finished {
        status: outcome.status,
        reason: outcome.reason.clone(),
        output: request.output.clone(),
        counts,
        events_lost: seen.facts.events_lost,
        recordings,
    });
    outcome
}

/// What concerns all devices stands in every recording, and is told once.
fn tell_once(mut warnings: Vec<Warning>, tell: &mut dyn FnMut(Event)) {
    while !warnings.is_empty() {
        let warning = warnings.remove(0);
        warnings.retain(|other| *other != warning);
        tell(Event::Warning(warning));
    }
}
