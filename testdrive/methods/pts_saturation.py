"""Write saturation in rounds of a minute, after the manner of SNIA's performance test specification.

The run is cut into rounds of a minute, or of a twenty-fifth of a run shorter than 25 minutes, in whole
seconds. The last five whole rounds, by the mean rate of each, are judged as a window of rounds is: the run
ends after a time or an amount of writing, steady or not. Source: SNIA, Solid State Storage Performance Test
Specification 2.0.1, write saturation test. It is no claim to comply with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import log_range, round_above
from testdrive.methods.steadiness import STEADINESS_HEAD, WINDOW, Fit, bounds, fit_of
from testdrive.methods.written import Written, fills_axis
from testdrive.report import units

PHASE = "writes"
ROUND_S = 60
#: A run has at least so many rounds.
ROUNDS_MIN = 25
#: Runs up to this are drawn by the second, longer ones by the minute.
SECONDS_DRAWN_MAX = 3_600


class _Writes(Written):
    """One drive's run."""

    @property
    def round_s(self) -> int:
        """The length of a round that is judged."""
        return min(ROUND_S, max(self.seconds.whole // ROUNDS_MIN, 1))


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
        points = one.points(step_s)
        iops, latency = points.iops, points.latency_s
        x = points.fills if over == "fills" else points.ends_s / step_s
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
        x_axis = fills_axis(last)
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
        *STEADINESS_HEAD[-2:],
        "write amplification",
    ]
    return Table("pts-saturation", "From the start to the end", head, [_row(one) for one in drawn])


def _row(one: _Writes) -> list[str]:
    judged = one.points(one.round_s)
    iops, levels = judged.iops, one.levels
    start = "no whole second" if levels.start_iops is None else units.number(levels.start_iops)
    cliff = "no cliff" if levels.cliff_s is None else units.duration(levels.cliff_s * SECOND_NS)
    written = float(one.fills[-1]) if len(one.fills) else math.nan
    fit = fit_of(iops[-WINDOW:].tolist()) if len(iops) >= WINDOW else None
    return [
        one.run.subject.label,
        start,
        cliff,
        units.number(written) if math.isfinite(written) else "capacity not known",
        units.duration(one.round_s * SECOND_NS),
        *_window(fit, judged.latency_s[-WINDOW:]),
        one.write_amplification(),
    ]


def _window(fit: Fit | None, latency: NDArray[np.float64]) -> list[str]:
    if fit is None:
        return ["no whole window"] * 5
    return [
        units.number(fit.mean),
        units.time(float(np.nanmean(latency)) * 1e9),
        "yes" if fit.steady() else "no",
        *bounds(fit),
    ]


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
