//! `testdrive-engine export`: a recording as a trace that other tools read.

mod output;
mod source;

use crate::lines::{events_on_stderr, tell_line};
use crate::signals::{watch_signals, Stopped};
use output::Output;
use serde_json::{json, Value};
use source::{Chosen, RecordingSource};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use testdrive_recording::{Recording, RecordingError, Status};
use testdrive_traces::{encoder_by_name, Device, EncodeError, EncodeOptions, Encoded, Times};

/// Arguments of `export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// The recording
    #[arg(value_name = "REC")]
    recording: PathBuf,
    /// The file to make; must not exist. `-` is standard output, and events go to standard error then
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to write: fio-iolog, blkparse or csv
    #[arg(long, value_name = "NAME")]
    format: String,
    /// Which phases' I/Os: the measured ones, all, or some by name
    #[arg(long, default_value = "measured", value_name = "measured|all|NAME,...")]
    phases: Chosen,
    /// For fio-iolog: which time is written
    #[arg(long, value_parser = parse_times, value_name = "intended|submit")]
    times: Option<Times>,
    /// For fio-iolog: the file or device that it names
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// For blkparse: the device that it names; the recording's own by default
    #[arg(long, value_parser = parse_device, value_name = "MAJ:MIN")]
    device: Option<Device>,
}

fn parse_times(text: &str) -> Result<Times, String> {
    [Times::Intended, Times::Submit]
        .into_iter()
        .find(|times| times.name() == text)
        .ok_or_else(|| format!("'{text}' is neither 'intended' nor 'submit'"))
}

fn parse_device(text: &str) -> Result<Device, String> {
    Device::parse(text).ok_or_else(|| format!("'{text}' is no device: give its numbers as in 8:16"))
}

/// How an export can end without a trace.
#[derive(Debug)]
enum ExportError {
    /// The request, or the recording, does not allow it.
    Usage(String),
    /// The recording cannot be read, or the trace not written.
    Disk(String),
    /// A signal came.
    Stopped,
    /// Whoever read the output has enough of it.
    NobodyReads,
    Signals(std::io::Error),
}

impl From<RecordingError> for ExportError {
    fn from(error: RecordingError) -> ExportError {
        if error.is_bad_input() {
            ExportError::Usage(error.to_string())
        } else {
            ExportError::Disk(error.to_string())
        }
    }
}

impl From<EncodeError> for ExportError {
    fn from(error: EncodeError) -> ExportError {
        match error {
            EncodeError::Source(inner) => from_source(inner),
            EncodeError::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                ExportError::NobodyReads
            }
            EncodeError::Write(_) => ExportError::Disk(error.to_string()),
            EncodeError::NoIos | EncodeError::Usage(_) => ExportError::Usage(error.to_string()),
        }
    }
}

fn from_source(error: Box<dyn Error + Send + Sync>) -> ExportError {
    if error.is::<Stopped>() {
        return ExportError::Stopped;
    }
    match error.downcast::<RecordingError>() {
        Ok(error) => ExportError::from(*error),
        Err(error) => ExportError::Usage(error.to_string()),
    }
}

/// Exports a recording and leaves with the documented status.
pub fn run(args: &ExportArgs) -> ExitCode {
    if args.output.as_os_str() == "-" {
        events_on_stderr();
    }
    let tell_error = |kind: &str, message: &str, exit_status: u8| {
        tell_line(&json!({"event": "error", "kind": kind, "message": message, "exit_status": exit_status}));
        ExitCode::from(exit_status)
    };
    match export(args) {
        Ok(finished) => {
            tell_line(&finished);
            ExitCode::SUCCESS
        }
        // As after `| head`: no failure, but no whole trace either.
        Err(ExportError::NobodyReads) => {
            tell_error("closed_output", "whoever read the trace closed it before its end", 0)
        }
        Err(ExportError::Stopped) => {
            tell_error("interrupted", "stopped by a signal: nothing was exported", 5)
        }
        Err(ExportError::Usage(message)) => tell_error("usage", &message, 2),
        Err(ExportError::Disk(message)) => tell_error("recording", &message, 4),
        Err(ExportError::Signals(error)) => {
            tell_error("internal", &format!("cannot watch for signals: {error}"), 70)
        }
    }
}

fn export(args: &ExportArgs) -> Result<Value, ExportError> {
    let encoder = encoder_by_name(&args.format)?;
    let stop = watch_signals().map_err(ExportError::Signals)?;
    let recording = Recording::open(&args.recording)?;
    warn_of(&recording);
    let source = RecordingSource::new(&recording, &args.phases, stop)?;
    let options = EncodeOptions { target: args.target.clone(), times: args.times, device: args.device };
    let mut output = Output::create(&args.output)?;
    let encoded = encoder.encode(&source, &options, &mut output)?;
    if encoded.written.total().ios == 0 {
        let what: Vec<String> =
            encoded.dropped.iter().map(|dropped| format!("{} {}", dropped.count, dropped.what)).collect();
        let message = format!("{} can say none of the I/Os: there are {}", args.format, what.join(", and "));
        return Err(ExportError::Usage(message));
    }
    output.finish()?;
    source.tell_end();
    for note in &encoded.notes {
        tell_line(&json!({"event": "warning", "code": "note", "message": note, "remedy": null}));
    }
    Ok(finished(args, &encoded))
}

/// Says what the trace cannot: that the recording is not the whole of the workload.
fn warn_of(recording: &Recording) {
    let manifest = &recording.manifest;
    if manifest.status != Status::Complete {
        let status = json!(manifest.status);
        let reason = manifest.status_reason.as_deref().unwrap_or("its segments so far are exported");
        let message = format!("the recording is {}: {reason}", status.as_str().unwrap_or("not complete"));
        tell_line(
            &json!({"event": "warning", "code": "recording_not_complete", "message": message, "remedy": null}),
        );
    }
    for dropped in &manifest.dropped {
        let message = format!("the recording itself is without {} {}", dropped.count, dropped.what);
        tell_line(
            &json!({"event": "warning", "code": "recording_dropped", "message": message, "remedy": null}),
        );
    }
}

fn finished(args: &ExportArgs, encoded: &Encoded) -> Value {
    let total = encoded.written.total();
    let dropped: Vec<Value> =
        encoded.dropped.iter().map(|dropped| json!({"what": dropped.what, "count": dropped.count})).collect();
    let not_carried: Vec<Value> = encoded
        .not_carried
        .iter()
        .map(|lost| json!({"column": lost.column, "what": lost.what, "ios": lost.ios}))
        .collect();
    json!({
        "event": "finished",
        "status": "complete",
        "reason": null,
        "output": args.output.display().to_string(),
        "counts": {"ios": total.ios, "bytes": total.bytes, "by_opcode": encoded.written},
        "shift_ns": encoded.shift_ns,
        "dropped": dropped,
        "not_carried": not_carried,
    })
}
