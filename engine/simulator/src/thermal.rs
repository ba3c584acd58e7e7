//! Heat: one resistance and one capacity between the drive and the air, and a throttle with hysteresis.

use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// How often the temperature is looked at.
pub(crate) const STEP_NS: i64 = 10_000_000;

/// The drive's temperature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Thermal {
    resistance_c_per_w: f64,
    time_constant_ns: f64,
    ambient_c: f64,
    throttle_c: f64,
    release_c: f64,
    temperature_c: f64,
    throttled: bool,
    stepped_ns: Option<i64>,
    energy_pj: u128,
}

impl Thermal {
    /// `None` where heat does not matter.
    pub(crate) fn new(parameters: &Parameters) -> Option<Thermal> {
        let celsius = |millidegrees: i64| millidegrees as f64 / 1e3;
        (parameters.thermal_resistance_mc_per_w > 0).then(|| Thermal {
            resistance_c_per_w: celsius(parameters.thermal_resistance_mc_per_w),
            time_constant_ns: parameters.thermal_time_constant_ns as f64,
            ambient_c: celsius(parameters.thermal_ambient_mc),
            throttle_c: celsius(parameters.thermal_throttle_mc),
            release_c: celsius(parameters.thermal_release_mc),
            temperature_c: celsius(parameters.thermal_ambient_mc),
            throttled: false,
            stepped_ns: None,
            energy_pj: 0,
        })
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled
    }

    pub(crate) fn temperature_c(&self) -> f64 {
        self.temperature_c
    }

    /// Goes on to now, with the energy that was drawn in all until then; returns whether it began to be throttled.
    ///
    /// Exact for the mean power since the last step: T goes to ambient + P R as e^(-t / RC).
    pub(crate) fn step(&mut self, now_ns: i64, energy_pj: u128) -> bool {
        let drawn_pj = energy_pj - std::mem::replace(&mut self.energy_pj, energy_pj);
        let Some(from_ns) = self.stepped_ns.replace(now_ns).filter(|from_ns| *from_ns < now_ns) else {
            self.energy_pj -= drawn_pj;
            return false;
        };
        let length_ns = (now_ns - from_ns) as f64;
        let final_c = self.ambient_c + drawn_pj as f64 / length_ns / 1e3 * self.resistance_c_per_w;
        let left = exp_of_minus(length_ns / self.time_constant_ns);
        self.temperature_c = final_c + (self.temperature_c - final_c) * left;
        let was = self.throttled;
        self.throttled =
            if was { self.temperature_c > self.release_c } else { self.temperature_c >= self.throttle_c };
        self.throttled && !was
    }
}

/// e^-x for x of at least 0, of additions and multiplications only: the same on every machine, as a library's is not.
pub(crate) fn exp_of_minus(x: f64) -> f64 {
    if x > 700.0 {
        return 0.0;
    }
    // Of a thousandth of x or less a few terms are exact; squaring takes it back.
    let mut halvings = 0;
    let mut part = x;
    while part > 1e-3 {
        part /= 2.0;
        halvings += 1;
    }
    let mut power =
        1.0 - part * (1.0 - part / 2.0 * (1.0 - part / 3.0 * (1.0 - part / 4.0 * (1.0 - part / 5.0))));
    for _ in 0..halvings {
        power *= power;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for x in [0.0, 1e-9, 1e-3, 0.1, 1.0, 2.5, 10.0, 50.0] {
            let (own, library) = (exp_of_minus(x), (-x).exp());
            assert!((own / library - 1.0).abs() < 1e-10, "{x}: {own} against {library}");
        }
    }

    /// At constant power the temperature reaches the throttle after -RC ln(1 - (throttle - ambient) / (P R)).
    #[test]
    fn the_time_to_throttle_is_the_closed_form_whatever_the_steps() {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        model
            .set_all([
                ("thermal_resistance_mc_per_w", "5000"),
                ("thermal_time_constant", "120s"),
                ("thermal_ambient_mc", "25000"),
                ("thermal_throttle_mc", "70000"),
                ("thermal_release_mc", "65000"),
            ])
            .unwrap();
        let power_mw = 12_000;
        let expected_s = -120.0 * (1.0_f64 - 45.0 / 60.0).ln();
        for step_ns in [STEP_NS, 7 * STEP_NS] {
            let mut thermal = Thermal::new(model.parameters()).unwrap();
            let (mut now_ns, mut energy_pj) = (0, 0);
            thermal.step(0, 0);
            while !thermal.step(now_ns, energy_pj) {
                now_ns += step_ns;
                energy_pj += u128::from(power_mw * step_ns.cast_unsigned());
            }
            assert!((now_ns as f64 / 1e9 - expected_s).abs() < 0.1, "{now_ns} ns against {expected_s} s");
            // Without power it cools from 70 to 65 degrees, where the throttle lets go and not before.
            let throttled_ns = now_ns;
            while thermal.is_throttled() {
                now_ns += step_ns;
                thermal.step(now_ns, energy_pj);
            }
            let cooling_s = (now_ns - throttled_ns) as f64 / 1e9;
            let expected_s = 120.0 * (45.0_f64 / 40.0).ln();
            assert!((cooling_s - expected_s).abs() < 0.1, "{cooling_s} s against {expected_s} s");
        }
    }
}
