"""How much better or worse each drive is than the first, and how sure that is: the bootstrap's figures as a
table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testdrive.compare import baseline_ratio, peak_ratio, percentile_ratios, stall_ratio, wasserstein
from testdrive.compare.bootstrap import Ratio, as_dict, draw
from testdrive.compare.series import Series, window_series
from testdrive.compare.stall_ratio import Stalls, stalled_ns
from testdrive.compare.wasserstein import Distance
from testdrive.report import html, units, words
from testdrive.report.decision import STALLS_NS
from testdrive.report.fidelity import name_cell
from testdrive.report.html import Markup, Node
from testdrive.report.subject import Subject
from testdrive.report.tables import write_csv

#: The metrics in the order of the table, with what stands above each.
_TITLES = {
    baseline_ratio.METRIC: "Baseline",
    peak_ratio.METRIC: "Peak",
    "mean": "Mean",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
    "p99_9": "p99.9",
    "p99_99": "p99.99",
    **{
        stall_ratio.metric_name(threshold): f"Stalled > {threshold // 1_000_000} ms"
        for threshold in STALLS_NS
    },
}
_MARKS = {"better": ("✓ better", "good"), "worse": ("✗ worse", "bad")}


@dataclass(frozen=True)
class Compared:
    """One recording against the reference: a ratio for each metric in the table's order, and the distance."""

    subject: Subject
    ratios: list[Ratio]
    distance: Distance


@dataclass(frozen=True)
class Ratios:
    """Each other recording against the reference, which is the first drive."""

    reference: Subject | None
    others: list[Compared]

    @classmethod
    def of(cls, subjects: Sequence[Subject]) -> Ratios:
        """Compare all the others, the original among them, to the first drive."""
        reference = next((one for one in subjects if one.role == "drive"), None)
        if reference is None or len(subjects) < 2:
            return cls(reference, [])
        base = _Run.of(reference)
        return cls(reference, [_compared(base, _Run.of(one)) for one in subjects if one is not reference])


@dataclass(frozen=True)
class _Run:
    subject: Subject
    series: Series | None
    stalls: Stalls

    @classmethod
    def of(cls, subject: Subject) -> _Run:
        series = window_series(subject.recording)
        stalls = stalled_ns(subject.recording, series, STALLS_NS) if series is not None else {}
        return cls(subject, series, stalls)


def _compared(base: _Run, other: _Run) -> Compared:
    if base.series is None or other.series is None:
        none = [Ratio.without_interval(metric, None, "not_recorded") for metric in _TITLES]
        return Compared(other.subject, none, Distance(None, None, "not_recorded"))
    draws = draw(base.series, other.series)
    summaries = (base.subject.summary, other.subject.summary)
    ratios = [
        baseline_ratio.baseline_ratio(draws, *summaries),
        peak_ratio.peak_ratio(*summaries),
        *percentile_ratios.percentile_ratios(draws),
        *(stall_ratio.stall_ratio(draws, x, summaries, (base.stalls, other.stalls)) for x in STALLS_NS),
    ]
    return Compared(other.subject, ratios, wasserstein.distance(draws))


def ratios_section(ratios: Ratios) -> Markup | None:
    """Return the table of ratios with their intervals and verdicts, or None with nothing to compare."""
    if ratios.reference is None or not ratios.others:
        return None
    return html.section(
        "ratios",
        "How much better or worse, and how sure",
        html.tag(
            "p",
            f"Service time of each as a multiple of {ratios.reference.label}'s: below 1 is faster. Below "
            "each ratio is its 95 % interval, from a moving-block "
            "bootstrap within the run (blocks of time longer than the latency's correlation). Better or "
            "worse is said only where the interval excludes 1 and "
            "the ratio lies outside of what the first drive gives against itself. It covers chance within "
            "these runs; what a further run would give is shown only by one.",
        ),
        html.table(
            ["Against " + ratios.reference.name, *_TITLES.values(), "Distance"],
            [
                [name_cell(one.subject), *(_cell(ratio) for ratio in one.ratios), _apart(one.distance)]
                for one in ratios.others
            ],
            caption=f"Ratio to {ratios.reference.name} and 95 % interval",
        ),
        html.tag(
            "p",
            "The peak is a single I/O, so that it has no interval. Distance: the Wasserstein-1 "
            "distance of ln latency, as the factor by which a drive would have to be slower or faster in "
            "every I/O to be as far away; below it what the first drive reaches against itself by chance.",
            class_="note",
        ),
        link="Ratios",
    )


def write_ratios(ratios: Ratios, directory: Path) -> list[Path]:
    """Write `ratios.csv` and `distances.csv`."""
    head = ["name", "reference", "metric", "ratio", "low", "high", "noise_low", "noise_high", "verdict"]
    reference = ratios.reference.name if ratios.reference else ""
    return [
        write_csv(
            directory / "ratios.csv",
            head,
            (
                [one.subject.name, reference, *as_dict(ratio).values()]
                for one in ratios.others
                for ratio in one.ratios
            ),
        ),
        write_csv(
            directory / "distances.csv",
            ["name", "reference", wasserstein.METRIC, "noise", "verdict"],
            (
                [
                    one.subject.name,
                    reference,
                    one.distance.distance,
                    one.distance.noise,
                    one.distance.verdict,
                ]
                for one in ratios.others
            ),
        ),
    ]


def _cell(ratio: Ratio) -> Node:
    if ratio.ratio is None:
        return html.tag("small", words.code(ratio.verdict))
    verdict: Node = html.tag("small", words.code(ratio.verdict))
    if ratio.verdict in _MARKS:
        text, class_ = _MARKS[ratio.verdict]
        verdict = html.tag("small", html.tag("span", text, class_=f"mark {class_}"))
    interval = None
    if ratio.low is not None and ratio.high is not None:
        interval = html.tag("small", f"{units.number(ratio.low)} to {units.number(ratio.high)}")
    return html.join(f"{units.number(ratio.ratio)}{units.TIMES}", interval, verdict)


def _apart(distance: Distance) -> Node:
    if distance.factor is None:
        return html.tag("small", words.code(distance.verdict))
    noise = None
    if distance.noise is not None:
        noise = html.tag("small", f"by chance {units.number(math.exp(distance.noise))}{units.TIMES}")
    verdict = html.tag("small", words.code(distance.verdict))
    return html.join(f"{units.number(distance.factor)}{units.TIMES}", noise, verdict)
