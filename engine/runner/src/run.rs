//! A whole job: its inputs checked, the drive opened by the guard, the phases run, the recording closed whatever happens.

use crate::error::RunError;
use crate::event::{Event, PhaseName};
use crate::feeder::check_source;
use crate::job::{Job, PhaseJob};
use crate::phase::{run_phase, PhaseContext, PhaseOutcome, RowProducers};
use crate::plan::{lba_map, PhasePlan};
use crate::recorder::{record, row_queue, Live};
use crate::worker::Shared;
use rtrb::Consumer;
use serde_json::{Map, Value};
use std::sync::atomic::AtomicUsize;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use testdrive_core::{Command, Histogram, IoRecord, LbaMode, Opcode, OpcodeCounts, Placement};
use testdrive_drives::{Access, Clock, Consent, Target};
use testdrive_recording::{
    Counts, Manifest, OrderBy, Phase, PhaseKind, Recording, RecordingKind, RecordingWriter, Status, Warning,
    WriterLimits,
};

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
    let mut target = open_target(job, &sources)?;
    for (phase, source) in job.phases.iter().zip(&sources) {
        check_fit(phase, source.as_ref(), &target)?;
    }
    let clock = if target.identity().modelled { Clock::uncalibrated() } else { Clock::start() };
    let mut manifest = Manifest::new(
        RecordingKind::Run,
        if target.identity().modelled { "virtual" } else { clock.source() },
    );
    manifest.drive = Some(target.identity().clone());
    manifest.source = source_of(&sources);
    manifest.warnings = warnings_before(&manifest, &target);
    manifest.warnings.iter().for_each(|warning| tell(Event::Warning(warning.clone())));
    let plans: Vec<PhasePlan<'_>> = job
        .phases
        .iter()
        .zip(&sources)
        .map(|(job, recording)| PhasePlan { job, recording: recording.as_ref() })
        .collect();
    let submitters = plans.iter().map(|plan| plan.submitters(&target)).max().unwrap_or(1);
    let segment_age = Duration::from_secs_f64(job.segment_s);
    let limits = WriterLimits { segment_age, ..WriterLimits::default() };
    let writer = match job.record {
        true => Some(RecordingWriter::create(&job.output, manifest.clone(), limits)?),
        false => None,
    };
    let phases = job.phases.iter().map(phase_name).collect();
    tell(Event::Started {
        output: job.output.display().to_string(),
        drive: target.identity().clone(),
        phases,
    });
    let shared = Shared::default();
    let live = Mutex::new(Live::default());
    let (producers, consumers) = row_queues(if job.record { submitters } else { 0 });
    let surroundings = Surroundings { job, clock, shared: &shared, live: &live, signal };
    thread::scope(|scope| {
        let (live, stop) = (&live, &shared.stop);
        let recorder = writer.map(|writer| scope.spawn(move || record(writer, consumers, live, stop)));
        let ran = run_phases(&plans, &mut target, producers, &surroundings, tell);
        let writer = recorder.map(|recorder| recorder.join().expect("the recorder panicked")).transpose()?;
        close(ran, writer, &surroundings, tell)
    })
}

/// What lasts over all phases.
struct Surroundings<'a> {
    job: &'a Job,
    clock: Clock,
    shared: &'a Shared,
    live: &'a Mutex<Live>,
    signal: &'a AtomicUsize,
}

/// What the phases did, up to the one that ended the run.
#[derive(Default)]
struct Ran {
    phases: Vec<Phase>,
    latencies: Histogram,
    issued: OpcodeCounts,
    starved: u64,
    recorder_waits: u64,
    settings: Map<String, Value>,
    error: Option<RunError>,
}

fn row_queues(count: usize) -> (RowProducers, Vec<Consumer<IoRecord>>) {
    (0..count)
        .map(|_| {
            let (producer, consumer) = row_queue();
            (Some(producer), consumer)
        })
        .unzip()
}

fn run_phases(
    plans: &[PhasePlan<'_>],
    target: &mut Target,
    mut producers: RowProducers,
    surroundings: &Surroundings<'_>,
    tell: &mut dyn FnMut(Event),
) -> Ran {
    let mut ran = Ran::default();
    for (index, plan) in plans.iter().enumerate() {
        let index = index as u16;
        tell(Event::Phase {
            index,
            phase: phase_name(plan.job),
            planned_ios: plan.planned_ios(target.identity().capacity_bytes),
            planned_ns: plan.planned_ns(),
        });
        let context = PhaseContext {
            index,
            clock: surroundings.clock,
            shared: surroundings.shared,
            live: surroundings.live,
            signal: surroundings.signal,
            io_timeout_ns: (surroundings.job.io_timeout_s * 1e9) as i64,
            on_error: surroundings.job.on_error,
        };
        match run_phase(plan, target, &mut producers, &context, tell) {
            Ok(outcome) => ran.add(index, plan, outcome),
            Err(error) => ran.error = Some(error),
        }
        if ran.error.is_some() || surroundings.shared.stop.requested() {
            break;
        }
    }
    ran
}

impl Ran {
    fn add(&mut self, index: u16, plan: &PhasePlan<'_>, outcome: PhaseOutcome) {
        let mut accounting = outcome.accounting;
        self.issued.merge(&accounting.issued);
        if let (PhaseJob::Replay(job), Some(recording)) = (plan.job, plan.recording) {
            // Decoding stops with the run, so what was not decoded is known from the source's own counts.
            if job.duration_ns.is_none() && job.from_ns == 0 && job.to_ns.is_none() {
                accounting.source = times(&recording.manifest.counts.by_opcode, job.loops.unwrap_or(1));
            }
            accounting.close();
        }
        let settings = match serde_json::to_value(plan.job) {
            Ok(Value::Object(settings)) => settings,
            other => unreachable!("a phase's job is a JSON object, not {other:?}"),
        };
        let kind = match plan.job {
            PhaseJob::Prepare(_) => PhaseKind::Prepare,
            PhaseJob::Replay(_) => PhaseKind::Replay,
            PhaseJob::Synthetic(_) => PhaseKind::Synthetic,
        };
        let accounting = if kind == PhaseKind::Replay { accounting.to_map() } else { Map::new() };
        self.phases.push(Phase {
            index,
            name: plan.job.name().into(),
            kind,
            measured: plan.job.measured(),
            start_ns: outcome.start_ns,
            end_ns: outcome.end_ns,
            settings,
            accounting,
        });
        self.latencies.merge(&outcome.latencies);
        self.starved += outcome.starved;
        self.recorder_waits += outcome.recorder_waits;
        self.settings.extend(outcome.settings);
    }
}

fn times(counts: &OpcodeCounts, loops: u32) -> OpcodeCounts {
    let mut all = OpcodeCounts::default();
    (0..loops).for_each(|_| all.merge(counts));
    all
}

/// Closes the recording with everything that is known, and says how the run ended.
fn close(
    ran: Ran,
    writer: Option<RecordingWriter>,
    surroundings: &Surroundings<'_>,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    let reason = surroundings.shared.stop.reason();
    let (status, message) = match (&ran.error, reason) {
        (Some(error), _) => (Status::Failed, Some(error.message.clone())),
        (None, Some(reason)) => (reason.status, Some(reason.message)),
        (None, None) => (Status::Complete, None),
    };
    let accounting = ran.phases.iter().map(|phase| phase.accounting.clone()).collect();
    let warnings = warnings_after(&ran);
    warnings.iter().for_each(|warning| tell(Event::Warning(warning.clone())));
    let mut counts = Counts { by_opcode: ran.issued, ..Counts::default() };
    counts.ios = ran.issued.total().ios;
    counts.bytes = ran.issued.total().bytes;
    if let Some(mut writer) = writer {
        let manifest = writer.manifest_mut();
        manifest.phases = ran.phases;
        manifest.warnings.extend(warnings);
        if let Some(drive) = &mut manifest.drive {
            drive.settings.extend(ran.settings);
        }
        counts = writer.finish(status, message.clone())?.counts;
    }
    if let Some(error) = ran.error {
        return Err(error);
    }
    tell(Event::Finished {
        status,
        reason: message.clone(),
        output: surroundings.job.output.display().to_string(),
        counts,
        accounting,
    });
    Ok(Outcome { status, reason: message, counts, latencies: ran.latencies })
}

fn phase_name(job: &PhaseJob) -> PhaseName {
    let kind = match job {
        PhaseJob::Prepare(_) => "prepare",
        PhaseJob::Replay(_) => "replay",
        PhaseJob::Synthetic(_) => "synthetic",
    };
    PhaseName { name: job.name().into(), kind }
}

fn open_sources(job: &Job) -> Result<Vec<Option<Recording>>, RunError> {
    let open = |phase: &PhaseJob| match phase {
        PhaseJob::Replay(replay) => {
            let recording = Recording::open(&replay.recording)?;
            check_source(&recording, replay)?;
            Ok(Some(recording))
        }
        PhaseJob::Prepare(_) | PhaseJob::Synthetic(_) => Ok(None),
    };
    job.phases.iter().map(open).collect()
}

/// Whether the phase may change what the drive holds.
fn modifies(phase: &PhaseJob, source: Option<&Recording>) -> bool {
    match (phase, source) {
        (PhaseJob::Prepare(_), _) => true,
        (PhaseJob::Synthetic(job), _) => job.read_share < 1.0,
        (PhaseJob::Replay(job), source) => {
            Opcode::ALL.into_iter().filter(|opcode| opcode.modifies()).any(|opcode| {
                job.keeps(opcode)
                    && source.is_none_or(|source| source.manifest.counts.by_opcode.of(opcode).ios > 0)
            })
        }
    }
}

fn open_target(job: &Job, sources: &[Option<Recording>]) -> Result<Target, RunError> {
    let writes = job.phases.iter().zip(sources).any(|(phase, source)| modifies(phase, source.as_ref()));
    let access = if writes { Access::Write } else { Access::ReadOnly };
    let consent = Consent { erase: job.drive.erase.clone(), erase_signatures: job.drive.erase_signatures };
    // The recording's directory does not exist yet; its disk is that of the nearest ancestor that does.
    Ok(Target::open(&job.drive.uri, access, &consent, Some(&job.output))?)
}

/// Refuses a drive on which nothing of the phase fits.
fn check_fit(phase: &PhaseJob, source: Option<&Recording>, target: &Target) -> Result<(), RunError> {
    let identity = target.identity();
    let (capacity_bytes, block_bytes) = (identity.capacity_bytes, identity.logical_block_bytes);
    let too_small =
        |what: String| Err(RunError::usage(format!("{} has {capacity_bytes} bytes, {what}", identity.uri)));
    if capacity_bytes < block_bytes {
        return too_small(format!("less than one block of {block_bytes}: give a larger drive"));
    }
    let job_block_bytes = match phase {
        PhaseJob::Prepare(job) => job.block_bytes,
        PhaseJob::Synthetic(job) => job.block_bytes,
        PhaseJob::Replay(_) => block_bytes,
    };
    if !job_block_bytes.is_multiple_of(block_bytes) {
        let message = format!(
            "block_bytes is {job_block_bytes}, and {} has blocks of {block_bytes}: give a multiple",
            identity.uri
        );
        return Err(RunError::usage(message));
    }
    let (PhaseJob::Replay(job), Some(recording)) = (phase, source) else { return Ok(()) };
    if job.lba != LbaMode::Skip || recording.manifest.counts.end_max_bytes <= capacity_bytes {
        return Ok(());
    }
    let map = lba_map(recording, job, target);
    for row in recording.ordered_rows(OrderBy::Intended)? {
        let IoRecord { offset_bytes, length_bytes, opcode, flags, .. } = row?;
        let (offset_bytes, length_bytes) = (offset_bytes.max(0) as u64, length_bytes.max(0) as u64);
        let command = Command { offset_bytes, length_bytes, opcode, flags };
        if opcode != Opcode::Flush && job.keeps(opcode) && matches!(map.place(command), Placement::At(..)) {
            return Ok(());
        }
    }
    too_small("and every I/O of the recording lies beyond: give --lba wrap, scale or scale-excess, or a larger drive".into())
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

fn warning(code: &str, message: impl Into<String>, remedy: &str) -> Warning {
    Warning { code: code.into(), message: message.into(), remedy: remedy.into() }
}

fn warnings_before(manifest: &Manifest, target: &Target) -> Vec<Warning> {
    let mut warnings = target.warnings().to_vec();
    if manifest.tool.build == "debug" {
        let message = "the engine is a debug build, which times I/O late";
        warnings.push(warning(
            "debug_build",
            message,
            "build it with 'make install', which makes a release build",
        ));
    }
    warnings
}

fn warnings_after(ran: &Ran) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if ran.recorder_waits > 0 {
        let message =
            format!("the recorder was behind {} times, and submission waited for it", ran.recorder_waits);
        warnings.push(warning(
            "recorder_behind",
            message,
            "record to a faster disk, or give the run more CPUs",
        ));
    }
    if ran.starved > 0
        && ran.phases.iter().any(|phase| phase.settings.get("pace").is_some_and(|pace| pace == "timed"))
    {
        let message = format!("the source was decoded too slowly {} times", ran.starved);
        let remedy =
            "I/Os after such a moment are late: look at the certificate, and keep other work off the host";
        warnings.push(warning("source_starved", message, remedy));
    }
    warnings
}
