"""Axes of rasters: equal cells between two bounds, linear or logarithmic, as Ibis expressions and as numpy
edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Axis:
    """`cells` equal cells from `low` to `high` (in the column's own unit); a logarithmic axis needs `low` >
    0.

    Values outside the bounds fall in the first or the last cell, so that no I/O is ever lost from a count.
    """

    low: float
    high: float
    cells: int
    logarithmic: bool = False

    def __post_init__(self) -> None:
        assert self.cells > 0, self
        assert self.high > self.low, self
        assert self.low > 0 or not self.logarithmic, self

    def edges(self) -> NDArray[np.float64]:
        """Return the `cells + 1` edges, in the column's unit."""
        if self.logarithmic:
            return np.geomspace(self.low, self.high, self.cells + 1)
        return np.linspace(self.low, self.high, self.cells + 1)

    def cell(self, column: Any) -> Any:
        """Return the Ibis expression of the cell's index, an int64 in [0, cells)."""
        if self.logarithmic:
            step = math.log(self.high / self.low) / self.cells
            # One-argument ln: the two-argument log is off by one near exact powers on some engines.
            position = (ibis.greatest(column, 1).cast("float64").ln() - math.log(self.low)) / step
        else:
            position = (column - self.low) / ((self.high - self.low) / self.cells)
        return position.floor().cast("int64").clip(0, self.cells - 1)

    def payload(self) -> dict[str, float | int | bool]:
        """Return the form that the page's script reads."""
        return {"low": self.low, "high": self.high, "cells": self.cells, "logarithmic": self.logarithmic}


def latency_axis(low_ns: int, high_ns: int, cells: int) -> Axis:
    """Return a logarithmic axis of latency that holds both bounds, out to whole steps of 1, 2 or 5."""
    low, high = round_down(max(low_ns, 1)), round_up(max(high_ns, 2))
    return Axis(low, high if high > low else low * 10, cells, logarithmic=True)


def round_up(value: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least `value` (> 0)."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 5) if step * power >= value * (1 - 1e-12)), 10 * power)


def round_down(value: float) -> float:
    """Return the greatest 1, 2 or 5 times a power of ten that is at most `value` (> 0)."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (5, 2, 1) if step * power <= value * (1 + 1e-12))
