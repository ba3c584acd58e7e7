//! One phase: what it needs of the run, and the way that its kind is carried out.

use crate::administer::{administer, Administration};
use crate::error::RunError;
use crate::event::{Event, RoundPosition};
use crate::feed_queue::queues;
use crate::feeder::Feeder;
use crate::generate::generate;
use crate::job::{OnError, PhaseJob};
use crate::orders::Shared;
use crate::phase_outcome::PhaseOutcome;
use crate::plan::{lba_map, PhasePlan};
use crate::recorder::Live;
use crate::submitters::{run_submitters, Feed, Feeding, RowProducers};
use crate::workload::Workload;
use std::sync::atomic::AtomicUsize;
use std::sync::Mutex;
use testdrive_drives::{Clock, ControllerWatch, Target};

/// What a phase needs of the run around it.
pub struct PhaseContext<'a> {
    /// The phase's index.
    pub index: u16,
    /// The round that it belongs to, of a phase of a group.
    pub round: Option<RoundPosition>,
    /// The run's clock, for real drives.
    pub clock: Clock,
    /// What all threads share.
    pub shared: &'a Shared,
    /// What the kernel does to the drive's controller, where that is looked at.
    pub controller: Option<&'a ControllerWatch>,
    /// Figures for the progress.
    pub live: &'a Mutex<Live>,
    /// The number of a signal that arrived, or 0.
    pub signal: &'a AtomicUsize,
    /// How long an I/O may take.
    pub io_timeout_ns: i64,
    /// What an error does.
    pub on_error: OnError,
}

/// Runs a phase to its end, or to the run's.
///
/// # Errors
/// When the drive's queue cannot be set up or the source cannot be read; what the drive does is recorded instead.
pub fn run_phase(
    plan: &PhasePlan<'_>,
    target: &mut Target,
    producers: &mut RowProducers,
    context: &PhaseContext<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<PhaseOutcome, RunError> {
    // A format may have left less than was expected when the job was looked at.
    Workload::all_of(plan.job, target.identity()).map_err(|error| error.in_phase(plan.job.name()))?;
    if let Some(what) = Administration::of(plan.job) {
        return administer(plan.job, what, target, context, tell);
    }
    match (plan.job, plan.recording) {
        (PhaseJob::Prepare(_) | PhaseJob::Synthetic(_), _) => {
            generate(plan, target, producers, context, tell)
        }
        (PhaseJob::Replay(job), Some(recording)) => {
            let feeder = Feeder {
                recording,
                job,
                map: lba_map(recording, job, target.identity()),
                unsupported: target.unsupported(),
                transfer_max_bytes: plan.io_bytes_max(target.identity()),
            };
            let (feeds, feds) = queues(plan.submitters(target));
            let feeding =
                Feeding { sources: feds, feeder: Some((Feed::Recording(feeder), feeds)), rounds: None };
            // The streams of a phase before are none of the source's.
            context.shared.stream_names.lock().expect("no holder of this lock panics").clear();
            let mut outcome = run_submitters(plan, target, feeding, producers, context, tell)?;
            if let Some(gave_up) = outcome.gave_up {
                outcome.findings.insert("cannot_keep_up".into(), gave_up.to_json(&[]));
            }
            Ok(outcome)
        }
        (PhaseJob::Replay(_), None) => unreachable!("a replay's recording was opened with the job"),
    }
}
