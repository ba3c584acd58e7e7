//! What a job needs before it can run: its recordings, its drive, and that the one fits the other.

use crate::administer::Administration;
use crate::arrivals::ArrivalFeeder;
use crate::error::RunError;
use crate::job::{Job, PhaseJob, Step};
use crate::job_generated::ArrivalsJob;
use crate::placement::check_cpus;
use crate::plan::lba_map;
use crate::replay_check::check_source;
use crate::workload::Workload;
use testdrive_core::{Command, IoRecord, LbaMode, Opcode, Placement};
use testdrive_drives::{Access, Consent, FeaturesSet, Target};
use testdrive_recording::{DriveIdentity, OrderBy, Recording};

/// Opens the recordings that the job replays, one for each replay phase (those of a group once), and looks whether the host has the CPUs that it names.
///
/// # Errors
/// When one cannot be read, or cannot be replayed as asked; when a CPU is not this process's.
pub fn open_sources(job: &Job) -> Result<Vec<Option<Recording>>, RunError> {
    let open = |phase: &PhaseJob| match phase {
        PhaseJob::Replay(replay) => {
            let recording = Recording::open(&replay.recording)?;
            check_source(&recording, replay)?;
            Ok(Some(recording))
        }
        PhaseJob::Synthetic(job) => {
            let in_phase = |error: RunError| error.in_phase(phase.name());
            check_cpus(&job.cpus).map_err(in_phase)?;
            if let Some(ArrivalsJob::Recording { recording }) = &job.arrivals {
                // Only looked at: what is replayed of it are its times, so that it is no source of the run.
                ArrivalFeeder::open(recording).map_err(in_phase)?;
            }
            Ok(None)
        }
        PhaseJob::Prepare(_) => Ok(None),
    };
    job.each_phase().map(open).collect()
}

/// Whether the phase may change what the drive holds.
pub fn modifies(phase: &PhaseJob, source: Option<&Recording>) -> bool {
    match (phase, source) {
        (PhaseJob::Prepare(_), _) => true,
        (PhaseJob::Synthetic(job), _) => {
            job.parts().iter().any(|part| part.trim_share > 0.0 || part.write_share() > 0.0)
        }
        (PhaseJob::Replay(job), source) => {
            Opcode::ALL.into_iter().filter(|opcode| opcode.modifies()).any(|opcode| {
                job.keeps(opcode)
                    && source.is_none_or(|source| source.manifest.counts.by_opcode.of(opcode).ios > 0)
            })
        }
    }
}

/// Opens the drive, for writing only where one of these steps writes.
///
/// # Errors
/// When the guard refuses, or the system does.
pub fn open_target(job: &Job, steps: &[Step], sources: &[Option<Recording>]) -> Result<Target, RunError> {
    let phases = || steps.iter().flat_map(Step::phases);
    let writes = phases().zip(sources).any(|(phase, source)| modifies(phase, source.as_ref()));
    let whole = phases().filter_map(Administration::of).map(Administration::access);
    // A sanitize is of more than a format can be.
    let access = match whole.max_by_key(|access| *access == Access::Sanitize) {
        Some(access) => access,
        None if writes || !job.drive.features().is_empty() => Access::Write,
        None => Access::ReadOnly,
    };
    let consent = Consent { erase: job.drive.erase.clone(), erase_signatures: job.drive.erase_signatures };
    // Mostly the recording's directory does not exist yet; its disk is that of the nearest ancestor that does.
    Ok(Target::open(&job.drive.uri, access, &consent, Some(&job.output))?)
}

/// What the drive is when each phase begins: a format changes the size of its blocks. Every phase is looked at on the drive as it will be.
///
/// # Errors
/// When one does not fit, or cannot be done: a usage error that says what to do.
pub fn check_all_fit(
    steps: &[Step],
    sources: &[Option<Recording>],
    target: &Target,
) -> Result<Vec<DriveIdentity>, RunError> {
    let mut identity = target.identity().clone();
    let mut identities = Vec::new();
    let mut hindrance = target.nvme().and_then(|drive| drive.hindrance());
    for (phase, source) in steps.iter().flat_map(Step::phases).zip(sources) {
        hindrance = hindrance_after(phase, hindrance, &identity.uri)?;
        check_fit(phase, source.as_ref(), target, &identity)?;
        identities.push(identity.clone());
        if let Some(what) = Administration::of(phase) {
            identity =
                what.identity_after(target, &identity).map_err(|error| error.in_phase(phase.name()))?;
        }
    }
    Ok(identities)
}

/// What hinders I/O to a drive after a phase, of what did before it.
///
/// # Errors
/// When the phase has I/O that is hindered.
fn hindrance_after(
    phase: &PhaseJob,
    before: Option<&'static str>,
    uri: &str,
) -> Result<Option<&'static str>, RunError> {
    match (Administration::of(phase), before) {
        (Some(Administration::Format(..)), _) | (_, None) => Ok(None),
        (Some(Administration::Sanitize), before) => Ok(before),
        (None, Some(what)) => Err(RunError::usage(format!("{uri} {what}")).in_phase(phase.name())),
    }
}

/// Sets the drive's features as the job asks, until what is returned is dropped.
///
/// # Errors
/// When the drive or its path does not have them.
pub fn set_features(job: &Job, target: &Target) -> Result<Option<FeaturesSet>, RunError> {
    let choice = job.drive.features();
    if choice.is_empty() {
        return Ok(None);
    }
    let drive = target.nvme().ok_or_else(|| {
        RunError::usage(format!(
            "volatile_write_cache and power_state cannot be set on {}: give the drive's NVMe character device, such as /dev/ng0n1, or its PCI address, such as pci:0000:01:00.0",
            target.identity().uri
        ))
    })?;
    FeaturesSet::set(drive, choice).map(Some).map_err(|error| RunError::usage(error.to_string()))
}

/// Refuses a drive on which nothing of the phase fits.
///
/// # Errors
/// A usage error that says what to do.
pub fn check_fit(
    phase: &PhaseJob,
    source: Option<&Recording>,
    target: &Target,
    identity: &DriveIdentity,
) -> Result<(), RunError> {
    let (capacity_bytes, block_bytes) = (identity.capacity_bytes, identity.logical_block_bytes);
    let too_small =
        |what: String| Err(RunError::usage(format!("{} has {capacity_bytes} bytes, {what}", identity.uri)));
    if capacity_bytes < block_bytes {
        return too_small(format!("less than one block of {block_bytes}: give a larger drive"));
    }
    Workload::all_of(phase, identity).map_err(|error| error.in_phase(phase.name()))?;
    if let PhaseJob::Synthetic(job) = phase {
        let trim_share = job.parts().iter().map(|part| part.trim_share).fold(0.0, f64::max);
        if trim_share > 0.0 && target.unsupported().contains(&Opcode::Trim) {
            let (share, uri) = (trim_share, &identity.uri);
            let message =
                format!("trim_share is {share}, and {uri} takes no trims: give 0, or another drive");
            return Err(RunError::usage(message).in_phase(phase.name()));
        }
    }
    let (PhaseJob::Replay(job), Some(recording)) = (phase, source) else { return Ok(()) };
    if job.lba != LbaMode::Skip || recording.manifest.counts.end_max_bytes <= capacity_bytes {
        return Ok(());
    }
    let map = lba_map(recording, job, identity);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Whether these phases can be done in turn on a drive that is hindered, and what stands against it.
    fn in_turn(phases: serde_json::Value) -> Result<Option<&'static str>, String> {
        let phases: Vec<PhaseJob> = serde_json::from_value(phases).unwrap();
        let turn = |before, phase: &PhaseJob| hindrance_after(phase, before, "/dev/ng0n1");
        phases.iter().try_fold(Some("has metadata"), turn).map_err(|error| {
            assert_eq!(error.kind.exit_status(), 2);
            error.message
        })
    }

    #[test]
    fn what_hinders_io_is_no_hindrance_to_the_format_that_takes_it_away() {
        let format = json!({"kind": "prepare", "method": "format", "logical_block_bytes": 4096});
        let purge = |how| json!({"kind": "prepare", "method": "purge", "how": how});
        let write = json!({"kind": "synthetic", "read_share": 0, "ios": 10});
        assert_eq!(in_turn(json!([format, write, purge("trim")])), Ok(None));
        assert_eq!(in_turn(json!([purge("format"), write])), Ok(None));
        for refused in [json!([write, format]), json!([purge("sanitize"), write]), json!([purge("trim")])] {
            let told = in_turn(refused).unwrap_err();
            assert!(told.starts_with("phase '") && told.ends_with("/dev/ng0n1 has metadata"), "{told}");
        }
        assert_eq!(in_turn(json!([purge("sanitize")])), Ok(Some("has metadata")));
    }
}
