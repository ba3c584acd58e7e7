//! What holds a closed loop back: limits of its rate, and times at which it rests.

/// How long a loop that fell behind its limit may catch up, so that the jitter of a host does not lower the rate.
const CATCH_UP_NS: f64 = 1_000_000.0;

/// Times on and off by turns, from the phase's start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// I/Os are submitted for so long.
    pub on_ns: i64,
    /// Then none for so long.
    pub off_ns: i64,
}

impl OnOff {
    /// The first time not before `time_ns` that is on; both count from the phase's start.
    pub fn on_from(&self, time_ns: i64) -> i64 {
        let period_ns = self.on_ns + self.off_ns;
        let into_ns = time_ns % period_ns;
        if into_ns < self.on_ns {
            time_ns
        } else {
            (time_ns - into_ns).saturating_add(period_ns)
        }
    }

    /// When a schedule that only runs in the times that are on comes to `time_ns` of its own.
    pub fn stretched(&self, time_ns: i64) -> i64 {
        (time_ns / self.on_ns).saturating_mul(self.on_ns + self.off_ns).saturating_add(time_ns % self.on_ns)
    }
}

/// The limits of one submitter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// When it rests.
    pub on_off: Option<OnOff>,
}

impl Limits {
    /// Whether there is nothing to hold back.
    pub fn are_none(&self) -> bool {
        *self == Limits::default()
    }
}

/// The state of the limits of one submitter. Times are from the phase's start; fractions of a nanosecond add up.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    io_gap_ns: f64,
    byte_gap_ns: f64,
    io_allowed_ns: f64,
    byte_allowed_ns: f64,
    on_off: Option<OnOff>,
}

impl Throttle {
    /// At the phase's start.
    pub fn new(limits: Limits) -> Throttle {
        let gap_ns = |rate: Option<f64>| rate.map_or(0.0, |per_second| 1e9 / per_second);
        Throttle {
            io_gap_ns: gap_ns(limits.iops),
            byte_gap_ns: gap_ns(limits.bytes_per_s),
            io_allowed_ns: 0.0,
            byte_allowed_ns: 0.0,
            on_off: limits.on_off,
        }
    }

    /// When the next I/O may go, if nothing else holds it back.
    pub fn allowed_ns(&self, now_ns: i64) -> i64 {
        let allowed_ns = (self.io_allowed_ns.max(self.byte_allowed_ns).round() as i64).max(now_ns);
        self.on_off.map_or(allowed_ns, |on_off| on_off.on_from(allowed_ns))
    }

    /// An I/O goes now.
    pub fn took(&mut self, now_ns: i64, length_bytes: u64) {
        let earliest_ns = now_ns as f64 - CATCH_UP_NS;
        self.io_allowed_ns = self.io_allowed_ns.max(earliest_ns) + self.io_gap_ns;
        self.byte_allowed_ns = self.byte_allowed_ns.max(earliest_ns) + self.byte_gap_ns * length_bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(limits: Limits, length_bytes: u64, count: usize) -> Vec<i64> {
        let (mut throttle, mut now_ns) = (Throttle::new(limits), 0);
        (0..count)
            .map(|_| {
                now_ns = throttle.allowed_ns(now_ns);
                throttle.took(now_ns, length_bytes);
                now_ns
            })
            .collect()
    }

    #[test]
    fn the_nearer_of_both_limits_holds_and_fractions_are_not_lost() {
        let limits = Limits { iops: Some(3e6), bytes_per_s: Some(4096.0 * 1e9), ..Limits::default() };
        assert_eq!(times(limits, 4096, 3_001)[3_000], 1_000_000);
        let limits = Limits { bytes_per_s: Some(4096.0 * 1e6), ..limits };
        assert_eq!(times(limits, 8192, 4), [0, 2_000, 4_000, 6_000]);
    }

    #[test]
    fn what_was_missed_is_caught_up_for_a_millisecond_only() {
        let mut throttle = Throttle::new(Limits { iops: Some(1e4), ..Limits::default() });
        let now_ns = 5_000_000_000;
        let mut at_once = 0;
        while throttle.allowed_ns(now_ns) == now_ns {
            throttle.took(now_ns, 4096);
            at_once += 1;
        }
        // Ten I/Os a millisecond, and the one that is due.
        assert_eq!(at_once, 11);
    }

    #[test]
    fn nothing_goes_while_it_is_off() {
        let on_off = OnOff { on_ns: 2_000, off_ns: 3_000 };
        let shown: Vec<i64> =
            [0, 1_999, 2_000, 4_999, 5_000, 6_999, 7_000].map(|time_ns| on_off.on_from(time_ns)).into();
        assert_eq!(shown, [0, 1_999, 5_000, 5_000, 5_000, 6_999, 10_000]);
        let stretched: Vec<i64> = [0, 1_999, 2_000, 4_001].map(|time_ns| on_off.stretched(time_ns)).into();
        assert_eq!(stretched, [0, 1_999, 5_000, 10_001]);
        let limits = Limits { iops: Some(1e6), on_off: Some(on_off), ..Limits::default() };
        assert_eq!(times(limits, 512, 5), [0, 1_000, 5_000, 5_000, 5_000]);
    }

    #[test]
    fn a_limit_that_takes_longer_than_there_is_time_holds_for_ever() {
        let on_off = OnOff { on_ns: 500, off_ns: 4_500 };
        for on_off in [None, Some(on_off)] {
            let limits = Limits { bytes_per_s: Some(0.001), on_off, ..Limits::default() };
            assert_eq!(times(limits, 256 << 20, 2), [0, i64::MAX]);
        }
    }
}
