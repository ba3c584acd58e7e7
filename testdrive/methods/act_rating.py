"""ACT rating: every trial of the search by its rating, and the ratings of several drives side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.act.verdict import LIMITS, Limit
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.rule_figures import CONFIRMING_CAPTION, WIDE, trials_and_confirming
from testdrive.methods.runs import Run
from testdrive.methods.scales import round_above
from testdrive.methods.searches import (
    SINGLE_TRIALS,
    Search,
    bars,
    border_notes,
    history,
    load_axis,
    outcomes,
    result,
    searches_of,
    seconds,
)
from testdrive.report import palette

_OUTCOMES = ("cannot keep up", "over a limit", "passes", "confirmed")


def look(runs: Sequence[Run]) -> Findings:
    """Trials by rating, the worst shares of each, the ratings as bars, and the history as a table."""
    found = searches_of(runs)
    if not found:
        return Findings([], [], [SINGLE_TRIALS])
    axis = load_axis(found, "rating (times 2,000 reads/s)")
    caption = "The highest load that each drive passed, and passed again in a run that confirmed it."
    figures = [
        *bars(found, "act-ratings", "Ratings", caption, "confirmed rating", axis.title),
        outcomes(found, axis, "act-trials", "Trials by rating", _OUTCOMES),
        _shares(found, axis),
    ]
    histories = [
        history(each, "act-history", "rating", _rating, _OUTCOMES, "holds every limit") for each in found
    ]
    notes = [*border_notes(found, "passed", _rating), *_notes(found)]
    return Findings(figures, [_ratings(found)], notes, histories)


def _notes(searches: Sequence[Search]) -> list[str]:
    """Where a rating says less of the drive than it seems to."""
    notes = []
    for run, found in searches:
        name = run.subject.label
        if found.get("host_limited"):
            notes.append(
                f"{name}: this host was the limit, not the drive, at the rating that failed: the drive may"
                " pass more."
            )
        if found["value"] is not None and _failing(found) == "none tried":
            notes.append(f"{name}: no rating above the result failed, so that the drive may pass more.")
        # Histories of before do not say so.
        if found.get("settled") is False:
            notes.append(
                f"{name}: the confirming run began as the trials had left the drive, which was not settled"
                " (prepare=none)."
            )
    return notes


def _rating(value: float) -> str:
    return f"{value:g}x"


def _shares(searches: Sequence[Search], axis: Axis) -> Figure:
    series: list[Series] = []
    panels: list[Axis] = []
    for panel, limit in enumerate(LIMITS):
        key = f"above_{limit.threshold_ms}ms_share_max"
        curves = []
        for run, found in searches:
            told = [trial for trial in found["history"] if trial["figures"].get(key) is not None]
            points = [(float(each["value"]), each["figures"][key], each["confirming"]) for each in told]
            curves += trials_and_confirming(run, points, 100.0, panel)
        y = _share_axis(limit, np.concatenate([np.zeros(0), *(one.y for one in curves)]))
        panels.append(y)
        # There is no 0 on a logarithmic axis.
        series += [
            replace(one, y=np.where(one.y > 0, one.y, np.nan)) if y.scale == "log" else one for one in curves
        ]
        level = np.full(2, limit.share * 100)
        ends = np.array([0.0, axis.high or 1.0])
        series.append(Series("limit of a slice", palette.ORIGINAL, ends, level, "rule", panel=panel))
    caption = (
        "Reads of each trial's worst slice, by the time that the drive took. A trial that could not keep up"
        " has none if it ended within its first slice; one that was ended early has those until then. On"
        f" a logarithmic axis a share of 0 has no point. {CONFIRMING_CAPTION}"
    )
    return Figure("act-trial-shares", "Slow reads by rating", caption, axis, tuple(panels), series)


def _share_axis(limit: Limit, percent: NDArray[np.float64]) -> Axis:
    """Linear, unless a trial far past the limit would press the limit onto the axis."""
    title = f"{limit.threshold_ms} ms or more (%)"
    level = limit.share * 100
    most = max(level, float(percent.max(initial=0.0)))
    if most > WIDE * level:
        least = min(level, float(percent[percent > 0].min()))
        return Axis(title, "log", low=10.0 ** math.floor(math.log10(least)), high=100.0)
    return Axis(title, low=0.0, high=min(round_above(most * 1.1), 100.0))


def _ratings(searches: Sequence[Search]) -> Table:
    rows = []
    for run, found in searches:
        trials = found["history"]
        rows.append(
            [
                run.subject.label,
                result(found, _rating),
                _failing(found),
                _method(found),
                f"{len(trials)}",
                seconds(found["slice_ns"]),
                seconds(found["trial_ns"]),
                seconds(found["confirm_ns"]),
            ]
        )
    head = [
        "drive",
        "rating",
        "fails at",
        "found by",
        "trials",
        "slice",
        "length of a trial",
        "confirmed for",
    ]
    return Table("act-ratings", "Ratings", head, rows)


def _method(found: dict[str, Any]) -> str:
    resolution = f" to {found['resolution']}" if found["method"] == "bisection" else ""
    return f"{found['method']}{resolution}"


def _failing(found: dict[str, Any]) -> str:
    """The lowest rating that failed above the result; without one, the rating may be higher."""
    passed = found["value"] or 0
    failed = [trial["value"] for trial in found["history"] if not trial["passes"] and trial["value"] > passed]
    return _rating(min(failed)) if failed else "none tried"


METHOD = Method(
    "act-rating",
    "ACT rating",
    "The rating of a drive is the highest multiple of 2,000 reads and 1,000 writes a second at which its"
    " reads stay in time. It is searched between a load that passes and one that fails, and then confirmed,"
    " on a drive that is settled first where it was prepared, since an overload leaves it in a worse state. A"
    " rating holds for slices of the length that stands beside it: certification takes slices of an hour over"
    " a day.",
    look,
    settles=("rating", "seed"),
)
