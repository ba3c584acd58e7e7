//! How far a group of phases is: what is tracked, taken from each round and judged after it.

use crate::event::{RoundOver, RoundPosition, TrackedOver};
use crate::job_rounds::{RoundsJob, Tracked};
use crate::rounds::{Round, Tally};
use crate::steady_state::Fit;
use serde_json::{json, Value};

/// The rounds of a group so far.
pub struct Group<'a> {
    job: &'a RoundsJob,
    /// Of each round that is over or running: when its first phase began.
    starts_ns: Vec<i64>,
    tracked: Vec<Values>,
    done: u32,
}

/// One tracked figure: its value in each round, with the fit of the last window. What a round does not have is not a number.
#[derive(Clone, Default)]
struct Values {
    values: Vec<f64>,
    fit: Option<Fit>,
    achieved: bool,
}

impl<'a> Group<'a> {
    /// Before the first round.
    pub fn new(job: &'a RoundsJob) -> Group<'a> {
        Group { job, starts_ns: Vec::new(), tracked: vec![Values::default(); job.tracked.len()], done: 0 }
    }

    /// Where the round that runs, or is to run next, stands.
    pub fn position(&self) -> RoundPosition {
        let RoundsJob { name, rounds_max, .. } = self.job;
        RoundPosition { name: name.clone(), round: self.done, rounds_max: *rounds_max }
    }

    /// How many phases a round has.
    pub fn members(&self) -> usize {
        self.job.phases.len()
    }

    /// Rounds that are over.
    pub fn done(&self) -> usize {
        self.done as usize
    }

    /// Whether the last window is steady in all that is tracked.
    pub fn achieved(&self) -> bool {
        self.tracked.iter().all(|tracked| tracked.achieved)
    }

    /// Whether no round follows.
    pub fn is_over(&self) -> bool {
        self.achieved() || self.done == self.job.rounds_max
    }

    /// Takes what a phase of the round did, in the order in which they are run.
    pub fn take(&mut self, member: usize, (start_ns, end_ns): (i64, i64), completed: Tally) {
        if member == 0 {
            self.starts_ns.push(start_ns);
        }
        let whole = Round::of(completed, (end_ns - start_ns).max(1));
        for (wanted, tracked) in self.job.tracked.iter().zip(&mut self.tracked) {
            if self.job.member(&wanted.phase) == Some(member) {
                tracked.values.push(whole.value(wanted.measure));
            }
        }
    }

    /// The round is over: judges the last window.
    pub fn judge(&mut self) -> RoundOver {
        let RoundsJob { window, range_share, slope_share, .. } = *self.job;
        let position = self.position();
        self.done += 1;
        for tracked in &mut self.tracked {
            let first = tracked.values.len().checked_sub(window as usize);
            tracked.fit = first.and_then(|first| Fit::of(&tracked.values[first..]));
            tracked.achieved = tracked.fit.is_some_and(|fit| fit.is_steady(range_share, slope_share));
        }
        let over = |(wanted, values): (&Tracked, &Values)| TrackedOver {
            phase: wanted.phase.clone(),
            measure: wanted.measure,
            value: values.values.last().copied().filter(|value| value.is_finite()),
            fit: values.fit,
            achieved: values.achieved,
        };
        let tracked = self.job.tracked.iter().zip(&self.tracked).map(over).collect();
        RoundOver { position, achieved: self.achieved(), tracked }
    }

    /// What was found, for the manifest.
    pub fn to_json(&self) -> Value {
        let RoundsJob { name, rounds_max, window, range_share, slope_share, .. } = self.job;
        let window_first = self.done().saturating_sub(*window as usize);
        let tracked: Vec<Value> = self
            .job
            .tracked
            .iter()
            .zip(&self.tracked)
            .map(|(wanted, Values { values, fit, achieved })| {
                json!({
                    "phase": wanted.phase,
                    "measure": wanted.measure,
                    "achieved": achieved,
                    // A number that is none becomes null.
                    "values": values,
                    "fit": fit,
                })
            })
            .collect();
        json!({
            "name": name,
            "achieved": self.achieved(),
            "done": self.done,
            "rounds_max": rounds_max,
            "window": window,
            "range_share": range_share,
            "slope_share": slope_share,
            "window_first_round": window_first,
            "window_start_ns": self.starts_ns.get(window_first),
            "tracked": tracked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(window: u32, rounds_max: u32) -> RoundsJob {
        let text = json!({
            "name": "matrix",
            "phases": [{"kind": "synthetic", "name": "a", "ios": 1}, {"kind": "synthetic", "name": "b", "ios": 1}],
            "tracked": [{"phase": "a", "measure": "iops"}, {"phase": "b", "measure": "latency"}],
            "window": window,
            "rounds_max": rounds_max,
        });
        serde_json::from_value(text).unwrap()
    }

    /// A round of which phase `a` had so many I/Os in a second, and `b` this mean latency.
    fn round(group: &mut Group<'_>, ios: u64, latency_ns: u64) -> RoundOver {
        let start_ns = group.done() as i64 * 10_000_000_000;
        let a = Tally { ios, bytes: ios * 4096, latency_sum_ns: 1 };
        group.take(0, (start_ns, start_ns + 1_000_000_000), a);
        let b = Tally { ios: 10, bytes: 0, latency_sum_ns: 10 * latency_ns };
        group.take(1, (start_ns + 1_000_000_000, start_ns + 3_000_000_000), b);
        group.judge()
    }

    #[test]
    fn rounds_go_on_until_all_that_is_tracked_is_steady_in_the_same_window() {
        let job = job(3, 10);
        let mut group = Group::new(&job);
        // IOPS are steady from the third round on, latency only from the fifth.
        for (ios, latency_ns) in [(100, 900), (100, 700), (100, 500)] {
            assert!(!round(&mut group, ios, latency_ns).achieved && !group.is_over());
        }
        let over = round(&mut group, 100, 500);
        assert_eq!(over.tracked.iter().map(|tracked| tracked.achieved).collect::<Vec<_>>(), [true, false]);
        assert_eq!((over.position.round, over.tracked[1].value), (3, Some(500.0)));
        let over = round(&mut group, 101, 500);
        assert!(over.achieved && group.is_over());
        let found = group.to_json();
        assert_eq!((&found["done"], &found["window_first_round"]), (&json!(5), &json!(2)));
        assert_eq!(found["window_start_ns"], json!(20_000_000_000_i64));
        assert_eq!(found["tracked"][0]["values"], json!([100.0, 100.0, 100.0, 100.0, 101.0]));
        assert_eq!(found["tracked"][1]["fit"]["mean"], json!(500.0));
        assert_eq!((&found["achieved"], &found["range_share"]), (&json!(true), &json!(0.2)));
    }

    #[test]
    fn a_group_out_of_rounds_is_over_without_a_steady_state() {
        let job = job(2, 3);
        let mut group = Group::new(&job);
        for ios in [100, 50, 25] {
            assert!(!group.is_over());
            round(&mut group, ios, 5);
        }
        assert!(group.is_over() && !group.achieved());
        assert_eq!(group.to_json()["window_first_round"], json!(1));
    }

    #[test]
    fn a_round_in_which_nothing_completes_is_never_steady() {
        let job = job(2, 5);
        let mut group = Group::new(&job);
        for _ in 0..3 {
            group.take(0, (0, 5), Tally::default());
            group.take(1, (5, 5), Tally::default());
            assert_eq!(group.judge().tracked[1].value, None);
        }
        let found = group.to_json();
        assert_eq!(
            (&found["tracked"][1]["values"], &found["tracked"][1]["fit"]),
            (&json!([null, null, null]), &Value::Null)
        );
        assert!(!group.achieved());
    }
}
