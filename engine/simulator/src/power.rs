//! Power: what is drawn, a budget that it must stay within, and the heat that it makes.

use crate::parameters::Parameters;
use crate::telemetry::{Telemetry, TelemetrySample};
use crate::thermal::Thermal;
use serde::{Deserialize, Serialize};

/// Power over time in intervals of equal length, from the drive's first command on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerSeries {
    /// When the first interval begins.
    pub start_ns: i64,
    /// How long each is.
    pub interval_ns: i64,
    /// What was drawn in each, in picojoules: milliwatts times nanoseconds.
    pub energy_pj: Vec<u64>,
}

/// The first length of an interval; it is doubled whenever there are too many of them.
const INTERVAL_FIRST_NS: i64 = 100_000_000;
const INTERVALS_MAX: usize = 4096;

/// What the budget may be ahead of itself: so long may all of the NAND start at once.
const BURST_NS: i64 = 10_000_000;

/// The ledger of a drive's energy. Milliwatts times nanoseconds are picojoules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Power {
    idle_mw: u64,
    active_mw: u64,
    sleep_mw: u64,
    sleep_after_ns: i64,
    sleep_exit_ns: i64,
    limit_mw: u64,
    throttled_mw: u64,
    /// Up to when what the drive draws by being on is booked.
    booked_ns: Option<i64>,
    active: bool,
    /// Since when no command is in the drive.
    idle_since_ns: i64,
    /// When the budget is spent for all that was started.
    spent_until_ns: i64,
    energy_pj: u128,
    series: PowerSeries,
    thermal: Option<Thermal>,
    /// Kept where it was asked for. It belongs to a run and not to the drive's state.
    #[serde(skip)]
    telemetry: Option<Telemetry>,
}

impl Power {
    pub(crate) fn new(parameters: &Parameters) -> Power {
        Power {
            idle_mw: parameters.power_idle_mw,
            active_mw: parameters.power_active_mw,
            sleep_mw: parameters.power_sleep_mw,
            sleep_after_ns: parameters.power_sleep_after_ns,
            sleep_exit_ns: parameters.power_sleep_exit_ns,
            limit_mw: parameters.power_limit_mw,
            throttled_mw: parameters.thermal_throttled_mw,
            booked_ns: None,
            active: false,
            idle_since_ns: 0,
            spent_until_ns: i64::MIN,
            energy_pj: 0,
            series: PowerSeries::default(),
            thermal: Thermal::new(parameters),
            telemetry: None,
        }
    }

    /// Keeps telemetry from now on, in steps from this time.
    pub(crate) fn keep_telemetry(&mut self, origin_ns: i64) {
        self.telemetry = Some(Telemetry::new(origin_ns, self.energy_pj, self.booked_ns.is_some()));
    }

    /// Books everything until now, if the drive was ever on, and takes the samples of the steps that are over.
    pub(crate) fn take_telemetry(&mut self, now_ns: i64) -> Vec<TelemetrySample> {
        self.book_if_on(now_ns);
        self.telemetry.as_mut().map_or(Vec::new(), Telemetry::take)
    }

    /// Keeps telemetry no longer; returns what is left of it, with all that was begun.
    pub(crate) fn finish_telemetry(&mut self, now_ns: i64) -> Vec<TelemetrySample> {
        self.book_if_on(now_ns);
        let temperature_mc = self.temperature_mc();
        self.telemetry.take().map_or(Vec::new(), |telemetry| telemetry.finish(now_ns, temperature_mc))
    }

    /// Books what the drive draws by being on until now, if it ever was.
    pub(crate) fn book_if_on(&mut self, now_ns: i64) {
        if self.booked_ns.is_some_and(|booked_ns| booked_ns < now_ns) {
            self.book_until(now_ns);
        }
    }

    fn temperature_mc(&self) -> Option<i64> {
        self.thermal.as_ref().map(|thermal| (thermal.temperature_c() * 1e3).round() as i64)
    }

    /// All energy drawn, of what was booked: by being on until the last command came or went, by the NAND for all that it began.
    pub(crate) fn energy_pj(&self) -> u128 {
        self.energy_pj
    }

    pub(crate) fn series(&self) -> &PowerSeries {
        &self.series
    }

    pub(crate) fn thermal(&self) -> Option<&Thermal> {
        self.thermal.as_ref()
    }

    /// A command comes to a drive that has none; returns how long it takes to wake up.
    pub(crate) fn wake(&mut self, now_ns: i64) -> i64 {
        let asleep = self.book_until(now_ns);
        self.active = true;
        if asleep {
            self.sleep_exit_ns
        } else {
            0
        }
    }

    /// The last command has left the drive.
    pub(crate) fn rest(&mut self, now_ns: i64) {
        self.book_until(now_ns);
        self.active = false;
        self.idle_since_ns = now_ns;
    }

    /// Books what the drive draws by being on, whatever it does; returns whether it was asleep at the end.
    pub(crate) fn book_until(&mut self, now_ns: i64) -> bool {
        let Some(from_ns) = self.booked_ns.replace(now_ns) else {
            (self.series.start_ns, self.series.interval_ns) = (now_ns, INTERVAL_FIRST_NS);
            self.idle_since_ns = now_ns;
            if let Some(telemetry) = &mut self.telemetry {
                telemetry.switch_on(now_ns);
            }
            return false;
        };
        if self.active {
            self.book_being_on(from_ns, now_ns, self.active_mw);
            return false;
        }
        if self.sleep_after_ns == 0 {
            self.book_being_on(from_ns, now_ns, self.idle_mw);
            return false;
        }
        let asleep_ns = self.idle_since_ns.saturating_add(self.sleep_after_ns).clamp(from_ns, now_ns);
        self.book_being_on(from_ns, asleep_ns, self.idle_mw);
        self.book_being_on(asleep_ns, now_ns, self.sleep_mw);
        now_ns - self.idle_since_ns >= self.sleep_after_ns
    }

    /// Something of the NAND is to draw so much for so long: books it, and returns how long it has to wait for the budget.
    #[inline]
    pub(crate) fn draw(&mut self, now_ns: i64, power_mw: u64, length_ns: i64) -> i64 {
        let wait_ns = self.wait_for_budget(now_ns, power_mw, length_ns);
        let (from_ns, to_ns) = (now_ns + wait_ns, now_ns + wait_ns + length_ns);
        self.book(from_ns, to_ns, power_mw);
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.book(from_ns, to_ns, power_mw);
        }
        wait_ns
    }

    #[inline]
    fn wait_for_budget(&mut self, now_ns: i64, power_mw: u64, length_ns: i64) -> i64 {
        let throttled = self.thermal.as_ref().is_some_and(Thermal::is_throttled);
        let limit_mw = if throttled { self.throttled_mw } else { self.limit_mw };
        if limit_mw == 0 || length_ns == 0 {
            return 0;
        }
        // What is left beside what being on takes; the parameters' check sees to it that something is.
        let budget_mw = limit_mw.saturating_sub(self.active_mw).max(1);
        let cost_ns = (i128::from(power_mw) * i128::from(length_ns) / i128::from(budget_mw)) as i64;
        let from_ns = self.spent_until_ns.max(now_ns);
        self.spent_until_ns = from_ns + cost_ns;
        (from_ns - BURST_NS - now_ns).max(0)
    }

    /// Being on is the last that is booked of any time: see [`Telemetry::book_and_close`].
    fn book_being_on(&mut self, from_ns: i64, to_ns: i64, power_mw: u64) {
        self.book(from_ns, to_ns, power_mw);
        let temperature_mc = self.temperature_mc();
        if let Some(telemetry) = self.telemetry.as_mut().filter(|_| from_ns < to_ns) {
            telemetry.book_and_close(from_ns, to_ns, power_mw, temperature_mc);
        }
    }

    fn book(&mut self, from_ns: i64, to_ns: i64, power_mw: u64) {
        if to_ns <= from_ns || power_mw == 0 {
            return;
        }
        self.energy_pj += u128::from((to_ns - from_ns).cast_unsigned()) * u128::from(power_mw);
        let mut at_ns = from_ns;
        while at_ns < to_ns {
            let index = self.interval_of(at_ns);
            let end_ns = self.series.start_ns + (index as i64 + 1) * self.series.interval_ns;
            let part_ns = end_ns.min(to_ns) - at_ns;
            self.series.energy_pj[index] += part_ns.cast_unsigned() * power_mw;
            at_ns += part_ns;
        }
    }

    #[inline]
    fn interval_of(&mut self, at_ns: i64) -> usize {
        let mut index = ((at_ns - self.series.start_ns).max(0) / self.series.interval_ns) as usize;
        while index >= INTERVALS_MAX {
            let pairs = self.series.energy_pj.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.series.energy_pj = pairs;
            self.series.interval_ns *= 2;
            index /= 2;
        }
        if index >= self.series.energy_pj.len() {
            self.series.energy_pj.resize(index + 1, 0);
        }
        index
    }

    /// Lets the drive warm up or cool down until now; returns whether it began to be throttled.
    pub(crate) fn step_temperature(&mut self, now_ns: i64) -> bool {
        if self.thermal.is_none() {
            return false;
        }
        self.book_until(now_ns);
        let energy_pj = self.energy_pj;
        self.thermal.as_mut().is_some_and(|thermal| thermal.step(now_ns, energy_pj))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    fn power(overrides: &[(&str, &str)]) -> Power {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        let plain = [("power_idle_mw", "1000"), ("power_active_mw", "3000"), ("power_limit_mw", "0")];
        model.set_all(plain.into_iter().chain(overrides.iter().copied())).unwrap();
        Power::new(model.parameters())
    }

    #[test]
    fn the_ledger_is_the_integral_of_the_power_in_every_interval() {
        let mut power = power(&[]);
        power.wake(-500);
        power.draw(0, 150, 2_000_000);
        power.draw(99_000_000, 150, 4_000_000);
        power.rest(400_000_000);
        power.wake(1_000_000_000);
        let expected: u64 = 150 * 6_000_000 + 3000 * 400_000_500 + 1000 * 600_000_000;
        assert_eq!(power.energy_pj(), u128::from(expected));
        assert_eq!(power.series().energy_pj.iter().sum::<u64>(), expected);
        let first = 150 * 2_000_000 + 150 * 999_500 + 3000 * 100_000_000;
        assert_eq!(power.series().energy_pj[0], first);
    }

    #[test]
    fn the_series_is_bounded_and_loses_no_energy() {
        let mut power = power(&[]);
        power.wake(0);
        for second in 1..20_000 {
            power.rest(second * 1_000_000_000);
            power.wake(second * 1_000_000_000);
        }
        assert!(power.series().energy_pj.len() <= INTERVALS_MAX);
        assert_eq!(u128::from(power.series().energy_pj.iter().sum::<u64>()), power.energy_pj());
        assert_eq!(power.energy_pj(), 19_999 * 1_000_000_000 * 3000);
    }

    #[test]
    fn a_budget_lets_so_much_start_as_it_pays_for() {
        let mut power = power(&[("power_limit_mw", "5000")]);
        power.wake(0);
        // 2 W are left for programs of 100 mW for 2 ms: 10,000 a second, beside the burst.
        let waits: Vec<i64> = (0..1_000).map(|_| power.draw(0, 100, 2_000_000)).collect();
        assert_eq!((waits[0], waits[100]), (0, 0));
        assert_eq!(waits[999], 999 * 100_000 - BURST_NS);
    }

    #[test]
    fn a_sleeping_drive_draws_less_and_takes_its_time_to_wake_up() {
        let mut power =
            power(&[("power_sleep_mw", "50"), ("power_sleep_after", "2s"), ("power_sleep_exit", "10ms")]);
        power.wake(0);
        power.rest(0);
        assert_eq!(power.wake(1_000_000_000), 0);
        power.rest(1_000_000_000);
        assert_eq!(power.wake(11_000_000_000), 10_000_000);
        assert_eq!(power.energy_pj(), 3 * 1_000_000_000_000 + 8 * 50_000_000_000);
    }
}
