"""Hot regions: which share of the reads and writes goes to the most used part of what is used at all.

The address space is cut into equal regions, at most 262,144 of them and of at least 4 KiB
(``region_bytes``). Of the ``regions_touched``, those in which at least one read or write starts, the
hottest q are the ceil(q n) in which most start; ``share_of_ios`` says for each q which share of the reads
and writes starts there. With hardly more I/Os than regions (``ios_per_region``) chance alone makes some
hot. Reads and writes without a length or an offset are left out; none: ``no_ios``.
"""

from __future__ import annotations

import numpy as np

from testdrive.manifest import READ, WRITE
from testdrive.metrics.metric import NO_IOS, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.distribution import rank

#: The hottest parts that are told, by key, in millionths.
PARTS = {"0.01": 10_000, "0.1": 100_000, "0.2": 200_000, "0.5": 500_000}


def compute(scan: Scan) -> Values:
    """The shares of the hottest parts."""
    counts = scan.regions.counts(READ, WRITE)
    n, ios = len(counts), int(counts.sum())
    if not n:
        return METRIC.absent(NO_IOS)
    reached = np.cumsum(counts)
    return {
        "workload.hot_regions": {
            "region_bytes": scan.regions.region_bytes,
            "regions_touched": n,
            "ios_per_region": ios / n,
            "share_of_ios": {name: int(reached[rank(part, n) - 1]) / ios for name, part in PARTS.items()},
        },
        "workload.hot_regions_code": None,
    }


METRIC = Metric(
    "hot regions",
    ("workload.hot_regions", "workload.hot_regions_code"),
    ("offset_bytes", "length_bytes"),
    compute,
)
