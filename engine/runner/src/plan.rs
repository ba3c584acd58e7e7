//! What a phase of the job comes to on a given target: submitters, depth, pacing, sizes, and how much there is to do.

use crate::administer::Administration;
use crate::error::RunError;
use crate::event::{PhaseName, PlannedPhase, RoundPosition};
use crate::job::{Data, Pace, PhaseJob, ReplayJob, Streams};
use crate::job_generated::{ArrivalsJob, SteadyStateJob};
use crate::job_prepare::{PrepareMethod, PurgeHow};
use crate::job_streams::MaxLag;
use crate::orders::Pacing;
use crate::throttle::Limits;
use crate::workload::Workload;
use std::thread;
use testdrive_core::{LbaMap, Opcode, OpcodeCounts};
use testdrive_drives::{Target, WriteData};
use testdrive_recording::{DriveIdentity, Recording};

/// A phase whose inputs have been checked.
pub struct PhasePlan<'a> {
    /// What was asked.
    pub job: &'a PhaseJob,
    /// The source of a replay.
    pub recording: Option<&'a Recording>,
}

impl PhasePlan<'_> {
    /// How many submitters the phase has on this target.
    pub fn submitters(&self, target: &Target) -> usize {
        match self.job {
            PhaseJob::Replay(ReplayJob { streams: Streams::Source, .. }) if !target.identity().modelled => {
                // A core is left to the feeder and the recorder; but streams that share one submitter would not be kept apart.
                let cores = thread::available_parallelism().map_or(1, usize::from).saturating_sub(1);
                cores.min(target.queues_max().unwrap_or(usize::MAX)).max(2)
            }
            // A model has one queue: the I/Os of all threads go through it, in turn.
            PhaseJob::Synthetic(job) if !target.identity().modelled => job.threads as usize,
            _ => 1,
        }
    }

    /// Looks whether a drive has a queue for each of the phase's submitters.
    ///
    /// # Errors
    /// A usage error that says what to do.
    pub fn check_queues(&self, target: &Target) -> Result<(), RunError> {
        check_queues(self.submitters(target), target.queues_max(), &target.identity().uri, self.is_replay())
            .map_err(|error| error.in_phase(self.job.name()))
    }

    /// When I/Os are issued.
    pub fn pacing(&self) -> Pacing {
        match self.job {
            PhaseJob::Prepare(job) => Pacing::Closed(job.depth as usize),
            PhaseJob::Synthetic(job) if job.is_open() => Pacing::Timed,
            PhaseJob::Synthetic(job) => Pacing::Closed(job.depth as usize),
            PhaseJob::Replay(job) => match job.pace {
                Pace::Timed => Pacing::Timed,
                Pace::Depth => Pacing::Gated,
                Pace::Asap => Pacing::Closed(job.depth as usize),
            },
        }
    }

    /// Slots of the `index`-th of so many submitters.
    pub fn depth(&self, index: usize, submitters: usize) -> usize {
        let depth = match (self.pacing(), self.job) {
            (Pacing::Closed(depth), _) => depth,
            (_, PhaseJob::Replay(job)) => job.max_in_flight as usize,
            (_, PhaseJob::Synthetic(job)) => job.max_in_flight as usize,
            (_, PhaseJob::Prepare(_)) => unreachable!("a preparation is a closed loop"),
        };
        match self.job {
            PhaseJob::Replay(_) => depth.div_ceil(submitters),
            _ => depth / submitters + usize::from(index < depth % submitters),
        }
    }

    /// Whether a recording is replayed.
    pub fn is_replay(&self) -> bool {
        matches!(self.job, PhaseJob::Replay(_))
    }

    /// What holds each of so many submitters of a closed loop back.
    pub fn limits(&self, submitters: usize) -> Limits {
        match self.job {
            PhaseJob::Synthetic(job) if !job.is_open() => {
                let part = |rate: Option<f64>| rate.map(|rate| rate / submitters as f64);
                Limits {
                    iops: part(job.rate_limit_iops),
                    bytes_per_s: part(job.rate_limit_bytes_per_s),
                    on_off: job.on_off(),
                }
            }
            _ => Limits::default(),
        }
    }

    /// How late an I/O may be before the run is given up.
    pub fn max_lag(&self) -> MaxLag {
        match self.job {
            PhaseJob::Synthetic(job) => job.max_lag(),
            PhaseJob::Replay(job) => job.max_lag_ns.map_or(MaxLag::None, MaxLag::Same),
            PhaseJob::Prepare(_) => MaxLag::None,
        }
    }

    /// How many threads the phase asks for.
    pub fn threads(&self) -> u32 {
        match self.job {
            PhaseJob::Synthetic(job) => job.threads,
            PhaseJob::Prepare(_) | PhaseJob::Replay(_) => 1,
        }
    }

    /// What its streams are called; none of a phase without.
    pub fn stream_names(&self) -> Vec<String> {
        match self.job {
            PhaseJob::Synthetic(job) => job.stream_names(),
            PhaseJob::Prepare(_) | PhaseJob::Replay(_) => Vec::new(),
        }
    }

    /// Whether the times of some I/Os follow from the completions of others.
    pub fn follows_completions(&self) -> bool {
        let follows = |arrivals: &ArrivalsJob| {
            matches!(arrivals, ArrivalsJob::AfterCompletion { .. } | ArrivalsJob::Act { .. })
        };
        let PhaseJob::Synthetic(job) = self.job else { return false };
        job.arrivals.iter().chain(job.streams.iter().map(|stream| &stream.arrivals)).any(follows)
    }

    /// The CPU that the `index`-th submitter is kept on.
    pub fn cpu(&self, index: usize) -> Option<usize> {
        match self.job {
            PhaseJob::Synthetic(job) if !job.cpus.is_empty() => Some(job.cpus[index % job.cpus.len()]),
            _ => None,
        }
    }

    /// What is generated on a drive that the phase was found to fit, of each of its streams; nothing for a replay.
    pub fn workloads(&self, drive: &DriveIdentity) -> Vec<Workload> {
        Workload::all_of(self.job, drive).expect("the phase was checked against the drive")
    }

    /// Whether the phase is to trim everything.
    pub fn is_purge(&self) -> bool {
        matches!(self.job, PhaseJob::Prepare(job) if job.method == PrepareMethod::Purge && job.how == PurgeHow::Trim)
    }

    /// The steady state that ends the phase.
    pub fn steady_state(&self) -> Option<SteadyStateJob> {
        match self.job {
            PhaseJob::Synthetic(job) => job.steady_state,
            PhaseJob::Prepare(_) | PhaseJob::Replay(_) => None,
        }
    }

    /// The longest transfer.
    pub fn io_bytes_max(&self, drive: &DriveIdentity) -> u64 {
        let block_bytes = drive.logical_block_bytes;
        if Administration::of(self.job).is_some() {
            return block_bytes;
        }
        match (self.job, self.recording) {
            (PhaseJob::Prepare(_) | PhaseJob::Synthetic(_), _) => {
                let workloads = self.workloads(drive);
                workloads.iter().map(Workload::transfer_bytes_max).max().unwrap_or(block_bytes)
            }
            (PhaseJob::Replay(_), Some(recording)) => {
                let counts = &recording.manifest.counts.by_opcode;
                let longest = [Opcode::Read, Opcode::Write]
                    .map(|opcode| counts.of(opcode).length_max_bytes)
                    .into_iter()
                    .max();
                // Widening to whole blocks adds up to a block at either end.
                longest.unwrap_or(0).next_multiple_of(block_bytes) + 2 * block_bytes
            }
            (PhaseJob::Replay(_), None) => unreachable!("a replay's recording was opened with the job"),
        }
    }

    /// I/Os to come, where they are known.
    pub fn planned_ios(&self, drive: &DriveIdentity) -> Option<u64> {
        if Administration::of(self.job).is_some() {
            return Some(0);
        }
        match (self.job, self.recording) {
            (PhaseJob::Prepare(_) | PhaseJob::Synthetic(_), _) => match &self.workloads(drive)[..] {
                [workload] => workload.planned_ios(),
                _ => None,
            },
            (PhaseJob::Replay(job), Some(recording)) if job.duration_ns.is_none() => {
                let counts = measured_counts(recording);
                let kept = Opcode::ALL.into_iter().filter(|opcode| job.keeps(*opcode));
                let ios: u64 = kept.map(|opcode| counts.of(opcode).ios).sum();
                let whole = job.from_ns == 0 && job.to_ns.is_none();
                whole.then(|| ios.saturating_mul(u64::from(job.loops.unwrap_or(1))))
            }
            _ => None,
        }
    }

    /// The phase as it is announced before the run; one of a group for its first round.
    pub fn announced(&self, drive: &DriveIdentity, rounds: Option<RoundPosition>) -> PlannedPhase {
        PlannedPhase {
            phase: PhaseName::of(self.job, rounds),
            planned_ios: self.planned_ios(drive),
            planned_ns: self.planned_ns(),
        }
    }

    /// Time to come, where it is known.
    pub fn planned_ns(&self) -> Option<i64> {
        match (self.job, self.recording) {
            (PhaseJob::Synthetic(job), _) => job.duration_ns(),
            (PhaseJob::Replay(job), Some(recording)) if job.pace == Pace::Timed => {
                let span_ns = measured_span_ns(recording);
                let end_ns = job.to_ns.unwrap_or(span_ns).min(span_ns.max(job.from_ns));
                let once_ns = ((end_ns - job.from_ns) as f64 / job.speed) as i64;
                let loops_ns = once_ns.saturating_mul(i64::from(job.loops.unwrap_or(1)));
                match (job.duration_ns, job.loops) {
                    (Some(duration_ns), None) => Some(duration_ns),
                    (Some(duration_ns), Some(_)) => Some(duration_ns.min(loops_ns)),
                    (None, _) => Some(loops_ns),
                }
            }
            (PhaseJob::Replay(job), _) => job.duration_ns,
            _ => None,
        }
    }

    /// When to stop submitting, however much is left.
    pub fn duration_ns(&self) -> Option<i64> {
        match self.job {
            PhaseJob::Synthetic(job) => job.duration_ns(),
            PhaseJob::Replay(job) => job.duration_ns,
            PhaseJob::Prepare(_) => None,
        }
    }
}

fn check_queues(
    submitters: usize,
    queues_max: Option<usize>,
    uri: &str,
    is_replay: bool,
) -> Result<(), RunError> {
    let Some(most) = queues_max.filter(|most| submitters > *most) else { return Ok(()) };
    let key = if is_replay { "streams 'one'".to_string() } else { format!("threads {most}") };
    Err(RunError::usage(format!(
        "{submitters} submitters need a queue pair each, and {uri} has {most} (with interrupts=yes also the host's interrupts limit them): give {key}, or name the block device"
    )))
}

/// What of a recording is replayed: a run's preparation is not.
pub fn measured_counts(recording: &Recording) -> OpcodeCounts {
    let manifest = &recording.manifest;
    if manifest.phases.iter().all(|phase| phase.measured) {
        return manifest.counts.by_opcode;
    }
    let mut counts = OpcodeCounts::default();
    for phase in manifest.phases.iter().filter(|phase| phase.measured) {
        let issued = phase.accounting.get("issued").cloned().unwrap_or_default();
        // A phase without an accounting was cut off by a crash; what it issued is known only by reading it.
        counts.merge(&serde_json::from_value(issued).unwrap_or_default());
    }
    counts
}

/// From the start of the replayed part of a recording to its end.
fn measured_span_ns(recording: &Recording) -> i64 {
    let manifest = &recording.manifest;
    let measured = || manifest.phases.iter().filter(|phase| phase.measured);
    if measured().count() == manifest.phases.len() {
        return manifest.counts.span_ns;
    }
    let start_ns = measured().map(|phase| phase.start_ns).min().unwrap_or(0);
    measured().map(|phase| phase.end_ns).max().unwrap_or(0).saturating_sub(start_ns)
}

/// What writes carry, as the drives crate has it.
pub fn write_data(data: Data) -> WriteData {
    match data {
        Data::Incompressible => WriteData::Incompressible,
        Data::Zero => WriteData::Zero,
        Data::CompressibleShare(share) => WriteData::CompressibleShare(share),
    }
}

/// Places the source's I/Os on the target.
pub fn lba_map(recording: &Recording, job: &ReplayJob, identity: &DriveIdentity) -> LbaMap {
    let source_bytes = match &recording.manifest.drive {
        Some(drive) if drive.capacity_bytes >= recording.manifest.counts.end_max_bytes => {
            drive.capacity_bytes
        }
        _ => recording.manifest.counts.end_max_bytes,
    };
    LbaMap::new(job.lba, source_bytes, identity.capacity_bytes, identity.logical_block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_submitters_than_queue_pairs_are_a_mistake_of_usage() {
        assert!(check_queues(2, Some(2), "pci:0000:01:00.0", false).is_ok());
        assert!(check_queues(64, None, "/dev/nvme0n1", false).is_ok());
        let refused = |submitters, most, is_replay| {
            let error = check_queues(submitters, Some(most), "pci:0000:01:00.0", is_replay).unwrap_err();
            assert_eq!(error.kind.exit_status(), 2);
            error.message
        };
        let told = refused(4, 2, false);
        assert!(
            told.contains("4 submitters") && told.contains("has 2 ") && told.contains("give threads 2,"),
            "{told}"
        );
        assert!(refused(2, 1, true).contains("give streams 'one',"));
    }
}
