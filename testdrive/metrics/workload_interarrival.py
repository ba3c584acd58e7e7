"""Inter-arrival times: mean, coefficient of variation and p99.

Of arrivals in order (``intended_ns``). The mean is exact always: the time from the first to the last arrival
over their number less one. ``cv`` (standard deviation of the population over the mean) and p99 are exact for
the I/Os of the sample, whose number is ``sampled_ios`` where it is not all of them. p99 needs 299 intervals
(``p99_code`` ``too_few_samples``). Fewer than two I/Os: ``too_few_samples``.
"""

from __future__ import annotations

import numpy as np

from testdrive.metrics.metric import TIMES, TOO_FEW_SAMPLES, Metric, Values
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.metrics.scans import QUANTILES, Scan
from testdrive.metrics.scans.distribution import rank


def compute(scan: Scan) -> Values:
    """Mean, cv and p99 of the times between arrivals."""
    extent, sample = scan.extent, scan.sample
    if extent.ios < 2:
        return METRIC.absent(TOO_FEW_SAMPLES)
    inside = sample.slice_index >= 0
    gaps, index = np.diff(sample.rows["intended_ns"][inside]), sample.slice_index[inside]
    gaps = gaps[index[1:] == index[:-1]]
    mean = float(gaps.mean()) if len(gaps) else 0.0
    enough = len(gaps) >= SAMPLES_MIN["p99"]
    return {
        "workload.interarrival": {
            "mean_ns": (extent.intended_last_ns - extent.intended_first_ns) / (extent.ios - 1),
            "cv": float(gaps.std()) / mean if mean else None,
            "p99_ns": int(np.sort(gaps)[rank(QUANTILES["p99"], len(gaps)) - 1]) if enough else None,
            "p99_code": None if enough else TOO_FEW_SAMPLES,
            "sampled_ios": sample.sampled_ios,
        },
        "workload.interarrival_code": None,
    }


METRIC = Metric(
    "inter-arrival times", ("workload.interarrival", "workload.interarrival_code"), (TIMES,), compute
)
