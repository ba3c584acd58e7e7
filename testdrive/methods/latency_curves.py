"""Distributions of latency as they are drawn: counts in bins, and cumulated shares by I/O and by time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testdrive.metrics.scans import Distribution

#: The spectrum's bins for each decade of latency: each is 12 % wide, many of a histogram's buckets.
BINS_PER_DECADE = 20
#: Curves have a point for each latency that is 1/64 above the one before; all of them are exact.
_POINTS_PER_E = 64


def spectrum(latencies: Distribution) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """I/Os in bins of latency, 20 for each decade: lower edges in ns, and counts.

    The bins reach from the first to the last that holds an I/O, and one empty one beyond it. A histogram's
    bucket counts where its longest latency is.
    """
    place = np.floor(np.log10(np.maximum(latencies.value, 1)) * BINS_PER_DECADE).astype(np.int64)
    counts = np.bincount(place - place.min(), weights=latencies.count).astype(np.int64)
    edges = 10 ** ((place.min() + np.arange(len(counts) + 1)) / BINS_PER_DECADE)
    return edges, np.append(counts, 0)


def cumulated(latencies: Distribution, *, weighted: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of I/Os, or of their time, at or below a latency.

    Parameters
    ----------
    latencies : Distribution
        Of at least one I/O.
    weighted : bool
        False gives F_IO(x) = #{L <= x} / n, True F_L(x) = sum{L : L <= x} / sum L.

    Returns
    -------
    tuple of numpy.ndarray
        Latencies in ns, ascending, of at least 1 ns; and the shares at them in percent, exact, the last 100.
        Of latencies within 1/64 of each other only the longest is given.
    """
    weight = latencies.total if weighted else latencies.count
    share = np.cumsum(weight) / max(int(weight.sum()), 1) * 100
    steps = np.floor(np.log(np.maximum(latencies.value, 1)) * _POINTS_PER_E)
    last = np.append(steps[1:] != steps[:-1], True)
    return np.maximum(latencies.value[last], 1).astype(np.float64), share[last]
