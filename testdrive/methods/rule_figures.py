"""Trials of a search against the rules that users set: the worst interval of each, by its load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Series, Style
from testdrive.methods.runs import Run
from testdrive.methods.scales import round_above
from testdrive.methods.searches import Search
from testdrive.report import palette

_MS = 1e6
#: A load, what a trial came to there, and whether it is a confirming run.
Point = tuple[float, float, bool]
CONFIRMING_CAPTION = (
    "Single points are confirming runs: they have other random numbers, or a drive that was settled again."
)
#: Past so many times the limit an axis is logarithmic: linear, what matters would lie on it.
WIDE = 20


def judged_rules(searches: Sequence[Search]) -> dict[tuple[str, str], dict[str, Any]]:
    """Each rule with its opcode, in their order, as the first trial that has it says it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _, search in searches:
        for trial in search["history"]:
            for rule in trial["figures"]["rules"] or []:
                found.setdefault((rule["rule"], rule["opcode"]), rule)
    return found


def scale_of(rule: dict[str, Any]) -> tuple[float, str]:
    """What a rule's values are multiplied by to be drawn, and the title of their axis."""
    return (100.0, "share (%)") if rule["unit"] == "share" else (1 / _MS, "time (ms)")


def high_of(rule: dict[str, Any], highest: float) -> float:
    """Where an axis ends that holds a value; no share is above 100 %."""
    high = round_above(highest * 1.1)
    return min(high, 105.0) if rule["unit"] == "share" else high


def worst(searches: Sequence[Search], axis: Axis, key: str, name: str, title: str) -> Figure:
    """The worst value of any interval of each trial, by its load, a panel for each rule and opcode.

    ``key`` is that of the value in a trial's rules: ``worst`` by response time, or ``worst_service``.
    """
    series: list[Series] = []
    panels: list[Axis] = []
    headings: list[str] = []
    ends = np.array([0.0, axis.high or 1.0])
    for panel, ((text, opcode), rule) in enumerate(judged_rules(searches).items()):
        share = rule["unit"] == "share"
        scaled, unit = scale_of(rule)
        limit = rule["limit"] * scaled
        highest = limit
        for run, found in searches:
            for one in trials_and_confirming(run, _points(found, text, opcode, key), scaled, panel):
                highest = max(highest, float(one.y.max(initial=0.0)))
                series.append(one)
        series.append(Series("limit", palette.ORIGINAL, ends, np.full(2, limit), "rule", panel=panel))
        # Past the limit a drive's times grow without bound.
        wide = not share and highest > WIDE * limit
        low, high = (None, None) if wide else (0.0, high_of(rule, highest))
        panels.append(Axis(f"worst interval's {unit}", "log" if wide else "linear", low=low, high=high))
        headings.append(f"{text}, {opcode}s")
    if not panels:
        panels, headings = [Axis("worst interval's time (ms)")], ["no trial had a whole interval"]
    what = "from when each I/O was due, which is judged"
    if key != "worst":
        what = "that the drive took for each I/O"
    caption = (
        f"The worst interval of each trial, by the time {what}. A trial that could not keep up has no point"
        f" if it ended within its first interval. {CONFIRMING_CAPTION}"
    )
    if key == "worst":
        caption += (
            " Where the I/Os that decide did not go at all, the point is the longest time that was seen:"
            " they took more."
        )
    return Figure(name, title, caption, axis, tuple(panels), series, headings=tuple(headings))


def trials_and_confirming(
    run: Run, points: Sequence[Point], scaled: float = 1.0, panel: int = 0
) -> list[Series]:
    """A drive's trials as a line, and its confirming runs as points beside it.

    They differ in more than the load, so that a line through both would be of no drive in one state.
    """
    made = []
    for confirming in (False, True):
        chosen = sorted((load, value) for load, value, again in points if again == confirming)
        if chosen:
            name = run.subject.label + (", confirming" if confirming else "")
            x, y = (np.array(values, np.float64) for values in zip(*chosen, strict=True))
            style: Style = "points" if confirming else "line"
            made.append(Series(name, run.subject.ink, x, y * scaled, style, panel=panel))
    return made


def _points(found: dict[str, Any], text: str, opcode: str, key: str) -> list[Point]:
    return [
        (float(trial["value"]), float(rule[key]), bool(trial["confirming"]))
        for trial in found["history"]
        for rule in trial["figures"]["rules"] or []
        if (rule["rule"], rule["opcode"]) == (text, opcode) and rule[key] is not None
    ]
