//! `testdrive-engine capture`: the I/O of block devices, recorded as it happens.

use crate::duration::parse_duration;
use crate::lines::{tell_line, try_tell_line};
use crate::words::Words;
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use testdrive_capture::{capture, CaptureRequest, HostRoots, Recorded};
use testdrive_drives::parse_size_bytes;

const EXAMPLES: &str = "\
Examples:
  testdrive-engine capture /dev/nvme0n1 --for 10m -o /dev/shm/prod.rec
  testdrive-engine capture nvme0n1 nvme1n1 -o /mnt/other/captured     (one recording each, with one clock)

It needs root, and tracefs at /sys/kernel/tracing. Nothing is written to the devices, and nothing is left behind in the
kernel, however it ends. Write the recording to another device than the one that is captured.

Standard output has one JSON object a line, unless it is a terminal; a terminal gets words, on standard error. The
recording is a folder: pack it with tar and look at it elsewhere with 'testdrive inspect'.

Exit status: 0 done (without --for also after Ctrl-C), 2 usage, or this host does not let us capture, 4 the recording's disk
or the kernel's trace failed, 5 interrupted before its time (what was recorded is kept), 70 a defect of testdrive.";

/// Arguments of `capture`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CaptureArgs {
    /// Block devices: paths, names such as nvme0n1, or MAJ:MIN; partitions, volumes and arrays too
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<String>,
    /// The recording to make, which must not exist; with several devices the folder for one each
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// How long, such as 60s, 10m or 1h30m; without it until Ctrl-C or SIGTERM
    #[arg(long = "for", value_parser = parse_duration, value_name = "DURATION")]
    duration: Option<Duration>,
    /// End when the recordings have this size, such as 10GiB: about 10 bytes for each I/O
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    max_size: Option<u64>,
    /// Which events are recorded; the columns of what is left out are absent
    #[arg(long, value_parser = Recorded::parse, default_value = "queue,issue,complete", value_name = "EVENTS")]
    events: Recorded,
    /// The kernel's buffer for each CPU, such as 32MiB; chosen by CPUs and memory without it
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    buffer: Option<u64>,
}

fn parse_size(text: &str) -> Result<u64, String> {
    parse_size_bytes(text).map_err(|error| error.to_string())
}

/// Captures, and leaves with the documented status.
pub fn run(args: CaptureArgs) -> ExitCode {
    let signal = match watch_signals() {
        Ok(signal) => signal,
        Err(error) => return fail("internal", 70, &format!("cannot watch for signals: {error}")),
    };
    let request = CaptureRequest {
        devices: args.devices,
        output: args.output,
        duration: args.duration,
        size_max_bytes: args.max_size,
        recorded: args.events,
        buffer_bytes: args.buffer,
    };
    let lines = !std::io::stdout().is_terminal();
    let mut words = Words::for_terminals();
    let outcome = capture(&request, &HostRoots::default(), &signal, &mut |event| {
        words.tell(&event);
        if lines && try_tell_line(&event).is_err() {
            // A capture that nobody listens to must not go on for ever.
            signal.store(libc::SIGPIPE as usize, Ordering::Relaxed);
        }
    });
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => fail(error.kind(), error.exit_status(), &error.to_string()),
    }
}

fn fail(kind: &str, exit_status: u8, message: &str) -> ExitCode {
    if !std::io::stdout().is_terminal() {
        tell_line(&json!({"event": "error", "kind": kind, "message": message, "exit_status": exit_status}));
    }
    eprintln!("error: {message}");
    ExitCode::from(exit_status)
}

/// A number that becomes a signal's once it arrives. A second one ends the process at once; the capture's guard then cleans up.
fn watch_signals() -> Result<Arc<AtomicUsize>, std::io::Error> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let arrived = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // nohup has said that a hangup is none of our business.
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        let again = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
        signal_hook::flag::register(signal, again)?;
        signal_hook::flag::register_usize(signal, Arc::clone(&arrived), signal as usize)?;
    }
    Ok(arrived)
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: without a new action nothing changes, and the structure for the old one lives for the whole call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
