//! Progress on standard output: one JSON object a line.

use std::io::Write;

/// Writes one line.
///
/// # Errors
/// When nobody reads any more: whoever asked for the run is gone.
pub fn try_tell_line(event: &impl serde::Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

/// Writes one line, whether or not anybody reads it.
pub fn tell_line(event: &impl serde::Serialize) {
    let _ = try_tell_line(event);
}
