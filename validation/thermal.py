"""The thermal throttle: a drive that is written at full speed until it is too hot.

With a thermal resistance R and a time constant RC, a drive that draws P is warmer than the air by P R (1 -
e^(-t/RC)), and reaches the temperature of its throttle after -RC ln(1 - dT / (P R)). P is taken from the
drive's energy counter, of a run without a throttle; the time from its log.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from testdrive.job import SyntheticPhase
from validation import figures
from validation.checks import Curve, near
from validation.drives import MIB, Bench, Run, S, bare
from validation.errors import ValidationError

KEY = "thermal-throttle"
TITLE = "Thermal throttle"
ALLOWED = 0.02
TIME_CONSTANT_S = 5.0
AMBIENT_C, THROTTLE_C, RELEASE_C = 25.0, 70.0, 60.0
#: For so long power is measured: it is the same all the time.
_POWER_NS = S


def measure(bench: Bench) -> Curve:
    """Heat up a drive of each thermal resistance."""
    power_w = _power_w(bench)
    points = []
    for resistance in bench.sizes.thermal_resistances_c_per_w:
        # A tenth longer than it should take, and then it has to be over.
        duration_ns = round(1.1e9 * expected_s(power_w, resistance))
        drive = _drive(
            thermal_resistance_mc_per_w=round(1000 * resistance),
            thermal_time_constant=f"{TIME_CONSTANT_S}s",
            thermal_ambient_mc=round(1000 * AMBIENT_C),
            thermal_throttle_mc=round(1000 * THROTTLE_C),
            thermal_release_mc=round(1000 * RELEASE_C),
            thermal_throttled_mw=4000,
        )
        with bench.run(drive, [_writes(duration_ns)]) as run:
            points.append((resistance, _throttled_s(run)))
    checks = [
        near(
            f"time to throttle at {resistance:g} degrees a watt",
            throttled_s,
            expected_s(power_w, resistance),
            ALLOWED,
            lambda value: f"{value:.3f} s",
        )
        for resistance, throttled_s in points
    ]
    series = {"power_w": power_w, "resistance_c_per_w, throttled_s": points}
    return Curve(KEY, TITLE, checks, _figure(power_w, points), series=series)


def expected_s(power_w: float, resistance: float) -> float:
    """Return how long a drive that draws so much takes to get too hot; not a number where it never does."""
    rise = (THROTTLE_C - AMBIENT_C) / (power_w * resistance)
    return float(-TIME_CONSTANT_S * np.log(1 - rise)) if rise < 1 else float("nan")


def _drive(**settings: object) -> str:
    """A drive that draws much, and has so much spare that nothing is moved."""
    powered = {
        "program": "2ms",
        "power_idle_mw": 1000,
        "power_active_mw": 3000,
        "nand_supply_mv": 2500,
        "nand_program_ma": 100,
        "capacity": "8GiB",
        "over_provisioning": 0.9,
        "initial_state": "empty",
        "trim_mode": "free",
    }
    return bare(**powered, **settings)


def _writes(duration_ns: int) -> SyntheticPhase:
    return SyntheticPhase(
        kind="synthetic",
        pattern="sequential",
        read_share=0.0,
        block_bytes=128 << 10,
        span_bytes=64 * MIB,
        duration_ns=duration_ns,
    )


def _power_w(bench: Bench) -> float:
    with bench.run(_drive(), [_writes(_POWER_NS)]) as run:
        [phase] = run.phases
        counters = phase.drive_counters
        if counters is None or phase.end_ns is None:
            raise ValidationError("the drive counted nothing; its recording is not whole")
        energy_uj = (counters.after.energy_uj or 0) - (counters.before.energy_uj or 0)
        return energy_uj / 1e6 / ((phase.end_ns - phase.start_ns) / 1e9)


def _throttled_s(run: Run) -> float:
    events = run.events("thermal_throttle")
    return events[0].start_ns / 1e9 if events else float("inf")


def _figure(power_w: float, points: list[tuple[float, float]]) -> Figure:
    figure = figures.new_figure("How long until a drive under load is throttled", 3.7)
    [panel] = figures.panels(figure)
    least = (THROTTLE_C - AMBIENT_C) / power_w
    resistance = np.linspace(1.005 * least, 1.05 * max(each for each, _ in points), 300)
    figures.expected_line(
        panel,
        resistance,
        [expected_s(power_w, each) for each in resistance],
        ALLOWED,
        f"-RC ln(1 - dT / (P R)), P = {power_w:.1f} W, RC = {TIME_CONSTANT_S:g} s",
    )
    figures.modelled_points(panel, points, 0, "modelled, from the drive's log")
    panel.axvline(least, color=figures.EXPECTED, linestyle=":", linewidth=1.1, label="below: never")
    panel.set_xlabel("thermal resistance R (degrees C a watt)")
    panel.set_ylabel("time to throttle (s)")
    panel.set_ylim(bottom=0)
    figures.legend(panel, loc="upper right")
    return figure
