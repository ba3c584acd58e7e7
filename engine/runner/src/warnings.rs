//! What makes a run's figures less valid than they look, each with its remedy.

use crate::book::Totals;
use crate::host_state::{slow_governor, CPUS};
use crate::job::Job;
use std::path::Path;
use testdrive_drives::Target;
use testdrive_recording::{DriveEvents, DriveIdentity, Manifest, Status, Warning};

/// What can be told before the run.
pub fn before(manifest: &Manifest, target: &Target) -> Vec<Warning> {
    let mut warnings = target.warnings().to_vec();
    if manifest.tool.build == "debug" {
        let message = "the engine is a debug build, which times I/O late";
        warnings.push(Warning::new(
            "debug_build",
            message,
            "build it with 'make install', which makes a release build",
        ));
    }
    // Nothing of the host shows in what a model does, and the null path is not a drive's.
    if matches!(target, Target::Device { .. }) {
        warnings.extend(slow_governor(Path::new(CPUS)));
    }
    warnings
}

/// From this share of its time on, a submitter that could sleep while it waits was what held the loop up.
const SATURATED_SHARE: f64 = 0.95;

/// A closed loop whose submitter never waited for the drive, so that the drive could have done more.
pub fn saturated(phase: &str, cpu_share: f64) -> Option<Warning> {
    if cpu_share < SATURATED_SHARE {
        return None;
    }
    let message = format!(
        "in the phase '{phase}' a submitter had no time to wait ({:.0} % of its CPU): the drive may be faster",
        cpu_share * 100.0
    );
    Some(Warning::new("generator_saturated", message, "spread the phase over more submitters (threads)"))
}

/// Submitters found nothing decoded, so often.
pub fn starved(times: u64) -> Warning {
    let message = format!("the source was decoded too slowly {times} times");
    let remedy =
        "I/Os after such a moment are late: look at the certificate, and keep other work off the host";
    Warning::new("source_starved", message, remedy)
}

/// What a signal does not end.
pub fn format_goes_on(uri: &str) -> Warning {
    Warning::new(
        "format_goes_on",
        format!("{uri} is being formatted, which must not be interrupted: the run ends when that is done"),
        "wait; a second signal ends the run at once, and may leave the drive to be formatted again",
    )
}

/// A purge of a drive that takes no trims.
pub fn no_purge(phase: &str, drive: &DriveIdentity) -> Warning {
    let message = format!("the phase '{phase}' purged nothing: {} takes no trims", drive.uri);
    Warning::new(
        "not_purged",
        message,
        "the drive keeps what it held: purge an NVMe drive with how 'format' (docs/direct-paths.md), another with its own tool",
    )
}

/// A phase that was to end in a steady state, and did not.
pub fn not_steady(phase: &str, rounds: usize) -> Warning {
    let message = format!("the phase '{phase}' did not achieve a steady state in {rounds} rounds");
    let remedy = "give it more or longer rounds (rounds_max, round_ns); what follows is measured on a drive still changing";
    Warning::new("steady_state_not_achieved", message, remedy)
}

/// A group whose last window of rounds was not steady.
pub fn rounds_not_steady(group: &str, rounds: usize) -> Warning {
    let message = format!("'{group}' did not achieve a steady state in {rounds} rounds");
    let remedy = "look at which of the tracked figures still changes, and give it more rounds (rounds_max) or a longer preparation";
    Warning::new("steady_state_not_achieved", message, remedy)
}

/// A drive that was taken from the kernel did not go back to it.
pub fn not_given_back(message: String) -> Warning {
    let remedy = "see where the drive is ('testdrive drives') before anything relies on it";
    Warning::new("drive_not_given_back", message, remedy)
}

/// A drive that did not say that it was shut down, when it was given back.
pub fn not_shut_down(events: &DriveEvents) -> Option<Warning> {
    const CODE: &str = "shutdown_incomplete";
    let event = events.events.iter().find(|event| event.kind == CODE)?;
    let message = format!(
        "the drive did not say within {:.1} s that it was shut down, and was stopped as if its power had failed",
        event.busy_ns as f64 / 1e9
    );
    let remedy = "look at what it makes of that (unsafe shutdowns in its SMART log, its error log) before it is given work";
    Some(Warning::new(CODE, message, remedy))
}

/// The code of a source that lacks events, and of a run whose source, or its source, does.
const LOST: &str = "events_lost";
/// What a recording says some of whose segments are left out.
const LEFT_OUT: &str = "segments_left_out";
const SOURCE_LOST: &str = "source_events_lost";

/// What the recordings that are replayed say of themselves: a workload that is not whole makes no replay that is.
pub fn of_sources<'m>(sources: impl Iterator<Item = &'m Manifest>) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for found in sources.flat_map(|manifest| &manifest.warnings) {
        let message = match found.code.as_str() {
            LOST | LEFT_OUT => format!("the replayed workload is not whole: {}", found.message),
            SOURCE_LOST => found.message.clone(),
            _ => continue,
        };
        let own = Warning::new(SOURCE_LOST, message, &found.remedy);
        if !warnings.contains(&own) {
            warnings.push(own);
        }
    }
    warnings
}

/// What the run itself showed.
pub fn after(totals: &Totals, job: &Job, status: Status, modelled: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let (Some(path), true) = (&job.save_state, status != Status::Complete) {
        let message =
            format!("the drive's state was not saved in {}, since the run is not complete", path.display());
        warnings.push(Warning::new("state_not_saved", message, "run it again, with the drive made anew"));
    }
    // A model's time stands still while its submitter waits.
    if totals.recorder_waits > 0 && !modelled {
        let message =
            format!("the recorder was behind {} times, and submission waited for it", totals.recorder_waits);
        warnings.push(Warning::new(
            "recorder_behind",
            message,
            "record to a faster disk, or give the run more CPUs",
        ));
    }
    if totals.starved > 0 {
        warnings.push(starved(totals.starved));
    }
    if totals.issued.total().ios == 0 {
        let remedy = "look at the window (--from, --to) and the filters (--only, --without)";
        warnings.push(Warning::new("nothing_issued", "no I/O was issued", remedy));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_recording::{DriveEvent, RecordingKind};

    fn manifest(warnings: Vec<Warning>) -> Manifest {
        Manifest { warnings, ..Manifest::new(RecordingKind::Capture, "clock_monotonic") }
    }

    #[test]
    fn a_submitter_that_never_waits_is_what_held_the_loop_up() {
        assert_eq!(saturated("fill", 0.94), None);
        let found = saturated("fill", 0.99).unwrap();
        assert_eq!(found.code, "generator_saturated");
        assert!(found.message.contains("'fill'") && found.message.contains("99 %"), "{}", found.message);
    }

    #[test]
    fn a_drive_that_was_not_shut_down_in_order_is_warned_of_once() {
        let event = |kind: &str| DriveEvent {
            kind: kind.into(),
            start_ns: 5,
            end_ns: 15_000_000_005,
            busy_ns: 15_000_000_000,
            amount: 0,
            unit: "commands".into(),
        };
        let of = |kinds: &[&str]| {
            let events = kinds.iter().map(|kind| event(kind)).collect();
            not_shut_down(&DriveEvents { events, dropped: Vec::new() })
        };
        assert_eq!((of(&[]), of(&["controller_reset"])), (None, None));
        let warning = of(&["controller_gone", "shutdown_incomplete"]).unwrap();
        assert_eq!(warning.code, "shutdown_incomplete");
        assert!(warning.message.contains("within 15.0 s"), "{}", warning.message);
    }

    #[test]
    fn lost_events_go_with_a_workload_through_any_number_of_replays() {
        let lost = Warning::new(LOST, "the kernel lost 7 events", "capture again");
        let other = Warning::new("feedback", "x", "y");
        let captured = manifest(vec![other, lost]);
        let first = of_sources([&captured, &captured].into_iter());
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].message, "the replayed workload is not whole: the kernel lost 7 events");
        assert_eq!((first[0].code.as_str(), first[0].remedy.as_str()), (SOURCE_LOST, "capture again"));
        assert_eq!(of_sources([&manifest(first.clone())].into_iter()), first);
        assert!(of_sources([&manifest(Vec::new())].into_iter()).is_empty());
    }
}
