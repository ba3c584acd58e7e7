"""QoS: every trial of the search by its rate, against the user's rules, and the rates of several drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
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
    searches_of,
    seconds,
)
from testdrive.qos.verdict import is_qos, judge
from testdrive.report import palette, units

_OUTCOMES = ("cannot keep up", "over a rule", "holds", "confirmed")
_MS = 1e6


def look(runs: Sequence[Run]) -> Findings:
    """Rates as bars, trials by rate, the worst values against each rule, and the histories as tables."""
    found = searches_of(runs)
    intervals = [table for run in runs for table in _intervals(run)]
    if not found:
        return Findings([], [], [SINGLE_TRIALS], intervals)
    axis = load_axis(found, "rate (I/Os a second)")
    caption = (
        "The highest rate at which each drive held every rule in every interval, in a run that confirmed it."
    )
    figures = [
        bars(found, "qos-rates", "Rates", caption, "confirmed rate", "I/Os a second"),
        outcomes(found, axis, "qos-trials", "Trials by rate", _OUTCOMES),
        _worst(found, axis, "worst", "qos-response", "Response time by rate"),
        _worst(found, axis, "worst_service", "qos-service", "Service time by rate"),
    ]
    holds = "every rule holds in every interval"
    histories = [history(each, "qos-history", "rate", _rate, _OUTCOMES, holds) for each in found]
    notes = border_notes(found, "rate", "held")
    return Findings(figures, [_rates(found)], notes, [*histories, *intervals])


def _judged(searches: Sequence[Search]) -> dict[tuple[str, str], dict[str, Any]]:
    """Each rule with its opcode, in their order, as the first trial that has it says it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _, search in searches:
        for trial in search["history"]:
            for rule in trial["figures"]["rules"]:
                found.setdefault((rule["rule"], rule["opcode"]), rule)
    return found


def _worst(searches: Sequence[Search], axis: Axis, key: str, name: str, title: str) -> Figure:
    """The worst value of any interval, by rate, a panel for each rule and opcode."""
    series: list[Series] = []
    panels: list[Axis] = []
    headings: list[str] = []
    ends = np.array([0.0, axis.high or 1.0])
    for panel, ((text, opcode), rule) in enumerate(_judged(searches).items()):
        share = rule["unit"] == "share"
        scaled = 100.0 if share else 1 / _MS
        limit = rule["limit"] * scaled
        highest = limit
        for run, found in searches:
            told = _points(found, text, opcode, key)
            x = np.array([rate for rate, _ in told], np.float64)
            y = np.array([value * scaled for _, value in told], np.float64)
            highest = max(highest, float(y.max(initial=0.0)))
            series.append(Series(run.subject.label, run.subject.ink, x, y, panel=panel))
        series.append(Series("limit", palette.ORIGINAL, ends, np.full(2, limit), "rule", panel=panel))
        unit = "share (%)" if share else "worst interval (ms)"
        # Past the limit a drive's times grow without bound: linear, what matters would lie on the axis.
        wide = not share and highest > 20 * limit
        low, high = (None, None) if wide else (0.0, round_above(highest * 1.1))
        panels.append(Axis(unit, "log" if wide else "linear", low=low, high=high))
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
        for rule in trial["figures"]["rules"]
        if (rule["rule"], rule["opcode"]) == (text, opcode) and rule[key] is not None
    )


def _rates(searches: Sequence[Search]) -> Table:
    rows = [
        [
            run.subject.label,
            "none" if found["value"] is None else _rate(found["value"]),
            "none" if found["failing_rate_iops"] is None else _rate(found["failing_rate_iops"]),
            found["rules"],
            ", ".join(f"{opcode}s" for opcode in found["opcodes"]),
            found["arrivals"],
            seconds(found["interval_ns"]),
            seconds(found["trial_ns"]),
            seconds(found["confirm_ns"]),
            f"{len(found['history'])}",
        ]
        for run, found in searches
    ]
    head = ["drive", "holds at", "fails at", "rules", "of", "arrivals", "interval", "trial", "confirmed for"]
    return Table("qos-rates", "Rates", [*head, "trials"], rows)


def _rate(value: float) -> str:
    return f"{value:,.0f} IOPS" if value >= 100 else f"{value:.4g} IOPS"


def _value(value: float | None, *, share: bool) -> str:
    if value is None:
        return "not claimed"
    if np.isinf(value):
        return "did not go in time"
    return units.percent(float(value)) if share else units.time(float(value))


def _intervals(run: Run) -> list[Table]:
    """What the judged run came to in each interval, response time and service time side by side."""
    if not is_qos(run.recording):
        return []
    verdict = judge(run.recording)
    if not verdict.held:
        return []
    head = ["interval"]
    for one in verdict.held:
        head += [f"{one.rule.text}, {one.opcode}s", "by service time", "I/Os"]
    rows = []
    for at in range(verdict.intervals):
        row = [f"{at + 1}"]
        for one in verdict.held:
            share = one.rule.is_share
            pair = (one.values[at], one.service[at])
            row += [_value(None if each is None else float(each), share=share) for each in pair]
            row.append(f"{one.samples[at]:,}")
        rows.append(row)
    title = f"Intervals of the run that decided, on {run.subject.label}"
    return [Table(f"qos-intervals-{run.subject.key}", title, head, rows)]


METHOD = Method(
    "qos",
    "QoS",
    "The rate of a drive is the highest number of I/Os a second at which every rule holds in every interval."
    " It is searched between a rate that holds and one that fails, and confirmed by a run of its own. Judged"
    " is the response time: from when an I/O was due, whether or not it could be handed over then. Service"
    " time, which stands beside it, leaves out what I/Os waited for the drive.",
    look,
    settles=("rate", "seed"),
)
