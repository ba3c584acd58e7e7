//! `testdrive-engine import` and `formats`: foreign traces into recordings.

mod output;
mod recordings;

use crate::lines::{answer, tell_line};
use crate::signals::{watch_signals, Stopped};
use output::Output;
use recordings::{total, Closed, Source};
use serde_json::json;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use testdrive_recording::{RecordingError, Status};
use testdrive_traces::{
    by_name, decode, detect, formats as trace_formats, Decoded, Device, Events, Format, Options, TimeUnit,
    TraceError,
};

/// Arguments of `import`.
#[derive(clap::Args)]
pub struct ImportArgs {
    /// Files of one trace; a folder or one file of several brings the rest
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The recording to make; must not exist. Of a trace of several volumes each gets one: OUT.VOLUME.rec
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// What the files are; found out from their content by default
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// What a row is; queued I/Os by default where the trace tells of them
    #[arg(long, value_parser = parse_events, value_name = "queued|issued")]
    events: Option<Events>,
    /// Whose I/Os, where the trace holds those of several devices
    #[arg(long, value_parser = parse_device, value_name = "MAJ:MIN")]
    device: Option<Device>,
    /// Whose I/Os, where the trace holds those of several volumes; by default each gets a recording
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// What times are counted in, where the format leaves that open
    #[arg(long, value_parser = parse_time_unit, value_name = "s|ms|us|ns")]
    time_unit: Option<TimeUnit>,
    /// Objects are blocks of so many bytes, where the format leaves open what they are
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 30), value_name = "N")]
    object_bytes: Option<u64>,
    /// For CSV: which column is what, by name or index from 0
    #[arg(long, value_parser = parse_column, value_delimiter = ',', value_name = "key=column,...")]
    columns: Vec<(String, String)>,
}

fn parse_events(text: &str) -> Result<Events, String> {
    [Events::Queued, Events::Issued]
        .into_iter()
        .find(|events| events.name() == text)
        .ok_or_else(|| format!("'{text}' is neither 'queued' nor 'issued'"))
}

fn parse_device(text: &str) -> Result<Device, String> {
    Device::parse(text).ok_or_else(|| format!("'{text}' is no device: give its numbers as in 8:16"))
}

fn parse_time_unit(text: &str) -> Result<TimeUnit, String> {
    let found = TimeUnit::ALL.into_iter().find(|unit| unit.name() == text);
    found.ok_or_else(|| format!("'{text}' is none of s, ms, us and ns"))
}

fn parse_column(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, column)| (key.trim().to_string(), column.trim().to_string()));
    pair.ok_or_else(|| format!("'{text}' is no key=column"))
}

/// How an import can fail.
#[derive(Debug)]
enum ImportError {
    Trace(TraceError),
    Recording(RecordingError),
    Signals(std::io::Error),
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Trace(error) => error.fmt(formatter),
            ImportError::Recording(error) => error.fmt(formatter),
            ImportError::Signals(error) => write!(formatter, "cannot watch for signals: {error}"),
        }
    }
}

impl From<TraceError> for ImportError {
    fn from(error: TraceError) -> ImportError {
        ImportError::Trace(error)
    }
}

impl From<RecordingError> for ImportError {
    fn from(error: RecordingError) -> ImportError {
        ImportError::Recording(error)
    }
}

impl ImportError {
    fn kind_and_status(&self) -> (&'static str, u8) {
        match self {
            ImportError::Recording(RecordingError::Exists { .. }) | ImportError::Trace(_) => ("usage", 2),
            ImportError::Recording(_) => ("recording", 4),
            ImportError::Signals(_) => ("internal", 70),
        }
    }
}

/// Prints every trace format as one JSON list.
pub fn formats() -> ExitCode {
    let list: Vec<_> = trace_formats().iter().map(|format| describe(*format)).collect();
    answer(&list)
}

fn describe(format: &dyn Format) -> serde_json::Value {
    let carries = format.carries();
    json!({
        "name": format.name(),
        "description": format.description(),
        "has_queue_events": carries.queue_events,
        "has_completions": carries.completions,
        "has_trims": carries.trims,
        "has_volumes": carries.volumes,
        "found_by": format.found_by().name(),
    })
}

/// Imports a trace and leaves with the documented status.
pub fn run(args: ImportArgs) -> ExitCode {
    match import(args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let (kind, exit_status) = error.kind_and_status();
            tell_line(&json!({
                "event": "error", "kind": kind, "message": error.to_string(), "exit_status": exit_status,
            }));
            ExitCode::from(exit_status)
        }
    }
}

/// Imports a trace into new recordings; the exit status is 5 where a signal ended it early.
fn import(args: ImportArgs) -> Result<u8, ImportError> {
    let format = match &args.format {
        Some(name) => by_name(name)?,
        // Only CSV has columns to be named, so that there is nothing to find out.
        None if !args.columns.is_empty() => by_name("csv")?,
        None => detect(&args.files)?,
    };
    let stop = watch_signals().map_err(ImportError::Signals)?;
    let options = Options {
        events: args.events,
        device: args.device,
        volume: args.volume,
        columns: args.columns,
        time_unit: args.time_unit,
        object_bytes: args.object_bytes,
    };
    let mut output = Output::begin(&args.output, format.carries().volumes, stop)?;
    let result = decode(format, &args.files, &options, &mut output);
    let (recordings, written) = output.close();
    let (decoded, status, reason) = match (result, written) {
        (_, Err(error)) => {
            // A disk that is full keeps what it took.
            let decoded = Decoded { files: args.files, ..Decoded::default() };
            let source = Source { format, decoded: &decoded, options: &options };
            if matches!(error, RecordingError::Exists { .. }) {
                recordings.remove();
            } else {
                let _ = recordings.finish(&source, Status::Failed, Some(&error.to_string()));
            }
            return Err(error.into());
        }
        (Ok(decoded), Ok(())) => (decoded, Status::Complete, None),
        (Err(TraceError::Sink(error)), Ok(())) if error.is::<Stopped>() => {
            let decoded = Decoded { files: args.files, ..Decoded::default() };
            (decoded, Status::Interrupted, Some(error.to_string()))
        }
        (Err(error), Ok(())) => {
            recordings.remove();
            return Err(error.into());
        }
    };
    tell_warnings(&decoded);
    let source = Source { format, decoded: &decoded, options: &options };
    let closed = recordings.finish(&source, status, reason.as_deref())?;
    Ok(tell_finished(&closed, status, reason.as_deref()))
}

fn tell_warnings(decoded: &Decoded) {
    for note in &decoded.notes {
        let remedy = "name the files one by one to leave some out";
        tell_line(&json!({"event": "warning", "code": "note", "message": note, "remedy": remedy}));
    }
    for warning in &decoded.warnings {
        let (code, message, remedy) = (warning.code, &warning.message, &warning.remedy);
        tell_line(&json!({"event": "warning", "code": code, "message": message, "remedy": remedy}));
    }
}

/// Says what was made; gives the exit status.
fn tell_finished(closed: &[Closed], status: Status, reason: Option<&str>) -> u8 {
    // The disk may have run full at the very end.
    let failed = closed.iter().find(|one| one.manifest.status == Status::Failed);
    let status = failed.map_or(status, |one| one.manifest.status);
    let failure = failed.and_then(|one| one.manifest.status_reason.as_deref());
    let recordings: Vec<_> = closed
        .iter()
        .map(|one| json!({"output": shown(one), "volume": one.volume, "counts": one.manifest.counts}))
        .collect();
    let single = match closed {
        [one] => Some(shown(one)),
        _ => None,
    };
    tell_line(&json!({
        "event": "finished",
        "status": status,
        "reason": failure.or(reason),
        "output": single,
        "recordings": recordings,
        "counts": total(closed),
        "dropped": closed.first().map_or(&[][..], |one| &one.manifest.dropped),
        "accounting": [],
    }));
    match status {
        Status::Failed => 4,
        Status::Interrupted => 5,
        Status::Complete | Status::Running => 0,
    }
}

fn shown(closed: &Closed) -> String {
    closed.path.display().to_string()
}
