//! One phase: its submitters, their source, and what came of them.

use crate::accounting::{Accounting, Depth};
use crate::administer::{administer, Administration};
use crate::arrivals::ArrivalFeeder;
use crate::error::RunError;
use crate::event::{Event, PhaseName, RoundPosition};
use crate::feeder::{queues, Feeder, Feeds};
use crate::gates::DepthMeter;
use crate::generate::generate;
use crate::job::{OnError, PhaseJob};
use crate::orders::{GaveUp, Pacing, Shared};
use crate::plan::{lba_map, write_data, PhasePlan};
use crate::recorder::{Live, RowQueue};
use crate::rounds::{Rounds, Tally};
use crate::spawn::Borrower;
use crate::start_line::StartLine;
use crate::stop::Stop;
use crate::submission::{Primed, Submission, Submitted};
use crate::warnings;
use crate::watch::Watch;
use crate::workload::Workload;
use rtrb::Producer;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use testdrive_core::{Histogram, IoRecord};
use testdrive_drives::{Clock, QueueOptions, Target};
use testdrive_recording::{RecordingError, Status};

/// How often the watch looks for the end and for signals.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

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
    /// Figures for the progress.
    pub live: &'a Mutex<Live>,
    /// The number of a signal that arrived, or 0.
    pub signal: &'a AtomicUsize,
    /// How long an I/O may take.
    pub io_timeout_ns: i64,
    /// What an error does.
    pub on_error: OnError,
}

/// What a phase did.
#[derive(Default)]
pub struct PhaseOutcome {
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// What became of its source.
    pub accounting: Accounting,
    /// What completed without an error.
    pub completed: Tally,
    /// Why the source could not be read to its end.
    pub error: Option<RunError>,
    /// I/Os of an open loop that did not go before the phase ended, though their time came.
    pub overdue: u64,
    /// That the drive cannot keep up, as the first submitter found it.
    pub gave_up: Option<GaveUp>,
    /// Times that a submitter found nothing decoded.
    pub starved: u64,
    /// Times that a submitter waited for the recorder.
    pub recorder_waits: u64,
    /// The greatest share of its time that a submitter's thread took of a CPU.
    pub submitter_cpu_share: f64,
    /// Latencies, of a run that keeps no rows.
    pub latencies: Histogram,
    /// What the drive's path did, as its queues found.
    pub settings: Map<String, Value>,
    /// What the phase found out, beside what was issued: the accounting has it.
    pub findings: Map<String, Value>,
}

/// The ends of the recorder's queues, one a submitter, or none for a run that keeps no rows.
pub type RowProducers = Vec<Option<Producer<IoRecord>>>;

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
            run_submitters(plan, target, feeding, producers, context, tell)
        }
        (PhaseJob::Replay(_), None) => unreachable!("a replay's recording was opened with the job"),
    }
}

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
        let submitted = threads.map(|threads| watch_over(threads, watch, tell));
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
    tell: &mut dyn FnMut(Event),
) -> Vec<Option<Submitted<'a>>> {
    while !threads.iter_mut().all(Borrower::is_done) {
        thread::sleep(WATCH_INTERVAL);
        watch.look(tell);
    }
    watch.tell_progress(tell);
    threads.into_iter().map(Borrower::join).collect()
}

/// Adds up what the submitters did, and takes their ends of the recorder's queues back for the next phase.
fn merge(
    submitted: Vec<Submitted<'_>>,
    accounting: Accounting,
    error: Option<RunError>,
    start_ns: i64,
    producers: &mut RowProducers,
) -> PhaseOutcome {
    let mut outcome = PhaseOutcome {
        start_ns,
        end_ns: start_ns,
        accounting,
        completed: Tally::default(),
        error,
        overdue: 0,
        gave_up: None,
        starved: 0,
        recorder_waits: 0,
        submitter_cpu_share: 0.0,
        latencies: Histogram::default(),
        settings: Map::new(),
        findings: Map::new(),
    };
    let mut depth = DepthMeter::default();
    let (mut intended, mut submissions) = (None, None);
    for (index, submitted) in submitted.into_iter().enumerate() {
        let Submitted { report, rows, histogram, end_ns, cpu_ns, settings } = submitted;
        let cpu_share = cpu_ns as f64 / (end_ns - start_ns).max(1) as f64;
        outcome.submitter_cpu_share = outcome.submitter_cpu_share.max(cpu_share);
        outcome.accounting.issued.merge(&report.issued);
        outcome.accounting.order_inversions += report.order_inversions;
        outcome.completed.merge(&report.completed);
        depth.add(&report.depth);
        intended = join_spans(intended, report.intended_ns);
        submissions = join_spans(submissions, report.submitted_ns);
        outcome.overdue += report.overdue;
        let found = outcome.gave_up.into_iter().chain(report.gave_up);
        outcome.gave_up = found.min_by_key(|gave_up| gave_up.at_ns);
        outcome.starved += report.starved;
        outcome.recorder_waits += report.recorder_waits;
        outcome.end_ns = outcome.end_ns.max(end_ns);
        if let Some(histogram) = &histogram {
            outcome.latencies.merge(histogram);
        }
        outcome.settings = settings;
        if let Some(place) = producers.get_mut(index) {
            *place = rows.into_producer();
        }
    }
    let span_ns = |span: Option<(i64, i64)>| span.map_or(0, |(first_ns, last_ns)| last_ns - first_ns);
    outcome.accounting.replay_depth = Depth::of(&depth);
    outcome.accounting.intended_span_ns = span_ns(intended);
    outcome.accounting.replayed_span_ns = span_ns(submissions);
    outcome
}

fn row_end<'a>(producers: &mut RowProducers, index: usize, context: &PhaseContext<'a>) -> RowQueue<'a> {
    match producers.get_mut(index).and_then(Option::take) {
        Some(producer) => RowQueue::with_rows(producer, &context.shared.stop),
        None => RowQueue::without_rows(&context.shared.stop),
    }
}

fn join_spans(own: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (own, other) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (own, other) => own.or(other),
    }
}
