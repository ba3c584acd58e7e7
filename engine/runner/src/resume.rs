//! Going on with a run that ended before its plan did: what is kept, what is run again, and whether it may be.

use crate::error::RunError;
use crate::inputs::modifies;
use crate::job::{Job, Keep, PhaseJob, Step};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use testdrive_recording::{
    rfc3339_now, DriveIdentity, Manifest, Phase, Recording, RecordingKind, Status, Warning,
};

/// The manifest's key for where a recording was interrupted and went on.
const GAPS: &str = "gaps";
/// The accounting's key that tells whether a phase came to its planned end.
pub const COMPLETE: &str = "complete";
const SECOND_NS: i64 = 1_000_000_000;

/// How an interrupted run goes on.
pub struct Resumption {
    /// The recording's manifest, with what is not measured any more set aside.
    pub manifest: Manifest,
    /// The step of the job that is run first: a phase, or a group of them that is run in rounds.
    pub first_step: usize,
    /// The index in the recording that it has.
    pub first_index: u16,
    /// Where the recording's clock goes on.
    pub origin_ns: i64,
    /// What was decided, for people and for the manifest.
    pub warning: Warning,
}

impl Resumption {
    /// Looks at what was recorded, and decides where to go on.
    ///
    /// A phase that was cut is run again. If it changes the drive and preparation stands right before it, or it is preparation itself,
    /// that preparation is run again too, from its first phase on: the phase was to begin on a drive in a defined state. Rounds that were
    /// cut are run again from the first one on, since they are judged together.
    ///
    /// # Errors
    /// When the recording is none of an interrupted run on a real drive, or of another plan, or nothing of the plan is left.
    pub fn of(job: &Job, sources: &[Option<Recording>]) -> Result<Resumption, RunError> {
        let path = job.output.display();
        let mut manifest = Recording::open(&job.output)?.manifest;
        check_status(&manifest).map_err(|why| RunError::usage(format!("{path} cannot be resumed: {why}")))?;
        check_same(job, &manifest)
            .map_err(|why| RunError::usage(format!("{path} cannot be resumed: {why}")))?;
        let stretches = stretches(job, &manifest)
            .map_err(|why| RunError::usage(format!("{path} cannot be resumed: {why}")))?;
        let cut = stretches.iter().position(|stretch| !stretch.complete);
        let next = cut.unwrap_or(stretches.len());
        if next >= job.phases.len() {
            let message = format!("{path} has every phase of the plan: there is nothing to resume");
            return Err(RunError::usage(message));
        }
        let writes = writes(job, sources, next);
        let first_step = if cut.is_some() && writes { preparation_of(&job.phases, next) } else { next };
        let end_ns = manifest.phases.iter().map(|phase| phase.end_ns.max(phase.start_ns)).max().unwrap_or(0);
        let origin_ns = (end_ns / SECOND_NS + 2) * SECOND_NS;
        let set_aside: Vec<usize> =
            stretches.iter().skip(first_step).flat_map(|stretch| stretch.phases.clone()).collect();
        let indices: Vec<u16> = set_aside.iter().map(|&at| manifest.phases[at].index).collect();
        let warning = told(job, &manifest, first_step, next, cut.is_some());
        let gap = json!({
            "after_ns": end_ns,
            "resumed_ns": origin_ns,
            "resumed_at": rfc3339_now(),
            "reason": manifest.status_reason,
            "set_aside": indices,
        });
        for at in set_aside {
            set_phase_aside(&mut manifest, at);
        }
        match manifest.other.get_mut(GAPS) {
            Some(Value::Array(gaps)) => gaps.push(gap),
            _ => {
                manifest.other.insert(GAPS.into(), json!([gap]));
            }
        }
        manifest.warnings.push(warning.clone());
        let first_index = manifest.phases.iter().map(|phase| phase.index + 1).max().unwrap_or(0);
        Ok(Resumption { manifest, first_step, first_index, origin_ns, warning })
    }

    /// Whether it is the drive that the run began on.
    ///
    /// # Errors
    /// A usage error that names what differs.
    pub fn check_drive(&self, found: &DriveIdentity) -> Result<(), RunError> {
        let Some(began) = &self.manifest.drive else { return Ok(()) };
        let place = |uri: &str| uri.split('?').next().unwrap_or_default().to_string();
        let pairs = [
            ("model", began.model.clone(), found.model.clone()),
            ("serial number", began.serial.clone(), found.serial.clone()),
            ("capacity", began.capacity_bytes.to_string(), found.capacity_bytes.to_string()),
            ("block", began.logical_block_bytes.to_string(), found.logical_block_bytes.to_string()),
        ];
        // A path may change from boot to boot; without a serial number it is all that there is.
        let path = ("path", place(&began.uri), place(&found.uri));
        let path = began.serial.is_empty().then_some(path);
        match pairs.into_iter().chain(path).find(|(_, began, found)| began != found) {
            None => Ok(()),
            Some((what, began, found)) => Err(RunError::usage(format!(
                "the run began on another drive: its {what} was '{began}', and that of {} is '{found}'",
                self.manifest.drive.as_ref().map_or("this one", |drive| drive.uri.as_str()),
            ))),
        }
    }
}

/// Why a recording cannot be gone on with, whatever the job.
fn check_status(manifest: &Manifest) -> Result<(), String> {
    if manifest.kind != RecordingKind::Run {
        return Err("it is not of a run".into());
    }
    match manifest.status {
        Status::Complete => return Err("its run is complete".into()),
        Status::Running => return Err("it is being written".into()),
        Status::Interrupted | Status::Failed => {}
    }
    if manifest.drive.as_ref().is_some_and(|drive| drive.modelled) {
        return Err("its drive is a model, whose state was gone with the run: run the plan anew".into());
    }
    Ok(())
}

/// Why the job is another one than the recording's.
fn check_same(job: &Job, manifest: &Manifest) -> Result<(), String> {
    if (job.keep == Keep::Slowest) != manifest.kept.is_some() {
        return Err("it keeps something else of its I/Os: give the same --keep".into());
    }
    if !job.record {
        return Err("a run that keeps nothing cannot go on with it: record must be true".into());
    }
    let plan = job.plan.clone().map_or(Value::Null, Value::Object);
    let began = manifest.plan.clone().map_or(Value::Null, Value::Object);
    if let Some(what) = difference("plan", &began, &plan) {
        return Err(format!("the plan or its parameters differ: {what}; give those of the run"));
    }
    Ok(())
}

/// The phases of the recording that a step of the job came to.
struct Stretch {
    /// Places in the manifest's list.
    phases: Vec<usize>,
    /// Whether it came to its planned end.
    complete: bool,
}

/// What the recording has of each step, in order, as far as it got.
fn stretches(job: &Job, manifest: &Manifest) -> Result<Vec<Stretch>, String> {
    let live = live_phases(manifest);
    let mut rest = live.as_slice();
    let mut found: Vec<Stretch> = Vec::new();
    for step in &job.phases {
        let Some(&first) = rest.first() else { break };
        let count = match step {
            Step::Once(phase) => {
                let began = Value::Object(manifest.phases[first].settings.clone());
                let now = serde_json::to_value(phase).map_err(|error| error.to_string())?;
                if let Some(what) = difference(&format!("phase '{}'", phase.name()), &began, &now) {
                    return Err(format!("the plan or its parameters differ: {what}; give those of the run"));
                }
                1
            }
            Step::Rounds(group) => {
                let is_of = |at: &&usize| {
                    manifest.phases[**at].settings.get("rounds").and_then(Value::as_str) == Some(&group.name)
                };
                rest.iter().take_while(is_of).count()
            }
        };
        if count == 0 {
            return Err(format!("it has something else where the plan has '{}'", step.name()));
        }
        let (mine, others) = rest.split_at(count);
        rest = others;
        let last = &manifest.phases[mine[count - 1]];
        let complete = is_complete(last) && (matches!(step, Step::Once(_)) || rounds_are_over(last));
        found.push(Stretch { phases: mine.to_vec(), complete });
    }
    match rest {
        [] => Ok(found),
        _ => Err("it has more phases than the plan".into()),
    }
}

/// Whether the phase ended its group's last round.
fn rounds_are_over(phase: &Phase) -> bool {
    let Some(rounds) = phase.accounting.get("rounds") else { return false };
    let count = |key: &str| {
        rounds.get(key).and_then(|value| value.as_array().map(|all| all.len() as u64).or(value.as_u64()))
    };
    rounds.get("achieved") == Some(&Value::Bool(true)) || count("done") >= count("rounds_max")
}

/// Whether a step changes what the drive holds.
fn writes(job: &Job, sources: &[Option<Recording>], step: usize) -> bool {
    let first: usize = job.phases[..step].iter().map(|step| step.phases().len()).sum();
    let phases = job.phases[step].phases();
    phases.iter().zip(&sources[first..]).any(|(phase, source)| modifies(phase, source.as_ref()))
}

/// The first place in which two values differ, in words.
fn difference(place: &str, began: &Value, now: &Value) -> Option<String> {
    if let (Value::Object(began), Value::Object(now)) = (began, now) {
        let keys: BTreeSet<&String> = began.keys().chain(now.keys()).collect();
        return keys.into_iter().find_map(|key| {
            let null = Value::Null;
            difference(
                &format!("{place}, {key}"),
                began.get(key).unwrap_or(&null),
                now.get(key).unwrap_or(&null),
            )
        });
    }
    // Whoever reads a manifest and writes it again may name what is not there.
    let is_nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let same = began == now || (is_nothing(began) && is_nothing(now));
    (!same).then(|| format!("{place} was {began} and is {now}"))
}

/// Places in the manifest's list of the phases that stand for those of the plan, in their order.
fn live_phases(manifest: &Manifest) -> Vec<usize> {
    let gaps = manifest.other.get(GAPS).and_then(Value::as_array).into_iter().flatten();
    let aside: BTreeSet<u64> = gaps
        .flat_map(|gap| gap.get("set_aside").and_then(Value::as_array).into_iter().flatten())
        .filter_map(Value::as_u64)
        .collect();
    let phases = manifest.phases.iter().enumerate();
    phases.filter(|(_, phase)| !aside.contains(&u64::from(phase.index))).map(|(at, _)| at).collect()
}

fn is_complete(phase: &Phase) -> bool {
    phase.accounting.get(COMPLETE) == Some(&Value::Bool(true))
}

/// The first step of the preparation that a step is part of, or that stands right before it; else the step itself.
fn preparation_of(steps: &[Step], step: usize) -> usize {
    let prepares = |at: &usize| matches!(steps[*at], Step::Once(PhaseJob::Prepare(_)));
    (0..step).rev().take_while(prepares).last().unwrap_or(step)
}

/// Takes a phase out of what is measured, under a name that says why.
fn set_phase_aside(manifest: &mut Manifest, at: usize) {
    let suffix = if is_complete(&manifest.phases[at]) { "superseded" } else { "partial" };
    let base = format!("{}-{suffix}", manifest.phases[at].name);
    let taken = |name: &str| manifest.phases.iter().any(|phase| phase.name == name);
    let name = (1..)
        .map(|number| if number == 1 { base.clone() } else { format!("{base}-{number}") })
        .find(|name| !taken(name))
        .expect("a number is free");
    let phase = &mut manifest.phases[at];
    phase.name = name;
    phase.measured = false;
}

fn told(job: &Job, manifest: &Manifest, first: usize, next: usize, was_cut: bool) -> Warning {
    let name = job.phases[next].name();
    let why = manifest.status_reason.as_deref().unwrap_or("interrupted");
    let began = if was_cut { format!("in the phase '{name}'") } else { format!("before the phase '{name}'") };
    let again = match (was_cut, next - first) {
        (false, _) => "nothing is run again".to_string(),
        (true, 0) => "that phase is run again, from its beginning".to_string(),
        (true, _) => format!(
            "it is run again from its preparation on ('{}'), since it was to begin on a prepared drive",
            job.phases[first].name()
        ),
    };
    Warning {
        code: "resumed".into(),
        message: format!("the run ended {began} ({why}) and was resumed: {again}"),
        remedy: "the drive was idle in between, and keeps what the cut phase wrote: where that matters, run the whole plan anew"
            .into(),
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
