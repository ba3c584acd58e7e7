"""Groups of phases that were run in rounds, as recordings have them, and how they became steady.

What a method shows of a phase is over the window: the last rounds that were judged, steady or not. Rounds
count from 1 for people and from 0 in recordings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testdrive.manifest import Phase
from testdrive.methods.drawing import Axis, Figure, Series, Table
from testdrive.methods.runs import Run
from testdrive.methods.scales import round_above
from testdrive.methods.steadiness import STEADINESS_HEAD, Fit, bounds, measured
from testdrive.report import units

#: What people call a measure, the number that its values are divided by to be drawn, and its unit then.
MEASURES = {"iops": ("IOPS", 1.0), "throughput": ("MB/s", 1e6), "latency": ("mean latency (µs)", 1e3)}
#: Lines of more points than this are drawn without a mark at each.
UNMARKED_POINTS = 33


@dataclass(frozen=True)
class Tracked:
    """One figure that was judged.

    Attributes
    ----------
    phase, measure : str
        Of which phase of a round, and ``iops``, ``throughput`` or ``latency``.
    values : list of float
        Of each round that was judged, in IOPS, bytes a second or ns; NaN where nothing completed.
    fit : Fit or None
        Of the window; None without a whole one.
    steady : bool
        Whether the window is.
    """

    phase: str
    measure: str
    values: list[float]
    fit: Fit | None
    steady: bool


@dataclass(frozen=True)
class Group:
    """The rounds of a group that were judged.

    Attributes
    ----------
    achieved : bool
        Whether the window is steady in all that is tracked.
    done, rounds_max : int
        Rounds that were judged, and how many there might have been.
    window_first : int
        The window's first round, from 0; it ends with the last round that was judged.
    whole : bool
        Whether the window has as many rounds as it should.
    range_limit, slope_limit : float
        What a steady window may range, and climb or fall, as shares of its mean.
    """

    name: str
    achieved: bool
    done: int
    rounds_max: int
    window_first: int
    whole: bool
    range_limit: float
    slope_limit: float
    tracked: list[Tracked]
    phases: dict[str, list[Phase]]

    def window(self, name: str) -> list[Phase]:
        """The phases of this name in the window's rounds."""
        return self.phases.get(name, [])[self.window_first :]


def group_of(run: Run, name: str) -> Group | None:
    """The group of this name; None where the run ended before its first round did."""
    mine = [phase for phase in run.phases if (phase.settings or {}).get("rounds") == name]
    judged = [phase for phase in mine if "rounds" in (phase.accounting or {})]
    if not judged:
        return None
    found: dict[str, Any] = (judged[-1].accounting or {})["rounds"]
    phases: dict[str, list[Phase]] = {}
    for phase in mine:
        if (phase.settings or {})["round"] < found["done"]:
            phases.setdefault(phase.name, []).append(phase)
    return Group(
        name,
        bool(found["achieved"]),
        found["done"],
        found["rounds_max"],
        found["window_first_round"],
        found["done"] >= found["window"],
        float(found["range_share"]),
        float(found["slope_share"]),
        [_tracked(one) for one in found["tracked"]],
        phases,
    )


def _tracked(found: dict[str, Any]) -> Tracked:
    fit = found["fit"]
    values = [math.nan if value is None else float(value) for value in found["values"]]
    shares = ("mean", "slope_per_round", "intercept", "range_share", "slope_share")
    return Tracked(
        found["phase"],
        found["measure"],
        values,
        Fit(*(fit[key] for key in shares)) if fit else None,
        bool(found["achieved"]),
    )


@dataclass(frozen=True)
class Cell:
    """What one phase did in the window's rounds: means of the rounds, and the longest of all of them.

    A rate is the mean of the rounds' rates. The latency is the mean of the rounds' mean latencies, which all
    weigh the same as in what is tracked. NaN where no round has any.
    """

    rounds: int
    iops: float
    bytes_per_s: float
    mean_ns: float
    max_ns: float


def cell_of(run: Run, phases: Sequence[Phase]) -> Cell:
    """What the phases of a window come to."""
    rates, throughputs, means, longest = [], [], [], []
    for phase in phases:
        totals, length_s = run.totals(phase), ((phase.end_ns or phase.start_ns) - phase.start_ns) / 1e9
        if length_s <= 0:
            continue
        rates.append(totals.ios / length_s)
        throughputs.append(totals.bytes / length_s)
        if totals.ios:
            means.append(totals.sum_ns / totals.ios)
            longest.append(totals.max_ns)

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values)) if values else math.nan

    return Cell(len(rates), mean(rates), mean(throughputs), mean(means), max(longest, default=math.nan))


Found = Sequence[tuple[Run, Group]]


def convergence(key: str, title: str, found: Found, names: dict[tuple[str, str], str]) -> Figure:
    """What is tracked against rounds, with each drive's window: its straight line, and 10 % to either side.

    Parameters
    ----------
    names : dict
        What the panels are called, by phase and measure; their order is that of the panels.
    """
    series: list[Series] = []
    highest = dict.fromkeys(names, 0.0)
    for run, group in found:
        for tracked in group.tracked:
            place = (tracked.phase, tracked.measure)
            if place in names:
                made = _rounds_drawn(run, group, tracked, list(names).index(place))
                series += made
                tops = [float(np.nanmax(one.y, initial=0.0)) for one in made]
                highest[place] = max(highest[place], *tops)
    last = max((group.done for _, group in found), default=1)
    axes = tuple(
        Axis(MEASURES[measure][0], low=0.0, high=round_above(highest[phase, measure]))
        for phase, measure in names
    )
    return Figure(
        key,
        title,
        "Each point is a round. Over each drive's window the dashed line is the straight line that fits best,"
        " and the dotted ones are 10 % above and below the mean. The window is steady where the line climbs"
        " or falls by at most 10 % of the mean and the points range over at most 20 % of it.",
        Axis("round", low=0.5, high=last + 0.5),
        axes,
        series,
        headings=tuple(names.values()),
    )


def _rounds_drawn(run: Run, group: Group, tracked: Tracked, panel: int) -> list[Series]:
    subject, scale = run.subject, MEASURES[tracked.measure][1]
    values = np.array(tracked.values) / scale
    rounds = np.arange(1, len(values) + 1, dtype=np.float64)
    made = [Series(subject.label, replace(subject.ink, dash="solid"), rounds, values, panel=panel)]
    fit = tracked.fit
    if fit is None:
        return made
    x = np.linspace(group.window_first + 1, group.done, UNMARKED_POINTS)
    line = (fit.intercept + fit.slope_per_round * (x - group.window_first - 1)) / scale
    best, bounds = replace(subject.ink, dash="dash"), replace(subject.ink, dash="dot")
    made.append(Series("best line", best, x, line, panel=panel))
    # Values that range over a fifth of their mean lie a tenth to either side of it.
    half = group.range_limit / 2
    for way in (1 - half, 1 + half):
        level = np.full(len(x), fit.mean * way / scale)
        made.append(Series(f"mean ± {half * 100:g} %", bounds, x, level, panel=panel))
    return made


def steadiness_rows(found: Found, names: dict[tuple[str, str], str]) -> Table:
    """Whether each drive became steady in each of what is tracked, and its window's fit beside the bounds."""
    rows = []
    for run, group in found:
        for tracked in group.tracked:
            name = names.get((tracked.phase, tracked.measure), tracked.phase)
            rows.append([f"{run.subject.label}, {name}", *_judged(group, tracked)])
    head = ["drive, tracked", *STEADINESS_HEAD]
    return Table("steady-state", "The steady state, by the last rounds", head, rows)


def _judged(group: Group, tracked: Tracked) -> list[str]:
    rounds = f"{group.done} of at most {group.rounds_max}"
    fit = tracked.fit
    if fit is None:
        return ["not reached", rounds, *["no whole window"] * 4]
    return [
        "reached" if tracked.steady else "not reached",
        rounds,
        f"{group.window_first + 1} to {group.done}",
        measured(tracked.measure, fit.mean),
        *bounds(fit, group.slope_limit, group.range_limit),
    ]


def notes_of(run: Run, group: Group | None, what: str) -> list[str]:
    """What a reader must know of a drive's rounds before the values are compared."""
    label = run.subject.label
    if group is None:
        return [f"{label} ended before the first round{what} was over."]
    if group.achieved:
        return []
    if not group.whole:
        return [f"{label} ended after {units.count(group.done)} rounds{what}, fewer than a window has."]
    return [
        f"{label} did not reach a steady state in {units.count(group.done)} rounds{what}: its values are"
        " those of the last rounds all the same."
    ]
