//! Whether the streams of a phase make sense.

use crate::error::RunError;
use crate::job_check::check;
use crate::job_check_generated::{check_part, check_refill};
use crate::job_defaults;
use crate::job_generated::{ArrivalsJob, Pattern, SyntheticJob};
use crate::job_streams::{StreamJob, STREAMS_MAX};

/// The most threads of a stream whose threads begin at once: five for each CPU of the largest hosts.
const PHASES_MAX: u32 = 4_096;

/// Checks a phase that has streams.
///
/// # Errors
/// A usage error that names the stream and the key.
pub fn check_streams(job: &SyntheticJob) -> Result<(), RunError> {
    let count = job.streams.len();
    check(count <= STREAMS_MAX, "the number of streams", count, &format!("at most {STREAMS_MAX}"))?;
    check_phase_keys(job)?;
    let names = job.stream_names();
    for (index, stream) in job.streams.iter().enumerate() {
        let name = &names[index];
        check_stream(job, stream).map_err(|error| {
            let whose = stream.name.as_ref().map(|name| format!(" ('{name}')")).unwrap_or_default();
            RunError::usage(format!("streams[{index}]{whose}: {error}"))
        })?;
        check(!names[..index].contains(name), "the name of a stream", name, "each stream a name of its own")?;
    }
    let longest_bytes = job.streams.iter().map(|stream| stream.block_bytes.longest_bytes(512)).max();
    check_refill(job.refill, job.data, job.max_in_flight, longest_bytes.unwrap_or(0))
}

/// What each stream says for itself is not said for all of them.
fn check_phase_keys(job: &SyntheticJob) -> Result<(), RunError> {
    let defaults = [
        ("pattern", job.pattern == Pattern::default()),
        ("read_share", job.read_share == job_defaults::read_share()),
        ("trim_share", job.trim_share == 0.0),
        ("fua", !job.fua),
        ("block_bytes", job.block_bytes == job_defaults::block_bytes()),
        ("alignment_bytes", job.alignment_bytes.is_none()),
        ("hot_spots", job.hot_spots.is_empty()),
        ("arrivals", job.arrivals.is_none()),
        ("max_lag_ns", job.max_lag_ns.is_none()),
    ];
    for (key, is_default) in defaults {
        check(is_default, key, "given beside streams", "it to each stream instead")?;
    }
    let ends = [
        ("ios", job.ios.is_some()),
        ("bytes", job.bytes.is_some()),
        ("drive_fills", job.drive_fills.is_some()),
    ];
    for (key, given) in ends {
        check(
            !given,
            key,
            "given beside streams",
            "duration_ns or steady_state, which end all of them together",
        )?;
    }
    Ok(())
}

fn check_stream(job: &SyntheticJob, stream: &StreamJob) -> Result<(), RunError> {
    let mut part = stream.as_phase(job);
    match stream.arrivals {
        ArrivalsJob::Recording { .. } => {
            let wanted =
                "constant, poisson, act or after_completion: a recording's times are those of a whole phase";
            check(false, "arrivals.process", "recording", wanted)?;
        }
        ArrivalsJob::AfterCompletion { .. } => {
            check(part.on_off().is_none(), "on_ns", "given", "none with arrivals after_completion")?;
            let lag_ns = stream.max_lag_ns.unwrap_or(0);
            let wanted = "none with arrivals after_completion, which are never late";
            check(stream.max_lag_ns.is_none(), "max_lag_ns", lag_ns, wanted)?;
        }
        ArrivalsJob::Act { .. } => {
            let wanted = format!("a number from 1 to {PHASES_MAX}");
            check((1..=PHASES_MAX).contains(&part.threads), "threads", part.threads, &wanted)?;
            // They have neither a queue of their own nor an I/O in flight all the time.
            part.threads = 1;
        }
        _ => {}
    }
    // Refilled buffers are those of all streams together.
    check_part(&SyntheticJob { refill: false, ..part })
}
