//! Progress on standard output: one JSON object a line.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output carries data, so that events go to standard error.
static ON_STDERR: AtomicBool = AtomicBool::new(false);

/// From now on events go to standard error, since standard output carries data.
pub fn events_on_stderr() {
    ON_STDERR.store(true, Ordering::Relaxed);
}

/// Writes one line.
///
/// # Errors
/// When nobody reads any more: whoever asked for the run is gone.
pub fn try_tell_line(event: &impl serde::Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    if ON_STDERR.load(Ordering::Relaxed) {
        return std::io::stderr().lock().write_all(&line);
    }
    let mut output = std::io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

/// Writes one line, whether or not anybody reads it.
pub fn tell_line(event: &impl serde::Serialize) {
    let _ = try_tell_line(event);
}

/// Writes the answer to a question, which is all that the process is for, and says how that ended. Who stopped reading has enough.
pub fn answer(answer: &impl serde::Serialize) -> ExitCode {
    match try_tell_line(answer) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr(), "error: the answer cannot be written: {error}");
            ExitCode::from(testdrive_runner::ErrorKind::Recording.exit_status())
        }
        _ => ExitCode::SUCCESS,
    }
}
