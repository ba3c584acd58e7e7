"""How many I/Os are outstanding, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.metrics.scans.sample import Sample


@dataclass(frozen=True)
class Depths:
    """Each number of I/Os that is outstanding at some time, ascending, and for how many ns altogether."""

    depth: NDArray[np.int64]
    lasts_ns: NDArray[np.int64]


def depths(sample: Sample) -> Depths:
    """Count the I/Os that are outstanding within the slices of a sample."""
    rows = sample.rows
    done = rows["latency_ns"] > 0
    start = rows["submit_ns"][done]
    edges = 2 * len(sample.starts_ns)
    times = np.concatenate((start, start + rows["latency_ns"][done], sample.starts_ns, sample.ends_ns))
    n = len(start)
    del start, done
    # The edges of slices are events too, that switch counting on and off.
    steps, inside = np.zeros(len(times), np.int8), np.zeros(len(times), np.int8)
    steps[:n], steps[n : 2 * n] = 1, -1
    inside[2 * n : 2 * n + edges // 2], inside[2 * n + edges // 2 :] = 1, -1
    order = np.argsort(times, kind="stable")
    lasts = np.diff(times[order])
    del times
    depth = np.cumsum(steps[order], dtype=np.int32)[:-1]
    kept = (np.cumsum(inside[order], dtype=np.int32)[:-1] > 0) & (lasts > 0)
    del order
    depth, lasts = depth[kept], lasts[kept]
    found = np.flatnonzero(np.bincount(depth)) if len(depth) else np.zeros(0, np.int64)
    total = np.zeros(int(depth.max(initial=-1)) + 1, np.int64)
    np.add.at(total, depth, lasts)
    return Depths(found.astype(np.int64), total[found])
