//! A phase whose I/Os are generated: its workload, and what it found out.

use crate::arrivals::ArrivalFeeder;
use crate::error::RunError;
use crate::event::Event;
use crate::feeder::{queues, Feeds};
use crate::generated::Generated;
use crate::job_generated::ArrivalsJob;
use crate::phase::{run_submitters, Feed, Feeding, PhaseContext, PhaseOutcome, RowProducers};
use crate::plan::PhasePlan;
use crate::rounds::Rounds;
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
    let mut workload = plan.workload(target.identity()).expect("the phase generates its I/Os");
    let mut findings = Map::new();
    if plan.is_purge() {
        let purges = !target.unsupported().contains(&Opcode::Trim);
        findings.insert("purge".into(), if purges { "trim" } else { "none" }.into());
        if !purges {
            workload.ends.ios = Some(0);
            tell(Event::Warning(warnings::no_purge(plan.job.name(), target.identity())));
        }
    }
    let submitters = plan.submitters(target);
    if workload.threads > 1 {
        findings.insert("threads".into(), workload.threads.into());
        findings.insert("submitters".into(), submitters.into());
    }
    let rounds = plan.steady_state().map(|job| Rounds::new(job, submitters));
    let (sources, feeder) = sources(&workload, submitters)?;
    let feeding = Feeding { sources, feeder, rounds: rounds.as_ref() };
    let mut outcome = run_submitters(plan, target, feeding, producers, context, tell)?;
    if let Some(rounds) = &rounds {
        findings.insert("steady_state".into(), rounds.to_json(outcome.start_ns));
        if !rounds.achieved() && !context.shared.stop.requested() {
            tell(Event::Warning(warnings::not_steady(plan.job.name(), rounds.count())));
        }
    }
    if workload.arrivals.is_some() {
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
fn sources(workload: &Workload, submitters: usize) -> Result<FedSources, RunError> {
    let sources = Generated::sources(workload, submitters);
    let Some(ArrivalsJob::Recording { recording }) = &workload.arrivals else { return Ok((sources, None)) };
    let feeder = ArrivalFeeder { recording: ArrivalFeeder::open(recording)?, on_off: workload.on_off };
    let (feeds, times) = queues(submitters);
    let sources = sources.into_iter().zip(times).map(|(source, times)| source.at(times)).collect();
    Ok((sources, Some((Feed::Arrivals(Box::new(feeder)), feeds))))
}
