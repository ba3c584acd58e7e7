//! When the I/Os of a gated replay completed.

use std::collections::VecDeque;

/// Completion times that gates still need.
#[derive(Default)]
pub struct Completed {
    times_ns: VecDeque<i64>,
    dropped: u64,
}

impl Completed {
    /// Adds the next completion.
    pub fn push(&mut self, complete_ns: i64) {
        self.times_ns.push_back(complete_ns);
    }

    /// How many have completed.
    pub fn count(&self) -> u64 {
        self.dropped + self.times_ns.len() as u64
    }

    /// When the `number`-th completion came, counting from 1; gates only grow, so earlier ones are forgotten.
    pub fn time_ns(&mut self, number: u64) -> Option<i64> {
        while self.dropped + 1 < number && !self.times_ns.is_empty() {
            self.times_ns.pop_front();
            self.dropped += 1;
        }
        self.times_ns.get(usize::try_from(number.checked_sub(self.dropped + 1)?).ok()?).copied()
    }
}
