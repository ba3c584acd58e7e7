"""Consistency: I/Os completed without an error in each second.

Seconds are counted from the first 100 ms cell of the recording, or where it keeps histograms from each
phase's start; a part of a second at the end is left out.
``cv`` is the standard deviation (of the population) over the mean; p1 is the element of rank ceil(0.01 n).
Shorter than one second: absent with the code ``too_short``; longer than eight days,
of which single seconds are not counted: ``too_long``. No I/Os: ``no_ios``. All failed: a rate of 0, and
no ratio to it.
"""

from __future__ import annotations

import numpy as np

from testdrive.metrics.metric import NO_IOS, TOO_LONG, TOO_SHORT, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.distribution import rank


def compute(scan: Scan) -> Values:
    """Mean, extremes, p1 and spread of the completions in each second."""
    if not scan.tallies["ios"].sum():
        return METRIC.absent(NO_IOS)
    iops = scan.completions
    if iops is None:
        return METRIC.absent(TOO_LONG)
    if not len(iops):
        return METRIC.absent(TOO_SHORT)
    mean = float(iops.mean())
    return {
        "consistency.seconds": len(iops),
        "consistency.iops_mean": mean,
        "consistency.iops_min": int(iops.min()),
        "consistency.iops_max": int(iops.max()),
        "consistency.iops_p1": int(np.sort(iops)[rank(10_000, len(iops)) - 1]),
        "consistency.iops_cv": float(iops.std()) / mean if mean else None,
        "consistency.seconds_below_half_mean_share": float((iops < mean / 2).mean()),
        "consistency.iops_code": None,
    }


METRIC = Metric(
    "consistency",
    (
        "consistency.seconds",
        "consistency.iops_mean",
        "consistency.iops_min",
        "consistency.iops_max",
        "consistency.iops_p1",
        "consistency.iops_cv",
        "consistency.seconds_below_half_mean_share",
        "consistency.iops_code",
    ),
    ("latency_ns",),
    compute,
    needs="histograms",
)
