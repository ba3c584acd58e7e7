//! When the I/Os of an open loop are to go: an absolute schedule, which no drive can slow down.

use crate::error::RunError;
use crate::feed_queue::Feeds;
use crate::job_generated::ArrivalsJob;
use crate::source::Planned;
use crate::stop::Stop;
use crate::throttle::OnOff;
use std::path::Path;
use testdrive_core::{Command, Flags, Opcode, SplitMix64};
use testdrive_recording::{OrderBy, Recording, RecordingError};

/// The schedule of one generator, from the phase's start on.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// None of its own: a closed loop, or times that come from a recording.
    Unscheduled,
    /// Evenly spread: each generator takes its turn.
    Constant {
        /// I/Os per second of all generators.
        rate_iops: f64,
        /// The next one's number, over all generators.
        turn: u64,
        /// How many generators there are.
        step: u64,
        /// Where in a gap the first one lies, of streams that are not to begin at once.
        stagger: f64,
    },
    /// Without memory: the schedules of several generators together are such a one too.
    Poisson {
        /// The mean of this generator's gaps.
        gap_ns: f64,
        /// The last arrival.
        time_ns: f64,
        /// Of its gaps alone, so that places and mix are the same at every rate.
        random: SplitMix64,
    },
    /// All generators at once, each a thread that waits for its I/O: one that takes longer than a gap makes the next ones late.
    InPhase {
        /// I/Os per second of this generator.
        rate_iops: f64,
        /// The next one's number.
        turn: u64,
        /// Whether the next one waits for the last.
        waits: Waits,
    },
    /// One at a time.
    AfterCompletion {
        /// How long after one completed the next one goes.
        think_ns: i64,
        /// When that is; `None` while one is in flight.
        ready_ns: Option<i64>,
    },
}

/// Whether a thread in phase waits for its I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nothing of it is in flight.
    Idle,
    /// One is in flight.
    InFlight,
    /// It does not wait any more.
    Never,
}

impl Arrivals {
    /// The schedule of the `index`-th of `count` generators.
    pub fn new(job: Option<&ArrivalsJob>, (index, count): (u64, u64), seed: u64, stagger: f64) -> Arrivals {
        match job {
            None | Some(ArrivalsJob::Recording { .. }) => Arrivals::Unscheduled,
            Some(ArrivalsJob::Constant { rate_iops }) => {
                Arrivals::Constant { rate_iops: *rate_iops, turn: index, step: count, stagger }
            }
            Some(ArrivalsJob::Poisson { rate_iops }) => Arrivals::Poisson {
                gap_ns: 1e9 * count as f64 / rate_iops,
                time_ns: 0.0,
                random: SplitMix64::new(!seed),
            },
            Some(ArrivalsJob::Act { rate_iops }) => {
                Arrivals::InPhase { rate_iops: rate_iops / count as f64, turn: 0, waits: Waits::Idle }
            }
            Some(ArrivalsJob::AfterCompletion { think_ns }) => {
                Arrivals::AfterCompletion { think_ns: *think_ns, ready_ns: Some(0) }
            }
        }
    }

    /// When the next I/O is to go.
    #[inline]
    pub fn next_ns(&mut self) -> i64 {
        match self {
            Arrivals::Unscheduled => 0,
            Arrivals::Constant { rate_iops, turn, step, stagger } => {
                let due_ns = (*turn as f64 + *stagger) * 1e9 / *rate_iops;
                *turn += *step;
                due_ns.round() as i64
            }
            Arrivals::Poisson { gap_ns, time_ns, random } => {
                // 1 - u is above 0, so that the logarithm is finite.
                *time_ns -= *gap_ns * (1.0 - crate::places::unit(random)).ln();
                *time_ns as i64
            }
            Arrivals::InPhase { rate_iops, turn, waits } => {
                let due_ns = *turn as f64 * 1e9 / *rate_iops;
                *turn += 1;
                if *waits == Waits::Idle {
                    *waits = Waits::InFlight;
                }
                due_ns.round() as i64
            }
            Arrivals::AfterCompletion { ready_ns, .. } => ready_ns.take().unwrap_or(0),
        }
    }

    /// Whether the next I/O has no time before another one completes.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(
            self,
            Arrivals::AfterCompletion { ready_ns: None, .. }
                | Arrivals::InPhase { waits: Waits::InFlight, .. }
        )
    }

    /// One of the generator's I/Os has completed.
    pub fn completed(&mut self, at_ns: i64) {
        match self {
            Arrivals::AfterCompletion { think_ns, ready_ns } => {
                *ready_ns = Some(at_ns.saturating_add(*think_ns));
            }
            Arrivals::InPhase { waits, .. } if *waits == Waits::InFlight => *waits = Waits::Idle,
            _ => {}
        }
    }

    /// What has a time of its own waits for no completion any more.
    pub fn release(&mut self) {
        if let Arrivals::InPhase { waits, .. } = self {
            *waits = Waits::Never;
        }
    }
}

/// Takes the arrival times of a recording ahead of the submitters, in turn for each.
pub struct ArrivalFeeder {
    /// Whose times.
    pub recording: Recording,
    /// When the phase rests.
    pub on_off: Option<OnOff>,
}

impl ArrivalFeeder {
    /// Opens the recording.
    ///
    /// # Errors
    /// When it cannot be read, does not keep every row, or has no I/O.
    pub fn open(path: &Path) -> Result<Recording, RunError> {
        let recording = Recording::open(path)?;
        if recording.manifest.counts.ios == 0 {
            let message = format!("{} holds no I/Os: there are no arrivals to take", path.display());
            return Err(RunError::usage(message));
        }
        // Refuses one that does not keep every row.
        drop(recording.ordered_rows(OrderBy::Intended)?);
        Ok(recording)
    }

    /// Feeds until the recording ends, the submitters do, or the run stops.
    ///
    /// # Errors
    /// When a segment of the recording cannot be read.
    pub fn run(&self, mut feeds: Feeds, stop: &Stop) -> Result<(), RecordingError> {
        let phases = &self.recording.manifest.phases;
        let base_ns = phases.iter().find(|phase| phase.measured).map_or(0, |phase| phase.start_ns);
        let mut sequence = 0;
        for row in self.recording.ordered_rows(OrderBy::Intended)? {
            let row = row?;
            if !phases.get(usize::from(row.phase)).is_some_and(|phase| phase.measured) {
                continue;
            }
            let time_ns = row.intended_ns.saturating_sub(base_ns).max(0);
            let due_ns = self.on_off.map_or(time_ns, |on_off| on_off.stretched(time_ns));
            let submitter = (sequence % feeds.count() as u64) as usize;
            if !feeds.push_time(submitter, scheduled(due_ns, sequence), stop) {
                break;
            }
            sequence += 1;
        }
        Ok(())
    }
}

/// A time without an I/O: the generator makes that.
fn scheduled(due_ns: i64, sequence: u64) -> Planned {
    let command = Command { offset_bytes: 0, length_bytes: 0, opcode: Opcode::Read, flags: Flags::NONE };
    Planned { command, due_ns, gate: 0, sequence, stream: 0, part: 0, opens_gates: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(job: &ArrivalsJob, threads: u64, each: usize) -> Vec<i64> {
        let mut times: Vec<i64> = (0..threads)
            .flat_map(|index| {
                let mut arrivals = Arrivals::new(Some(job), (index, threads), index, 0.0);
                let mut next_ns = || {
                    let due_ns = arrivals.next_ns();
                    arrivals.completed(due_ns);
                    due_ns
                };
                (0..each).map(|_| next_ns()).collect::<Vec<_>>()
            })
            .collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn constant_arrivals_never_drift_and_threads_take_turns() {
        let job = ArrivalsJob::Constant { rate_iops: 3_000.0 };
        for threads in [1, 4] {
            let times = merged(&job, threads, 12_000 / threads as usize);
            assert_eq!(
                (times[0], times[1], times[3_000], times[9_000]),
                (0, 333_333, 1_000_000_000, 3_000_000_000)
            );
        }
    }

    #[test]
    fn threads_in_phase_go_together_each_with_its_share_of_the_rate() {
        let times = merged(&ArrivalsJob::Act { rate_iops: 2_000.0 }, 10, 400);
        assert!(times.chunks_exact(10).all(|burst| burst.iter().all(|time_ns| *time_ns == burst[0])));
        assert_eq!((times[0], times[10], times[2_000]), (0, 5_000_000, 1_000_000_000));
        // A part of the load of several drives: 60 threads of 100 I/Os a second over three of them.
        let times = merged(&ArrivalsJob::Act { rate_iops: 2_000.0 }, 60, 200);
        assert!(times.chunks_exact(60).all(|burst| burst.iter().all(|time_ns| *time_ns == burst[0])));
        assert_eq!((times[60], times[6_000]), (30_000_000, 3_000_000_000));
    }

    #[test]
    fn a_thread_in_phase_waits_for_its_io_and_keeps_its_schedule() {
        let job = ArrivalsJob::Act { rate_iops: 1_000.0 };
        let mut arrivals = Arrivals::new(Some(&job), (0, 1), 0, 0.0);
        assert_eq!((arrivals.is_waiting(), arrivals.next_ns(), arrivals.is_waiting()), (false, 0, true));
        // It took two and a half gaps: the next two are late, none is left out.
        arrivals.completed(2_500_000);
        assert_eq!((arrivals.is_waiting(), arrivals.next_ns()), (false, 1_000_000));
        assert!(arrivals.is_waiting());
        // Once the time is over, what did not go is counted by its time.
        arrivals.release();
        assert_eq!(
            (arrivals.is_waiting(), arrivals.next_ns(), arrivals.next_ns()),
            (false, 2_000_000, 3_000_000)
        );
        assert!(!arrivals.is_waiting());
    }

    #[test]
    fn a_thread_waits_for_its_completion_and_thinks() {
        let job = ArrivalsJob::AfterCompletion { think_ns: 7 };
        let mut arrivals = Arrivals::new(Some(&job), (0, 1), 0, 0.0);
        assert!(!arrivals.is_waiting());
        assert_eq!(arrivals.next_ns(), 0);
        assert!(arrivals.is_waiting());
        arrivals.completed(100);
        assert_eq!((arrivals.is_waiting(), arrivals.next_ns()), (false, 107));
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_gaps_without_memory() {
        for threads in [1, 3] {
            let times =
                merged(&ArrivalsJob::Poisson { rate_iops: 50_000.0 }, threads, 60_000 / threads as usize);
            let gaps: Vec<f64> =
                times.windows(2).take(55_000).map(|pair| (pair[1] - pair[0]) as f64).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean / 20_000.0 - 1.0).abs() < 0.02, "{mean}");
            // The coefficient of variation of an exponential distribution is 1, and e^-1 of it lies above the mean.
            assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{}", variance.sqrt() / mean);
            let above = gaps.iter().filter(|gap| **gap > mean).count() as f64 / gaps.len() as f64;
            assert!((above - (-1.0_f64).exp()).abs() < 0.01, "{above}");
        }
    }
}
