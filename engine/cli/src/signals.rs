//! Signals end what a subcommand does in good order; a second one ends the process at once.

use std::error::Error;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// A flag that the first signal sets.
///
/// # Errors
/// When the system refuses to have signals handled.
pub fn watch_signals() -> Result<Arc<AtomicBool>, std::io::Error> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal sets the flag, and the second finds it set and ends the process.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// A signal asked the work to end.
#[derive(Debug)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("stopped by a signal before the end")
    }
}

impl Error for Stopped {}
