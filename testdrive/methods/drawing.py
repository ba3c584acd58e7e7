"""What a method draws and tabulates, apart from how: the page's script and the PNG writer read the same.

A figure is one panel or several with a common horizontal axis. Series have points in the units that the axis'
title names; nothing is drawn where a value is not finite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testdrive.report.palette import Ink

Style = Literal["points", "line", "steps", "bars"]


@dataclass(frozen=True)
class Axis:
    """An axis: its title with the unit, its scale and its range in that unit; None leaves an end open."""

    title: str
    scale: Literal["linear", "log"] = "linear"
    low: float | None = None
    high: float | None = None
    #: Names in the place of numbers, for bars.
    labels: tuple[str, ...] = ()
    #: An SI prefix with this symbol, for example ``s``; without it numbers stand as they are.
    si_unit: str = ""

    def payload(self) -> dict[str, Any]:
        """The form that the page's script reads."""
        return {
            "title": self.title,
            "scale": self.scale,
            "low": self.low,
            "high": self.high,
            "labels": list(self.labels),
            "si_unit": self.si_unit,
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

    def payload(self) -> dict[str, Any]:
        """The form that the page's script reads."""
        finite = np.isfinite(self.y)
        return {
            "name": self.name,
            "ink": self.ink.payload(),
            "x": self.x[finite].astype(np.float64),
            "y": self.y[finite].astype(np.float64),
            "style": self.style,
            "panel": self.panel,
        }


@dataclass(frozen=True)
class Figure:
    """A figure with everything that a reader needs to read it without the text around it."""

    key: str
    title: str
    caption: str
    x: Axis
    y: tuple[Axis, ...]
    series: list[Series] = field(default_factory=list)

    def payload(self) -> dict[str, Any]:
        """The form that the page's script reads."""
        return {
            "key": self.key,
            "x": self.x.payload(),
            "y": [axis.payload() for axis in self.y],
            "series": [one.payload() for one in self.series],
        }


@dataclass(frozen=True)
class Table:
    """A table: the first cell of a row names it. Cells are text with units; an absent value says why."""

    key: str
    title: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Findings:
    """What a method makes of its runs."""

    figures: list[Figure]
    tables: list[Table]
    #: What a reader must know to judge them: one sentence each.
    notes: list[str] = field(default_factory=list)
