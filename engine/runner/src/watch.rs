//! The caller's watch over a phase: progress is told, and signals become a stop.

use crate::event::{Event, PhaseName, Progress};
use crate::phase::PhaseContext;
use crate::rounds::Rounds;
use crate::start_line::StartLine;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use testdrive_recording::Status;

/// How often progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Tells progress and passes signals on while the submitters run.
pub struct Watch<'a> {
    context: &'a PhaseContext<'a>,
    line: &'a StartLine,
    planned_ios: Option<u64>,
    planned_ns: Option<i64>,
    rounds: Option<&'a Rounds>,
    begun: Option<PhaseName>,
    told: Instant,
    ios_before: u64,
    bytes_before: u64,
    errors_before: u64,
    last: (i64, u64, u64),
}

impl<'a> Watch<'a> {
    /// A watch from now on.
    pub fn new(
        context: &'a PhaseContext<'a>,
        line: &'a StartLine,
        phase: PhaseName,
        (planned_ios, planned_ns): (Option<u64>, Option<i64>),
        rounds: Option<&'a Rounds>,
    ) -> Watch<'a> {
        let shared = context.shared;
        let (ios, bytes) = (shared.ios.load(Ordering::Relaxed), shared.bytes.load(Ordering::Relaxed));
        Watch {
            context,
            line,
            planned_ios,
            planned_ns,
            rounds,
            begun: Some(phase),
            told: Instant::now(),
            ios_before: ios,
            bytes_before: bytes,
            errors_before: shared.errors.load(Ordering::Relaxed),
            last: (shared.now_ns.load(Ordering::Relaxed), ios, bytes),
        }
    }

    /// Passes a signal on, and tells progress when it is time.
    pub fn look(&mut self, tell: &mut dyn FnMut(Event)) {
        let signal = self.context.signal.load(Ordering::Relaxed);
        if signal != 0 {
            self.context.shared.stop.request(Status::Interrupted, interruption(signal));
        }
        self.tell_begin(tell);
        if self.told.elapsed() >= PROGRESS_INTERVAL {
            self.tell_progress(tell);
        }
    }

    /// Tells, once, that the phase has begun, as soon as it has.
    fn tell_begin(&mut self, tell: &mut dyn FnMut(Event)) {
        let Some(start_ns) = self.line.start_ns() else { return };
        if let Some(phase) = self.begun.take() {
            let (planned_ios, planned_ns) = (self.planned_ios, self.planned_ns);
            tell(Event::Phase { index: self.context.index, phase, start_ns, planned_ios, planned_ns });
        }
    }

    /// Tells progress now.
    pub fn tell_progress(&mut self, tell: &mut dyn FnMut(Event)) {
        self.tell_begin(tell);
        self.told = Instant::now();
        let shared = self.context.shared;
        let Some(start_ns) = self.line.start_ns() else { return };
        let now_ns = shared.now_ns.load(Ordering::Relaxed).max(start_ns);
        let (ios, bytes) = (shared.ios.load(Ordering::Relaxed), shared.bytes.load(Ordering::Relaxed));
        let (last_ns, last_ios, last_bytes) = self.last;
        let interval_s = (now_ns - last_ns.max(start_ns)) as f64 / 1e9;
        let rate = |count: u64| if interval_s > 0.0 { count as f64 / interval_s } else { 0.0 };
        let live = std::mem::take(&mut *self.context.live.lock().expect("no holder of this lock panics"));
        let elapsed_ns = now_ns - start_ns;
        let (phase_ios, phase_bytes) = (ios - self.ios_before, bytes - self.bytes_before);
        let by_time = self.planned_ns.map(|planned_ns| elapsed_ns as f64 / planned_ns.max(1) as f64);
        let by_ios = self.planned_ios.map(|planned_ios| phase_ios as f64 / planned_ios.max(1) as f64);
        // Whichever end is nearer comes first.
        let done_share = by_time.into_iter().chain(by_ios).reduce(f64::max);
        let has_latencies = live.latencies.count() > 0;
        tell(Event::Progress(Progress {
            phase: self.context.index,
            elapsed_ns,
            done_share: done_share.map(|share| share.min(1.0)),
            ios: phase_ios,
            bytes: phase_bytes,
            errors: shared.errors.load(Ordering::Relaxed) - self.errors_before,
            iops: rate(ios - last_ios),
            throughput_bytes_per_s: rate(bytes - last_bytes),
            latency_p50_ns: live.latencies.percentile_ns(0.5),
            latency_p99_ns: live.latencies.percentile_ns(0.99),
            latency_max_ns: has_latencies.then(|| live.latencies.max_ns()),
            in_flight: shared.in_flight.load(Ordering::Relaxed),
            lateness_max_ns: live.lateness_max_ns,
            steady_state: self.rounds.and_then(Rounds::progress),
        }));
        self.last = (now_ns, ios, bytes);
    }
}

/// Why a run is stopped by a signal, in words.
pub fn interruption(signal: usize) -> &'static str {
    const SIGINT: usize = libc::SIGINT as usize;
    const SIGPIPE: usize = libc::SIGPIPE as usize;
    match signal {
        SIGINT => "stopped by SIGINT",
        SIGPIPE => "stopped because whoever asked for the run is gone",
        _ => "stopped by SIGTERM",
    }
}
