//! A phase whose I/Os are generated: its workload, and what it found out.

use crate::arrivals::ArrivalFeeder;
use crate::error::RunError;
use crate::event::Event;
use crate::feed_queue::{queues, Feeds};
use crate::generated::Generated;
use crate::job_generated::ArrivalsJob;
use crate::phase::PhaseContext;
use crate::phase_outcome::PhaseOutcome;
use crate::plan::PhasePlan;
use crate::rounds::Rounds;
use crate::submitters::{run_submitters, Feed, Feeding, RowProducers};
use crate::warnings;
use crate::workload::Workload;
use serde_json::Map;
use testdrive_core::Opcode;
use testdrive_drives::Target;

/// Runs a phase whose I/Os are generated, to its end or to the run's.
///
/// # Errors
/// When the drive's queue cannot be set up.
pub fn generate(
    plan: &PhasePlan<'_>,
    target: &mut Target,
    producers: &mut RowProducers,
    context: &PhaseContext<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<PhaseOutcome, RunError> {
    let mut workloads = plan.workloads(target.identity());
    let mut findings = Map::new();
    if plan.is_purge() {
        let purges = !target.unsupported().contains(&Opcode::Trim);
        findings.insert("purge".into(), if purges { "trim" } else { "none" }.into());
        if !purges {
            workloads[0].ends.ios = Some(0);
            tell(Event::Warning(warnings::no_purge(plan.job.name(), target.identity())));
        }
    }
    let submitters = plan.submitters(target);
    let names = plan.stream_names();
    let threads = plan.threads();
    if threads > 1 {
        findings.insert("threads".into(), threads.into());
        findings.insert("submitters".into(), submitters.into());
    }
    let rounds = plan.steady_state().map(|job| Rounds::new(job, submitters));
    let (sources, feeder) = sources(&workloads, submitters)?;
    let feeding = Feeding { sources, feeder, rounds: rounds.as_ref() };
    context.shared.stream_names.lock().expect("no holder of this lock panics").clone_from(&names);
    let mut outcome = run_submitters(plan, target, feeding, producers, context, tell)?;
    if let Some(rounds) = &rounds {
        findings.insert("steady_state".into(), rounds.to_json(outcome.start_ns));
        if !rounds.achieved() && !context.shared.stop.requested() {
            tell(Event::Warning(warnings::not_steady(plan.job.name(), rounds.count())));
        }
    }
    if let Some(gave_up) = outcome.gave_up {
        findings.insert("cannot_keep_up".into(), gave_up.to_json(&names));
    }
    if !names.is_empty() {
        findings.insert("streams".into(), names.into());
    }
    if workloads[0].arrivals.is_some() {
        findings.insert("arrivals_not_issued".into(), outcome.overdue.into());
        if outcome.starved > 0 {
            tell(Event::Warning(warnings::starved(outcome.starved)));
        }
    }
    outcome.findings = findings;
    Ok(outcome)
}

/// Sources, and what feeds them with times.
type FedSources = (Vec<Generated>, Option<(Feed<'static>, Feeds)>);

/// What the submitters take their I/Os from.
fn sources(workloads: &[Workload], submitters: usize) -> Result<FedSources, RunError> {
    let workload = &workloads[0];
    if workload.stream.is_some() {
        return Ok((Generated::of_streams(workloads, submitters), None));
    }
    let sources = Generated::sources(workload, submitters);
    let Some(ArrivalsJob::Recording { recording }) = &workload.arrivals else { return Ok((sources, None)) };
    let feeder = ArrivalFeeder { recording: ArrivalFeeder::open(recording)?, on_off: workload.on_off };
    let (feeds, times) = queues(submitters);
    let sources = sources.into_iter().zip(times).map(|(source, times)| source.at(times)).collect();
    Ok((sources, Some((Feed::Arrivals(Box::new(feeder)), feeds))))
}
