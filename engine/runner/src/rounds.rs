//! Rounds of equal length, over which a phase is judged while it runs: each submitter adds up its own I/Os, and the last one to come
//! to a round's end judges it.

use crate::job_generated::{Measure, SteadyStateJob};
use crate::steady_state::Fit;
use serde::Serialize;
use serde_json::{json, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What completed without an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// I/Os.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their latencies.
    pub latency_sum_ns: u64,
}

impl Tally {
    /// Counts an I/O.
    #[inline]
    pub fn add(&mut self, bytes: u64, latency_ns: i64) {
        self.merge(&Tally { ios: 1, bytes, latency_sum_ns: latency_ns as u64 });
    }

    /// Counts what another one counted.
    #[inline]
    pub fn merge(&mut self, other: &Tally) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(other.latency_sum_ns);
    }
}

/// A round, as the manifest has it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    ios: u64,
    iops: f64,
    throughput_bytes_per_s: f64,
    /// Absent where nothing completed.
    latency_mean_ns: Option<f64>,
}

impl Round {
    /// What completed in a round that took so long.
    pub fn of(tally: Tally, round_ns: i64) -> Round {
        let per_second = |count: u64| count as f64 * 1e9 / round_ns as f64;
        Round {
            ios: tally.ios,
            iops: per_second(tally.ios),
            throughput_bytes_per_s: per_second(tally.bytes),
            latency_mean_ns: (tally.ios > 0).then(|| tally.latency_sum_ns as f64 / tally.ios as f64),
        }
    }

    /// What is judged; not a number where there is none.
    pub fn value(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Iops => self.iops,
            Measure::Throughput => self.throughput_bytes_per_s,
            Measure::Latency => self.latency_mean_ns.unwrap_or(f64::NAN),
        }
    }
}

/// How far a phase is on its way to a steady state, for the progress.
#[derive(Clone, Debug, Serialize)]
pub struct SteadyProgress {
    /// What is judged.
    pub measure: Measure,
    /// Rounds so far.
    pub rounds: usize,
    /// Rounds at most.
    pub rounds_max: u32,
    /// The measure in the last round.
    pub value: f64,
    /// The last window, once there is one.
    pub fit: Option<Fit>,
    /// Whether that window is steady.
    pub achieved: bool,
    /// Rounds that are judged together.
    pub window: u32,
    /// How long a round is.
    pub round_ns: i64,
    /// What the window's range may be of its mean.
    pub range_share_max: f64,
    /// What its line may climb or fall by.
    pub slope_share_max: f64,
}

/// The rounds of a phase, which its submitters share.
pub struct Rounds {
    job: SteadyStateJob,
    submitters: usize,
    state: Mutex<State>,
    over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Rounds that not every submitter has come to the end of: from the next one to judge on.
    open: Vec<(Tally, usize)>,
    done: Vec<Round>,
    fit: Option<Fit>,
    achieved: bool,
}

impl Rounds {
    /// Rounds of so many submitters.
    pub fn new(job: SteadyStateJob, submitters: usize) -> Rounds {
        Rounds { job, submitters, state: Mutex::default(), over: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Whether the phase is to end: steady, or out of rounds.
    #[inline]
    pub fn are_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Takes what a submitter did in a round; the last one has it judged.
    fn report(&self, index: usize, tally: Tally) {
        let mut state = self.state();
        if self.are_over() {
            return;
        }
        let place = index - state.done.len();
        if state.open.len() <= place {
            state.open.resize(place + 1, (Tally::default(), 0));
        }
        let (sum, reports) = &mut state.open[place];
        sum.merge(&tally);
        *reports += 1;
        while state.open.first().is_some_and(|(_, reports)| *reports == self.submitters) && !self.are_over() {
            let (tally, _) = state.open.remove(0);
            self.judge(&mut state, tally);
        }
    }

    fn judge(&self, state: &mut State, tally: Tally) {
        let SteadyStateJob { measure, round_ns, rounds_max, window, range_share, slope_share } = self.job;
        state.done.push(Round::of(tally, round_ns));
        let first = state.done.len().checked_sub(window as usize);
        state.fit = first.and_then(|first| {
            let values: Vec<f64> = state.done[first..].iter().map(|round| round.value(measure)).collect();
            Fit::of(&values)
        });
        state.achieved = state.fit.is_some_and(|fit| fit.is_steady(range_share, slope_share));
        if state.achieved || state.done.len() == rounds_max as usize {
            self.over.store(true, Ordering::Relaxed);
        }
    }

    /// Where it stands; `None` before the end of the first round.
    pub fn progress(&self) -> Option<SteadyProgress> {
        let SteadyStateJob { measure, rounds_max, window, round_ns, range_share, slope_share } = self.job;
        let state = self.state();
        let value = state.done.last()?.value(measure);
        let (rounds, fit, achieved) = (state.done.len(), state.fit, state.achieved);
        Some(SteadyProgress {
            measure,
            rounds,
            rounds_max,
            value,
            fit,
            achieved,
            window,
            round_ns,
            range_share_max: range_share,
            slope_share_max: slope_share,
        })
    }

    /// Whether a steady state was found.
    pub fn achieved(&self) -> bool {
        self.state().achieved
    }

    /// How many rounds were judged.
    pub fn count(&self) -> usize {
        self.state().done.len()
    }

    /// What was found, for the manifest. `start_ns` is the phase's.
    pub fn to_json(&self, start_ns: i64) -> Value {
        let state = self.state();
        let window_first = state.done.len().saturating_sub(self.job.window as usize);
        let window_start_ns = start_ns + window_first as i64 * self.job.round_ns;
        json!({
            "measure": self.job.measure,
            "achieved": state.achieved,
            "rounds": state.done,
            "window_first_round": window_first,
            "window_start_ns": window_start_ns,
            "fit": state.fit,
        })
    }
}

/// A submitter's part of the round that it is in.
pub struct RoundTally<'a> {
    rounds: &'a Rounds,
    index: usize,
    end_ns: i64,
    tally: Tally,
}

impl<'a> RoundTally<'a> {
    /// From the phase's start on.
    pub fn new(rounds: &'a Rounds, start_ns: i64) -> RoundTally<'a> {
        RoundTally { rounds, index: 0, end_ns: start_ns + rounds.job.round_ns, tally: Tally::default() }
    }

    /// Counts an I/O that completed.
    #[inline]
    pub fn add(&mut self, complete_ns: i64, bytes: u64, latency_ns: i64) {
        self.pass(complete_ns);
        self.tally.add(bytes, latency_ns);
    }

    /// It is `now_ns`: rounds that ended before are reported. Returns whether the phase is to end.
    #[inline]
    pub fn pass(&mut self, now_ns: i64) -> bool {
        // Where another submitter has ended before, no round is judged any more, and none is kept beyond the last.
        let rounds_max = self.rounds.job.rounds_max as usize;
        while now_ns >= self.end_ns && self.index < rounds_max && !self.rounds.are_over() {
            self.rounds.report(self.index, std::mem::take(&mut self.tally));
            self.index += 1;
            self.end_ns += self.rounds.job.round_ns;
        }
        self.rounds.are_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(measure: Measure, rounds_max: u32) -> SteadyStateJob {
        SteadyStateJob { measure, round_ns: 1_000, rounds_max, window: 3, range_share: 0.2, slope_share: 0.1 }
    }

    fn add(tally: &mut RoundTally<'_>, round: i64, ios: i64, latency_ns: i64) {
        (0..ios).for_each(|io| tally.add(round * 1_000 + io, 4096, latency_ns));
    }

    #[test]
    fn rounds_are_judged_until_the_window_is_steady() {
        let rounds = Rounds::new(job(Measure::Iops, 10), 1);
        let mut tally = RoundTally::new(&rounds, 0);
        for (round, ios) in [100, 80, 60, 61, 59, 60].into_iter().enumerate() {
            assert!(!rounds.are_over(), "round {round}");
            add(&mut tally, round as i64, ios, 5);
            if round == 4 {
                // 60, 61, 59 in the window, as soon as the last of them is over.
                assert!(tally.pass(5_000));
                break;
            }
        }
        let found = rounds.to_json(7);
        assert_eq!((&found["achieved"], &found["window_first_round"]), (&json!(true), &json!(2)));
        assert_eq!((&found["window_start_ns"], &found["rounds"][0]["ios"]), (&json!(2_007), &json!(100)));
        assert_eq!(found["rounds"][2]["iops"], json!(60e6));
        assert_eq!(found["rounds"][2]["throughput_bytes_per_s"], json!(60e6 * 4096.0));
        assert_eq!(rounds.progress().unwrap().rounds, 5);
    }

    #[test]
    fn a_measure_that_keeps_falling_ends_unsteady_after_the_last_round() {
        let rounds = Rounds::new(job(Measure::Latency, 4), 1);
        let mut tally = RoundTally::new(&rounds, 0);
        for round in 0..4 {
            assert!(!tally.pass(round * 1_000));
            add(&mut tally, round, 10, 1_000 >> round);
        }
        assert!(tally.pass(4_000));
        assert!(!rounds.achieved());
        assert_eq!(rounds.to_json(0)["rounds"][3]["latency_mean_ns"], json!(125.0));
    }

    #[test]
    fn a_round_is_judged_when_the_last_submitter_has_come_to_its_end() {
        let rounds = Rounds::new(job(Measure::Throughput, 10), 2);
        let (mut one, mut other) = (RoundTally::new(&rounds, 0), RoundTally::new(&rounds, 0));
        for round in 0..3 {
            add(&mut one, round, 10, 5);
        }
        one.pass(3_000);
        assert_eq!(rounds.count(), 0);
        for round in 0..3 {
            add(&mut other, round, 20, 5);
        }
        assert!(other.pass(3_000));
        assert_eq!(rounds.to_json(0)["rounds"][1]["ios"], json!(30));
    }

    #[test]
    fn a_submitter_that_ended_early_leaves_rounds_unjudged_and_nothing_grows() {
        let rounds = Rounds::new(job(Measure::Iops, 4), 2);
        let mut one = RoundTally::new(&rounds, 0);
        assert!(!one.pass(1_000_000_000));
        assert_eq!((rounds.count(), rounds.state().open.len()), (0, 4));
        assert!(!rounds.achieved());
    }

    #[test]
    fn rounds_in_which_nothing_completes_are_rounds_too() {
        let rounds = Rounds::new(job(Measure::Latency, 5), 1);
        let mut tally = RoundTally::new(&rounds, 0);
        add(&mut tally, 4, 1, 5);
        assert_eq!((rounds.count(), rounds.achieved()), (4, false));
        assert!(tally.pass(9_000));
        assert_eq!((rounds.count(), rounds.achieved()), (5, false));
        assert_eq!(rounds.to_json(0)["fit"], Value::Null);
    }
}
