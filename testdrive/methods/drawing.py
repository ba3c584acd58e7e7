"""What a method draws and tabulates, apart from how: the page's script and the PNG writer read the same.

A figure is one panel or several with a common horizontal axis. A panel may have a second vertical axis at its
right, for a quantity of another unit. Series have points in the units that their axis' title names; nothing
is drawn where a value is not finite.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testdrive.report.palette import Ink

#: A ``line`` of few points marks each of them; a ``rule``, which bounds or marks something, does not.
Style = Literal["points", "line", "steps", "rule", "bars"]
#: Which of a panel's vertical axes.
Side = Literal["left", "right"]
Scale = Literal["linear", "log", "nines"]

#: What an axis of nines is marked at, in percent.
NINES_PERCENT = (0.0, 90.0, *(100 - 10.0**-power for power in range(10)))


def nines(percent: ArrayLike) -> NDArray[np.float64]:
    """Where a share in percent stands on an axis of nines: 0 at 0, 1 at 90 %, 2 at 99 %, 3 at 99.9 %.

    It is the logarithm of what is missing to the whole, so 100 % is at infinity: a curve that ends there says
    itself how far short of it its last point is drawn.
    """
    with np.errstate(divide="ignore"):
        place: NDArray[np.float64] = -np.log10(np.maximum(1 - np.asarray(percent, np.float64) / 100, 0.0))
    return place + 0.0


@dataclass(frozen=True)
class Axis:
    """An axis: its title with the unit, its scale and its range in that unit; None leaves an end open.

    The scale ``nines`` is for shares in percent, of which the last few per mille matter most.
    """

    title: str
    scale: Scale = "linear"
    low: float | None = None
    high: float | None = None
    #: Names in the place of numbers, for bars.
    labels: tuple[str, ...] = ()
    #: An SI prefix with this symbol, for example ``s``; without it numbers stand as they are.
    si_unit: str = ""
    #: The colour of its title and numbers, where a panel has two vertical axes: that of the series which use
    #: it.
    ink: Ink | None = None

    def places(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values of this axis are drawn, for drawers that know linear and logarithmic scales only."""
        return nines(values) if self.scale == "nines" else values

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The marks that the scale does not make by itself: where they are drawn, and their text."""
        if self.scale != "nines":
            return [(float(at), label) for at, label in enumerate(self.labels)]
        high = 100.0 if self.high is None else self.high
        return [(float(nines(share)), f"{share:.12g} %") for share in NINES_PERCENT if share <= high]

    @property
    def range(self) -> tuple[float | None, float | None]:
        """The range as it is drawn."""
        low, high = (
            None if end is None else float(self.places(np.array(end))) for end in (self.low, self.high)
        )
        return low, high

    def payload(self) -> dict[str, Any]:
        """The form that the page's script reads: places as they are drawn."""
        low, high = self.range
        return {
            "title": self.title,
            "scale": self.scale,
            "low": low,
            "high": high,
            "labels": list(self.labels),
            "ticks": [list(tick) for tick in self.ticks],
            "si_unit": self.si_unit,
            "ink": self.ink.payload() if self.ink else None,
        }


@dataclass(frozen=True)
class Series:
    """One line, cloud of points or group of bars. ``name`` already says where the drive is modelled."""

    name: str
    ink: Ink
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    style: Style = "line"
    #: Which of the figure's panels, from the top.
    panel: int = 0
    side: Side = "left"
    #: The first point of a line that rests on too few I/Os: from the one before it on, the line is faint.
    faint_from: int | None = None

    def drawn(self, x: Axis, y: Axis) -> Series:
        """The same in the places of the axes, without what has none."""
        places = x.places(self.x), y.places(self.y)
        finite = np.isfinite(places[0]) & np.isfinite(places[1])
        faint = None if self.faint_from is None else int(finite[: self.faint_from].sum())
        if faint is not None and faint >= finite.sum():
            faint = None
        return replace(self, x=places[0][finite], y=places[1][finite], faint_from=faint)

    def payload(self) -> dict[str, Any]:
        """The form that the page's script reads."""
        return {
            "name": self.name,
            "ink": self.ink.payload(),
            "x": self.x.astype(np.float64),
            "y": self.y.astype(np.float64),
            "style": self.style,
            "panel": self.panel,
            "faint_from": self.faint_from,
            "side": self.side,
        }


@dataclass(frozen=True)
class Part:
    """Figures that a page keeps together, two in a row, under one heading that folds them."""

    title: str
    #: Whether they are in sight at once.
    open: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure with everything that a reader needs to read it without the text around it.

    ``y`` has the left axis of each panel, from the top; ``right`` and ``headings`` are empty or have one
    entry for each panel too.
    """

    key: str
    title: str
    caption: str
    x: Axis
    y: tuple[Axis, ...]
    series: list[Series] = field(default_factory=list)
    part: Part | None = None
    #: The heading of the section that it stands in, after the method's own; without one it is in that.
    chapter: str = ""
    right: tuple[Axis, ...] = ()
    #: What stands above each panel, where the panels are of different drives.
    headings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("right", "headings"):
            assert len(getattr(self, name)) in (0, len(self.y)), f"{name}: none, or one for each panel"
        assert self.right or all(series.side == "left" for series in self.series), "no right axis"

    def axis_of(self, series: Series) -> Axis:
        """The vertical axis that a series belongs to."""
        return (self.right if series.side == "right" else self.y)[series.panel]

    @property
    def full_title(self) -> str:
        """Its title where it stands alone: with that of its part."""
        return f"{self.title}: {self.part.title}" if self.part else self.title

    def payload(self) -> dict[str, Any]:
        """The form that the page's script reads."""
        return {
            "key": self.key,
            "x": self.x.payload(),
            "y": [axis.payload() for axis in self.y],
            "right": [axis.payload() for axis in self.right],
            "headings": list(self.headings),
            "series": [one.drawn(self.x, self.axis_of(one)).payload() for one in self.series],
        }


@dataclass(frozen=True)
class Table:
    """A table: the first cell of a row names it. Cells are text with units; an absent value says why."""

    key: str
    title: str
    head: list[str]
    rows: list[list[str]]
    #: As for figures.
    chapter: str = ""


@dataclass(frozen=True)
class Findings:
    """What a method makes of its runs."""

    figures: list[Figure]
    tables: list[Table]
    #: What a reader must know to judge them: one sentence each.
    notes: list[str] = field(default_factory=list)
    #: Tables that stand below the figures: long ones, of which the figures are the overview.
    details: list[Table] = field(default_factory=list)
