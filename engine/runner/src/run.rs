//! A whole job: its inputs checked, the drive opened by the guard, the phases run, the recording closed whatever happens.

use crate::book::Book;
use crate::error::RunError;
use crate::event::{Event, RoundPosition};
use crate::inputs::{check_all_fit, open_sources, open_target, set_features};
use crate::job::{Job, Keep, Step};
use crate::orders::Shared;
use crate::plan::PhasePlan;
use crate::recorder::{record, row_queue, Live};
use crate::resume::Resumption;
use crate::sequence::{Sequence, Surroundings};
use crate::submitters::RowProducers;
use crate::telemetry::{write_telemetry, Telling};
use crate::warnings;
use rtrb::Consumer;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use testdrive_core::{Histogram, IoRecord};
use testdrive_drives::{Clock, FeaturesSet, Target};
use testdrive_recording::{
    Counts, Kept, Manifest, Recording, RecordingError, RecordingKind, RecordingWriter, Status, WriterLimits,
};

/// What one submitter's queue of rows comes to on the disk, at most.
const QUEUE_BYTES_MAX: u64 = 8 << 20;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `Complete`, `Interrupted` or `Failed`.
    pub status: Status,
    /// Why, where not complete.
    pub reason: Option<String>,
    /// Rows recorded, or I/Os done where none were kept.
    pub counts: Counts,
    /// Latencies, of a run that keeps no rows.
    pub latencies: Histogram,
}

impl Outcome {
    /// The documented exit status.
    pub fn exit_status(&self) -> u8 {
        match self.status {
            Status::Complete => 0,
            Status::Interrupted => 5,
            Status::Failed | Status::Running => 4,
        }
    }
}

/// Runs a job. `signal` holds the number of a signal once one has arrived; `tell` is given the progress.
///
/// # Errors
/// When nothing could be run: a wrong job or input, a drive that must not be written or cannot be opened, a recording that cannot
/// be made. What a drive does during the run is recorded, and is an [`Outcome`].
pub fn run(job: &Job, signal: &AtomicUsize, tell: &mut dyn FnMut(Event)) -> Result<Outcome, RunError> {
    let sources = open_sources(job)?;
    let resumption = if job.resume { Some(Resumption::of(job, &sources)?) } else { None };
    let (before, steps) =
        job.phases.split_at(resumption.as_ref().map_or(0, |resumption| resumption.first_step));
    let phases_before = before.iter().map(|step| step.phases().len()).sum();
    let sources = &sources[phases_before..];
    let mut target = open_target(job, steps, sources)?;
    if let Some(resumption) = &resumption {
        resumption.check_drive(target.identity())?;
    }
    let identities = check_all_fit(steps, sources, &target)?;
    if let Some(path) = &job.save_state {
        target.check_state_path(path)?;
    }
    let modelled = target.identity().modelled;
    let clock = if modelled { Clock::uncalibrated() } else { Clock::start() };
    let features = set_features(job, &target)?;
    let clock = clock.going_on_at(resumption.as_ref().map_or(0, |resumption| resumption.origin_ns));
    let mut manifest = Manifest::new(RecordingKind::Run, if modelled { "virtual" } else { clock.source() });
    manifest.drive = Some(target.identity().clone());
    manifest.source = source_of(sources);
    if let Some(account) = target.account() {
        manifest.other.insert("nvme".into(), Value::Object(account));
    }
    manifest.plan = job.plan.clone();
    manifest.kept = (job.keep == Keep::Slowest).then(Kept::default);
    manifest.warnings = warnings::before(&manifest, &target);
    manifest.warnings.extend(warnings::of_sources(sources.iter().flatten().map(|source| &source.manifest)));
    let first_index = resumption.as_ref().map_or(0, |resumption| resumption.first_index);
    let mut told = manifest.warnings.clone();
    if let Some(resumption) = resumption {
        told.insert(0, resumption.warning);
        manifest = joined(resumption.manifest, manifest);
    }
    told.iter().for_each(|warning| tell(Event::Warning(warning.clone())));
    let plans: Vec<PhasePlan<'_>> = steps
        .iter()
        .flat_map(Step::phases)
        .zip(sources)
        .map(|(job, source)| PhasePlan { job, recording: source.as_ref() })
        .collect();
    plans.iter().try_for_each(|plan| plan.check_queues(&target))?;
    let submitters = plans.iter().map(|plan| plan.submitters(&target)).max().unwrap_or(1);
    let writer = match job.record {
        true if job.resume => {
            let writer = RecordingWriter::resume(&job.output, manifest, limits(job, submitters))?;
            manifest = writer.manifest().clone();
            Some(writer)
        }
        true => Some(RecordingWriter::create(&job.output, manifest.clone(), limits(job, submitters))?),
        false => None,
    };
    // Up to here the job could be refused, and the file that was made for it would go again.
    target.keep_file();
    let output = job.output.display().to_string();
    let positions = steps.iter().flat_map(positions_of);
    let announced =
        |((plan, identity), position): ((&PhasePlan<'_>, &_), _)| plan.announced(identity, position);
    let phases = plans.iter().zip(&identities).zip(positions).map(announced).collect();
    tell(Event::Started { output, drive: target.identity().clone(), phases, phases_before });
    let mut shared = Shared::default();
    if let Some(writer) = &writer {
        shared.phase_starts = writer.phase_starts();
    }
    let live = Mutex::new(Live::default());
    let (producers, consumers) = row_queues(if job.record { submitters } else { 0 });
    let surroundings = Surroundings { job, steps, clock, shared: &shared, live: &live, signal };
    let mut book = Book::open(job, manifest);
    let samples = if job.record { target.keep_telemetry() } else { None };
    thread::scope(|scope| {
        let (live, stop) = (&live, &shared.stop);
        let recorder = writer.map(|writer| scope.spawn(move || record(writer, consumers, live, stop)));
        let telemetry =
            samples.map(|samples| scope.spawn(move || write_telemetry(&job.output, &samples, stop)));
        let telling = Telling(&mut target);
        let ran = Sequence {
            controller: telling.0.controller_watch(),
            target: &mut *telling.0,
            producers,
            surroundings: &surroundings,
            book: &mut book,
            tell: &mut *tell,
            index: first_index,
        }
        .run(&plans);
        drop(telling);
        let told = telemetry.map(|writer| writer.join().expect("the writer of the telemetry panicked"));
        book.manifest.telemetry = told.flatten().or(book.manifest.telemetry);
        let recorded = recorder.map(|recorder| recorder.join().expect("the recorder panicked"));
        close(ran, recorded, book, (&mut target, features), &surroundings, tell)
    })
}

/// When segments are closed, and how much disk is held back: also what all queues hold must fit when the disk is full.
fn limits(job: &Job, submitters: usize) -> WriterLimits {
    let segment_age = Duration::from_secs_f64(job.segment_s);
    let limits = WriterLimits::default();
    let queued_bytes = QUEUE_BYTES_MAX * (submitters as u64 - 1);
    WriterLimits { segment_age, reserve_bytes: limits.reserve_bytes + queued_bytes, ..limits }
}

/// For each phase of a step, the round that it is announced for: the first one of its group.
fn positions_of(step: &Step) -> Vec<Option<RoundPosition>> {
    let position = match step {
        Step::Once(_) => None,
        Step::Rounds(job) => {
            Some(RoundPosition { name: job.name.clone(), round: 0, rounds_max: job.rounds_max })
        }
    };
    vec![position; step.phases().len()]
}

fn row_queues(count: usize) -> (RowProducers, Vec<Consumer<IoRecord>>) {
    (0..count)
        .map(|_| {
            let (producer, consumer) = row_queue();
            (Some(producer), consumer)
        })
        .unzip()
}

/// Closes the recording with everything that is known, and says how the run ended.
fn close(
    ran: Result<(), RunError>,
    recorded: Option<(RecordingWriter, Option<RecordingError>)>,
    mut book: Book<'_>,
    (target, features): (&mut Target, Option<FeaturesSet>),
    surroundings: &Surroundings<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    let (status, reason) = match (&ran, surroundings.shared.stop.reason()) {
        (Err(error), _) => (Status::Failed, Some(error.message.clone())),
        (Ok(()), Some(reason)) => (reason.status, Some(reason.message)),
        (Ok(()), None) => (Status::Complete, None),
    };
    let (status, reason) = match &surroundings.job.save_state {
        Some(path) if status == Status::Complete => match target.save_state(path) {
            Ok(()) => (status, reason),
            Err(error) => (Status::Failed, Some(error.to_string())),
        },
        _ => (status, reason),
    };
    let warnings = warnings::after(&book.totals, surroundings.job, status, target.identity().modelled);
    warnings.iter().for_each(|warning| tell(Event::Warning(warning.clone())));
    book.manifest.warnings.extend(warnings);
    if let (Some(Value::Object(account)), Some(health)) =
        (book.manifest.other.get_mut("nvme"), target.health())
    {
        account.insert("after".into(), Value::Object(health));
    }
    // Set back while there is somebody to tell it to.
    drop(features);
    let given_back = target.give_back(surroundings.clock);
    // What the drive did at its very end is in no phase.
    let last_events = target.take_events();
    let failed = given_back.as_ref().err().map(|error| warnings::not_given_back(error.to_string()));
    for warning in failed.into_iter().chain(last_events.as_ref().and_then(warnings::not_shut_down)) {
        tell(Event::Warning(warning.clone()));
        book.manifest.warnings.push(warning);
    }
    let (status, reason) = match given_back {
        Ok(()) => (status, reason),
        Err(error) => {
            let reasons: Vec<String> = reason.into_iter().chain([error.to_string()]).collect();
            (Status::Failed, Some(reasons.join("; ")))
        }
    };
    let accounting = book.manifest.phases.iter().map(|phase| phase.accounting.clone()).collect();
    let issued = book.totals.issued.total();
    let errors = surroundings.shared.errors.load(Ordering::Relaxed);
    let mut counts = Counts {
        ios: issued.ios,
        bytes: issued.bytes,
        errors,
        by_opcode: book.totals.issued,
        ..Counts::default()
    };
    if let Some((mut writer, error)) = recorded {
        let appended = last_events.map_or(Ok(()), |events| {
            let summary = book.manifest.drive_events.get_or_insert_default();
            events.append(&surroundings.job.output, summary)
        });
        let error = error.or(appended.err());
        let Manifest { drive, phases, warnings, drive_events, telemetry, other, .. } = book.manifest;
        let manifest = writer.manifest_mut();
        (manifest.drive, manifest.phases, manifest.warnings) = (drive, phases, warnings);
        (manifest.drive_events, manifest.telemetry, manifest.other) = (drive_events, telemetry, other);
        counts = writer.finish(status, reason.clone())?.counts;
        if let Some(error) = error {
            return Err(error.into());
        }
    }
    ran?;
    let output = surroundings.job.output.display().to_string();
    tell(Event::Finished { status, reason: reason.clone(), output, counts, accounting });
    Ok(Outcome { status, reason, counts, latencies: book.totals.latencies })
}

/// The manifest of a recording that goes on: as it was, with what this run warns of besides.
fn joined(mut began: Manifest, now: Manifest) -> Manifest {
    for warning in now.warnings {
        if !began.warnings.contains(&warning) {
            began.warnings.push(warning);
        }
    }
    began
}

/// What was replayed, for the manifest: the recording's place, so that it can be compared with, and what it was.
fn source_of(sources: &[Option<Recording>]) -> Map<String, Value> {
    let mut source = Map::new();
    if let Some(recording) = sources.iter().flatten().next() {
        let path =
            recording.directory().canonicalize().unwrap_or_else(|_| recording.directory().to_path_buf());
        let manifest = &recording.manifest;
        source.insert("recording".into(), path.display().to_string().into());
        source.insert("kind".into(), serde_json::to_value(manifest.kind).unwrap_or_default());
        source.insert("ios".into(), manifest.counts.ios.into());
        source.insert("source".into(), Value::Object(manifest.source.clone()));
    }
    source
}
