//! The host's clock for timing I/O: the time-stamp counter where it is invariant, else CLOCK_MONOTONIC.

use std::time::{Duration, Instant};

/// Nanoseconds from an origin. Copies share the origin, so that the times of several workers can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    counter: Option<Counter>,
    /// What it showed at the origin.
    start_ns: i64,
}

/// The time-stamp counter at the origin and its rate.
#[derive(Clone, Copy, Debug)]
struct Counter {
    origin: u64,
    /// Nanoseconds for each tick, times 2^32.
    ns_per_tick_q32: u64,
}

/// How long the counter's rate is measured: at this length an error of 50 ns in reading both clocks is 1 part in a million.
const CALIBRATION: Duration = Duration::from_millis(50);

impl Clock {
    /// A clock whose origin is now. Takes about 50 ms where the counter can be used, to measure its rate.
    pub fn start() -> Clock {
        let counter = calibrate();
        let mut clock = Clock { origin: Instant::now(), counter, start_ns: 0 };
        if let Some(counter) = &mut clock.counter {
            let (ticks, instant) = read_both();
            counter.origin = ticks;
            clock.origin = instant;
        }
        clock
    }

    /// A clock for a run in virtual time, which only wants one for form's sake.
    pub fn uncalibrated() -> Clock {
        Clock { origin: Instant::now(), counter: None, start_ns: 0 }
    }

    /// The same clock, showing a later time: it goes on where that of an earlier run stopped.
    pub fn going_on_at(self, start_ns: i64) -> Clock {
        Clock { start_ns, ..self }
    }

    /// Now.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        match self.counter {
            Some(counter) => {
                let ticks = ticks().wrapping_sub(counter.origin);
                self.start_ns + ((u128::from(ticks) * u128::from(counter.ns_per_tick_q32)) >> 32) as i64
            }
            None => self.start_ns + self.origin.elapsed().as_nanos() as i64,
        }
    }

    /// The name for the manifest.
    pub fn source(&self) -> &'static str {
        if self.counter.is_some() {
            "tsc"
        } else {
            "clock_monotonic"
        }
    }

    /// Waits until a time. Long waits sleep, so that the cores are left to the recording; the last millisecond spins, since a
    /// sleeper is woken tens of microseconds late.
    pub fn wait_until_ns(&self, deadline_ns: i64) {
        const SPIN_NS: i64 = 1_000_000;
        loop {
            let left_ns = deadline_ns - self.now_ns();
            if left_ns <= 0 {
                return;
            }
            if left_ns > 2 * SPIN_NS {
                std::thread::sleep(Duration::from_nanos((left_ns - SPIN_NS) as u64));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Waits until a time asleep, and is back a little late: as late as the kernel's timers are.
    pub fn sleep_until_ns(&self, deadline_ns: i64) {
        loop {
            let left_ns = deadline_ns - self.now_ns();
            if left_ns <= 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left_ns as u64));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: reading the time-stamp counter has no precondition on x86_64 in user mode, where Linux leaves it enabled.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// Whether the counter runs at one rate through every power state and the kernel trusts it.
#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    const INVARIANT_BIT: u32 = 1 << 8;
    let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    if highest < 0x8000_0007 || core::arch::x86_64::__cpuid(0x8000_0007).edx & INVARIANT_BIT == 0 {
        return false;
    }
    // The kernel falls back on these when it found the counters of its CPUs apart.
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    !matches!(source.as_deref().map(str::trim), Ok("hpet" | "acpi_pm" | "jiffies"))
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}

/// Reads both clocks as close together as can be had: the tightest of several tries, its middle taken.
fn read_both() -> (u64, Instant) {
    let mut best: Option<(u64, u64, Instant)> = None;
    for _ in 0..64 {
        let before = ticks();
        let instant = Instant::now();
        let width = ticks().wrapping_sub(before);
        if best.is_none_or(|(narrowest, ..)| width < narrowest) {
            best = Some((width, before.wrapping_add(width / 2), instant));
        }
    }
    let (_, ticks, instant) = best.expect("the loop above ran");
    (ticks, instant)
}

fn calibrate() -> Option<Counter> {
    if !is_invariant() {
        return None;
    }
    let (ticks_before, instant_before) = read_both();
    std::thread::sleep(CALIBRATION);
    let (ticks_after, instant_after) = read_both();
    let elapsed_ticks = ticks_after.checked_sub(ticks_before).filter(|&ticks| ticks > 0)?;
    let elapsed_ns = instant_after.duration_since(instant_before).as_nanos();
    let ns_per_tick_q32 = u64::try_from((elapsed_ns << 32) / u128::from(elapsed_ticks)).ok()?;
    Some(Counter { origin: ticks_after, ns_per_tick_q32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_systems_over_a_while() {
        let clock = Clock::start();
        // The system's is read before and after each reading of our own, so that it does not matter when this thread has to wait.
        let read = || (Instant::now(), clock.now_ns(), Instant::now());
        let (before_first, own_before_ns, before_last) = read();
        std::thread::sleep(Duration::from_millis(200));
        let (after_first, own_after_ns, after_last) = read();
        let least_ns = after_first.duration_since(before_last).as_nanos() as f64;
        let most_ns = after_last.duration_since(before_first).as_nanos() as f64;
        let own_ns = (own_after_ns - own_before_ns) as f64;
        assert!(
            own_ns > least_ns * 0.99 && own_ns < most_ns * 1.01,
            "{own_ns} within {least_ns} and {most_ns}"
        );
    }

    #[test]
    fn waiting_never_ends_early() {
        let clock = Clock::start();
        for wait_ns in [0, 1_000, 100_000, 5_000_000] {
            let deadline_ns = clock.now_ns() + wait_ns;
            clock.wait_until_ns(deadline_ns);
            assert!(clock.now_ns() >= deadline_ns);
            let deadline_ns = clock.now_ns() + wait_ns;
            clock.sleep_until_ns(deadline_ns);
            assert!(clock.now_ns() >= deadline_ns);
        }
    }
}
