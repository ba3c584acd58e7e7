//! What a drive draws, step by step of its time, for whoever records it: the same energy as in the ledger, to the picojoule.

use std::collections::VecDeque;

/// How long a step is.
pub const TELEMETRY_STEP_NS: i64 = 1_000_000_000;

/// What a drive drew until a time, and how warm it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TelemetrySample {
    /// Until when.
    pub time_ns: i64,
    /// Drawn since telemetry is kept.
    pub energy_uj: u64,
    /// Mean since the sample before, or since the drive was switched on.
    pub power_mw: u64,
    /// In thousandths of a degree Celsius; `None` where the model has no heat.
    pub temperature_mc: Option<i64>,
}

/// Steps that are over, or that nothing changed in.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    end_ns: i64,
    /// How long each of its steps is, and what was drawn in each.
    step: (i64, u64),
    energy_pj: u128,
    length_ns: i64,
    temperature_mc: Option<i64>,
}

/// Steps that are still open, and samples of those that are over.
#[derive(Clone, Debug)]
pub(crate) struct Telemetry {
    /// The first step that is open, once the drive is on; steps end at multiples of their length after the origin.
    open: Option<(i64, i64)>,
    origin_ns: i64,
    /// What was drawn in the steps that are open: work that began may reach beyond the first.
    open_pj: VecDeque<u64>,
    /// Until when what was begun goes on.
    drawn_until_ns: i64,
    /// The ledger when telemetry began, and what was drawn in samples since.
    before_pj: u128,
    sampled_pj: u128,
    /// The last stretch, which goes on for as long as nothing changes: an idle year is one sample.
    stretch: Option<Stretch>,
    samples: Vec<TelemetrySample>,
}

impl Telemetry {
    /// Telemetry from a time on, of a drive whose ledger stands at so much; `on` tells that it was switched on before.
    pub(crate) fn new(origin_ns: i64, before_pj: u128, on: bool) -> Telemetry {
        let mut telemetry = Telemetry {
            open: None,
            origin_ns,
            open_pj: VecDeque::new(),
            drawn_until_ns: origin_ns,
            before_pj,
            sampled_pj: 0,
            stretch: None,
            samples: Vec::new(),
        };
        if on {
            telemetry.switch_on(origin_ns);
        }
        telemetry
    }

    /// The drive is on from now on.
    pub(crate) fn switch_on(&mut self, now_ns: i64) {
        let steps = (now_ns - self.origin_ns).div_euclid(TELEMETRY_STEP_NS);
        self.open = Some((now_ns, self.origin_ns + (steps + 1) * TELEMETRY_STEP_NS));
    }

    /// Books energy in the steps that it is drawn in. What was drawn before those that are open counts in the first of them.
    #[inline]
    pub(crate) fn book(&mut self, from_ns: i64, to_ns: i64, power_mw: u64) {
        let Some((_, first_end_ns)) = self.open else { return };
        self.drawn_until_ns = self.drawn_until_ns.max(to_ns);
        let (mut at_ns, mut index, mut end_ns) = (from_ns, 0, first_end_ns);
        while at_ns < to_ns {
            if at_ns < end_ns {
                if index >= self.open_pj.len() {
                    self.open_pj.resize(index + 1, 0);
                }
                self.open_pj[index] += (to_ns.min(end_ns) - at_ns).cast_unsigned() * power_mw;
                at_ns = to_ns.min(end_ns);
            }
            index += 1;
            end_ns += TELEMETRY_STEP_NS;
        }
    }

    /// The same of what the drive draws by being on, which is the last to be booked of a time: steps that are over then are closed.
    pub(crate) fn book_and_close(
        &mut self,
        from_ns: i64,
        to_ns: i64,
        power_mw: u64,
        temperature_mc: Option<i64>,
    ) {
        let mut at_ns = from_ns;
        while let Some((_, end_ns)) = self.open.filter(|(_, end_ns)| *end_ns <= to_ns) {
            self.book(at_ns.min(end_ns), end_ns, power_mw);
            self.close(end_ns, temperature_mc);
            at_ns = at_ns.max(end_ns);
        }
        self.book(at_ns, to_ns, power_mw);
    }

    /// Takes the samples of what is over.
    pub(crate) fn take(&mut self) -> Vec<TelemetrySample> {
        std::mem::take(&mut self.samples)
    }

    /// Closes everything, with what was begun until now and goes on; returns the samples that were not yet taken.
    pub(crate) fn finish(mut self, now_ns: i64, temperature_mc: Option<i64>) -> Vec<TelemetrySample> {
        let last_ns = self.drawn_until_ns.max(now_ns);
        while let Some((start_ns, end_ns)) = self.open.filter(|(start_ns, _)| *start_ns < last_ns) {
            debug_assert!(start_ns < end_ns);
            self.close(end_ns.min(last_ns), temperature_mc);
        }
        self.end_stretch();
        self.samples
    }

    fn close(&mut self, end_ns: i64, temperature_mc: Option<i64>) {
        let Some((start_ns, step_end_ns)) = self.open else { return };
        self.open =
            Some((end_ns, if end_ns < step_end_ns { step_end_ns } else { end_ns + TELEMETRY_STEP_NS }));
        let energy_pj = self.open_pj.pop_front().unwrap_or(0);
        let length_ns = end_ns - start_ns;
        let step = (length_ns, energy_pj);
        match &mut self.stretch {
            Some(stretch) if stretch.step == step && stretch.temperature_mc == temperature_mc => {
                stretch.end_ns = end_ns;
                stretch.energy_pj += u128::from(energy_pj);
                stretch.length_ns += length_ns;
            }
            _ => {
                self.end_stretch();
                self.stretch =
                    Some(Stretch { end_ns, step, energy_pj: energy_pj.into(), length_ns, temperature_mc });
            }
        }
    }

    fn end_stretch(&mut self) {
        let Some(stretch) = self.stretch.take() else { return };
        self.sampled_pj += stretch.energy_pj;
        let length_ns = u128::from(stretch.length_ns.cast_unsigned());
        self.samples.push(TelemetrySample {
            time_ns: stretch.end_ns,
            // As the counters round, so that the last sample is their difference.
            energy_uj: microjoules(self.before_pj + self.sampled_pj) - microjoules(self.before_pj),
            power_mw: ((stretch.energy_pj + length_ns / 2) / length_ns) as u64,
            temperature_mc: stretch.temperature_mc,
        });
    }
}

/// Whole microjoules of a ledger: a drive of 20 W fills them in 29,000 years, and picojoules of the same width in eleven days.
pub(crate) fn microjoules(energy_pj: u128) -> u64 {
    (energy_pj / 1_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = TELEMETRY_STEP_NS;

    fn rows(samples: &[TelemetrySample]) -> Vec<(i64, u64, u64)> {
        samples.iter().map(|sample| (sample.time_ns, sample.energy_uj, sample.power_mw)).collect()
    }

    #[test]
    fn energy_falls_into_the_steps_in_which_it_is_drawn() {
        let mut telemetry = Telemetry::new(0, 999_999, false);
        telemetry.switch_on(S / 2);
        telemetry.book(S / 2, S / 2 + 2 * S, 1_000);
        telemetry.book_and_close(S / 2, 2 * S, 500, Some(40_000));
        assert_eq!(rows(&telemetry.take()), [(S, 750_000, 1_500)]);
        let rest = telemetry.finish(2 * S, Some(40_000));
        // The second step has the same power but twice the length: it is a sample of its own. The last is what goes on.
        assert_eq!(rows(&rest), [(2 * S, 2_250_000, 1_500), (2 * S + S / 2, 2_750_000, 1_000)]);
    }

    #[test]
    fn a_year_in_which_nothing_changes_is_one_sample_and_loses_nothing() {
        let mut telemetry = Telemetry::new(0, 0, true);
        let year_ns = 365 * 86_400 * S;
        telemetry.book(0, S, 2_000);
        telemetry.book_and_close(0, year_ns, 5_000, None);
        telemetry.book(year_ns, year_ns + 1_000, 2_000);
        telemetry.book_and_close(year_ns, year_ns + 2_000, 7_000, None);
        let all = telemetry.finish(year_ns + 2_000, None);
        let year_uj = 365 * 86_400 * 5_000_000 + 2_000_000;
        assert_eq!(
            rows(&all),
            [(S, 7_000_000, 7_000), (year_ns, year_uj, 5_000), (year_ns + 2_000, year_uj + 16, 8_000)]
        );
    }

    #[test]
    fn a_change_of_temperature_is_a_sample_of_its_own() {
        let mut telemetry = Telemetry::new(0, 0, true);
        for (second, temperature_mc) in [(1, 30_000), (2, 30_000), (3, 30_100)] {
            telemetry.book_and_close((second - 1) * S, second * S, 1_000, Some(temperature_mc));
        }
        let all = telemetry.finish(3 * S, Some(30_100));
        assert_eq!(rows(&all), [(2 * S, 2_000_000, 1_000), (3 * S, 3_000_000, 1_000)]);
    }
}
