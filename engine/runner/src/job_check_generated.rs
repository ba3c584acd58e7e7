//! Whether the phases whose I/Os are generated make sense.

use crate::error::RunError;
use crate::job::{Data, TRANSFER_MAX_BYTES};
use crate::job_check::{check, check_depth, check_duration, TIME_MAX_NS};
use crate::job_check_streams::check_streams;
use crate::job_generated::{
    ArrivalsJob, BlockBytes, BlockRange, HotSpot, Pattern, SteadyStateJob, SyntheticJob, SHARE_TOLERANCE,
};
use crate::job_prepare::{PrepareJob, PrepareMethod, PurgeHow};
use crate::placement::CPU_MAX;

/// The most often that a drive is filled.
const FILLS_MAX: f64 = 1_000.0;
/// The most lengths, and the most hot spots.
const SHARES_MAX: usize = 64;
/// The most lengths that a range has.
const STEPS_MAX: u64 = 4_096;
/// The most threads: each has its buffers and its queue of rows.
const THREADS_MAX: u32 = 64;
/// The most memory for refilled buffers.
const REFILL_MAX_BYTES: u64 = 1 << 30;
/// The most rounds: each is kept.
const ROUNDS_MAX: u32 = 10_000;
/// The shortest round.
const ROUND_MIN_NS: i64 = 1_000_000;

pub fn check_prepare(job: &PrepareJob) -> Result<(), RunError> {
    check_depth("depth", job.depth)?;
    check_block("block_bytes", job.block_bytes())?;
    check_refill(job.refill, job.data, job.depth, job.block_bytes())?;
    check_fills("fills", job.fills)?;
    let purge = job.method == PrepareMethod::Purge;
    check(!purge || job.fills == 1.0, "fills", job.fills, "1 with method 'purge': trimming once is enough")?;
    let format = job.method == PrepareMethod::Format;
    let by_trim = job.how == PurgeHow::Trim;
    check(purge || by_trim, "how", "given", "method 'purge' with it, or leave it out")?;
    let block_bytes = job.logical_block_bytes;
    let block_valid =
        block_bytes.is_none_or(|bytes| bytes.is_power_of_two() && (512..=65_536).contains(&bytes));
    check(block_valid, "logical_block_bytes", block_bytes.unwrap_or(0), "a power of two from 512 to 65536")?;
    check(
        format || block_bytes.is_none(),
        "logical_block_bytes",
        block_bytes.unwrap_or(0),
        "method 'format' with it, or leave it out",
    )?;
    let whole = job.offset_bytes == 0 && job.span_bytes.is_none() && job.span_share.is_none();
    let wanted = "no offset_bytes, span_bytes or span_share: a format or a sanitize is of all";
    check(whole || by_trim && !format, "the span", "a part of the drive", wanted)?;
    check_span(job.offset_bytes, job.span_bytes, job.span_share)?;
    let whole_blocks = job.span_bytes.is_none_or(|span| purge || span >= job.block_bytes());
    check(whole_blocks, "span_bytes", job.span_bytes.unwrap_or(0), "at least block_bytes")
}

pub fn check_synthetic(job: &SyntheticJob) -> Result<(), RunError> {
    if job.streams.is_empty() {
        let closed = matches!(job.arrivals, Some(ArrivalsJob::AfterCompletion { .. }));
        let wanted = "none without streams, which makes a closed loop";
        check(!closed, "arrivals", "after_completion", wanted)?;
        return check_part(job);
    }
    check_threads(job)?;
    check_ends(job)?;
    check_times(job)?;
    check_span(job.offset_bytes, job.span_bytes, job.span_share)?;
    check_streams(job)
}

/// Checks a phase without streams, or one of them.
pub fn check_part(job: &SyntheticJob) -> Result<(), RunError> {
    check_threads(job)?;
    check_blocks(job)?;
    check_ends(job)?;
    check_times(job)?;
    check_share("read_share", job.read_share)?;
    check_share("trim_share", job.trim_share)?;
    let sum = job.read_share + job.trim_share;
    check(sum <= 1.0 + SHARE_TOLERANCE, "read_share + trim_share", sum, "shares of at most 1 together")?;
    check(
        !job.fua || job.write_share() > 0.0,
        "fua",
        job.fua,
        "false without writes, which alone are forced",
    )?;
    check_span(job.offset_bytes, job.span_bytes, job.span_share)?;
    let longest_bytes = job.block_bytes.longest_bytes(512);
    let depth = if job.arrivals.is_some() { job.max_in_flight } else { job.depth };
    check_refill(job.refill, job.data, depth, longest_bytes)?;
    check_hot_spots(job)
}

/// Each I/O in flight has a buffer of its own then.
pub fn check_refill(refill: bool, data: Data, depth: u32, block_bytes: u64) -> Result<(), RunError> {
    check(
        !refill || data != Data::Zero,
        "refill",
        refill,
        "false with data 'zero', which is always the same",
    )?;
    let bytes = u64::from(depth) * block_bytes;
    let wanted = "false, or fewer or shorter I/Os in flight: their buffers come to more than 1 GiB";
    check(!refill || bytes <= REFILL_MAX_BYTES, "refill", refill, wanted)
}

fn check_threads(job: &SyntheticJob) -> Result<(), RunError> {
    check_depth("depth", job.depth)?;
    check((1..=THREADS_MAX).contains(&job.threads), "threads", job.threads, "a number from 1 to 64")?;
    let (key, depth) = match job.is_open() {
        false => ("depth", job.depth),
        true => ("max_in_flight", job.max_in_flight),
    };
    let wanted = format!("at most {key}: each keeps an I/O in flight");
    check(job.threads <= depth, "threads", job.threads, &wanted)?;
    let beyond = job.cpus.iter().find(|&&cpu| cpu >= CPU_MAX);
    check(beyond.is_none(), "cpus", beyond.unwrap_or(&0), "numbers of CPUs below 1024")?;
    let count = job.cpus.len();
    check(count <= THREADS_MAX as usize, "the number of cpus", count, "at most 64")
}

fn check_share(key: &str, share: f64) -> Result<(), RunError> {
    check((0.0..=1.0).contains(&share), key, share, "a share from 0 to 1")
}

fn check_block(key: &str, block_bytes: u64) -> Result<(), RunError> {
    let valid = block_bytes > 0 && block_bytes.is_multiple_of(512) && block_bytes <= TRANSFER_MAX_BYTES;
    check(valid, key, block_bytes, "a multiple of 512, at most 256 MiB")
}

fn check_range(range: BlockRange) -> Result<(), RunError> {
    let BlockRange { from, to, step } = range;
    let in_range = (1..=to).contains(&from) && to <= TRANSFER_MAX_BYTES;
    check(in_range, "from", from, "a length from 1 on, at most `to`, which is at most 256 MiB")?;
    check(step.is_multiple_of(512) && step <= TRANSFER_MAX_BYTES, "step", step, "a multiple of 512")?;
    let steps = (to - from) / step.max(512);
    check(steps < STEPS_MAX, "the number of lengths in block_bytes", steps, "fewer than 4096: a larger step")
}

fn check_fills(key: &str, fills: f64) -> Result<(), RunError> {
    check(fills > 0.0 && fills <= FILLS_MAX, key, fills, "a number above 0, at most 1000")
}

fn check_span(offset_bytes: u64, span_bytes: Option<u64>, span_share: Option<f64>) -> Result<(), RunError> {
    check(offset_bytes.is_multiple_of(512), "offset_bytes", offset_bytes, "a multiple of 512")?;
    let span_valid = span_bytes.is_none_or(|span| span > 0 && span.is_multiple_of(512));
    check(span_valid, "span_bytes", span_bytes.unwrap_or(0), "a multiple of 512 above 0")?;
    let share = span_share.unwrap_or(1.0);
    check(share > 0.0 && share <= 1.0, "span_share", share, "a share above 0, at most 1")?;
    let one = span_bytes.is_none() || span_share.is_none();
    check(one, "span_share", share, "either span_bytes or span_share, not both")
}

fn check_blocks(job: &SyntheticJob) -> Result<(), RunError> {
    if let BlockBytes::Range(range) = job.block_bytes {
        check_range(range)?;
    }
    let shares = job.block_bytes.shares(512);
    let count_valid =
        matches!(job.block_bytes, BlockBytes::Range(_)) || (1..=SHARES_MAX).contains(&shares.len());
    check(count_valid, "the number of lengths in block_bytes", shares.len(), "from 1 to 64")?;
    for block in &shares {
        check_block("block_bytes", block.bytes)?;
        check(block.share > 0.0 && block.share <= 1.0, "share", block.share, "a share above 0, at most 1")?;
    }
    let sum: f64 = shares.iter().map(|block| block.share).sum();
    check(
        (sum - 1.0).abs() < 1e-6,
        "the sum of the shares of block_bytes",
        sum,
        "shares that make 1 together",
    )?;
    if let Some(alignment_bytes) = job.alignment_bytes {
        check_block("alignment_bytes", alignment_bytes)?;
    }
    let longest = shares.iter().map(|block| block.bytes).max().unwrap_or(0);
    let span_valid = job.span_bytes.is_none_or(|span| span >= longest);
    check(span_valid, "span_bytes", job.span_bytes.unwrap_or(0), "at least block_bytes")?;
    if job.pattern == Pattern::RandomOnce {
        let one = matches!(job.block_bytes, BlockBytes::One(_));
        check(
            one,
            "block_bytes",
            "a list",
            "one length with pattern 'random_once', whose places are counted",
        )?;
        let alignment_bytes = job.alignment_bytes.unwrap_or(longest);
        let wanted = "at least block_bytes with pattern 'random_once', so that no two places overlap";
        check(alignment_bytes >= longest, "alignment_bytes", alignment_bytes, wanted)?;
    }
    Ok(())
}

fn check_ends(job: &SyntheticJob) -> Result<(), RunError> {
    check_duration(job.duration_ns)?;
    if let Some(fills) = job.drive_fills {
        check_fills("drive_fills", fills)?;
        let wanted = "an end that reads reach too: there are no writes to fill the drive";
        check(job.write_share() > 0.0, "drive_fills", fills, wanted)?;
    }
    let bounded = job.ios.is_some()
        || job.bytes.is_some()
        || job.duration_ns.is_some()
        || job.cycles.is_some()
        || job.drive_fills.is_some()
        || job.steady_state.is_some()
        || matches!(job.arrivals, Some(ArrivalsJob::Recording { .. }));
    let wanted = "at least one of ios, bytes, duration_ns, cycles, drive_fills and steady_state";
    check(bounded, "an end", "absent", wanted)?;
    job.steady_state.as_ref().map_or(Ok(()), check_steady_state)
}

/// What decides when I/Os go.
fn check_times(job: &SyntheticJob) -> Result<(), RunError> {
    check_depth("max_in_flight", job.max_in_flight)?;
    let open = job.is_open();
    match job.arrivals {
        Some(
            ArrivalsJob::Constant { rate_iops }
            | ArrivalsJob::Poisson { rate_iops }
            | ArrivalsJob::Act { rate_iops },
        ) => {
            check_rate("rate_iops", rate_iops)?;
        }
        Some(ArrivalsJob::AfterCompletion { think_ns }) => {
            check((0..=TIME_MAX_NS).contains(&think_ns), "think_ns", think_ns, "a time of at most a year")?;
        }
        Some(ArrivalsJob::Recording { .. }) | None => {}
    }
    for (key, limit) in
        [("rate_limit_iops", job.rate_limit_iops), ("rate_limit_bytes_per_s", job.rate_limit_bytes_per_s)]
    {
        let Some(limit) = limit else { continue };
        check_rate(key, limit)?;
        check(!open, key, limit, "none with arrivals, whose times nothing holds back")?;
    }
    if let Some(max_lag_ns) = job.max_lag_ns {
        check_time("max_lag_ns", max_lag_ns)?;
        check(open, "max_lag_ns", max_lag_ns, "none without arrivals: a closed loop is never late")?;
    }
    check(
        job.on_ns.is_some() == job.off_ns.is_some(),
        "one of on_ns and off_ns",
        "absent",
        "both or neither",
    )?;
    check_time("on_ns", job.on_ns.unwrap_or(1))?;
    check_time("off_ns", job.off_ns.unwrap_or(1))?;
    let Some(cycles) = job.cycles else { return Ok(()) };
    check(job.on_ns.is_some(), "cycles", cycles, "none without on_ns and off_ns, of which they are made")?;
    let wanted = "a number above 0, in at most a year";
    check(cycles > 0 && job.cycles_ns().is_some_and(|ns| ns <= TIME_MAX_NS), "cycles", cycles, wanted)
}

fn check_rate(key: &str, rate: f64) -> Result<(), RunError> {
    check((1e-3..=1e15).contains(&rate), key, rate, "a rate of at least 0.001 a second")
}

pub fn check_time(key: &str, time_ns: i64) -> Result<(), RunError> {
    check((1..=TIME_MAX_NS).contains(&time_ns), key, time_ns, "a time above 0, of at most a year")
}

fn check_steady_state(job: &SteadyStateJob) -> Result<(), RunError> {
    let SteadyStateJob { round_ns, rounds_max, window, range_share, slope_share, .. } = *job;
    check((1..=ROUNDS_MAX).contains(&rounds_max), "rounds_max", rounds_max, "a number from 1 to 10000")?;
    let longest_ns = TIME_MAX_NS / i64::from(rounds_max);
    let wanted = "a millisecond or more, with rounds_max rounds in at most a year";
    check((ROUND_MIN_NS..=longest_ns).contains(&round_ns), "round_ns", round_ns, wanted)?;
    check((2..=rounds_max).contains(&window), "window", window, "a number from 2 to rounds_max")?;
    check(
        range_share > 0.0 && range_share <= 10.0,
        "range_share",
        range_share,
        "a share above 0, at most 10",
    )?;
    check(slope_share > 0.0 && slope_share <= 10.0, "slope_share", slope_share, "a share above 0, at most 10")
}

fn check_hot_spots(job: &SyntheticJob) -> Result<(), RunError> {
    let spots = &job.hot_spots;
    check(spots.len() <= SHARES_MAX, "the number of hot_spots", spots.len(), "at most 64")?;
    let random = spots.is_empty() || job.pattern == Pattern::Random;
    check(random, "hot_spots", spots.len(), "none, or pattern 'random'")?;
    for HotSpot { span_share, access_share } in spots {
        check(
            *span_share > 0.0 && *span_share <= 1.0,
            "span_share",
            span_share,
            "a share above 0, at most 1",
        )?;
        check_share("access_share", *access_share)?;
    }
    let span: f64 = spots.iter().map(|spot| spot.span_share).sum();
    let access: f64 = spots.iter().map(|spot| spot.access_share).sum();
    let at_most_1 = |sum: f64| sum <= 1.0 + SHARE_TOLERANCE;
    check(at_most_1(span), "the sum of span_share of hot_spots", span, "shares of at most 1 together")?;
    check(at_most_1(access), "the sum of access_share of hot_spots", access, "shares of at most 1 together")?;
    let rest_has_room = span < 1.0 - SHARE_TOLERANCE || spots.is_empty() || access > 1.0 - 1e-6;
    let wanted = "shares that make 1 together, since hot_spots leave no other part of the span";
    check(rest_has_room, "the sum of access_share of hot_spots", access, wanted)
}
