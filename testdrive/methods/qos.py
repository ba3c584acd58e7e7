"""QoS: every trial of the search by its rate, against the user's rules, and the rates of several drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import round_above
from testdrive.qos.verdict import is_qos, judge
from testdrive.report import palette, units
from testdrive.search.trials import read_history

_OUTCOMES = ("cannot keep up", "over a rule", "holds", "confirmed")
_MS = 1e6

Searches = Sequence[tuple[Run, dict[str, Any]]]


def look(runs: Sequence[Run]) -> Findings:
    """Rates as bars, trials by rate, the worst values against each rule, and the histories as tables."""
    searches = [(run, found) for run in runs if (found := read_history(run.recording.path)) is not None]
    intervals = [table for run in runs for table in _intervals(run)]
    if not searches:
        return Findings(
            [], [], ["No search is beside these recordings: they are single trials of one."], intervals
        )
    rates = [trial["value"] for _, found in searches for trial in found["history"]]
    axis = Axis("rate (I/Os a second)", low=0.0, high=round_above(max(rates) * 1.05))
    figures = [
        _bars(searches),
        _outcomes(searches, axis),
        _worst(searches, axis, "worst", "qos-response", "Response time by rate"),
        _worst(searches, axis, "worst_service", "qos-service", "Service time by rate"),
    ]
    notes = [
        f"{run.subject.label}: a rate held at or above one that failed: the result is one of several borders."
        for run, found in searches
        if not found["is_monotone"]
    ]
    details = [*(_history(run, found) for run, found in searches), *intervals]
    return Findings(figures, [_rates(searches)], notes, details)


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
        "qos-rates",
        "Rates",
        "The highest rate at which each drive held every rule in every interval, in a run that confirmed it.",
        Axis("drive", labels=("confirmed rate",)),
        (Axis("I/Os a second", low=0.0),),
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
    return Figure("qos-trials", "Trials by rate", caption, axis, (y,), series)


def _judged(searches: Searches) -> dict[tuple[str, str], dict[str, Any]]:
    """Each rule with its opcode, in their order, as the first trial that has it says it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _, search in searches:
        for trial in search["history"]:
            for rule in trial["figures"]["rules"]:
                found.setdefault((rule["rule"], rule["opcode"]), rule)
    return found


def _worst(searches: Searches, axis: Axis, key: str, name: str, title: str) -> Figure:
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


def _rates(searches: Searches) -> Table:
    rows = [
        [
            run.subject.label,
            "none" if found["value"] is None else _rate(found["value"]),
            "none" if found["failing_rate_iops"] is None else _rate(found["failing_rate_iops"]),
            found["rules"],
            ", ".join(f"{opcode}s" for opcode in found["opcodes"]),
            found["arrivals"],
            _seconds(found["interval_ns"]),
            _seconds(found["trial_ns"]),
            _seconds(found["confirm_ns"]),
            f"{len(found['history'])}",
        ]
        for run, found in searches
    ]
    head = ["drive", "holds at", "fails at", "rules", "of", "arrivals", "interval", "trial", "confirmed for"]
    return Table("qos-rates", "Rates", [*head, "trials"], rows)


def _rate(value: float) -> str:
    return f"{value:,.0f} IOPS" if value >= 100 else f"{value:.4g} IOPS"


def _seconds(value_ns: int) -> str:
    return f"{value_ns / SECOND_NS:,g} s"


def _value(value: float | None, *, share: bool) -> str:
    if value is None:
        return "not claimed"
    if np.isinf(value):
        return "did not go in time"
    return units.percent(float(value)) if share else units.time(float(value))


def _history(run: Run, found: dict[str, Any]) -> Table:
    rows = [
        [
            f"{number}",
            _rate(trial["value"]),
            "confirming" if trial["confirming"] else "trial",
            _OUTCOMES[_outcome(trial)],
            trial["reasons"][0] if trial["reasons"] else "every rule holds in every interval",
        ]
        for number, trial in enumerate(found["history"], start=1)
    ]
    head = ["number", "rate", "run", "outcome", "why"]
    return Table(f"qos-history-{run.subject.key}", f"The search on {run.subject.label}", head, rows)


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
