//! `testdrive-engine import` and `formats`: foreign traces into recordings.

use crate::lines::tell_line;
use serde_json::json;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testdrive_core::IoRecord;
use testdrive_recording::{
    Dropped, Manifest, Phase, PhaseKind, RecordingError, RecordingKind, RecordingWriter, Status, Warning,
    WriterLimits,
};
use testdrive_traces::{by_name, detect, formats as trace_formats, Decoded, Device, Events, Format, Options};
use testdrive_traces::{Sink, TraceError};

/// Between two progress lines.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Arguments of `import`.
#[derive(clap::Args)]
pub struct ImportArgs {
    /// Files of one trace; a folder or one file of several brings the rest
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The recording to make; must not exist
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
    tell_line(&list);
    ExitCode::SUCCESS
}

fn describe(format: &dyn Format) -> serde_json::Value {
    let carries = format.carries();
    json!({
        "name": format.name(),
        "description": format.description(),
        "has_queue_events": carries.queue_events,
        "has_completions": carries.completions,
        "has_trims": carries.trims,
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

/// Imports a trace into a new recording; the exit status is 5 where a signal ended it early.
fn import(args: ImportArgs) -> Result<u8, ImportError> {
    let format = match &args.format {
        Some(name) => by_name(name)?,
        None => detect(&args.files)?,
    };
    let stop = watch_signals().map_err(ImportError::Signals)?;
    let manifest = Manifest::new(RecordingKind::Import, "trace");
    let writer = RecordingWriter::create(&args.output, manifest, WriterLimits::default())?;
    let options = Options { events: args.events, device: args.device, columns: args.columns };
    let mut output = Output { writer, last_ns: 0, told: None, stop };
    let decoded = match format.decode(&args.files, &options, &mut output) {
        Ok(decoded) => decoded,
        Err(TraceError::Sink(error)) => return finish_early(output, format, &args.files, error),
        Err(error) => {
            // Nothing is lost with a recording that was only begun: the trace is still there.
            drop(output);
            let _ = std::fs::remove_dir_all(&args.output);
            return Err(error.into());
        }
    };
    for note in &decoded.notes {
        let remedy = "name the files one by one to leave some out";
        tell_line(&json!({"event": "warning", "code": "note", "message": note, "remedy": remedy}));
    }
    for warning in &decoded.warnings {
        let (code, message, remedy) = (warning.code, &warning.message, &warning.remedy);
        tell_line(&json!({"event": "warning", "code": code, "message": message, "remedy": remedy}));
    }
    output.describe(format, &decoded, &options);
    output.finish(Status::Complete, None)?;
    Ok(0)
}

/// Closes a recording whose import was stopped, or whose disk failed.
fn finish_early(
    mut output: Output,
    format: &dyn Format,
    files: &[PathBuf],
    error: Box<dyn Error + Send + Sync>,
) -> Result<u8, ImportError> {
    let decoded = Decoded { files: files.to_vec(), ..Decoded::default() };
    output.describe(format, &decoded, &Options::default());
    if error.is::<Stopped>() {
        output.finish(Status::Interrupted, Some(error.to_string()))?;
        return Ok(5);
    }
    match error.downcast::<RecordingError>() {
        Ok(error) => {
            let _ = output.finish(Status::Failed, Some(error.to_string()));
            Err(ImportError::Recording(*error))
        }
        Err(error) => Err(ImportError::Trace(TraceError::Sink(error))),
    }
}

fn watch_signals() -> Result<Arc<AtomicBool>, std::io::Error> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal sets the flag, and the second finds it set and ends the process.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// A signal asked the import to end.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("stopped by a signal before the end of the trace")
    }
}

impl Error for Stopped {}

/// The recording that rows go into.
struct Output {
    writer: RecordingWriter,
    /// The latest time in a row.
    last_ns: i64,
    told: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Output {
    /// Writes down where the rows came from.
    fn describe(&mut self, format: &dyn Format, decoded: &Decoded, options: &Options) {
        let end_ns = self.last_ns;
        let manifest = self.writer.manifest_mut();
        manifest.clock.shift_ns = decoded.shift_ns;
        let files: Vec<String> = decoded.files.iter().map(|path| path.display().to_string()).collect();
        manifest.source.insert("format".into(), json!(format.name()));
        manifest.source.insert("files".into(), json!(files));
        manifest.source.insert("events".into(), json!(decoded.events.map(Events::name)));
        manifest.source.insert("device".into(), json!(decoded.device.map(|device| device.to_string())));
        if !options.columns.is_empty() {
            let columns: serde_json::Map<_, _> =
                options.columns.iter().map(|(key, column)| (key.clone(), json!(column))).collect();
            manifest.source.insert("columns".into(), columns.into());
        }
        manifest.absent_columns = decoded.absent_columns.iter().map(|name| (*name).to_string()).collect();
        manifest.dropped = decoded
            .dropped
            .iter()
            .map(|dropped| Dropped { what: dropped.what.clone(), count: dropped.count })
            .collect();
        manifest.warnings = decoded
            .warnings
            .iter()
            .map(|warning| Warning {
                code: warning.code.into(),
                message: warning.message.clone(),
                remedy: warning.remedy.clone(),
            })
            .collect();
        manifest.phases = vec![Phase {
            index: 0,
            name: "import".into(),
            kind: PhaseKind::Import,
            measured: true,
            start_ns: 0,
            end_ns,
            settings: serde_json::Map::new(),
            accounting: serde_json::Map::new(),
        }];
    }

    fn finish(self, status: Status, reason: Option<String>) -> Result<(), RecordingError> {
        let output = shown(self.writer.directory());
        let manifest = self.writer.finish(status, reason)?;
        tell_line(&json!({
            "event": "finished",
            "status": manifest.status,
            "reason": manifest.status_reason,
            "output": output,
            "counts": manifest.counts,
            "dropped": manifest.dropped,
            "accounting": [],
        }));
        Ok(())
    }
}

impl Sink for Output {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        for row in rows {
            self.last_ns = self.last_ns.max(row.submit_ns + row.latency_ns.max(0));
        }
        self.writer.append(rows)?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Box::new(Stopped));
        }
        Ok(())
    }

    fn progress(&mut self, bytes_read: u64, bytes_total: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Box::new(Stopped));
        }
        let due = self.told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) || bytes_read >= bytes_total;
        if due {
            self.told = Some(Instant::now());
            tell_line(&json!({
                "event": "progress",
                "rows": self.writer.rows(),
                "bytes_read": bytes_read,
                "bytes_total": bytes_total,
            }));
        }
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
