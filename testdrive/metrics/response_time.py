"""Response-time percentiles: from when the workload wanted an I/O issued to its completion.

A timed or open-loop run that issues late hides the wait from its service times (coordinated omission), so
both are published. A closed loop has no intention apart from its submissions: there the response time is the
service time and is not given twice (code ``closed_loop``). Exact up to 20 million I/Os; beyond, a percentile
is at most ``response_relative_error_max`` too great. Nothing is ever corrected silently. No I/Os or all
failed: ``no_completions``.
"""

from __future__ import annotations

from testdrive.metrics.metric import NO_COMPLETIONS, Metric, Values
from testdrive.metrics.percentiles import percentiles
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.distribution import distributions

CLOSED_LOOP = "closed_loop"


def compute(scan: Scan) -> Values:
    """The percentiles of ``submit_ns + latency_ns - intended_ns`` of the I/Os without an error."""
    if not scan.latency.whole.n:
        return METRIC.absent(NO_COMPLETIONS)
    if scan.closed_loop:
        return METRIC.absent(CLOSED_LOOP)
    rows = scan.ok_rows
    rows = rows.mutate(response_ns=rows.submit_ns + rows.latency_ns - rows.intended_ns)
    found = distributions(scan.recording, rows, "response_ns", exact=scan.exact)
    values, codes = percentiles(found, scan.opcode_name)
    return {
        "response_percentiles_ns": values,
        "response_percentile_codes": codes,
        "response_mean_ns": found.whole.sum / found.whole.n,
        "response_relative_error_max": scan.relative_error_max,
        "response_code": None,
    }


METRIC = Metric(
    "response time",
    (
        "response_percentiles_ns",
        "response_percentile_codes",
        "response_mean_ns",
        "response_relative_error_max",
        "response_code",
    ),
    ("intended_ns", "submit_ns", "latency_ns"),
    compute,
)
