"""Trials of a search against the rules that users set: the worst interval of each, by its load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Series
from testdrive.methods.scales import round_above
from testdrive.methods.searches import Search
from testdrive.report import palette

_MS = 1e6
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
    return (100.0, "share (%)") if rule["unit"] == "share" else (1 / _MS, "interval (ms)")


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
            told = _points(found, text, opcode, key)
            x = np.array([load for load, _ in told], np.float64)
            y = np.array([value * scaled for _, value in told], np.float64)
            highest = max(highest, float(y.max(initial=0.0)))
            series.append(Series(run.subject.label, run.subject.ink, x, y, panel=panel))
        series.append(Series("limit", palette.ORIGINAL, ends, np.full(2, limit), "rule", panel=panel))
        # Past the limit a drive's times grow without bound.
        wide = not share and highest > WIDE * limit
        low, high = (None, None) if wide else (0.0, high_of(rule, highest))
        panels.append(
            Axis(unit if share else f"worst {unit}", "log" if wide else "linear", low=low, high=high)
        )
        headings.append(f"{text}, {opcode}s")
    if not panels:
        panels, headings = [Axis("worst interval (ms)")], ["no trial had a whole interval"]
    what = "from when each I/O was due, which is judged"
    if key != "worst":
        what = "that the drive took for each I/O"
    caption = (
        f"The worst interval of each trial, by the time {what}. A trial that could not keep up has no point"
        " if it ended within its first interval."
    )
    if key == "worst":
        caption += (
            " Where the I/Os that decide did not go at all, the point is the longest time that was seen:"
            " they took more."
        )
    return Figure(name, title, caption, axis, tuple(panels), series, headings=tuple(headings))


def _points(found: dict[str, Any], text: str, opcode: str, key: str) -> list[tuple[float, float]]:
    return sorted(
        (float(trial["value"]), float(rule[key]))
        for trial in found["history"]
        for rule in trial["figures"]["rules"] or []
        if (rule["rule"], rule["opcode"]) == (text, opcode) and rule[key] is not None
    )
