"""Power and temperature against time, of drives whose power was measured: steps, drawn and written out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from testdrive.power import Power, power_of
from testdrive.recording import Recording
from testdrive.report import palette
from testdrive.report.subject import Subject

#: More steps than this are not told apart on a page, and are added up.
STEPS_MAX = 1200
#: A last step that is shorter is drawn with the one before: its mean over next to no time says nothing.
SLIVER_NS = 100_000_000
#: Steps of what a meter showed are no shorter, and have no mean with less of them measured.
STEP_MIN_NS = 1_000_000_000
STEP_COVERED_MIN = 0.5


@dataclass(frozen=True)
class PowerLines:
    """What a drive drew in each step of the measured phases, and how warm it was at the step's end.

    ``power_mw`` is NaN where nobody measured, and ``temperature_mc`` None where nobody tells. Times are as in
    :meth:`Recording.table`.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    power_mw: NDArray[np.float64]
    temperature_mc: NDArray[np.float64] | None

    @property
    def energy_j(self) -> float:
        """Drawn in all steps that were measured."""
        return float(np.nansum(self.power_mw * (self.end_ns - self.start_ns))) / 1e12

    @property
    def mean_w(self) -> float:
        """Mean power over all steps that were measured."""
        measured = np.isfinite(self.power_mw)
        return self.energy_j / (float(np.sum((self.end_ns - self.start_ns)[measured])) / 1e9)

    @property
    def has_gaps(self) -> bool:
        """Whether a step was not measured."""
        return not bool(np.isfinite(self.power_mw).all())

    def payload(self) -> dict[str, Any]:
        """As the page's script reads it."""
        warm = self.temperature_mc
        return {
            "edges": np.append(self.start_ns, self.end_ns[-1]) / 1e9,
            "watts": self.power_mw / 1e3,
            "celsius": None if warm is None else warm / 1e3,
        }


def power_lines(recording: Recording) -> PowerLines | None:
    """Return what a recording's drive drew in its measured phases; None where nothing measured it.

    Raises
    ------
    RecordingError
        If the recording's telemetry is damaged.
    """
    power = power_of(recording)
    if power is not None and not power.is_ledger:
        return _by_meter(recording, power)
    return _by_ledger(recording)


def _by_meter(recording: Recording, power: Power) -> PowerLines | None:
    """Steps of a second or more; one of which less than half was measured has no mean."""
    spans = recording.measured_spans()
    whole_ns = sum(span.end_ns - span.start_ns for span in spans)
    step_ns = max(STEP_MIN_NS, -(-whole_ns // STEPS_MAX))
    starts, ends, drawn, warm = [], [], [], []
    readings = power.temperature
    for span in spans:
        edges = np.arange(span.start_ns, span.end_ns, step_ns)
        if len(edges) > 1 and span.end_ns - edges[-1] < SLIVER_NS:
            edges = edges[:-1]
        edges = np.append(edges, span.end_ns)
        for low, high in pairwise(edges):
            stretch = power.pieces.over(int(low), int(high))
            known = stretch.covered_share >= STEP_COVERED_MIN
            drawn.append((stretch.mean_w or 0.0) * 1e3 if known else np.nan)
        starts.append(edges[:-1] - span.shift_ns)
        ends.append(edges[1:] - span.shift_ns)
        if readings is not None:
            warm.append(np.interp(edges[1:], readings[0], readings[1]))
    power_mw = np.array(drawn)
    if not np.isfinite(power_mw).any():
        return None
    temperature = np.concatenate(warm) if warm else None
    return PowerLines(np.concatenate(starts), np.concatenate(ends), power_mw, temperature)


def _by_ledger(recording: Recording) -> PowerLines | None:
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
    # All drives have the same scale, as everywhere else.
    most_w = max(float(np.nanmax(lines.power_mw)) for _, lines in shown) / 1e3
    for panel, (subject, lines) in zip(panels, shown, strict=True):
        edges = np.append(lines.start_ns, lines.end_ns[-1]) / 1e9
        panel.stairs(lines.power_mw / 1e3, edges, color=palette.OPCODES["write"].light, baseline=None)
        panel.set_ylim(0, max(most_w * 1.1, 1e-3))
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
                "" if np.isnan(power_mw) else f"{power_mw:.3f}",
                warm,
            ]
