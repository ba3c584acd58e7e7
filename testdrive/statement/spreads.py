"""Distributions of a workload that have no axis of time: sizes, intervals, I/Os in flight and hot regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE, opcode_name
from testdrive.metrics.scans import Scan
from testdrive.report.distribution import Curve
from testdrive.statement.latencies import curve_of

#: Points of the curve of hot regions.
_POINTS = 120


@dataclass(frozen=True)
class Sizes:
    """I/Os and bytes of each opcode by the power of two that their length does not exceed."""

    edges_bytes: list[int]
    ios: dict[str, list[int]]
    bytes: dict[str, list[int]]


def sizes(scan: Scan) -> Sizes | None:
    """Count lengths; None where the source had none, or no I/O has one."""
    shapes = scan.shapes
    sized = shapes["length_bytes"] > 0
    if "length_bytes" in scan.absent_columns or not sized.any():
        return None
    length, code, ios = (shapes[name][sized] for name in ("length_bytes", "code", "ios"))
    bits = np.array([(int(each) - 1).bit_length() for each in length])
    low, high = int(bits.min()), int(bits.max())
    counted: dict[str, dict[str, list[int]]] = {"ios": {}, "bytes": {}}
    for number in np.unique(code):
        mine = code == number
        for what, weights in (("ios", ios), ("bytes", ios * length)):
            series = np.zeros(high - low + 1, np.int64)
            np.add.at(series, bits[mine] - low, weights[mine])
            counted[what][opcode_name(int(number))] = series.tolist()
    return Sizes([1 << bit for bit in range(low, high + 1)], counted["ios"], counted["bytes"])


@dataclass(frozen=True)
class Arrivals:
    """The times between arrivals: their distribution, and the mean of all."""

    curve: Curve
    mean_ns: float


def arrivals(scan: Scan) -> Arrivals | None:
    """The times between neighbouring arrivals; None where the source had no times or fewer than two I/Os."""
    if not scan.timed or scan.extent.ios < 2:
        return None
    sample = scan.sample
    inside = sample.slice_index >= 0
    gaps, index = np.diff(sample.rows["intended_ns"][inside]), sample.slice_index[inside]
    gaps = gaps[index[1:] == index[:-1]]
    if not len(gaps):
        return None
    extent = scan.extent
    mean_ns = (extent.intended_last_ns - extent.intended_first_ns) / (extent.ios - 1)
    return Arrivals(curve_of(gaps), mean_ns)


@dataclass(frozen=True)
class InFlight:
    """The share of the time with so many I/Os in flight: 0, 1, 2, then up to each power of two."""

    up_to: list[int]
    time_share: list[float]

    @property
    def labels(self) -> list[str]:
        """The numbers of each bar: ``0``, ``1``, ``2``, then ``≤4`` for 3 and 4, ``≤8`` for 5 to 8."""
        return [f"{edge}" if edge <= 2 else f"≤{edge:,}" for edge in self.up_to]


def in_flight(scan: Scan) -> InFlight | None:
    """How long how many I/Os were in flight; None where that was not recorded."""
    if not scan.timed or "latency_ns" in scan.absent_columns or not scan.extent.ios:
        return None
    depth, lasts = scan.depths.depth, scan.depths.lasts_ns
    whole = int(lasts.sum())
    if not whole or not int(depth.max(initial=0)):
        return None
    edges = [0, *(1 << bit for bit in range(int(depth.max() - 1).bit_length() + 1))]
    reached = [int(lasts[depth <= edge].sum()) for edge in edges]
    shares = np.diff(reached, prepend=0) / whole
    return InFlight(edges, shares.tolist())


@dataclass(frozen=True)
class Hot:
    """Which share of the I/Os starts in the hottest part of the regions in use, for ever greater parts."""

    part: NDArray[np.float64]
    share: NDArray[np.float64]


def hot(scan: Scan) -> dict[str, Hot]:
    """The curves of reads, of writes and of both; empty where there are none or places were not recorded."""
    if scan.absent_columns & {"offset_bytes", "length_bytes"}:
        return {}
    found = {}
    for name, codes in (("reads and writes", (READ, WRITE)), ("reads", (READ,)), ("writes", (WRITE,))):
        counts = scan.regions.counts(*codes)
        n = len(counts)
        if n and int(counts.sum()):
            rank = np.unique(np.geomspace(1, n, _POINTS).round().astype(np.int64))
            found[name] = Hot(rank / n, np.cumsum(counts)[rank - 1] / int(counts.sum()))
    if len(found) == 2:
        # Reads alone, or writes alone, are all there is.
        del found["reads and writes"]
    return found


def payload(found: dict[str, Hot]) -> dict[str, Any]:
    """Return the form that the page's script reads."""
    return {name: {"part": each.part, "share": each.share} for name, each in found.items()}
