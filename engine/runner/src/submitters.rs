//! The submitters of a phase: their threads, what feeds them, and the watch over them.

use crate::accounting::Accounting;
use crate::arrivals::ArrivalFeeder;
use crate::error::RunError;
use crate::event::{Event, PhaseName};
use crate::feed_queue::Feeds;
use crate::feeder::Feeder;
use crate::orders::Pacing;
use crate::phase::PhaseContext;
use crate::phase_outcome::{merge, PhaseOutcome};
use crate::plan::{write_data, PhasePlan};
use crate::recorder::RowQueue;
use crate::rounds::Rounds;
use crate::spawn::Borrower;
use crate::start_line::StartLine;
use crate::stop::Stop;
use crate::submission::{Primed, Submission, Submitted};
use crate::warnings;
use crate::watch::Watch;
use rtrb::Producer;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use testdrive_core::IoRecord;
use testdrive_drives::{QueueOptions, Target};
use testdrive_recording::{RecordingError, Status};

/// How often the watch looks for the end and for signals.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// The ends of the recorder's queues, one a submitter, or none for a run that keeps no rows.
pub type RowProducers = Vec<Option<Producer<IoRecord>>>;

/// What is decoded ahead of the submitters.
pub enum Feed<'a> {
    /// The I/Os of a recording.
    Recording(Feeder<'a>),
    /// Its times alone.
    Arrivals(Box<ArrivalFeeder>),
}

impl Feed<'_> {
    fn run(&self, feeds: Feeds, stop: &Stop) -> Result<Accounting, RecordingError> {
        match self {
            Feed::Recording(feeder) => feeder.run(feeds, stop),
            Feed::Arrivals(feeder) => feeder.run(feeds, stop).map(|()| Accounting::default()),
        }
    }
}

/// A phase's sources, and for a replay what feeds them.
pub struct Feeding<'a, S> {
    /// One a submitter.
    pub sources: Vec<S>,
    /// What decodes the recording that is replayed.
    pub feeder: Option<(Feed<'a>, Feeds)>,
    /// By which the phase is judged while it runs.
    pub rounds: Option<&'a Rounds>,
}

/// Runs the submitters of a phase, one for each source.
///
/// # Errors
/// As [`run_phase`].
pub fn run_submitters<S: Primed>(
    plan: &PhasePlan<'_>,
    target: &mut Target,
    feeding: Feeding<'_, S>,
    producers: &mut RowProducers,
    context: &PhaseContext<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<PhaseOutcome, RunError> {
    let submitters = feeding.sources.len();
    let line = StartLine::new(submitters);
    context.shared.sequence_max.store(0, Ordering::Relaxed);
    let identity = target.identity();
    let options = QueueOptions {
        clock: context.clock,
        depth: 0,
        io_bytes_max: plan.io_bytes_max(identity),
        data: write_data(plan.job.data()),
        data_seed: 1,
        refill: plan.job.refills(),
    };
    let planned_ios = plan.planned_ios(identity);
    let rows: Vec<RowQueue<'_>> = (0..submitters).map(|index| row_end(producers, index, context)).collect();
    let stop = &context.shared.stop;
    let rounds = feeding.rounds;
    let submission = Submission { plan, options, line: &line, context, index: 0, submitters, rounds };
    let (submitted, fed) = thread::scope(|scope| {
        let feeder = feeding.feeder.map(|(feeder, feeds)| scope.spawn(move || feeder.run(feeds, stop)));
        // The watch counts from where it begins: before the first I/O, or those issued until then are never told.
        let planned = (planned_ios, plan.planned_ns());
        let watch =
            Watch::new(context, &line, PhaseName::of(plan.job, context.round.clone()), planned, rounds);
        // SAFETY: the threads are dropped at the end of this block or of `watch_over`, and all that they borrow lives beyond it.
        let threads = unsafe { start(target, submission, feeding.sources, rows) };
        let submitted = threads.map(|threads| watch_over(threads, watch, context, tell));
        if submitted.is_err() {
            stop.request(Status::Failed, "a submitter could not be started");
        }
        (submitted, feeder.map(|handle| handle.join().expect("the feeder panicked")))
    });
    if let Some(error) = line.error() {
        return Err(error);
    }
    let submitted =
        submitted.map_err(|error| RunError::internal(format!("cannot start a thread: {error}")))?;
    let (accounting, error) = match fed {
        Some(Ok(accounting)) => (accounting, None),
        // What was decoded until then has been issued and recorded: the phase stands, with the reason why it ended.
        Some(Err(error)) => (Accounting::default(), Some(error.into())),
        None => (Accounting::default(), None),
    };
    let submitted = submitted.into_iter().flatten().collect();
    let outcome = merge(submitted, accounting, error, line.start_ns().unwrap_or(0), producers);
    if can_sleep(plan, target) {
        if let Some(warning) = warnings::saturated(plan.job.name(), outcome.submitter_cpu_share) {
            tell(Event::Warning(warning));
        }
    }
    Ok(outcome)
}

/// Whether the submitters sleep while they wait for the drive, so that one which does not sleep says something.
fn can_sleep(plan: &PhasePlan<'_>, target: &Target) -> bool {
    let closed = matches!(plan.pacing(), Pacing::Closed(_)) && plan.limits(1).are_none();
    matches!(target, Target::Device { device, .. } if !device.polled) && closed && !plan.is_purge()
}

/// A submitter's thread: what it brings back is absent where it could not open its queue.
type SubmitterThread<'a> = Borrower<Option<Submitted<'a>>>;

/// Starts a thread for each source on queues of the target. Where one cannot be started, those before it are let go.
///
/// # Safety
/// As for [`Borrower::spawn`]: the threads must be dropped while the arguments' borrows are alive.
unsafe fn start<'a, S: Primed + 'a>(
    target: &mut Target,
    submission: Submission<'a>,
    sources: Vec<S>,
    rows: Vec<RowQueue<'a>>,
) -> std::io::Result<Vec<SubmitterThread<'a>>> {
    let line = submission.line;
    let mut threads = Vec::with_capacity(sources.len());
    for (index, (source, rows)) in sources.into_iter().zip(rows).enumerate() {
        let submission = submission.of(index);
        let thread = match target {
            Target::Sim(drive) => {
                assert_eq!(
                    submission.submitters, 1,
                    "a model has one queue, so its phases have one submitter"
                );
                drive.set_write_data(submission.options.data);
                let body = move || submission.run_model(drive, source, rows);
                // SAFETY: passed on to the caller.
                unsafe { Borrower::spawn("submitter", body) }
            }
            Target::Null(identity) => {
                let identity = identity.clone();
                let body = move || submission.run_null(identity, source, rows);
                // SAFETY: passed on to the caller.
                unsafe { Borrower::spawn("submitter", body) }
            }
            Target::Passthru(device) => {
                let device = (**device).clone();
                let body = move || submission.run_passthru(device, source, rows);
                // SAFETY: passed on to the caller.
                unsafe { Borrower::spawn("submitter", body) }
            }
            Target::Pci(target) => {
                let queues = target.queues().clone();
                let body = move || submission.run_pci(queues, source, rows);
                // SAFETY: passed on to the caller.
                unsafe { Borrower::spawn("submitter", body) }
            }
            Target::Device { device, engine, .. } => {
                let (device, engine) = (device.clone(), *engine);
                let body = move || submission.run_device(device, engine, source, rows);
                // SAFETY: passed on to the caller.
                unsafe { Borrower::spawn("submitter", body) }
            }
        };
        threads.push(thread.inspect_err(|_| line.cancel())?);
    }
    Ok(threads)
}

/// Tells progress and passes signals on until every submitter is done.
fn watch_over<'a>(
    mut threads: Vec<SubmitterThread<'a>>,
    mut watch: Watch<'_>,
    context: &PhaseContext<'_>,
    tell: &mut dyn FnMut(Event),
) -> Vec<Option<Submitted<'a>>> {
    while !threads.iter_mut().all(Borrower::is_done) {
        thread::sleep(WATCH_INTERVAL);
        watch.look(tell);
        if let Some(controller) = context.controller {
            controller.look(context.clock.now_ns());
        }
    }
    watch.tell_progress(tell);
    threads.into_iter().map(Borrower::join).collect()
}

fn row_end<'a>(producers: &mut RowProducers, index: usize, context: &PhaseContext<'a>) -> RowQueue<'a> {
    match producers.get_mut(index).and_then(Option::take) {
        Some(producer) => RowQueue::with_rows(producer, &context.shared.stop),
        None => RowQueue::without_rows(&context.shared.stop),
    }
}
