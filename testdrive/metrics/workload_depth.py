"""Time-weighted queue depth: how many I/Os are outstanding, weighted by for how long.

An I/O is outstanding from its submission (from its arrival, where the source had no submissions) until it
completes, failed or not; one without a completion is not counted. The time is that from the first
submission to the last completion. ``mean`` is exact always (the sum of all latencies over the time); the
others are exact for the I/Os of the sample, whose number is ``sampled_ios`` where it is not all of them. p
is the smallest depth that is not exceeded for a share p of the time. No I/Os, or none completed:
``no_completions``.
"""

from __future__ import annotations

import numpy as np

from testdrive.metrics.metric import NO_COMPLETIONS, TIMES, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.depths import Depths


def compute(scan: Scan) -> Values:
    """Mean, p50, p99 and maximum."""
    span_ns = scan.extent.span_ns
    if not scan.extent.ios or span_ns <= 0:
        return METRIC.absent(NO_COMPLETIONS)
    busy_ns = int(scan.cells.groups["latency_ns_sum"].sum())
    if not busy_ns:
        return METRIC.absent(NO_COMPLETIONS)
    return {
        "workload.queue_depth": {
            "mean": busy_ns / span_ns,
            **_quantiles(scan.depths),
            "sampled_ios": scan.sample.sampled_ios,
        },
        "workload.queue_depth_code": None,
    }


def _quantiles(found: Depths) -> dict[str, int]:
    whole = int(found.lasts_ns.sum())
    wanted = [-(-whole // 2), -(-whole * 99 // 100)]
    places = np.searchsorted(np.cumsum(found.lasts_ns), wanted)
    p50, p99 = (int(found.depth[place]) for place in places)
    return {"p50": p50, "p99": p99, "max": int(found.depth[-1])}


METRIC = Metric(
    "queue depth",
    ("workload.queue_depth", "workload.queue_depth_code"),
    (TIMES, "latency_ns"),
    compute,
)
