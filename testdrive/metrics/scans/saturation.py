"""Whether a drive keeps up with the rate at which I/Os are offered to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testdrive.metrics.scans.cells import Cells

_BLOCKS = 10
#: How well the ranks of the blocks have to follow time (Spearman) for a rise to be a trend.
_TREND_MIN = 0.8
#: A rise below this is what a late start or a busy host does.
_LATENESS_RISE_NS_MIN = 10_000_000
#: Clocks that drift apart do so by less than this share of the time.
_LATENESS_RISE_SHARE_MIN = 0.0002
#: The share of all I/Os by which the backlog has to grow.
_BACKLOG_RISE_SHARE_MIN = 0.02


def is_saturated(cells: Cells) -> bool:
    """Whether lateness grows, or the offered rate is not sustained.

    The time of the arrivals is cut into ten blocks. Lateness grows if its mean rises over the blocks (rank
    correlation with time of at least 0.8) and from the first to the last by more than 10 ms and 0.02 % of the
    time. The rate is not sustained if the I/Os that arrived and have not completed (the backlog) rise
    likewise, by more than 2 % of all I/Os.
    """
    arrived = cells.series("ios", "intended_cell")
    last = int(np.flatnonzero(arrived)[-1]) + 1 if arrived.any() else 0
    if last < _BLOCKS:
        return False
    edges = np.linspace(0, last, _BLOCKS + 1).astype(int)
    late = cells.series("lateness_ns_sum", "intended_cell")
    ios = np.add.reduceat(arrived[:last], edges[:-1])
    lateness = np.add.reduceat(late[:last], edges[:-1])[ios > 0] / ios[ios > 0]
    rise_ns = max(_LATENESS_RISE_NS_MIN, _LATENESS_RISE_SHARE_MIN * last * cells.width_ns)
    if _rises(lateness, rise_ns):
        return True
    if not (cells.groups["complete_cell"] >= cells.first).any():
        return False
    completed = cells.series("ios", "complete_cell")
    backlog = np.cumsum(arrived - completed)[:last]
    typical = np.array([np.median(block) for block in np.split(backlog, edges[1:-1])])
    return _rises(typical, _BACKLOG_RISE_SHARE_MIN * int(arrived.sum()))


def _rises(values: NDArray[np.float64], rise_min: float) -> bool:
    if len(values) < _BLOCKS // 2 or values[-1] - values[0] <= rise_min:
        return False
    # Blocks of equal values, such as none late at all, must not look like a rise: ties get the mean of their
    # ranks.
    ordered = np.sort(values)
    ranks = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")) / 2
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1]) >= _TREND_MIN
