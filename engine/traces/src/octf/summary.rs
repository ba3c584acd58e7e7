//! `octf.summary`, which stands beside the queues: what the tracer itself says of the trace.

use crate::format::Decoded;
use serde_json::Value;
use std::path::{Path, PathBuf};

const NAME: &str = "octf.summary";
/// Larger files are no summary.
const BYTES_MAX: u64 = 1 << 20;

/// Notes what the tracer lost, and whether files are missing. A trace without a summary is as good.
pub(super) fn describe(paths: &[PathBuf], decoded: &mut Decoded) {
    let Some(path) = paths.first().map(|path| path.with_file_name(NAME)) else { return };
    let Some(summary) = read(&path) else { return };
    let lost = number(&summary, "droppedEvents").unwrap_or(0);
    decoded.drop(lost, "events that the tracer lost");
    if lost > 0 {
        decoded.warn(
            "events_lost",
            format!("the tracer lost {lost} events: I/Os and completions are missing"),
            "record again with a larger buffer (iotrace --buffer)",
        );
    }
    let queues = number(&summary, "queueCount").unwrap_or(0);
    if queues > paths.len() as u64 {
        let message = format!("{} of the trace's {queues} queues were read", paths.len());
        decoded.warn(
            "queue_files_missing",
            message,
            "put the missing files beside the others and import again",
        );
    }
    let state = summary.get("state").and_then(Value::as_str).unwrap_or("COMPLETE");
    if state != "COMPLETE" {
        decoded.warn(
            "trace_incomplete",
            format!("{} says that the trace is {state}", path.display()),
            "stop the tracing before the folder is copied; what is there was imported",
        );
    }
}

fn read(path: &Path) -> Option<Value> {
    let size = std::fs::metadata(path).ok()?.len();
    let text = (size <= BYTES_MAX).then(|| std::fs::read(path).ok()).flatten()?;
    serde_json::from_slice(&text).ok()
}

/// A number, which protocol buffers' JSON has as a text where it has 64 bits.
fn number(summary: &Value, key: &str) -> Option<u64> {
    let value = summary.get(key)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
