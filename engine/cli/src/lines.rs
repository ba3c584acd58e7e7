//! Progress on standard output: one JSON object a line.

use std::io::Write;

/// Writes one line. A reader that has gone away does not end the run: the recording matters more than its progress.
pub fn tell_line(event: &impl serde::Serialize) {
    if let Ok(mut line) = serde_json::to_vec(event) {
        line.push(b'\n');
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(&line).and_then(|()| output.flush());
    }
}
