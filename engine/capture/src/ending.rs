//! What a recording says of how it was captured: source, phase, what was lost, and what to beware of.

use crate::filter::Recorded;
use crate::stream::Noted;
use crate::target::Target;
use serde_json::{json, Value};
use testdrive_core::NS_PER_S;
use testdrive_recording::{Dropped, Manifest, Phase, PhaseKind, Warning};
use testdrive_traces::{Decoded, Events, TraceError};

/// Facts of a capture that all its recordings share.
#[derive(Clone, Debug)]
pub struct Facts {
    /// On the kernel's clock.
    pub start_ns: i64,
    /// On the kernel's clock.
    pub end_ns: i64,
    /// Events that the kernel lost, of all devices together.
    pub events_lost: u64,
    /// What was seen beside events.
    pub noted: Noted,
    /// Events that were given the time of one before.
    pub late_events: u64,
    /// Which events were asked for.
    pub recorded: Recorded,
    /// For each CPU.
    pub buffer_bytes: u64,
    /// The names of all devices.
    pub together: Vec<String>,
}

impl Facts {
    /// Where on the recordings' clock a time of the kernel's is.
    fn on_recording_ns(&self, time_ns: i64) -> i64 {
        time_ns - shift_ns(self.start_ns)
    }
}

/// What is subtracted from the kernel's times: the whole seconds of the start, so that all recordings of a capture share a zero.
pub fn shift_ns(start_ns: i64) -> i64 {
    start_ns.div_euclid(NS_PER_S) * NS_PER_S
}

/// How the assembler ended. A device without any I/O is no error: its recording is empty.
///
/// # Errors
/// When the recording could not take the rows.
pub fn finished(result: Result<(), TraceError>) -> Result<(), TraceError> {
    match result {
        Err(TraceError::NoIos { .. } | TraceError::NoSuchDevice { .. }) => Ok(()),
        result => result,
    }
}

/// The phase that a capture is.
pub fn phase(start_ns: i64, end_ns: i64) -> Phase {
    let zero_ns = shift_ns(start_ns);
    Phase {
        index: 0,
        name: "capture".into(),
        kind: PhaseKind::Capture,
        measured: true,
        start_ns: start_ns - zero_ns,
        end_ns: end_ns - zero_ns,
        settings: serde_json::Map::new(),
        accounting: serde_json::Map::new(),
        drive_counters: None,
    }
}

/// Where the rows come from, as far as it is known at the start.
pub fn source(
    target: &Target,
    recorded: Recorded,
    buffer_bytes: u64,
    together: &[String],
) -> Vec<(&'static str, Value)> {
    let mut source = vec![
        ("format", json!("tracefs")),
        ("device", json!(target.device.to_string())),
        ("name", json!(target.name)),
        ("recorded_events", json!(recorded.names())),
        ("buffer_bytes_per_cpu", json!(buffer_bytes)),
    ];
    if together.len() > 1 {
        source.push(("captured_together", json!(together)));
    }
    if let Some(window) = &target.window {
        source.push(("partition_first_sector", json!(window.first_sector)));
        source.push(("partition_sectors", json!(window.sectors)));
    }
    if !target.built_of.is_empty() {
        source.push(("built_of", json!(target.built_of)));
    }
    source
}

/// Fills in all that is known at the end.
pub fn describe(manifest: &mut Manifest, target: &Target, decoded: &Decoded, facts: &Facts) {
    manifest.clock.shift_ns = shift_ns(facts.start_ns);
    for (key, value) in source(target, facts.recorded, facts.buffer_bytes, &facts.together) {
        manifest.source.insert(key.into(), value);
    }
    manifest.source.insert("events".into(), json!(decoded.events.map(Events::name)));
    if decoded.turned_away > 0 {
        manifest.source.insert("turned_away".into(), json!(decoded.turned_away));
    }
    manifest.absent_columns = decoded.absent_columns.iter().map(|name| (*name).to_string()).collect();
    manifest.phases = vec![phase(facts.start_ns, facts.end_ns)];
    manifest.dropped = dropped(target, decoded, facts);
    manifest.warnings.extend(warnings(target, decoded, facts));
}

fn dropped(target: &Target, decoded: &Decoded, facts: &Facts) -> Vec<Dropped> {
    let of_target = |list: &[(testdrive_traces::Device, u64)]| -> u64 {
        list.iter().filter(|(device, _)| *device == target.device).map(|(_, count)| count).sum()
    };
    let counts = [
        (facts.events_lost, "events that did not fit into the kernel's buffer"),
        (of_target(&facts.noted.passthrough), "commands passed through to the driver"),
        (of_target(&facts.noted.zone), "zone commands"),
        (facts.noted.unreadable, "events that could not be read"),
        (facts.noted.damaged_pages, "pages of the kernel's buffer that could not be read to their end"),
    ];
    let own = counts.into_iter().filter(|(count, _)| *count > 0);
    let own = own.map(|(count, what)| Dropped { what: what.into(), count });
    let decoded =
        decoded.dropped.iter().map(|dropped| Dropped { what: dropped.what.clone(), count: dropped.count });
    own.chain(decoded).collect()
}

fn warnings(target: &Target, decoded: &Decoded, facts: &Facts) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if facts.events_lost > 0 {
        warnings.push(events_lost(facts));
    }
    if decoded.events.is_none() {
        let message = format!("no I/O of {} was seen while it was captured", target.name);
        warnings.push(Warning::new(
            "no_ios",
            message,
            "capture while the workload runs, and check that it is on this device",
        ));
    }
    if let Some(holder) = &target.gets_requests_from {
        let message = format!(
            "{} is a path of {holder}, which queues I/Os itself: rows are what it handed on",
            target.name
        );
        warnings.push(Warning::new(
            "path_of_multipath",
            message,
            format!("capture {holder} to see what the workload queued"),
        ));
    }
    if facts.noted.unreadable + facts.noted.damaged_pages > 0 {
        let damage = facts.noted.first_damage.as_deref().unwrap_or("letters that are not known");
        let message =
            format!("some of what the kernel wrote could not be read, first {damage}: I/Os may be missing");
        warnings.push(Warning::new("unreadable_events", message, "report this, with the kernel's version"));
    }
    if facts.late_events > 0 {
        let message =
            format!("{} events were seen too late and have the time of the one before", facts.late_events);
        warnings.push(Warning::new(
            "late_events",
            message,
            "capture on a host whose virtual CPUs are not taken away",
        ));
    }
    let of_assembler = decoded.warnings.iter().map(|each| {
        let remedy = remedy(each.code, target, facts).unwrap_or_else(|| each.remedy.clone());
        Warning::new(each.code, each.message.clone(), remedy)
    });
    warnings.extend(of_assembler);
    warnings
}

/// What was lost, how much of the whole that is, and when.
fn events_lost(facts: &Facts) -> Warning {
    let whose = if facts.together.len() > 1 { " of all devices captured together" } else { "" };
    let when = facts.noted.lost_between_ns.map_or_else(String::new, |(first, last)| {
        let second = |time_ns| facts.on_recording_ns(time_ns) as f64 / NS_PER_S as f64;
        format!(", between {:.1} s and {:.1} s", second(first), second(last))
    });
    let message = format!(
        "the kernel lost {} events{whose}{when}, since its buffer was full: I/Os and completions are missing, and rates and depths \
         are too low",
        facts.events_lost
    );
    let buffer_mib = facts.buffer_bytes.div_ceil(1 << 20);
    let remedy = format!(
        "capture again with a larger --buffer (it was {buffer_mib} MiB for each CPU), fewer --events, or while the host has CPU to spare"
    );
    Warning::new("events_lost", message, remedy)
}

/// What to do here about what the assembler warns of; its own words are for imported traces.
fn remedy(code: &str, target: &Target, facts: &Facts) -> Option<String> {
    let all = || Some("capture with --events queue,issue,complete".to_string());
    match code {
        "no_queue_events" if !facts.recorded.queue => all(),
        "no_issue_events" if !facts.recorded.issue => all(),
        "no_completions" if !facts.recorded.complete => all(),
        "no_queue_events" => Some("capture the device above, through which the workload goes".into()),
        "no_issue_events" if !target.built_of.is_empty() => {
            Some(format!("capture what it is built of as well: {}", target.built_of.join(", ")))
        }
        "no_issue_events" => Some("none: this device has no requests of its own".into()),
        "completions_missing" | "some_issue_events_missing" | "too_many_under_way"
            if facts.events_lost > 0 =>
        {
            Some("capture again with a larger --buffer".into())
        }
        "completions_missing" | "no_completions" => {
            Some("capture for longer: what is under way when the capture ends has no completion".into())
        }
        "some_issue_events_missing" | "too_many_under_way" => {
            Some("capture again; if it stays, report it with the kernel's version".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_recording::RecordingKind;
    use testdrive_traces::Device;

    fn facts() -> Facts {
        Facts {
            start_ns: 5_250_000_000,
            end_ns: 65_250_000_000,
            events_lost: 0,
            noted: Noted::default(),
            late_events: 0,
            recorded: Recorded::ALL,
            buffer_bytes: 8 << 20,
            together: vec!["sda".into()],
        }
    }

    fn described(decoded: &Decoded, facts: &Facts) -> Manifest {
        let mut manifest = Manifest::new(RecordingKind::Capture, "clock_monotonic");
        describe(&mut manifest, &Target::plain("sda", Device { major: 8, minor: 0 }), decoded, facts);
        manifest
    }

    fn some() -> Decoded {
        Decoded { events: Some(Events::Queued), ..Decoded::default() }
    }

    #[test]
    fn the_phase_is_the_time_that_was_watched_whether_or_not_something_happened() {
        let manifest = described(&some(), &facts());
        assert_eq!((manifest.phases[0].start_ns, manifest.phases[0].end_ns), (250_000_000, 60_250_000_000));
        assert_eq!(
            (manifest.clock.shift_ns, manifest.source["events"].as_str()),
            (5_000_000_000, Some("queued"))
        );
        assert!(manifest.warnings.is_empty() && manifest.dropped.is_empty());
    }

    #[test]
    fn lost_events_are_told_with_number_time_and_remedy() {
        let noted = Noted { lost_between_ns: Some((6_000_000_000, 8_500_000_000)), ..Noted::default() };
        let manifest = described(&some(), &Facts { events_lost: 1234, noted, ..facts() });
        let warning = &manifest.warnings[0];
        assert_eq!((warning.code.as_str(), manifest.dropped[0].count), ("events_lost", 1234));
        assert!(warning.message.contains("1234 events, between 1.0 s and 3.5 s"), "{}", warning.message);
        assert!(warning.remedy.contains("it was 8 MiB"), "{}", warning.remedy);
    }

    #[test]
    fn an_idle_device_has_an_empty_recording_and_says_so() {
        let path = std::path::PathBuf::new();
        assert!(finished(Err(TraceError::NoIos { path, reason: String::new() })).is_ok());
        assert!(finished(Err(TraceError::Usage("x".into()))).is_err());
        let manifest = described(&Decoded::default(), &facts());
        assert_eq!(manifest.warnings[0].code, "no_ios");
    }

    #[test]
    fn remedies_are_those_of_a_capture() {
        let mut decoded = some();
        for code in ["no_issue_events", "completions_missing"] {
            let warning = testdrive_traces::Warning { code, message: "m".into(), remedy: "blktrace".into() };
            decoded.warnings.push(warning);
        }
        let recorded = Recorded { issue: false, ..Recorded::ALL };
        let manifest = described(&decoded, &Facts { recorded, ..facts() });
        assert!(manifest.warnings[0].remedy.contains("--events"));
        assert!(manifest.warnings[1].remedy.contains("longer"));
        let manifest = described(&decoded, &Facts { events_lost: 1, ..facts() });
        assert!(manifest.warnings[1].remedy.contains("no requests"), "{:?}", manifest.warnings);
        assert!(manifest.warnings[2].remedy.contains("--buffer"));
    }
}
