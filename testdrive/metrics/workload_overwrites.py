"""Overwrite distance: how much is written before a place is written again.

For each write that starts in a 4 KiB block in which an earlier write started: the bytes of all writes from
that earlier one on (itself included) up to this one (excluded), in order of issue. ``share`` is the share
of writes that have such an earlier one. Exact for recordings that are taken whole; of longer ones, a share
of the blocks is followed throughout (``sampled_ios`` writes), and the distance is read off the bytes
written per cell of time (100 ms or, of many hours, more), within ``resolution_bytes``. No writes:
``no_ios``. Nothing overwritten: percentiles absent, ``no_overwrites``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import WRITE
from testdrive.metrics.metric import NO_IOS, Metric, Values
from testdrive.metrics.scans import QUANTILES, Scan
from testdrive.metrics.scans.distribution import rank
from testdrive.metrics.scans.extents import followed
from testdrive.metrics.scans.sample import SAMPLE_IOS_MAX

#: Blocks of 4 KiB.
_BLOCK_BITS = 12
#: Writes that are followed, about; half of a sample, since each is one of a chain.
_FOLLOWED_IOS = SAMPLE_IOS_MAX // 2


def compute(scan: Scan) -> Values:
    """Share of overwrites and the percentiles of their distance."""
    if scan.sample.whole:
        block, written = _whole(scan)
        sampled, resolution = None, 0
    else:
        block, written, resolution = _followed(scan)
        sampled = len(block)
    if not len(block):
        return METRIC.absent(NO_IOS)
    distance = np.sort(distances(block, written))
    n = len(distance)
    names = ("p50", "p90", "p99")
    return {
        "workload.overwrite_distance": {
            "share": n / len(block),
            **{f"{name}_bytes": int(distance[rank(QUANTILES[name], n) - 1]) if n else None for name in names},
            "sampled_ios": sampled,
            "resolution_bytes": resolution,
        },
        "workload.overwrite_distance_code": None if n else "no_overwrites",
    }


def distances(block: NDArray[np.int64], written: NDArray[np.int64]) -> NDArray[np.int64]:
    """For writes in order of issue: the bytes written since the last write that started in the same block.

    ``written`` is what had been written before each.
    """
    order = np.argsort(block, kind="stable")
    same = block[order][1:] == block[order][:-1]
    result: NDArray[np.int64] = np.diff(written[order])[same]
    return result


def _whole(scan: Scan) -> tuple[Any, Any]:
    rows = scan.sample.rows
    writes = (rows["opcode"] == WRITE) & (rows["length_bytes"] > 0)
    length = rows["length_bytes"][writes]
    return rows["offset_bytes"][writes] >> _BLOCK_BITS, np.cumsum(length) - length


def _followed(scan: Scan) -> tuple[Any, Any, int]:
    """Blocks of the writes that are followed, what had been written before each, and how exact that is."""
    cells = scan.cells
    writes = cells.chosen((WRITE,))
    one_in = max(-(-int(cells.groups["ios"][writes].sum()) // _FOLLOWED_IOS), 1)
    rows = scan.rows.filter((scan.rows.opcode == WRITE) & (scan.rows.length_bytes > 0))
    rows = rows.select("intended_ns", block=rows.offset_bytes >> _BLOCK_BITS)
    # A single place that takes most writes could fill any sample: beyond the limit the rest is left out.
    found = scan.execute(rows.filter(followed(rows.block, one_in)).limit(2 * SAMPLE_IOS_MAX))
    order = np.argsort(found["intended_ns"], kind="stable")
    per_cell = cells.series("bytes", "intended_cell", writes)
    before = np.concatenate(([0], np.cumsum(per_cell)))
    times = (cells.first + np.arange(len(before), dtype=np.int64)) * cells.width_ns
    written = np.interp(found["intended_ns"][order], times, before).astype(np.int64)
    return found["block"][order], written, int(per_cell.max(initial=0))


METRIC = Metric(
    "overwrite distance",
    ("workload.overwrite_distance", "workload.overwrite_distance_code"),
    ("offset_bytes", "length_bytes", "opcode"),
    compute,
)
