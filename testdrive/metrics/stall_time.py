"""Stall time S(x): the share of wall-clock time during which the oldest outstanding I/O is older than x.

An I/O makes it so from ``submit + x`` until it completes, so S(x) is the length of the union of those
intervals over all I/Os without an error, divided by the time from the first submission to the last
completion. With more I/Os than :data:`EXACT_IOS_MAX` above a threshold, S(x) is the mean over the slices of
the sample and ``stall_time_standard_error`` says how far it may be off; every other value is exact and has no
entry there. No I/Os or all failed: ``no_completions``. One I/O of latency L: S(x) = (L - x) / L for x < L.
"""

from __future__ import annotations

import numpy as np

from testdrive.metrics.metric import NO_COMPLETIONS, Metric, Values
from testdrive.metrics.scans import SHARE_THRESHOLDS_NS, Scan
from testdrive.metrics.scans.intervals import Ints, covered_before, union, union_length

#: The most I/Os that are fetched to be exact above a threshold.
EXACT_IOS_MAX = 2_000_000


def compute(scan: Scan) -> Values:
    """``stall_time``: for each threshold in ns, the share of wall-clock time."""
    latency = scan.latency.whole
    if not latency.n or scan.extent.span_ns <= 0:
        return METRIC.absent(NO_COMPLETIONS if not latency.n else "no_span")
    # The number of I/Os above each threshold is known from the distribution, before anything is fetched.
    above = {x: latency.n - latency.count_at(x) for x in SHARE_THRESHOLDS_NS}
    exact = [x for x, ios in above.items() if scan.sample.whole or ios <= EXACT_IOS_MAX]
    shares: dict[int, float] = {}
    errors: dict[str, float] = {}
    if exact:
        submit, complete = _slow(scan, min(exact))
        for x in exact:
            shares[x] = union_length(submit + x, complete) / scan.extent.span_ns
    for x in sorted(set(above) - set(exact)):
        shares[x], errors[str(x)] = _sampled(scan, x)
    return {
        "stall_time": {str(x): shares[x] for x in SHARE_THRESHOLDS_NS},
        "stall_time_standard_error": errors,
        "stall_time_code": None,
    }


def _slow(scan: Scan, x: int) -> tuple[Ints, Ints]:
    """Submissions and completions of the I/Os without an error that took longer than ``x``."""
    if scan.sample.whole:
        found = scan.sample.rows
        kept = (found["status"] == 0) & (found["latency_ns"] > x)
        found = {name: found[name][kept] for name in ("submit_ns", "latency_ns")}
    else:
        rows = scan.ok_rows
        found = scan.execute(rows.filter(rows.latency_ns > x).select("submit_ns", "latency_ns"))
    return found["submit_ns"], found["submit_ns"] + found["latency_ns"]


def _sampled(scan: Scan, x: int) -> tuple[float, float]:
    """S(x) as the mean over the slices, and the standard error of that mean."""
    sample = scan.sample
    submit, latency = sample.rows["submit_ns"], sample.rows["latency_ns"]
    kept = (sample.rows["status"] == 0) & (latency > x)
    start, end = union(submit[kept] + x, submit[kept] + latency[kept])
    covered = covered_before(start, end, sample.ends_ns) - covered_before(start, end, sample.starts_ns)
    shares = covered / (sample.ends_ns - sample.starts_ns)
    return float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(len(shares)))


METRIC = Metric(
    "stall time",
    ("stall_time", "stall_time_standard_error", "stall_time_code"),
    ("latency_ns",),
    compute,
)
