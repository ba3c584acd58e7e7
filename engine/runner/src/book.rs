//! The manifest while the run goes on: written anew when a phase begins and when it ends, so that a crash at any moment leaves one
//! that says which rows are of which phase.

use crate::event::RoundPosition;
use crate::job::{Job, Pace, PhaseJob};
use crate::phase_outcome::PhaseOutcome;
use crate::plan::{measured_counts, PhasePlan};
use crate::resume::COMPLETE;
use serde_json::{json, Map, Value};
use testdrive_core::{Histogram, OpcodeCounts};
use testdrive_recording::{
    DriveEvents, DriveIdentity, Manifest, Phase, PhaseCounters, PhaseKind, RecordingError,
};

/// What all phases came to.
#[derive(Default)]
pub struct Totals {
    /// Handed to the drive.
    pub issued: OpcodeCounts,
    /// Latencies, of a run that keeps no rows.
    pub latencies: Histogram,
    /// Times that a submitter of a timed replay found nothing decoded.
    pub starved: u64,
    /// Times that a submitter waited for the recorder.
    pub recorder_waits: u64,
}

/// What the drive told of itself about a phase.
pub struct DriveAccount {
    /// What it counted.
    pub counters: Option<PhaseCounters>,
    /// What it was busy with.
    pub events: Option<DriveEvents>,
}

/// The manifest and the totals, kept by the caller's thread.
pub struct Book<'a> {
    job: &'a Job,
    /// As it is on the disk, or will be at the next save.
    pub manifest: Manifest,
    /// Over the phases so far.
    pub totals: Totals,
}

impl<'a> Book<'a> {
    /// A book whose manifest was just written, or is not to be.
    pub fn open(job: &'a Job, manifest: Manifest) -> Book<'a> {
        Book { job, manifest, totals: Totals::default() }
    }

    fn save(&self) -> Result<(), RecordingError> {
        match self.job.record {
            true => self.manifest.write(&self.job.output),
            false => Ok(()),
        }
    }

    /// Notes what the drive is from now on, beside what its queues did so far.
    pub fn note_drive(&mut self, identity: &DriveIdentity) {
        let mut identity = identity.clone();
        if let Some(before) = self.manifest.drive.take() {
            let mut settings = before.settings;
            settings.append(&mut identity.settings);
            identity.settings = settings;
        }
        self.manifest.drive = Some(identity);
    }

    /// Notes that a phase has begun, in which round of which group where it belongs to one.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn begin(
        &mut self,
        (index, start_ns): (u16, i64),
        job: &PhaseJob,
        round: Option<&RoundPosition>,
    ) -> Result<(), RecordingError> {
        let mut settings = match serde_json::to_value(job) {
            Ok(Value::Object(settings)) => settings,
            other => unreachable!("a phase's job is a JSON object, not {other:?}"),
        };
        if let Some(RoundPosition { name, round, .. }) = round {
            settings.insert("rounds".into(), name.as_str().into());
            settings.insert("round".into(), (*round).into());
        }
        let kind = match job {
            PhaseJob::Prepare(_) => PhaseKind::Prepare,
            PhaseJob::Replay(_) => PhaseKind::Replay,
            PhaseJob::Synthetic(_) => PhaseKind::Synthetic,
        };
        self.manifest.phases.push(Phase {
            index,
            name: job.name().into(),
            kind,
            measured: job.measured(),
            start_ns,
            end_ns: start_ns,
            settings,
            accounting: Map::new(),
            drive_counters: None,
        });
        self.save()
    }

    /// Notes what came of the phase that began last. `stopped` tells that the run ended before the phase did.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn end(
        &mut self,
        plan: &PhasePlan<'_>,
        outcome: PhaseOutcome,
        account: DriveAccount,
        stopped: bool,
    ) -> Result<(), RecordingError> {
        let PhaseOutcome {
            end_ns,
            mut accounting,
            latencies,
            starved,
            recorder_waits,
            submitter_cpu_share,
            settings,
            findings,
            ..
        } = outcome;
        self.totals.issued.merge(&accounting.issued);
        self.totals.latencies.merge(&latencies);
        self.totals.recorder_waits += recorder_waits;
        let mut entry = Map::new();
        entry.insert("issued".into(), json!(accounting.issued));
        if let (PhaseJob::Replay(job), Some(recording)) = (plan.job, plan.recording) {
            if job.pace == Pace::Timed {
                self.totals.starved += starved;
            }
            let whole = job.duration_ns.is_none() && job.from_ns == 0 && job.to_ns.is_none();
            if whole && !recording.manifest.phases.is_empty() {
                // Decoding stops with the run, so what was not decoded is known from the source's own counts.
                accounting.source = measured_counts(recording).times(u64::from(job.loops.unwrap_or(1)));
            }
            let unscheduled = job.pace != Pace::Timed && job.duration_ns.is_some();
            if unscheduled && !stopped {
                // Without a schedule nothing that was decoded ahead was due when the time was over.
                accounting.source = accounting.reached();
            }
            accounting.close();
            entry = accounting.to_map();
        }
        entry.extend(findings);
        entry.insert(COMPLETE.into(), json!(!stopped));
        // A model's submitter works in the host's time, and its phase lasts in its own.
        if !self.manifest.drive.as_ref().is_some_and(|drive| drive.modelled) {
            entry.insert("submitter_cpu_share".into(), json!(submitter_cpu_share));
        }
        if let Some(drive) = &mut self.manifest.drive {
            drive.settings.extend(settings);
        }
        if let Some(phase) = self.manifest.phases.last_mut() {
            phase.end_ns = end_ns;
            phase.accounting = entry;
            phase.drive_counters = account.counters;
        }
        if let (Some(events), true) = (account.events, self.job.record) {
            let summary = self.manifest.drive_events.get_or_insert_default();
            events.append(&self.job.output, summary)?;
        }
        self.save()
    }
}
