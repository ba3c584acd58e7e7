"""What a curve is held to: expected and measured values, what they differ by, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from benchmarks.section import Table

_COLUMNS = ["curve", "point", "expected", "measured", "deviation", "allowed", "reached"]


@dataclass(frozen=True)
class Check:
    """One point of a curve against its answer, as texts for people and as numbers for programs."""

    what: str
    expected: str
    measured: str
    deviation: str
    allowed: str
    reached: bool
    numbers: dict[str, float]
    allowed_used: float | None = None
    """The deviation over what is allowed: at most 1 if it was reached, None where there are bounds only."""


def near(what: str, measured: float, expected: float, allowed: float, show: Callable[[float], str]) -> Check:
    """A value that may be off by a share of what is expected."""
    deviation = measured / expected - 1
    return Check(
        what,
        show(expected),
        show(measured),
        f"{100 * deviation:+.2f} %",
        f"±{100 * allowed:.3g} %",
        # Written so that a value that is no number is out of bounds.
        reached=bool(abs(deviation) <= allowed),
        numbers={"expected": expected, "measured": measured, "allowed_share": allowed},
        allowed_used=abs(deviation) / allowed if allowed else float(deviation != 0),
    )


def between(what: str, measured: float, low: float, high: float, show: Callable[[float], str]) -> Check:
    """A value that must lie within bounds, of which infinity is none."""
    bounds = f"{show(low)} to {show(high)}"
    if high == float("inf"):
        bounds = f"at least {show(low)}"
    if low == float("-inf"):
        bounds = f"at most {show(high)}"
    return Check(
        what,
        bounds,
        show(measured),
        "-",
        bounds,
        reached=bool(low <= measured <= high),
        numbers={"measured": measured, "low": low, "high": high},
    )


@dataclass
class Curve:
    """One phenomenon: what it was held to, and the plot that shows it."""

    key: str
    title: str
    checks: list[Check]
    figure: Figure
    series: dict[str, Any] = field(default_factory=dict)
    """What is drawn, for programs."""

    @property
    def outside(self) -> list[Check]:
        """The points that lie where they may not."""
        return [check for check in self.checks if not check.reached]


def table(curves: list[Curve]) -> Table:
    """Every point of every curve, for the page."""
    rows = [
        [
            curve.title,
            check.what,
            check.expected,
            check.measured,
            check.deviation,
            check.allowed,
            "yes" if check.reached else "**no**",
        ]
        for curve in curves
        for check in curve.checks
    ]
    return Table("", _COLUMNS, rows)


def summary(curves: list[Curve]) -> Table:
    """How each curve fared as a whole, for the page."""
    rows = []
    for curve in curves:
        used = [check.allowed_used for check in curve.checks if check.allowed_used is not None]
        inside = len(curve.checks) - len(curve.outside)
        rows.append(
            [
                curve.title,
                f"{len(curve.checks)}",
                f"{inside}" if not curve.outside else f"**{inside}**",
                f"{100 * max(used):.0f} %" if used else "-",
            ]
        )
    return Table(
        "", ["curve", "points", "within what is allowed", "largest deviation, of what is allowed"], rows
    )
