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


def first_covered(start: NDArray[Any], end: NDArray[Any], when: NDArray[Any]) -> tuple[Ints, Ints]:
    """The stretches into which the borders of ``[start, end)`` cut what they cover, and when each was first.

    Returns
    -------
    lengths, first : ndarray of int64
        The length of each stretch that is covered, and the least ``when`` of the intervals that cover it.
    """
    kept = np.asarray(end) > np.asarray(start)
    start, end, when = (np.asarray(values, np.int64)[kept] for values in (start, end, when))
    if not len(start):
        return start, when
    # In order, since looking up what is sorted is many times faster; and np.unique would hash.
    order = np.argsort(start)
    start, end, when = start[order], end[order], when[order]
    borders = np.sort(np.concatenate((start, end)))
    borders = borders[np.diff(borders, prepend=borders[0] - 1) > 0]
    left, right = np.searchsorted(borders, start), np.searchsorted(borders, end)
    never = np.iinfo(np.int64).max
    # An interval of w stretches is the union of two overlapping runs of 2^k, with 2^k the greatest power up
    # to w. Minima are put on runs, the longest first, and handed down from each run to its two halves.
    power = np.frexp((right - left).astype(np.float64))[1] - 1
    first = np.full(len(borders) - 1, never)
    for k in range(int(power.max()), -1, -1):
        mine = power == k
        np.minimum.at(first, left[mine], when[mine])
        np.minimum.at(first, right[mine] - (1 << k), when[mine])
        if k:
            half = 1 << (k - 1)
            first[half:] = np.minimum(first[half:], first[:-half].copy())
    covered = first < never
    return np.diff(borders)[covered], first[covered]
