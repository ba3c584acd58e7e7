"""The level of latency over time: ln of the mean latency in windows of 100 ms, and the bursts in it.

They run to the last submission. The windows are the cells of :mod:`testdrive.metrics.scans.cells` (100 ms,
but of recordings that last for many hours), joined until they hold at least :data:`WINDOW_IOS_MIN` reads
and writes; every cell then has the level of the window that it belongs to. All arrays run over cells, so
that "the next second" is always the next ten entries, whatever the windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE
from testdrive.metrics.scans.cells import CELL_NS, SECOND_NS, Cells
from testdrive.metrics.scans.distribution import rank

WINDOW_IOS_MIN = 20
_BLOCK_S = 5
#: Cells in a second, but of long recordings.
_IN_A_SECOND = SECOND_NS // CELL_NS
_CALM_RATIO, _HIGH_RATIO = 1.5, 3.0
#: 1.4826 times the median absolute deviation is the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Burst:
    """A sustained elevation, in cells from the first; ``end`` is None if it lasts until the last."""

    onset: int
    end: int | None


@dataclass(frozen=True)
class Level:
    """The level over time and what is derived from it.

    ``log_latency`` is x_k for each cell (ln of ns), NaN where the drive was idle for a second or longer;
    ``low`` and ``high`` are the thresholds in the same unit; ``calm`` marks the cells at most at ``low``;
    ``ios`` and ``latency_ns_sum`` are of the reads and writes submitted in a cell.
    """

    first_cell: int
    log_latency: Floats
    low: float
    high: float
    ios: Ints
    latency_ns_sum: Ints
    bursts: tuple[Burst, ...]
    width_ns: int = CELL_NS

    @property
    def calm(self) -> NDArray[np.bool_]:
        """Which cells are at most at the low threshold."""
        result: NDArray[np.bool_] = self.log_latency <= self.low
        return result

    @property
    def calm_share(self) -> float:
        """The share of the cells in which the drive was not idle that are calm."""
        return float(self.calm.sum() / np.isfinite(self.log_latency).sum())

    def mean_ns(self, cells: NDArray[np.bool_] | slice) -> float | None:
        """The mean latency of the reads and writes submitted in some cells; None if there are none."""
        ios = int(self.ios[cells].sum())
        return int(self.latency_ns_sum[cells].sum()) / ios if ios else None

    def time_ns(self, cell: int) -> int:
        """When a cell begins."""
        return (self.first_cell + cell) * self.width_ns


def level(cells: Cells) -> Level | None:
    """The level of a recording over time, or None if no read or write completed without an error."""
    chosen = cells.chosen((READ, WRITE), ok=True)
    if not cells.groups["ios"][chosen].sum():
        return None
    # After the last submission nothing is left that could show whether the drive has recovered.
    n = int(cells.groups["submit_cell"].max()) - cells.first + 1
    ios: Ints = cells.series("ios", "submit_cell", chosen)[:n]
    total: Ints = cells.series("latency_ns_sum", "submit_cell", chosen)[:n]
    log_latency = np.log(np.maximum(joined_means(ios, total), 1.0))
    none_completes = cells.series("ios", "complete_cell", chosen)[:n] == 0
    earliest = cells.series("submit_ns_min", "complete_cell", chosen)
    age = oldest_age_ns(earliest, cells.first, cells.width_ns)[:n]
    # An I/O known to take longer than its age says as much about a stall: the greater of the two counts.
    stalled = np.maximum(log_latency, np.log(np.maximum(age, 1.0)))
    log_latency = np.where(none_completes, stalled, log_latency)
    log_latency[_idle((ios == 0) & none_completes & (age == 0), cells.in_a_second)] = np.nan
    low, high = thresholds(log_latency, cells.in_a_second)
    found = find_bursts(log_latency, low, high, cells.in_a_second)
    bursts = tuple(burst for burst in found if _holds_ios(cells, chosen, burst))
    return Level(cells.first, log_latency, low, high, ios, total, bursts, cells.width_ns)


def _idle(empty: NDArray[np.bool_], in_a_second: int) -> NDArray[np.bool_]:
    """The cells in runs of at least a second in which there was nothing for the drive to do.

    Shorter pauses belong to a sparse workload, whose windows span them.
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], empty, [False])).astype(np.int8)))
    starts, lengths = edges[::2], np.diff(edges)[::2]
    idle = np.zeros(len(empty), bool)
    for start, length in zip(starts, lengths, strict=True):
        idle[start : start + length] = length >= in_a_second
    return idle


def _holds_ios(cells: Cells, chosen: NDArray[np.bool_], burst: Burst) -> bool:
    """Whether a read or write was outstanding in a burst: without one, nobody felt it."""
    submit, complete = cells.groups["submit_cell"] - cells.first, cells.groups["complete_cell"] - cells.first
    before_end = burst.end is None or submit < burst.end
    return bool((chosen & (complete >= burst.onset) & before_end).any())


def joined_means(ios: Ints, total: Ints) -> Floats:
    """The mean latency of the window that each cell belongs to.

    Cells are joined from the left until they hold enough I/Os; what is left over at the end joins the last
    window.
    """
    ends, held = [], 0
    for cell, count in enumerate(ios.tolist()):
        held += count
        if held >= WINDOW_IOS_MIN:
            ends.append(cell + 1)
            held = 0
    starts = np.array([0, *ends[:-1]])
    lengths = np.diff([*starts, len(ios)])
    means = np.add.reduceat(total, starts) / np.maximum(np.add.reduceat(ios, starts), 1)
    return np.repeat(means, lengths)


def oldest_age_ns(submit_ns_min: Ints, first_cell: int, width_ns: int = CELL_NS) -> Floats:
    """The age of the oldest outstanding I/O at the end of each cell, 0 if none is.

    ``submit_ns_min`` is the earliest submission among the I/Os that completed in each cell. The earliest
    among all that complete later is outstanding if it was submitted by then, and then it is the oldest.
    """
    none = np.iinfo(np.int64).max
    later = np.minimum.accumulate(submit_ns_min[::-1])[::-1]
    oldest = np.append(later[1:], none)
    ends = (first_cell + 1 + np.arange(len(oldest), dtype=np.int64)) * width_ns
    return np.where(oldest < ends, ends - np.minimum(oldest, ends), 0).astype(np.float64)


def thresholds(log_latency: Floats, in_a_second: int = _IN_A_SECOND) -> tuple[float, float]:
    """``low`` and ``high``, from the calm level and its spread.

    The calm level (Ref) is the 20th percentile of the medians of consecutive blocks of 5 s. A part of a block
    at the end counts if it is at least half of one, or if there is no other.
    """
    medians = np.sort(_block_medians(log_latency, _BLOCK_S * in_a_second))
    reference = float(medians[rank(200_000, len(medians)) - 1])
    near = log_latency[np.abs(log_latency - reference) <= np.log(_CALM_RATIO)]
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(near - np.median(near)))) if len(near) else 0.0
    low = reference + max(float(np.log(_CALM_RATIO)), 3 * spread)
    high = reference + max(float(np.log(_HIGH_RATIO)), 6 * spread)
    return low, high


def _block_medians(log_latency: Floats, width: int) -> Floats:
    whole = len(log_latency) // width * width
    blocks = log_latency[:whole].reshape(-1, width)
    full = np.isfinite(blocks).all(axis=1)
    rest = [*blocks[~full]]
    if len(log_latency) - whole >= width / 2 or not whole:
        rest.append(log_latency[whole:])
    busy = [block[np.isfinite(block)] for block in rest]
    medians = [float(np.median(block)) for block in busy if len(block)]
    result: Floats = np.concatenate((np.median(blocks[full], axis=1), medians))
    # If idle time leaves nothing of the blocks, what was cut off is all there is.
    return result if len(result) else np.array([np.median(log_latency[np.isfinite(log_latency)])])


def find_bursts(log_latency: Floats, low: float, high: float, in_a_second: int = _IN_A_SECOND) -> list[Burst]:
    """The bursts, in order.

    Onset: a cell above ``high`` with at least 80 % of the second that it begins above ``low``. End: the first
    cell after it from which at least 90 % of the second is at most at ``low``. Both need a whole second: what
    begins or ends within the last second of a recording cannot be told from a spike or a pause.
    """
    if len(log_latency) < in_a_second:
        return []
    elevated = np.convolve(log_latency > low, np.ones(in_a_second, np.int64), "valid")
    onsets = np.flatnonzero((log_latency[: len(elevated)] > high) & (10 * elevated >= 8 * in_a_second))
    calm = np.flatnonzero(10 * (in_a_second - elevated) >= 9 * in_a_second)
    bursts: list[Burst] = []
    place = 0
    while (index := int(np.searchsorted(onsets, place))) < len(onsets):
        onset = int(onsets[index])
        after = int(np.searchsorted(calm, onset, side="right"))
        if after == len(calm):
            bursts.append(Burst(onset, None))
            break
        place = int(calm[after])
        bursts.append(Burst(onset, place))
    return bursts
