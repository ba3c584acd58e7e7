"""Service times: against time as a raster with lines, and their distribution for each opcode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE, opcode_name
from testdrive.metrics.scans import Distribution, Scan
from testdrive.report.axes import Axis, latency_axis
from testdrive.report.distribution import Curve
from testdrive.report.rasters import Raster
from testdrive.statement.timeline import Timeline

ROWS = 160
#: Points of a curve for each factor of e: neighbours differ by less than one hundredth.
_POINTS_PER_E = 100


@dataclass(frozen=True)
class Latencies:
    """Service times of the I/Os without an error.

    ``rasters`` has for each opcode the I/Os by time (of submission) and service time; ``mean_ns`` and
    ``max_ns`` are of the reads and writes of each window, NaN where there are none; ``curves`` has the
    distribution of each opcode.
    """

    rasters: dict[str, Raster]
    mean_ns: NDArray[np.float64]
    max_ns: NDArray[np.float64]
    curves: dict[str, Curve]


def bounds_ns(scan: Scan) -> tuple[int, int] | None:
    """The smallest and the greatest service time; None where none was recorded."""
    if "latency_ns" in scan.absent_columns or not scan.latency.whole.n:
        return None
    whole = scan.latency.whole
    return int(whole.value[0]), int(whole.value[-1])


def shared_axis(bounds: list[tuple[int, int]]) -> Axis:
    """The axis of service time for recordings with such bounds."""
    if not bounds:
        return latency_axis(1_000, 1_000_000, ROWS)
    return latency_axis(min(low for low, _ in bounds), max(high for _, high in bounds), ROWS)


def latencies(scan: Scan, time: Timeline, axis: Axis) -> Latencies | None:
    """Count the service times; None where none was recorded."""
    if bounds_ns(scan) is None:
        return None
    rows = scan.ok_rows
    rows = rows.select(
        code=rows.opcode,
        window=time.window(rows.submit_ns),
        row=axis.cell(rows.latency_ns),
        latency_ns=rows.latency_ns,
    )
    found = scan.execute(
        rows.group_by("code", "window", "row").aggregate(
            ios=rows.count(), total=rows.latency_ns.sum(), most=rows.latency_ns.max()
        )
    )
    rasters: dict[str, Raster] = {}
    for code in np.unique(found["code"]):
        mine = found["code"] == code
        raster = np.zeros((axis.cells, time.windows), np.int64)
        raster[found["row"][mine], found["window"][mine]] = found["ios"][mine]
        rasters[opcode_name(int(code))] = raster
    both = np.isin(found["code"], (READ, WRITE))
    ios, total = (
        _summed(found["window"][both], found[what][both], time.windows) for what in ("ios", "total")
    )
    most = np.full(time.windows, np.nan)
    np.fmax.at(most, found["window"][both], found["most"][both].astype(np.float64))
    mean = np.divide(total, ios, out=np.full(time.windows, np.nan), where=ios > 0)
    curves = {opcode_name(code): curve(scan.latency.of(code)) for code in scan.latency.codes}
    return Latencies(rasters, mean, most, curves)


def _summed(window: NDArray[Any], values: NDArray[Any], windows: int) -> NDArray[np.float64]:
    result = np.zeros(windows)
    np.add.at(result, window, values)
    return result


def curve(found: Distribution) -> Curve:
    """The distribution as a curve of few points, exact at each of them."""
    bucket = np.floor(np.log(np.maximum(found.value, 1)) * _POINTS_PER_E)
    # The last value of each bucket: what lies at or below it is known exactly.
    kept = np.append(np.diff(bucket) > 0, True) if len(bucket) else np.zeros(0, bool)
    reached, taken = np.cumsum(found.count), np.cumsum(found.total)
    n, whole = found.n, found.sum
    io_share = reached[kept] / max(n, 1)
    time_share = taken[kept] / whole if whole > 0 else io_share
    return Curve(found.value[kept], io_share, time_share, n)


def curve_of(values: NDArray[np.int64]) -> Curve:
    """The distribution of single values, as :func:`curve`."""
    value, count = np.unique(values, return_counts=True)
    return curve(Distribution(value, count.astype(np.int64), value * count))


def points_of_poisson(mean_ns: float, points: int = 200) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The distribution that arrivals of this mean interval would have if each came by chance alone."""
    value = np.geomspace(max(mean_ns / 1e4, 1.0), mean_ns * -math.log(1e-6), points)
    return value, 1 - np.exp(-value / mean_ns)
