//! The phases of a job one after the other, and those of a group in rounds.

use crate::administer::Administration;
use crate::book::{Book, DriveAccount};
use crate::error::RunError;
use crate::event::{Event, RoundPosition};
use crate::group::Group;
use crate::job::{Job, Step};
use crate::job_rounds::RoundsJob;
use crate::orders::Shared;
use crate::phase::{run_phase, PhaseContext};
use crate::phase_outcome::PhaseOutcome;
use crate::plan::PhasePlan;
use crate::recorder::Live;
use crate::submitters::RowProducers;
use crate::warnings;
use std::sync::atomic::AtomicUsize;
use std::sync::Mutex;
use testdrive_drives::{Clock, ControllerWatch, Target};
use testdrive_recording::{PhaseCounters, Status, Warning};

/// What lasts over all phases.
pub struct Surroundings<'a> {
    /// What is run.
    pub job: &'a Job,
    /// Of its steps, those to come.
    pub steps: &'a [Step],
    /// The run's clock, for real drives.
    pub clock: Clock,
    /// What all threads share.
    pub shared: &'a Shared,
    /// Figures for the progress.
    pub live: &'a Mutex<Live>,
    /// The number of a signal that arrived, or 0.
    pub signal: &'a AtomicUsize,
}

/// What the phases of a run go through, one after the other.
pub struct Sequence<'a, 'j> {
    /// The drive.
    pub target: &'a mut Target,
    /// The ends of the recorder's queues.
    pub producers: RowProducers,
    /// What the kernel does to the drive's controller, where that is looked at.
    pub controller: Option<ControllerWatch>,
    /// What lasts.
    pub surroundings: &'a Surroundings<'a>,
    /// The manifest.
    pub book: &'a mut Book<'j>,
    /// Who is told.
    pub tell: &'a mut dyn FnMut(Event),
    /// Of the phase that is next.
    pub index: u16,
}

impl Sequence<'_, '_> {
    /// Runs step after step, up to the phase that ends the run. The plans are those of each phase, a group's once.
    ///
    /// # Errors
    /// Why a phase could not be run.
    pub fn run(&mut self, plans: &[PhasePlan<'_>]) -> Result<(), RunError> {
        let mut rest = plans;
        for step in self.surroundings.steps {
            let (mine, others) = rest.split_at(step.phases().len());
            rest = others;
            match step {
                Step::Once(_) => self.run_one(&mine[0], None)?,
                Step::Rounds(job) => self.run_rounds(job, mine)?,
            }
            if self.stopped() {
                break;
            }
        }
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.surroundings.shared.stop.requested()
    }

    fn run_rounds(&mut self, job: &RoundsJob, plans: &[PhasePlan<'_>]) -> Result<(), RunError> {
        let mut group = Group::new(job);
        while !group.is_over() {
            for (member, plan) in plans.iter().enumerate() {
                let turn = plan.job.in_round(group.position().round);
                let plan = PhasePlan { job: &turn, recording: plan.recording };
                self.run_one(&plan, Some((&mut group, member)))?;
                if self.stopped() {
                    return Ok(());
                }
            }
        }
        if !group.achieved() {
            self.warn(warnings::rounds_not_steady(&job.name, group.done()));
        }
        Ok(())
    }

    /// Runs a phase, which may be one of a group. After the last of a round the group is judged, and the phase's accounting has what was
    /// found, so that the manifest of a run that crashed later has it too.
    fn run_one(
        &mut self,
        plan: &PhasePlan<'_>,
        of_group: Option<(&mut Group<'_>, usize)>,
    ) -> Result<(), RunError> {
        let before = self.target.counters();
        let position = of_group.as_ref().map(|(group, _)| group.position());
        let mut outcome = self.carry_out(plan, position)?;
        self.index += 1;
        let mut over = None;
        if let (Some((group, member)), false) = (of_group, self.stopped()) {
            group.take(member, (outcome.start_ns, outcome.end_ns), outcome.completed);
            if member + 1 == group.members() {
                over = Some(group.judge());
                outcome.findings.insert("rounds".into(), group.to_json());
            }
        }
        let error = outcome.error.take();
        // Taken after each phase, so that no event is of two, and before the counters, which it brings up to date.
        let clock = self.surroundings.clock;
        let by_kernel = self.controller.as_ref().and_then(|controller| controller.take(clock.now_ns()));
        let events = self.target.take_events().or(by_kernel);
        let counters =
            before.zip(self.target.counters()).map(|(before, after)| PhaseCounters { before, after });
        if Administration::of(plan.job).is_some() {
            self.book.note_drive(self.target.identity());
        }
        let account = DriveAccount { counters, events };
        let stopped = self.stopped();
        self.book.end(plan, outcome, account, stopped)?;
        if let Some(over) = over {
            (self.tell)(Event::Round(over));
        }
        error.map_or(Ok(()), Err)
    }

    fn carry_out(
        &mut self,
        plan: &PhasePlan<'_>,
        round: Option<RoundPosition>,
    ) -> Result<PhaseOutcome, RunError> {
        let Surroundings { job, clock, shared, live, signal, .. } = *self.surroundings;
        let context = PhaseContext {
            index: self.index,
            round,
            clock,
            shared,
            controller: self.controller.as_ref(),
            live,
            signal,
            io_timeout_ns: (job.io_timeout_s * 1e9) as i64,
            on_error: job.on_error,
        };
        let (book, tell) = (&mut *self.book, &mut *self.tell);
        let mut note_and_tell = |event: Event| {
            match &event {
                Event::Phase { index, start_ns, .. } => {
                    if let Err(error) = book.begin((*index, *start_ns), plan.job, context.round.as_ref()) {
                        let message = format!("the recording could not be written: {error}");
                        shared.stop.request(Status::Failed, message);
                    }
                }
                Event::Warning(warning) => book.manifest.warnings.push(warning.clone()),
                _ => {}
            }
            tell(event);
        };
        run_phase(plan, self.target, &mut self.producers, &context, &mut note_and_tell)
    }

    fn warn(&mut self, warning: Warning) {
        self.book.manifest.warnings.push(warning.clone());
        (self.tell)(Event::Warning(warning));
    }
}
