"""The section of a statement's page on latency: against time and by operation, and what counts as a burst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testdrive.report import html, units, words
from testdrive.report.html import Markup
from testdrive.report.plots import choice
from testdrive.report.subject import Subject
from testdrive.statement.facts import latency_table
from testdrive.statement.frames import code_at, each, overlay, read_it
from testdrive.statement.operations import MANY, told
from testdrive.statement.view import Views


def latency_section(views: Views) -> Markup:
    """Return latency against time and by operation."""
    present = {name for view in views.views if view.latencies for name in view.latencies.rasters}
    code = code_at("baseline_code", "latency_weighted_code")
    subjects = [view.subject for view in views.views]
    against_time = each(
        views, "statement-latency", "Latency against time", lambda view: view.latencies, code, "density"
    )
    if not present:
        return html.section("latency", "How the drive took it", *against_time, link="Latency")
    apart = any(told(subject.summary) for subject in subjects)
    options = ["reads and writes", *(said for name, said in MANY.items() if apart and name in present)]
    axis = choice("opcodeaxis", "Vertical axis", ["nines", "0 to 100 %"])
    return html.section(
        "latency",
        "How the drive took it",
        read_it(
            "shade is the number of I/Os in a cell of time and service time; the lines are the mean and"
            " the slowest of the reads and writes of each step. I/Os that failed or were not seen to"
            " complete are left out."
        ),
        html.tag("div", choice("density", "Density of", options), class_="choices"),
        *against_time,
        *bursts_in_words(subjects),
        html.tag("div", axis, class_="choices"),
        overlay(
            views,
            "opcode-latency",
            "Latency by operation",
            lambda view: view.latencies,
            code,
            "opcodeaxis",
            read_it(
                "which share of an operation's I/Os took at most so long; each step up on the axis of"
                " nines is a tenth of what is left. Where a line is faint, too few I/Os lie beyond it for"
                " the percentile to hold."
            ),
        ),
        latency_table(subjects),
        link="Latency",
    )


def bursts_in_words(subjects: Sequence[Subject]) -> list[Markup]:
    """Return what counts as a burst, and which rise was too short to be one, for each recording."""
    several = len(subjects) > 1
    said = [(subject, _bursts(subject.summary)) for subject in subjects]
    return [
        html.tag("p", html.tag("strong", f"{subject.name}: ") if several else None, text)
        for subject, text in said
        if text
    ]


def _bursts(summary: Mapping[str, Any]) -> str | None:
    if summary.get("peak_latency_ns") is None:
        return None
    bursts, rise = summary.get("bursts") or [], summary.get("longest_rise_ns")
    said = (
        f"{words.plural(len(bursts), 'burst')} of raised latency" if bursts else "No burst of raised latency"
    )
    said += ". A burst is a rise to three times the calm level or more that fills at least 0.8 s"
    if rise is None:
        return f"{said}; nothing shorter rose as high."
    begin = units.moment(summary["longest_rise_time_ns"])
    high = units.time(summary.get("burst_above_ns"))
    return (
        f"{said}. The longest other rise, of a mean above {high} at its height, began at {begin} and lasted"
        f" {units.duration(rise)}: too short for a burst, and felt all the same by whoever waited for those"
        " I/Os."
    )
