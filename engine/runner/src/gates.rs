//! The source's own concurrency: how many I/Os had completed before each, and for how long the host then thought.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an I/O waited for in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Completions before it.
    pub completions: u64,
    /// From the last of them (or from the start) to its issue.
    pub think_ns: i64,
}

/// Watches the I/Os of a source go by, in the order of issue.
#[derive(Default)]
pub struct Gates {
    outstanding: BinaryHeap<Reverse<i64>>,
    completions: u64,
    last_complete_ns: i64,
    depth: DepthMeter,
}

impl Gates {
    /// The gate of an I/O issued at `issue_ns` that completed at `complete_ns`, where that was seen.
    pub fn pass(&mut self, issue_ns: i64, complete_ns: Option<i64>) -> Gate {
        while let Some(&Reverse(earliest_ns)) = self.outstanding.peek() {
            if earliest_ns > issue_ns {
                break;
            }
            self.outstanding.pop();
            self.depth.change(earliest_ns, self.outstanding.len());
            self.completions += 1;
            self.last_complete_ns = earliest_ns;
        }
        let gate =
            Gate { completions: self.completions, think_ns: issue_ns.saturating_sub(self.last_complete_ns) };
        if let Some(complete_ns) = complete_ns {
            self.outstanding.push(Reverse(complete_ns));
            self.depth.change(issue_ns, self.outstanding.len());
        }
        gate
    }

    /// The source's depth, up to the last completion.
    pub fn finish(mut self) -> DepthMeter {
        while let Some(Reverse(complete_ns)) = self.outstanding.pop() {
            self.depth.change(complete_ns, self.outstanding.len());
        }
        self.depth
    }
}

/// In-flight depth over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct DepthMeter {
    depth: usize,
    depth_max: usize,
    since_ns: i64,
    first_ns: Option<i64>,
    depth_ns: f64,
}

impl DepthMeter {
    /// The depth is `depth` from `now_ns` on.
    #[inline]
    pub fn change(&mut self, now_ns: i64, depth: usize) {
        if self.first_ns.is_none() {
            self.first_ns = Some(now_ns);
            self.since_ns = now_ns;
        }
        self.depth_ns += self.depth as f64 * now_ns.saturating_sub(self.since_ns) as f64;
        self.since_ns = now_ns;
        self.depth = depth;
        self.depth_max = self.depth_max.max(depth);
    }

    /// The greatest depth.
    pub fn max(&self) -> usize {
        self.depth_max
    }

    /// The time-weighted mean from the first change to the last; `None` without a span.
    pub fn mean(&self) -> Option<f64> {
        let span_ns = self.since_ns - self.first_ns?;
        (span_ns > 0).then(|| self.depth_ns / span_ns as f64)
    }

    /// Adds another submitter's depth to this one's: means add, and the sum of the greatest is an upper bound.
    pub fn add(&mut self, other: &DepthMeter) {
        self.depth_ns += other.depth_ns;
        self.depth_max += other.depth_max;
        self.since_ns = self.since_ns.max(other.since_ns);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_count_completions_and_think_times() {
        let mut gates = Gates::default();
        assert_eq!(gates.pass(10, Some(50)), Gate { completions: 0, think_ns: 10 });
        assert_eq!(gates.pass(20, Some(30)), Gate { completions: 0, think_ns: 20 });
        assert_eq!(gates.pass(35, None), Gate { completions: 1, think_ns: 5 });
        assert_eq!(gates.pass(60, Some(61)), Gate { completions: 2, think_ns: 10 });
        let depth = gates.finish();
        assert_eq!(depth.max(), 2);
        // 1 from 10 to 20, 2 to 30, 1 to 50, 0 to 60, 1 to 61, over 51 ns.
        assert!((depth.mean().unwrap() - 51.0 / 51.0).abs() < 1e-12);
    }

    #[test]
    fn a_meter_without_a_span_has_no_mean() {
        assert_eq!(DepthMeter::default().mean(), None);
    }
}
