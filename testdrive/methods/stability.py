"""Stability: IOPS of each second of a mix, on a drive that was brought to a steady state before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import Run
from testdrive.methods.scales import headroom
from testdrive.methods.steadiness import Steadiness, steadiness_of, steadiness_table
from testdrive.report import palette, units

SETTLING, PHASE = "settling", "mix"


def look(runs: Sequence[Run]) -> Findings:
    """The scatter of the seconds, the rounds before them, and a table of each."""
    seconds = {run: run.seconds(phase).ios for run in runs if (phase := run.phase(PHASE)) is not None}
    settling = [(run, steadiness_of(run.phase(SETTLING))) for run in runs]
    told = [(run, steadiness) for run, steadiness in settling if steadiness is not None]
    figures = []
    if any(len(ios) for ios in seconds.values()):
        figures.append(_scatter({run: ios.astype(np.float64) for run, ios in seconds.items()}))
    if told:
        figures.append(_rounds(told))
    tables = [
        _table(runs, seconds),
        steadiness_table("stability-steady-state", [(run.subject.label, found) for run, found in settling]),
    ]
    return Findings(figures, tables, _notes(runs, seconds))


def _scatter(seconds: dict[Run, NDArray[np.float64]]) -> Figure:
    highest = max(float(iops.max(initial=0.0)) for iops in seconds.values())
    whole_s = float(max(len(iops) for iops in seconds.values()))
    series = [
        Series(
            run.subject.label,
            run.subject.ink,
            np.arange(1, len(iops) + 1, dtype=np.float64),
            iops,
            style="points",
        )
        for run, iops in seconds.items()
    ]
    return Figure(
        "stability-iops",
        "IOPS of each second of the mix",
        "Each point is one second of one drive. A narrow, level band is stable; points below it are seconds"
        " in which the drive was busy with itself.",
        Axis("time since the steady state (s)", low=0.0, high=whole_s),
        (Axis("IOPS in each second", low=0.0, high=headroom(highest), si_unit="IOPS"),),
        series,
    )


def _rounds(told: Sequence[tuple[Run, Steadiness]]) -> Figure:
    """The rounds of each drive, with the last window's line and how far around its mean values may lie."""
    series: list[Series] = []
    rules: list[Series] = []
    for run, steadiness in told:
        ink, grey = run.subject.ink, palette.ORIGINAL
        places = np.arange(1, len(steadiness.rounds) + 1, dtype=np.float64)
        series.append(Series(run.subject.label, ink, places, np.array(steadiness.rounds)))
        fit, first = steadiness.fit, steadiness.window_first
        if fit is None or first is None:
            continue
        ends = np.array([first + 1.0, float(len(steadiness.rounds))])
        line = fit.intercept + fit.slope_per_round * (ends - ends[0])
        dashed = replace(grey, dash="dash")
        rules.append(Series("line through the last window", dashed, ends, line, "rule"))
        for sign in (-1, 1):
            bound = fit.mean * (1 + sign * steadiness.range_limit / 2)
            label = f"its mean ± {steadiness.range_limit * 50:g} %"
            rules.append(Series(label, grey, ends, np.full(2, bound), "rule"))
    series += rules
    highest = max(float(np.nanmax(one.y, initial=0.0)) for one in series)
    most = max(len(steadiness.rounds) for _, steadiness in told)
    return Figure(
        "stability-rounds",
        "IOPS of each round before, until the steady state",
        "Each point is the mean of a round. The last window is steady if its rounds lie within a band of"
        " this width and the line through them is nearly level; the table has both values beside their"
        " bounds.",
        Axis("round", low=0.5, high=most + 0.5),
        (Axis("mean IOPS of the round", low=0.0, high=headroom(highest), si_unit="IOPS"),),
        series,
    )


def _table(runs: Sequence[Run], seconds: dict[Run, NDArray[np.int64]]) -> Table:
    head = ["drive", "seconds", "mean IOPS", "least IOPS", "greatest IOPS", "standard deviation", "sd / mean"]
    rows = []
    for run in runs:
        ios = seconds.get(run)
        if ios is None or not len(ios):
            rows.append([run.subject.label, *["not reached" if ios is None else "no whole second"] * 6])
            continue
        mean, deviation = float(ios.mean()), float(ios.std())
        rows.append(
            [
                run.subject.label,
                f"{len(ios):,}",
                units.number(mean, 4),
                f"{ios.min():,}",
                f"{ios.max():,}",
                units.number(deviation),
                f"{deviation / mean * 100:.2f} %" if mean else "no I/Os",
            ]
        )
    return Table("stability", "IOPS over the seconds of the mix", head, rows)


def _notes(runs: Sequence[Run], seconds: dict[Run, NDArray[np.int64]]) -> list[str]:
    notes = []
    for run in runs:
        ios, phase = seconds.get(run), run.phase(PHASE)
        if ios is None or phase is None:
            notes.append(f"{run.subject.label} ended before the mix was measured.")
            continue
        planned_s = int((phase.settings or {}).get("duration_ns") or 0) // 1_000_000_000
        if len(ios) < planned_s:
            notes.append(f"{run.subject.label} ended after {len(ios):,} s of {planned_s:,} s.")
        steadiness = steadiness_of(run.phase(SETTLING))
        if steadiness is not None and not steadiness.reached:
            notes.append(
                f"{run.subject.label} was not steady when the mix was measured: its figures are of a drive"
                " that still changed."
            )
    return notes


METHOD = Method(
    "stability",
    "Performance stability",
    "4 KiB at random places, 70 % reads and 30 % writes, on a drive that is full, was written over at"
    " random, and then served this mix until it was steady. Look for the width of the band, and for seconds"
    " below it: a service that shares the drive waits in those. The standard deviation is of the population"
    " of seconds.",
    look,
)
