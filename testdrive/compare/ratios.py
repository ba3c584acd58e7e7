"""How much better or worse each drive is than the first, and how sure that is: the bootstrap's figures as a
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testdrive.compare.bootstrap import METRICS, Ratio, as_dict, compare, window_series
from testdrive.report import html, units, words
from testdrive.report.fidelity import name_cell
from testdrive.report.html import Markup, Node
from testdrive.report.subject import Subject
from testdrive.report.tables import write_csv

_TITLES = {"mean": "Mean", "p50": "p50", "p90": "p90", "p99": "p99", "p99_9": "p99.9", "p99_99": "p99.99"}
_MARKS = {"better": ("✓ better", "good"), "worse": ("✗ worse", "bad")}


@dataclass(frozen=True)
class Ratios:
    """Ratios of each other recording to the reference, which is the first drive."""

    reference: Subject | None
    others: list[tuple[Subject, list[Ratio]]]

    @classmethod
    def of(cls, subjects: Sequence[Subject]) -> Ratios:
        """Compute the ratios of all the others, the original among them, to the first drive."""
        reference = next((one for one in subjects if one.role == "drive"), None)
        if reference is None or len(subjects) < 2:
            return cls(reference, [])
        base = window_series(reference.recording)
        others = [one for one in subjects if one is not reference]
        return cls(reference, [(one, compare(base, window_series(one.recording))) for one in others])


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
            ["Against " + ratios.reference.name, *(_TITLES[metric] for metric in METRICS)],
            [[name_cell(one), *(_cell(ratio) for ratio in found)] for one, found in ratios.others],
            caption=f"Ratio to {ratios.reference.name} and 95 % interval",
        ),
    )


def write_ratios(ratios: Ratios, directory: Path) -> Path:
    """Write `ratios.csv`."""
    head = ["name", "reference", "metric", "ratio", "low", "high", "noise_low", "noise_high", "verdict"]
    reference = ratios.reference.name if ratios.reference else ""
    return write_csv(
        directory / "ratios.csv",
        head,
        ([one.name, reference, *as_dict(ratio).values()] for one, found in ratios.others for ratio in found),
    )


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
