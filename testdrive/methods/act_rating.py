"""ACT rating: every trial of the search by its rating, and the ratings of several drives side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testdrive.act.verdict import LIMITS
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import round_above
from testdrive.report import palette
from testdrive.search.trials import read_history

_OUTCOMES = ("cannot keep up", "over a limit", "passes", "confirmed")


def look(runs: Sequence[Run]) -> Findings:
    """Trials by rating, the worst shares of each, the ratings as bars, and the history as a table."""
    searches = [(run, found) for run in runs if (found := read_history(run.recording.path)) is not None]
    if not searches:
        return Findings([], [], ["No search is beside these recordings: they are single trials of one."])
    highest = max(trial["value"] for _, found in searches for trial in found["history"])
    axis = Axis("rating (times 2,000 reads/s)", low=0.0, high=round_above(highest * 1.05))
    figures = [_bars(searches), _outcomes(searches, axis), _shares(searches, axis)]
    notes = [
        f"{run.subject.label}: a rating passed at or above one that failed: it is one of several borders."
        for run, found in searches
        if not found["is_monotone"]
    ]
    return Findings(figures, [_ratings(searches), *(_history(run, found) for run, found in searches)], notes)


Searches = Sequence[tuple[Run, dict[str, Any]]]


def _bars(searches: Searches) -> Figure:
    series = [
        Series(
            run.subject.label,
            run.subject.ink,
            np.zeros(1),
            np.array([found["value"] or 0.0], np.float64),
            style="bars",
        )
        for run, found in searches
    ]
    return Figure(
        "act-ratings",
        "Ratings",
        "The highest load that each drive passed, confirmed from a settled drive.",
        Axis("drive", labels=("confirmed rating",)),
        (Axis("rating (times 2,000 reads/s)", low=0.0),),
        series,
    )


def _outcome(trial: dict[str, Any]) -> int:
    if trial["cannot_keep_up"]:
        return 0
    return 1 if not trial["passes"] else 3 if trial["confirming"] else 2


def _outcomes(searches: Searches, axis: Axis) -> Figure:
    series = [
        Series(
            run.subject.label,
            run.subject.ink,
            np.array([trial["value"] for trial in found["history"]], np.float64),
            # Drives lie a little apart, so that equal outcomes do not hide each other.
            np.array([_outcome(trial) for trial in found["history"]], np.float64) + 0.08 * at,
            style="points",
        )
        for at, (run, found) in enumerate(searches)
    ]
    y = Axis("outcome", low=-0.5, high=len(_OUTCOMES) - 0.5, labels=_OUTCOMES)
    caption = "Every trial of the search, and what it came to."
    return Figure("act-trials", "Trials by rating", caption, axis, (y,), series)


def _shares(searches: Searches, axis: Axis) -> Figure:
    series: list[Series] = []
    highest = [limit.share * 100 for limit in LIMITS]
    for panel, limit in enumerate(LIMITS):
        key = f"above_{limit.threshold_ms}ms_share_max"
        for run, found in searches:
            told = [trial for trial in found["history"] if trial["figures"].get(key) is not None]
            told.sort(key=lambda trial: float(trial["value"]))
            percent = np.array([trial["figures"][key] * 100 for trial in told], np.float64)
            highest[panel] = max(highest[panel], float(percent.max(initial=0.0)))
            x = np.array([trial["value"] for trial in told], np.float64)
            series.append(Series(run.subject.label, run.subject.ink, x, percent, panel=panel))
        level = np.full(2, limit.share * 100)
        ends = np.array([0.0, axis.high or 1.0])
        series.append(Series("limit of a slice", palette.ORIGINAL, ends, level, panel=panel))
    y = tuple(
        Axis(f"{limit.threshold_ms} ms or more (%)", low=0.0, high=min(round_above(most * 1.1), 100.0))
        for limit, most in zip(LIMITS, highest, strict=True)
    )
    caption = (
        "Reads of each trial's worst slice, by the time that the drive took. A trial that could not keep up"
        " has none if it ended within its first slice."
    )
    return Figure("act-trial-shares", "Slow reads by rating", caption, axis, y, series)


def _ratings(searches: Searches) -> Table:
    rows = []
    for run, found in searches:
        trials = found["history"]
        rows.append(
            [
                run.subject.label,
                "none" if found["value"] is None else f"{found['value']:g}x",
                found["method"],
                f"{len(trials)}",
                _seconds(found["slice_ns"]),
                _seconds(found["trial_ns"]),
                _seconds(found["confirm_ns"]),
            ]
        )
    head = ["drive", "rating", "found by", "trials", "slice", "length of a trial", "confirmed for"]
    return Table("act-ratings", "Ratings", head, rows)


def _seconds(value_ns: int) -> str:
    return f"{value_ns / SECOND_NS:,g} s"


def _history(run: Run, found: dict[str, Any]) -> Table:
    rows = [
        [
            f"{number}",
            f"{trial['value']:g}x",
            "confirming" if trial["confirming"] else "trial",
            _OUTCOMES[_outcome(trial)],
            trial["reasons"][0] if trial["reasons"] else "holds every limit",
        ]
        for number, trial in enumerate(found["history"], start=1)
    ]
    head = ["number", "rating", "run", "outcome", "why"]
    return Table(f"act-history-{run.subject.key}", f"The search on {run.subject.label}", head, rows)


METHOD = Method(
    "act-rating",
    "ACT rating",
    "The rating of a drive is the highest multiple of 2,000 reads and 1,000 writes a second at which its"
    " reads stay in time. It is searched between a load that passes and one that fails, and then confirmed"
    " from a settled drive, since an overload leaves a drive in a worse state. A rating holds for slices of"
    " the length that stands beside it: certification takes slices of an hour over a day.",
    look,
    settles=("rating",),
)
