"""Time-weighted queue depth: how many I/Os are outstanding, weighted by for how long.

An I/O is outstanding from its submission until it completes, failed or not; one without a completion is not
counted. The time is that from the first submission to the last completion. ``mean`` is exact always (the sum
of all latencies over the time); the others are exact for the I/Os of the sample, whose number is
``sampled_ios`` where it is not all of them. p is the smallest depth that is not exceeded for a share p of the
time. No I/Os, or none completed: ``no_completions``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testdrive.metrics.metric import NO_COMPLETIONS, Metric, Values
from testdrive.metrics.scans import Sample, Scan


def compute(scan: Scan) -> Values:
    """Mean, p50, p99 and maximum."""
    span_ns = scan.extent.span_ns
    if not scan.extent.ios or span_ns <= 0:
        return METRIC.absent(NO_COMPLETIONS)
    busy_ns = int(scan.cells.groups["latency_ns_sum"].sum())
    if not busy_ns:
        return METRIC.absent(NO_COMPLETIONS)
    depth, time_ns = depth_over_time(scan.sample)
    return {
        "workload.queue_depth": {
            "mean": busy_ns / span_ns,
            **_quantiles(depth, time_ns),
            "sampled_ios": scan.sample.sampled_ios,
        },
        "workload.queue_depth_code": None,
    }


def depth_over_time(sample: Sample) -> tuple[Any, Any]:
    """The depths that occur, one after the other, and how many ns each lasts, within the slices."""
    rows = sample.rows
    done = rows["latency_ns"] > 0
    start, end = rows["submit_ns"][done], (rows["submit_ns"] + rows["latency_ns"])[done]
    edges = np.concatenate((sample.starts_ns, sample.ends_ns))
    times = np.concatenate((start, end, edges))
    steps = np.concatenate((np.ones_like(start), -np.ones_like(end), np.zeros_like(edges)))
    # The edges of slices are events too, that switch counting on and off.
    inside = np.concatenate((np.zeros(2 * len(start), np.int64), np.ones_like(sample.starts_ns)))
    inside = np.concatenate((inside, -np.ones_like(sample.ends_ns)))
    order = np.argsort(times, kind="stable")
    lasts = np.diff(times[order])
    depth, counted = np.cumsum(steps[order])[:-1], np.cumsum(inside[order])[:-1] > 0
    kept = counted & (lasts > 0)
    return depth[kept], lasts[kept]


def _quantiles(depth: Any, time_ns: Any) -> dict[str, int]:
    depths, index = np.unique(depth, return_inverse=True)
    lasts = np.zeros(len(depths), np.int64)
    np.add.at(lasts, index, time_ns)
    whole = int(lasts.sum())
    places = np.searchsorted(np.cumsum(lasts), [-(-whole // 2), -(-whole * 99 // 100)])
    return {"p50": int(depths[places[0]]), "p99": int(depths[places[1]]), "max": int(depths[-1])}


METRIC = Metric(
    "queue depth",
    ("workload.queue_depth", "workload.queue_depth_code"),
    ("submit_ns", "latency_ns"),
    compute,
)
