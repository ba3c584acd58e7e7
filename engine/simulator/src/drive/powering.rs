//! Power and temperature as the drive as a whole sees them.

use super::SimulatedDrive;
use crate::events::Action;
use crate::log::EventKind;
use crate::power::PowerSeries;
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
