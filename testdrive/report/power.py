"""Power and temperature against time, of drives that measure themselves: steps, drawn and written out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from testdrive.recording import Recording
from testdrive.report import palette
from testdrive.report.subject import Subject

#: More steps than this are not told apart on a page, and are added up.
STEPS_MAX = 1200
#: A last step that is shorter is drawn with the one before: its mean over next to no time says nothing.
SLIVER_NS = 100_000_000


@dataclass(frozen=True)
class PowerLines:
    """What a drive drew in each step of the measured phases, and how warm it was at the step's end.

    ``temperature_mc`` is None where the drive does not tell. Times are as in :meth:`Recording.table`.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    power_mw: NDArray[np.float64]
    temperature_mc: NDArray[np.float64] | None

    @property
    def energy_j(self) -> float:
        """Drawn in all steps."""
        return float(np.sum(self.power_mw * (self.end_ns - self.start_ns))) / 1e12

    @property
    def mean_w(self) -> float:
        """Mean power over all steps."""
        return self.energy_j / (float(np.sum(self.end_ns - self.start_ns)) / 1e9)

    def payload(self) -> dict[str, Any]:
        """As the page's script reads it."""
        warm = self.temperature_mc
        return {
            "edges": np.append(self.start_ns, self.end_ns[-1]) / 1e9,
            "watts": self.power_mw / 1e3,
            "celsius": None if warm is None else warm / 1e3,
        }


def power_lines(recording: Recording) -> PowerLines | None:
    """Return what a recording's drive drew in its measured phases; None where it did not measure it.

    Raises
    ------
    RecordingError
        If the recording's telemetry is damaged.
    """
    sensors = recording.telemetry()
    energy, power, warm = (sensors.get(name) for name in ("energy", "power", "temperature"))
    if energy is None or power is None or (energy.unit, power.unit) != ("uJ", "mW"):
        return None
    chosen = _steps(energy.time_ns)
    end_ns, drawn_uj = energy.time_ns[chosen], energy.value[chosen]
    # The first row is over the time since the drive was switched on, which its mean power tells.
    on_ns = energy.time_ns[0] - energy.value[0] * 1e6 / max(power.value[0], 1)
    start_ns = np.append(max(round(float(on_ns)), 0), end_ns[:-1])
    length_ns = np.maximum(end_ns - start_ns, 1)
    power_mw = np.diff(drawn_uj, prepend=0) * 1e6 / length_ns
    temperature = None
    if warm is not None and warm.unit == "mC" and np.array_equal(warm.time_ns, energy.time_ns):
        temperature = warm.value[chosen].astype(float)
    return _measured(PowerLines(start_ns, end_ns, power_mw, temperature), recording)


def _steps(time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows at which steps end: at most so many, and no sliver at the end of a run."""
    last = len(time_ns) - 1
    stride = -(-len(time_ns) // STEPS_MAX)
    ends = np.arange(stride - 1, last, stride)
    if len(ends) and time_ns[last] - time_ns[ends[-1]] < SLIVER_NS:
        ends = ends[:-1]
    return np.append(ends, last)


def _measured(all_: PowerLines, recording: Recording) -> PowerLines | None:
    parts = []
    for span in recording.measured_spans():
        start_ns = np.maximum(all_.start_ns, span.start_ns)
        end_ns = np.minimum(all_.end_ns, span.end_ns)
        parts.append((start_ns - span.shift_ns, end_ns - span.shift_ns, start_ns < end_ns))
    kept = np.concatenate([keep for _, _, keep in parts]) if parts else np.zeros(0, bool)
    if not kept.any():
        return None
    warm = all_.temperature_mc
    return PowerLines(
        np.concatenate([start for start, _, _ in parts])[kept],
        np.concatenate([end for _, end, _ in parts])[kept],
        np.tile(all_.power_mw, len(parts))[kept],
        None if warm is None else np.tile(warm, len(parts))[kept],
    )


def draw_power(figure: Figure, shown: list[tuple[Subject, PowerLines]]) -> None:
    """Draw power and temperature of each drive into an empty figure, a panel for each."""
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (subject, lines) in zip(panels, shown, strict=True):
        edges = np.append(lines.start_ns, lines.end_ns[-1]) / 1e9
        panel.stairs(lines.power_mw / 1e3, edges, color=palette.OPCODES["write"].light, baseline=None)
        panel.set_ylim(0, max(float(lines.power_mw.max()) / 1e3 * 1.1, 1e-3))
        panel.set_ylabel("power (W)")
        panel.set_title(subject.label.replace("$", r"\$"), loc="left")
        if lines.temperature_mc is not None:
            right = panel.twinx()
            right.plot(lines.end_ns / 1e9, lines.temperature_mc / 1e3, color="#7a5200", linestyle=":")
            right.set_ylabel("temperature (°C), dotted")
    panels[-1].set_xlabel("time since the start (s)")


#: Columns of `power.csv`.
POWER_COLUMNS = ("name", "start_ns", "end_ns", "power_mw", "temperature_mc")


def power_rows(shown: list[tuple[Subject, PowerLines]]) -> Iterable[list[Any]]:
    """Yield the rows of `power.csv`."""
    for subject, lines in shown:
        for at, power_mw in enumerate(lines.power_mw):
            warm = "" if lines.temperature_mc is None else round(float(lines.temperature_mc[at]))
            yield [
                subject.name,
                int(lines.start_ns[at]),
                int(lines.end_ns[at]),
                f"{power_mw:.3f}",
                warm,
            ]
