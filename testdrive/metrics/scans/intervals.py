"""Unions of half-open intervals, on numpy arrays of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def union(start: NDArray[Any], end: NDArray[Any]) -> tuple[Ints, Ints]:
    """The disjoint intervals, in order, that cover the points of ``[start, end)``. Empty ones are dropped."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    kept = end > start
    start, end = start[kept], end[kept]
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    # A new interval begins where a start lies beyond everything that came before it.
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return start[first], reach[last]


def union_length(start: NDArray[Any], end: NDArray[Any]) -> int:
    """The number of points that ``[start, end)`` cover together."""
    starts, ends = union(start, end)
    return int((ends - starts).sum())


def covered_before(start: Ints, end: Ints, points: NDArray[Any]) -> Ints:
    """For each point, how much of the disjoint, ordered intervals lies before it."""
    if not len(start):
        return np.zeros(len(points), np.int64)
    whole = np.concatenate(([0], np.cumsum(end - start)))
    index = np.searchsorted(start, points, side="right")
    beyond = np.where(index > 0, end[np.maximum(index, 1) - 1] - np.asarray(points), 0)
    result: Ints = whole[index] - np.maximum(beyond, 0)
    return result
