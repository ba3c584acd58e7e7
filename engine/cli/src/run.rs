//! `testdrive-engine run`: a job in, progress out, a recording on disk.

use crate::lines::{tell_line, try_tell_line};
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use testdrive_runner::{run, Event, Job, Outcome, RunError};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct RunArgs {
    /// The job; standard input by default
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,
}

/// Runs the job and leaves with the documented status.
pub fn main(args: &RunArgs) -> ExitCode {
    let outcome = read_job(args).and_then(|text| {
        let job = Job::parse(&text)?;
        let signal = watch_signals()?;
        run(&job, &signal, &mut |event| {
            if try_tell_line(&event).is_err() {
                // A run that nobody watches must not go on writing to a drive.
                signal.store(signal_hook::consts::SIGPIPE as usize, Ordering::Relaxed);
            }
        })
    });
    let status = match &outcome {
        Ok(outcome) => outcome.exit_status(),
        Err(error) => {
            tell_line(&Event::from(error));
            error.kind.exit_status()
        }
    };
    leave(status, &outcome)
}

/// A drive that does not answer holds threads and rings that would keep an orderly exit waiting for it.
fn leave(status: u8, outcome: &Result<Outcome, RunError>) -> ExitCode {
    let drive_failed = matches!(outcome, Ok(outcome) if outcome.exit_status() == 4);
    if drive_failed {
        std::process::exit(i32::from(status));
    }
    ExitCode::from(status)
}

fn read_job(args: &RunArgs) -> Result<String, RunError> {
    let read = match &args.job {
        Some(path) => std::fs::read_to_string(path).map_err(|error| (path.display().to_string(), error)),
        None => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map(|_| text).map_err(|error| ("standard input".to_string(), error))
        }
    };
    read.map_err(|(name, error)| RunError::usage(format!("cannot read the job from {name}: {error}")))
}

/// A number that becomes SIGINT's or SIGTERM's once it arrives. A second signal ends the process at once.
fn watch_signals() -> Result<Arc<AtomicUsize>, RunError> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let failed = |error: std::io::Error| RunError::internal(format!("cannot watch for signals: {error}"));
    let arrived = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        let again = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))
            .map_err(failed)?;
        signal_hook::flag::register(signal, again).map_err(failed)?;
        signal_hook::flag::register_usize(signal, Arc::clone(&arrived), signal as usize).map_err(failed)?;
    }
    Ok(arrived)
}
