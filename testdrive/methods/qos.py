"""QoS: every trial of the search by its rate, against the user's rules, and the rates of several drives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testdrive.methods.drawing import Findings, Table
from testdrive.methods.method import Method
from testdrive.methods.rule_figures import worst
from testdrive.methods.runs import Run
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
from testdrive.qos.verdict import is_qos, judge
from testdrive.report import units

_OUTCOMES = ("cannot keep up", "over a rule", "holds", "confirmed")


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
        *bars(found, "qos-rates", "Rates", caption, "confirmed rate", "I/Os a second"),
        outcomes(found, axis, "qos-trials", "Trials by rate", _OUTCOMES),
        worst(found, axis, "worst", "qos-response", "Response time by rate"),
        worst(found, axis, "worst_service", "qos-service", "Service time by rate"),
    ]
    holds = "every rule holds in every interval"
    histories = [history(each, "qos-history", "rate", _rate, _OUTCOMES, holds) for each in found]
    notes = border_notes(found, "held", _rate)
    notes += [
        f"{run.subject.label}: at the rate that failed this host sent I/Os late itself, while the drive"
        " served them within the rules: the drive may take more than was found."
        for run, each in found
        if each.get("host_limited")
    ]
    return Findings(figures, [_rates(found)], notes, [*histories, *intervals])


def _rates(searches: Sequence[Search]) -> Table:
    rows = [
        [
            run.subject.label,
            result(found, _rate),
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
