"""What pages of searches have in common: what each drive was found to take, and every trial on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Series, Table
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import headroom
from testdrive.search.history import read_history

Search = tuple[Run, dict[str, Any]]
"""A run that decided, and the history that was written beside it."""

SINGLE_TRIALS = "No search is beside these recordings: they are single trials of one."


def searches_of(runs: Sequence[Run]) -> list[Search]:
    """Those of the runs that a search decided by."""
    return [(run, found) for run in runs if (found := read_history(run.recording.path)) is not None]


def finished(searches: Sequence[Search]) -> list[Search]:
    """Those that came to their end; one that was stopped has no result."""
    return [(run, found) for run, found in searches if found.get("unfinished") is None]


def result(found: dict[str, Any], shown: Callable[[float], str]) -> str:
    """What a search came to, for a table."""
    if found.get("unfinished") is not None:
        return "unfinished"
    return "none" if found["value"] is None else shown(found["value"])


def load_axis(searches: Sequence[Search], title: str) -> Axis:
    """An axis that holds every load that was tried."""
    highest = max(trial["value"] for _, found in searches for trial in found["history"])
    return Axis(title, low=0.0, high=headroom(highest))


def bars(
    searches: Sequence[Search], key: str, title: str, caption: str, label: str, unit: str
) -> list[Figure]:
    """What each drive was found to take; no bar where no load passed, no figure where none did anywhere."""
    series = [
        Series(
            run.subject.label,
            run.subject.ink,
            np.zeros(1),
            np.array([found["value"] or 0.0], np.float64),
            style="bars",
        )
        for run, found in finished(searches)
    ]
    if not any(one.y[0] for one in series):
        return []
    drives = Axis("drive", labels=(label,))
    return [Figure(key, title, caption, drives, (Axis(unit, low=0.0),), series)]


def _outcome(trial: dict[str, Any]) -> int:
    if trial["cannot_keep_up"]:
        return 0
    return 1 if not trial["passes"] else 3 if trial["confirming"] else 2


def outcomes(searches: Sequence[Search], axis: Axis, key: str, title: str, words: Sequence[str]) -> Figure:
    """Every trial by its load. ``words`` are what can come of one, from the worst to the best of four."""
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
    y = Axis("outcome", low=-0.5, high=len(words) - 0.5, labels=tuple(words))
    return Figure(key, title, "Every trial of the search, and what it came to.", axis, (y,), series)


def history(
    search: Search, key: str, load: str, shown: Callable[[float], str], words: Sequence[str], holds: str
) -> Table:
    """The trials in their order: the load, what came of it, and the first reason why."""
    run, found = search
    rows = [
        [
            f"{number}",
            shown(trial["value"]),
            "confirming" if trial["confirming"] else "trial",
            words[_outcome(trial)],
            trial["reasons"][0] if trial["reasons"] else holds,
        ]
        for number, trial in enumerate(found["history"], start=1)
    ]
    head = ["number", load, "run", "outcome", "why"]
    word = "The search" if found.get("unfinished") is None else "The unfinished search"
    return Table(f"{key}-{run.subject.key}", f"{word} on {run.subject.label}", head, rows)


def border_notes(searches: Sequence[Search], passed: str, shown: Callable[[float], str]) -> list[str]:
    """Where a load that passed was not confirmed, and where no search ended."""
    stopped = [
        f"{run.subject.label}: the search is unfinished, and has no result ({found['unfinished']})."
        for run, found in searches
        if found.get("unfinished") is not None
    ]
    first = [(run, _not_confirmed(found)) for run, found in searches]
    return stopped + [
        f"{run.subject.label}: {shown(value)} {passed} in its trial and not in the run that was to confirm"
        " it: so near to its border this drive passes or fails from run to run, and longer trials tell more."
        for run, value in first
        if value is not None
    ]


def _not_confirmed(found: dict[str, Any]) -> float | None:
    """The highest load whose confirming run failed."""
    failed = [trial["value"] for trial in found["history"] if trial["confirming"] and not trial["passes"]]
    return max(failed, default=None)


def seconds(value_ns: int) -> str:
    """A length in whole seconds, as searches are told theirs."""
    return f"{value_ns / SECOND_NS:,g} s"
