"""Headroom: every trial by its speed against the user's rules, and what of the workload breaks first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testdrive.headroom.intervals import called
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.rule_figures import high_of, judged_rules, scale_of, worst
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
)
from testdrive.qos.rules import parse_rules
from testdrive.report import palette, units, words

_OUTCOMES = ("cannot keep up", "over a rule", "holds", "confirmed")
#: How many intervals a table has at most: those that come nearest to a limit.
_LISTED_MAX = 40
#: By what of its length the last interval may be shorter before it is said.
_SHORTER_SHARE = 0.01
_NS = {"s": 1e9, "min": 60e9, "h": 3_600e9}


def look(runs: Sequence[Run]) -> Findings:
    """Speeds as bars, trials by speed, the worst values against each rule, and the intervals."""
    found = searches_of(runs)
    if not found:
        return Findings([], [], [SINGLE_TRIALS])
    axis = load_axis(found, "speed (times as recorded)")
    caption = (
        "The highest speed of the workload at which each drive held every rule in every interval, in a run"
        " that confirmed it. 1 is the workload as it was recorded."
    )
    figures = [
        *bars(found, "headroom-speeds", "Speeds", caption, "confirmed speed", "times as recorded"),
        _intervals(found),
        outcomes(found, axis, "headroom-trials", "Trials by speed", _OUTCOMES),
        worst(found, axis, "worst", "headroom-response", "Response time by speed"),
        worst(found, axis, "worst_service", "headroom-service", "Service time by speed"),
    ]
    holds = "every rule holds in every interval"
    details = [history(each, "headroom-history", "speed", _times, _OUTCOMES, holds) for each in found]
    details += [table for each in found for table in _nearest(each)]
    notes = [
        *border_notes(found, "held", _times),
        *dict.fromkeys(note for each in found for note in _notes(each)),
    ]
    return Findings(figures, [_speeds(found)], notes, details)


def _notes(search: Search) -> list[str]:
    run, found = search
    label = run.subject.label
    notes = []
    # Of a search that was stopped nothing is known of other speeds.
    if found["host_limited"] and found.get("unfinished") is None:
        where = "at every speed" if found["value"] is None else f"above {_times(found['value'])}"
        notes.append(
            f"{label}: {where} this host sent I/Os late itself, while the drive served"
            " them within the rules: the drive may take more than was found."
        )
    if found.get("confirming_repeats") and found["value"] is not None:
        notes.append(
            f"{label}: the confirming run is its trial again, and confirms nothing: on a modelled drive"
            " nothing differs in it unless the drive is prepared by random writes (prepare=full or random)."
        )
    left_out = found["history"][-1]["figures"]["left_out"]
    if left_out:
        told = ", ".join(f"{ios:,} {name}s" for name, ios in left_out.items())
        notes.append(f"{label}: without {told} of the workload, which the drive's path does not take.")
    longest_ns, interval_ns = found["interval_longest_ns"], found["interval_ns"]
    # What is left at the end and joined with the last is no reason to doubt.
    if longest_ns >= 2 * interval_ns:
        notes.append(
            "Intervals with too few I/Os for the rules were joined with those that follow: the longest is"
            f" {units.duration(longest_ns)} of the recording, instead of {units.duration(interval_ns)}."
        )
    return notes


def _deciding(found: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """The trial of the speed that was found and the one of the failing speed, as far as there are such."""
    confirmed = (each for each in found["history"] if each["confirming"] and each["passes"])
    told = [(each, "holds") for each in confirmed if each["value"] == found["value"]]
    failing = found["failing_speed"]
    failed = (trial for trial in found["history"] if not trial["passes"] and trial["value"] == failing)
    trial = next(failed, None)
    return [*told, (trial, "fails")] if trial is not None else told


def _intervals(searches: Sequence[Search]) -> Figure:
    """Each interval of the workload at the speed that holds and at the one that fails, a panel for a rule."""
    unit = _time_unit(searches)
    series: list[Series] = []
    panels: list[Axis] = []
    headings: list[str] = []
    ends = np.array([min(found["from_ns"] for _, found in searches), max(_end_ns(each) for each in searches)])
    x = Axis(
        f"time of the recording ({unit})", low=float(ends[0] / _NS[unit]), high=float(ends[1] / _NS[unit])
    )
    for panel, ((text, opcode), rule) in enumerate(judged_rules(searches).items()):
        scaled, unit_title = scale_of(rule)
        title = unit_title if rule["unit"] == "share" else f"response {unit_title}"
        limit = rule["limit"] * scaled
        highest = limit
        for run, found in searches:
            for trial, outcome in _deciding(found):
                mine = _rule(trial, text, opcode)
                if mine is None:
                    continue
                y = np.array([np.nan if value is None else value * scaled for value in mine["values"]])
                if outcome == "fails":
                    (asked,) = parse_rules(text)
                    y[[value is not None and asked.holds(value) for value in mine["values"]]] = np.nan
                if not np.isfinite(y).any():
                    continue
                highest = max(highest, float(np.nanmax(y)))
                series.append(
                    Series(
                        f"{run.subject.label}, {_times(trial['value'])} {outcome}",
                        run.subject.ink,
                        _middles(trial) / _NS[unit],
                        y,
                        "line" if outcome == "holds" else "points",
                        panel=panel,
                    )
                )
        series.append(
            Series("limit", palette.ORIGINAL, ends / _NS[unit], np.full(2, limit), "rule", panel=panel)
        )
        wide = rule["unit"] != "share" and highest > 20 * limit
        low, high = (None, None) if wide else (0.0, high_of(rule, highest))
        panels.append(Axis(title, "log" if wide else "linear", low=low, high=high))
        headings.append(f"{text}, {opcode}s")
    rates = _recorded(searches, unit, len(panels))
    highest = max((float(one.y.max(initial=0.0)) for one in rates), default=0.0)
    panels.append(Axis("rate as recorded (IOPS)", low=0.0, high=round_above(highest * 1.1)))
    headings.append("the workload itself")
    caption = (
        "Lines: every interval, by the recording's own clock, at the speed that holds. Points: the intervals"
        " that are over the limit at the lowest speed that fails above it, the part of the workload that"
        " breaks first; a trial that fell behind has those until it was given up. Below is the rate of the"
        " workload in the same intervals."
    )
    return Figure(
        "headroom-intervals",
        "Which part of the workload breaks first",
        caption,
        x,
        tuple(panels),
        [*series, *rates],
        headings=tuple(headings),
    )


def _rule(trial: dict[str, Any], text: str, opcode: str) -> dict[str, Any] | None:
    """A rule of a trial; None where it ended before an interval was whole."""
    rules = trial["figures"]["rules"] or []
    return next((rule for rule in rules if (rule["rule"], rule["opcode"]) == (text, opcode)), None)


def _middles(trial: dict[str, Any]) -> Any:
    intervals = trial["figures"]["intervals"]
    return (np.array(intervals["start_ns"], np.float64) + np.array(intervals["end_ns"])) / 2


def _recorded(searches: Sequence[Search], unit: str, panel: int) -> list[Series]:
    """The rate of the workload in each interval, of the trial that got furthest."""
    trials = [trial for _, found in searches for trial in found["history"] if trial["figures"]["intervals"]]
    whole = max(trials, key=lambda trial: len(trial["figures"]["intervals"]["ios"]), default=None)
    if whole is None or not whole["figures"]["intervals"]["ios"]:
        return []
    intervals = {key: np.array(value, np.float64) for key, value in whole["figures"]["intervals"].items()}
    rate = intervals["ios"] * 1e9 / (intervals["end_ns"] - intervals["start_ns"])
    return [Series("as recorded", palette.ORIGINAL, _middles(whole) / _NS[unit], rate, panel=panel)]


def _end_ns(search: Search) -> int:
    return int(search[1]["to_ns"])


def _time_unit(searches: Sequence[Search]) -> str:
    longest_ns = max(_end_ns(each) for each in searches)
    return "s" if longest_ns <= 10 * 60e9 else "min" if longest_ns <= 5 * 3_600e9 else "h"


def _speeds(searches: Sequence[Search]) -> Table:
    rows = []
    for run, found in searches:
        speed, first = found["value"], found["breaks_first"]
        absent = result(found, _times)
        breaks = "none failed"
        if found["failing_speed"] is not None:
            breaks = "not told"
        if found["host_limited"]:
            breaks = "the host, not the drive"
        elif first is not None:
            breaks = f"{called(first['start_ns'], first['end_ns'])}: {first['what']}"
        rows.append(
            [
                run.subject.label,
                absent if speed is None else _times(speed),
                absent if speed is None else f"{found['recorded_mean_iops'] * speed:,.0f}",
                absent if speed is None else f"{found['recorded_peak_iops'] * speed:,.0f}",
                "none" if found["failing_speed"] is None else _times(found["failing_speed"]),
                breaks,
                f"{found['rules']}, of {words.listed([f'{opcode}s' for opcode in found['opcodes']])}",
                _lengths(found),
                f"{len(found['history'])}",
            ]
        )
    head = ["drive", "takes", "IOPS, mean", "IOPS, busiest second", "fails at", "breaks first", "rules"]
    return Table("headroom-speeds", "What each drive takes", [*head, "intervals", "trials"], rows)


def _lengths(found: dict[str, Any]) -> str:
    """How many intervals there are and how long: such as ``5 of 60 s, the last of 30 s``."""
    length_ns, longest_ns = found["interval_ns"], found["interval_longest_ns"]
    # A search of before did not say how long the last is.
    last_ns = found.get("interval_last_ns", length_ns)
    told = f"{found['intervals']:,} of {units.duration(length_ns)}"
    if found["intervals"] == 1:
        return f"1 of {units.duration(longest_ns)}"
    if longest_ns > length_ns:
        told += f" to {units.duration(longest_ns)}"
    # It ends with the last I/O, which is hardly ever at the end of the second.
    is_shorter = last_ns < length_ns * (1 - _SHORTER_SHARE)
    return f"{told}, the last of {units.duration(last_ns)}" if is_shorter else told


def _nearest(search: Search) -> list[Table]:
    """The intervals that come nearest to a limit, of the trials that decided."""
    run, found = search
    tables = []
    for trial, outcome in _deciding(found):
        rules, intervals = trial["figures"]["rules"], trial["figures"]["intervals"]
        if not rules:
            continue
        shares = np.array([[(value or 0.0) / rule["limit"] for value in rule["values"]] for rule in rules])
        order = np.argsort(-shares.max(axis=0), kind="stable")[:_LISTED_MAX]
        rows = []
        for at in sorted(order):
            row = [called(intervals["start_ns"][at], intervals["end_ns"][at]), f"{intervals['ios'][at]:,}"]
            for rule in rules:
                row += [_value(rule, rule["values"][at]), _value(rule, rule["service_values"][at])]
            rows.append(row)
        head = ["interval", "I/Os"]
        for rule in rules:
            head += [f"{rule['rule']}, {rule['opcode']}s", "by service time"]
        number = len(shares[0])
        which = "Intervals" if number <= _LISTED_MAX else f"The {_LISTED_MAX} intervals nearest to a limit"
        title = f"{which} at {_times(trial['value'])}, which {outcome}, on {run.subject.label}"
        tables.append(Table(f"headroom-intervals-{outcome}-{run.subject.key}", title, head, rows))
    return tables


def _value(rule: dict[str, Any], value: float | None) -> str:
    if value is None:
        return "not claimed"
    return units.percent(value) if rule["unit"] == "share" else units.time(value)


def _times(value: float) -> str:
    return f"{value:.3g}x"


METHOD = Method(
    "headroom",
    "Headroom",
    "The headroom of a drive is the highest speed of the recorded workload at which every rule holds in"
    " every interval: at 2 all of its I/Os come twice as fast, and its rests are half as long. It is"
    " searched between a speed that holds and one that fails, and confirmed by a run of its own. Intervals"
    " are parts of the recording's own time, with the same I/Os at every speed. Judged is the response"
    " time: from when an I/O was due, whether or not it could be handed over then. Service time, which"
    " stands beside it, leaves out what I/Os waited for the drive.",
    look,
    settles=("speed",),
)
