"""Write saturation in rounds of a minute, after the manner of SNIA's performance test specification.

The run is cut into rounds of a minute, or of a twenty-fifth of a run shorter than 25 minutes, in whole
seconds. The last five whole rounds, by the mean rate of each, are judged as a window of rounds is: the run
ends after a time or an amount of writing, steady or not. Source: SNIA, Solid State Storage Performance Test
Specification 2.0.1, write saturation test. It is no claim to comply with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import Phase
from testdrive.methods.cliff import Levels, levels_of
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.rounds import climbs
from testdrive.methods.runs import SECOND_NS, Run, Seconds
from testdrive.methods.scales import log_range, round_above
from testdrive.methods.steadiness import RANGE_LIMIT, SLOPE_LIMIT, WINDOW, Fit, fit_of
from testdrive.metrics.write_amplification import counted
from testdrive.report import units

PHASE = "writes"
ROUND_S = 60
#: A run has at least so many rounds.
ROUNDS_MIN = 25
#: Runs up to this are drawn by the second, longer ones by the minute.
SECONDS_DRAWN_MAX = 3_600


@dataclass(frozen=True)
class _Writes:
    """One drive's run."""

    run: Run
    phase: Phase

    @cached_property
    def seconds(self) -> Seconds:
        return self.run.seconds(self.phase)

    @property
    def round_s(self) -> int:
        """The length of a round that is judged."""
        return min(ROUND_S, max(self.seconds.whole // ROUNDS_MIN, 1))

    def rounds(self, round_s: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Of each whole round: IOPS, mean latency in s, and how often the drive was written by its end."""
        whole = self.seconds.whole // round_s

        def sums(values: NDArray[np.generic]) -> NDArray[np.float64]:
            cut = np.asarray(values[: whole * round_s], np.float64).reshape(whole, round_s)
            return np.asarray(cut.sum(axis=1))

        ios = sums(self.seconds.ios)
        capacity = self.run.subject.drive.capacity_bytes or math.nan
        with np.errstate(invalid="ignore", divide="ignore"):
            latency = np.where(ios > 0, sums(self.seconds.sum_ns) / ios / 1e9, np.nan)
        return ios / round_s, latency, np.cumsum(sums(self.seconds.bytes)) / capacity

    @cached_property
    def levels(self) -> Levels:
        return levels_of(self.seconds.ios.astype(np.float64))


def look(runs: Sequence[Run]) -> Findings:
    """IOPS and latency over time and over drive fills, and where the run began, fell and ended."""
    writes = [_Writes(run, phase) for run in runs if (phase := run.phase(PHASE)) is not None]
    drawn = [one for one in writes if one.seconds.whole]
    notes = [
        f"{run.subject.label} ended before a second of writing was over."
        for run in runs
        if not any(one.run is run for one in drawn)
    ]
    if not drawn:
        return Findings([], [], notes)
    longest_s = max(one.seconds.whole for one in drawn)
    step_s = ROUND_S if longest_s > SECONDS_DRAWN_MAX else 1
    figures = [_figure(drawn, step_s, over) for over in ("time", "fills")]
    return Findings(figures, [_table(drawn)], notes)


def _figure(drawn: Sequence[_Writes], step_s: int, over: str) -> Figure:
    series: list[Series] = []
    iops_all, latency_all, last = [], [], 0.0
    for one in drawn:
        iops, latency, fills = one.rounds(step_s)
        ends = np.arange(1, len(iops) + 1, dtype=np.float64)
        x = fills if over == "fills" else ends
        known = np.isfinite(x)
        label, ink = one.run.subject.label, one.run.subject.ink
        series.append(Series(label, ink, x[known], iops[known], "points"))
        series.append(Series(label, ink, x[known], latency[known], "points", 1))
        iops_all.append(iops)
        latency_all.append(latency)
        last = max(last, float(x[known].max(initial=0.0)))
    highest = max(float(iops.max(initial=0.0)) for iops in iops_all)
    low, high = log_range(latency_all)
    each = "minute" if step_s == ROUND_S else "second"
    if over == "time":
        x_axis = Axis(
            f"time since the first write ({'min' if step_s == ROUND_S else 's'})", low=0.0, high=last
        )
    else:
        x_axis = Axis("drive fills (bytes written / capacity)", low=0.0, high=last or 1.0)
    return Figure(
        f"pts-saturation-{over}",
        f"IOPS and mean latency of each {each}, over {'drive fills' if over == 'fills' else 'time'}",
        f"Each point is a {each} of one drive. IOPS fall, and latency rises, where there are no erased blocks"
        " left and every write needs room made for it.",
        x_axis,
        (
            Axis(f"IOPS in each {each}", low=0.0, high=round_above(highest * 1.02), si_unit="IOPS"),
            Axis("mean latency (log)", "log", low, high, si_unit="s"),
        ),
        series,
    )


def _table(drawn: Sequence[_Writes]) -> Table:
    head = [
        "drive",
        "IOPS at the start",
        "cliff after",
        "drive fills in all",
        "length of a round",
        "mean IOPS of the last five",
        "their mean latency",
        "steady",
        "line climbs or falls (bound)",
        "greatest less least (bound)",
        "write amplification",
    ]
    return Table("pts-saturation", "From the start to the end", head, [_row(one) for one in drawn])


def _row(one: _Writes) -> list[str]:
    iops, latency, _ = one.rounds(one.round_s)
    fills = one.rounds(1)[2]
    levels = one.levels
    start = "no whole second" if levels.start_iops is None else units.number(levels.start_iops)
    cliff = "no cliff" if levels.cliff_s is None else units.duration(levels.cliff_s * SECOND_NS)
    written = float(fills[-1]) if len(fills) else math.nan
    fit = fit_of(iops[-WINDOW:].tolist()) if len(iops) >= WINDOW else None
    return [
        one.run.subject.label,
        start,
        cliff,
        units.number(written) if math.isfinite(written) else "capacity not known",
        units.duration(one.round_s * SECOND_NS),
        *_window(fit, latency[-WINDOW:]),
        _write_amplification(one.phase),
    ]


def _window(fit: Fit | None, latency: NDArray[np.float64]) -> list[str]:
    if fit is None:
        return ["no whole window"] * 5
    return [
        units.number(fit.mean),
        units.time(float(np.nanmean(latency)) * 1e9),
        "yes" if fit.steady() else "no",
        f"{climbs(fit)} ({SLOPE_LIMIT * 100:g} %)",
        f"{fit.range_share * 100:.1f} % ({RANGE_LIMIT * 100:g} %)",
    ]


def _write_amplification(phase: Phase) -> str:
    """Over the whole phase, by the drive's own counters."""
    grown = counted([phase])
    host, nand = grown.get("host_written_bytes"), grown.get("nand_written_bytes")
    if host is None or nand is None:
        return "not told by the drive"
    return units.number(nand / host) if host else "no writes"


METHOD = Method(
    "pts-saturation",
    "Write saturation (PTS-style)",
    "After the manner of SNIA's performance test specification: the drive is purged and then written at"
    " random, 4 KiB at a time, for a day or until four times its capacity was written. At first there are"
    " erased blocks for every write; then room has to be made. Look for how much of the drive is written"
    " until IOPS fall, how far they fall, and whether the end is level: the table judges the last five"
    " rounds.",
    look,
)
