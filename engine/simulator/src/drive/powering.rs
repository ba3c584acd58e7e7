//! Power and temperature as the drive as a whole sees them.

use super::SimulatedDrive;
use crate::events::Action;
use crate::log::EventKind;
use crate::power::PowerSeries;
use crate::telemetry::TelemetrySample;
use crate::thermal::STEP_NS;

impl SimulatedDrive {
    /// Power over time, of what was booked: see [`crate::Counters::energy_uj`] for all of it.
    pub fn power_series(&self) -> &PowerSeries {
        self.nand.power.series()
    }

    /// The drive's temperature when it was last looked at; `None` where the model has no heat.
    pub fn temperature_c(&self) -> Option<f64> {
        self.nand.power.thermal().map(crate::thermal::Thermal::temperature_c)
    }

    /// Books what the drive draws by being on until now, so that [`crate::Counters::energy_uj`] has it. What the drive does by itself
    /// is done until then.
    ///
    /// A drive that no command ever came to is not on.
    pub fn book_power(&mut self, now_ns: i64) {
        self.advance(now_ns);
        self.nand.power.book_if_on(now_ns);
    }

    /// Keeps telemetry from `origin_ns` on, in steps of [`crate::TELEMETRY_STEP_NS`]. It is no part of a saved state.
    pub fn keep_telemetry(&mut self, origin_ns: i64) {
        self.nand.power.keep_telemetry(origin_ns);
    }

    /// Takes the telemetry of the steps that are over. Stretches in which nothing changes are one sample, once they end.
    pub fn take_telemetry(&mut self, now_ns: i64) -> Vec<TelemetrySample> {
        self.advance(now_ns);
        self.nand.power.take_telemetry(now_ns)
    }

    /// Takes what is left of the telemetry and keeps no more. The last sample reaches to the end of what the NAND was doing, so that its
    /// energy is what the ledger grew by.
    pub fn finish_telemetry(&mut self, now_ns: i64) -> Vec<TelemetrySample> {
        self.advance(now_ns);
        self.nand.power.finish_telemetry(now_ns)
    }

    /// A command was submitted: the first wakes the drive up.
    #[inline]
    pub(super) fn begin_to_draw(&mut self) {
        if self.in_flight != 1 {
            return;
        }
        let wake_ns = self.nand.power.wake(self.now_ns);
        if wake_ns > 0 {
            self.firmware.stall(self.now_ns, wake_ns);
        }
        if self.nand.power.thermal().is_some() && !self.background.temperature_scheduled {
            self.background.temperature_scheduled = true;
            self.events.schedule(self.now_ns, Action::TemperatureStep);
        }
    }

    /// Looks at the temperature, and at what waited for power since the last look.
    pub(super) fn step_temperature(&mut self) {
        if self.nand.power.step_temperature(self.now_ns) {
            self.log.note(EventKind::ThermalThrottle, self.now_ns, self.now_ns, 1);
        } else if self.nand.power.thermal().is_some_and(crate::thermal::Thermal::is_throttled) {
            self.log.note(EventKind::ThermalThrottle, self.now_ns - STEP_NS, self.now_ns, 0);
        }
        self.events.schedule(self.now_ns + STEP_NS, Action::TemperatureStep);
    }

    /// Notes in the log what waited for the power budget.
    #[inline]
    pub(super) fn note_power_waits(&mut self) {
        let waited_ns = self.nand.take_waited_for_power_ns();
        if waited_ns > 0 {
            self.log.extend(EventKind::PowerLimit, self.now_ns, waited_ns.cast_unsigned());
        }
    }
}
