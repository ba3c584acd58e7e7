"""When the trims come, and from whom.

A trim burst is a stretch of 100 ms cells with trims in them, in which no second passes without one; cells
of long recordings are wider. ``bursts`` counts them, ``time_share`` is the share of the span that they
take. ``interval_ns_p50`` is the median time from the begin of one to the begin of the next and
``interval_cv`` the standard deviation of these times over their mean: near 0 they come like clockwork. Both
need two bursts, the second three. Medians are of rank ceil(n / 2). ``streams`` lists who submitted trims,
the busiest first; without streams in the source it is null (``trim_streams_code``). No trims: ``no_trims``.
A source without times: ``not_recorded``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import TRIM
from testdrive.metrics.metric import NO_TRIMS, NOT_RECORDED, TIMES, Metric, Values
from testdrive.metrics.scans import QUANTILES, Scan
from testdrive.metrics.scans.distribution import rank


def compute(scan: Scan) -> Values:
    """The bursts of trims and their streams."""
    cells = scan.cells
    trims = cells.chosen((TRIM,))
    if not trims.any():
        return METRIC.absent(NO_TRIMS)
    ios, size = (cells.series(what, "intended_cell", trims) for what in ("ios", "bytes"))
    first, last = find_bursts(ios, cells.in_a_second)
    # From the first cell of each burst to that of the next; the last one's ends with the recording.
    per_burst = {"trims": np.add.reduceat(ios, first), "bytes": np.add.reduceat(size, first)}
    length_ns = (last + 1 - first) * cells.width_ns
    between_ns = np.diff(first) * cells.width_ns
    streams = None if "stream" in scan.absent_columns else listed_streams(scan)
    return {
        "workload.trim_bursts": {
            "bursts": len(first),
            "time_share": float(length_ns.sum()) / (cells.n * cells.width_ns),
            "trims_p50": _median(per_burst["trims"]),
            "bytes_p50": _median(per_burst["bytes"]),
            "length_ns_p50": _median(length_ns),
            "interval_ns_p50": _median(between_ns),
            "interval_ns_min": int(between_ns.min()) if len(between_ns) else None,
            "interval_ns_max": int(between_ns.max()) if len(between_ns) else None,
            "interval_cv": float(between_ns.std() / between_ns.mean()) if len(between_ns) > 1 else None,
            "first_ns": cells.time_ns(int(first[0])),
        },
        "workload.trim_bursts_code": None,
        "workload.trim_streams": streams,
        "workload.trim_streams_code": None if streams is not None else NOT_RECORDED,
    }


def find_bursts(ios: NDArray[np.int64], gap: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last cell of each stretch of cells with trims that have less than ``gap`` empty ones
    between them.
    """
    busy = np.flatnonzero(ios)
    apart = np.flatnonzero(np.diff(busy) > gap)
    return busy[np.concatenate(([0], apart + 1))], busy[np.concatenate((apart, [len(busy) - 1]))]


def listed_streams(scan: Scan) -> list[dict[str, int]]:
    """The streams that submitted trims with their I/Os and bytes, the busiest first."""
    trims = scan.trim_streams
    streams = [
        {"stream": int(stream), "ios": int(ios), "bytes": int(size)}
        for stream, ios, size in zip(trims["stream"], trims["ios"], trims["bytes"], strict=True)
    ]
    return sorted(streams, key=lambda one: (-one["ios"], one["stream"]))


def _median(values: NDArray[Any]) -> int | None:
    return int(np.sort(values)[rank(QUANTILES["p50"], len(values)) - 1]) if len(values) else None


METRIC = Metric(
    "trim pattern",
    (
        "workload.trim_bursts",
        "workload.trim_bursts_code",
        "workload.trim_streams",
        "workload.trim_streams_code",
    ),
    (TIMES, "opcode"),
    compute,
)
