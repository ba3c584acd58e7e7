"""Ranges that several drives share, at numbers that people read."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_STEPS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def round_above(value: float) -> float:
    """The smallest of 1, 2, 3, 4, 5, 6, 8, 10 times a power of ten that is not below ``value``; 1 of 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _STEPS if step * power >= value * (1 - 1e-12))


def headroom(value: float) -> float:
    """A twentieth more than ``value``, so that points at it do not lie on the figure's edge; 1 of 0."""
    return value * 1.05 if value > 0 else 1.0


def log_range(values: Iterable[NDArray[np.float64]]) -> tuple[float, float]:
    """Whole decades that hold every value above zero; one decade from 1 of nothing."""
    held = [array[np.isfinite(array) & (array > 0)] for array in values]
    held = [array for array in held if len(array)]
    if not held:
        return 1.0, 10.0
    low = 10.0 ** math.floor(math.log10(min(float(array.min()) for array in held)))
    high = 10.0 ** math.ceil(math.log10(max(float(array.max()) for array in held)))
    return low, max(high, low * 10)
