"""Rates of the workload: IOPS and throughput, burstiness, and the mix of reads, writes and trims over time.

All are of arrivals (``intended_ns``), failed or not. Seconds are counted from the first 100 ms cell; a part
of one at the end counts for the peak, not for burstiness (``burstiness_code`` ``too_short`` under two
seconds). The mean rates are over the time from the first to the last event, so one I/O at a single instant
has none (code ``no_span``). The index of dispersion is the variance of the counts over their mean: 1 for
Poisson arrivals, more for bursts; it needs two intervals. No I/Os: ``no_ios``.

Throughput is told apart for transfers (reads and writes) and trims: a trim names bytes without moving them,
and a few large ones would hide what the drive really transfers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, TRIM, WRITE, opcode_name
from testdrive.metrics.metric import NO_IOS, Metric, Values
from testdrive.metrics.scans import CELL_NS, Scan
from testdrive.metrics.scans.cells import busiest_second, whole_seconds

#: The mix over time has at most this many intervals, each a whole number of seconds.
MIX_INTERVALS_MAX = 300


def compute(scan: Scan) -> Values:
    """Mean and peak rates, burstiness and the mix over time."""
    extent = scan.extent
    if not extent.ios:
        return METRIC.absent(NO_IOS)
    ios = scan.cells.series("ios", "intended_cell")
    transferred = scan.cells.series("bytes", "intended_cell", scan.cells.chosen((READ, WRITE)))
    trimmed = scan.cells.series("bytes", "intended_cell", scan.cells.chosen((TRIM,)))
    first_ns = min(extent.intended_first_ns, extent.submit_first_ns)
    span_s = (max(extent.complete_last_ns, extent.intended_last_ns) - first_ns) / 1e9
    per_second = whole_seconds(ios)
    return {
        "workload.span_ns": round(span_s * 1e9),
        "workload.iops_mean": extent.ios / span_s if span_s else None,
        "workload.iops_peak_1s": busiest_second(ios),
        "workload.transfer_throughput_bytes_per_s_mean": int(transferred.sum()) / span_s if span_s else None,
        "workload.transfer_throughput_bytes_per_s_peak_1s": busiest_second(transferred),
        "workload.trim_throughput_bytes_per_s_mean": int(trimmed.sum()) / span_s if span_s else None,
        "workload.trim_throughput_bytes_per_s_peak_1s": busiest_second(trimmed),
        "workload.burstiness": {
            "peak_to_mean_1s": _peak_to_mean(per_second),
            "index_of_dispersion_1s": _dispersion(per_second),
            "index_of_dispersion_10s": _dispersion(whole_seconds(ios, 10)),
        },
        "workload.mix_over_time": _mix(scan),
        "workload.rates_code": None if span_s else "no_span",
        "workload.burstiness_code": None if len(per_second) > 1 else "too_short",
    }


def _peak_to_mean(counts: NDArray[Any]) -> float | None:
    return float(counts.max() / counts.mean()) if len(counts) and counts.any() else None


def _dispersion(counts: NDArray[Any]) -> float | None:
    return float(counts.var(ddof=1) / counts.mean()) if len(counts) > 1 and counts.any() else None


def _mix(scan: Scan) -> dict[str, Any]:
    """I/Os and bytes of each opcode that occurs, in equal intervals, of which the last may be cut short."""
    cells = scan.cells
    width = 10 * -(-cells.n // (10 * MIX_INTERVALS_MAX))
    starts = np.arange(0, cells.n, width)
    mix: dict[str, Any] = {
        "interval_ns": width * CELL_NS,
        "time_ns": [int((cells.first + start) * CELL_NS) for start in starts],
        "ios": {},
        "bytes": {},
    }
    for number in np.unique(cells.groups["code"]):
        chosen = cells.chosen((int(number),))
        for what in ("ios", "bytes"):
            series = np.add.reduceat(cells.series(what, "intended_cell", chosen), starts)
            mix[what][opcode_name(number)] = [int(value) for value in series]
    return mix


METRIC = Metric(
    "workload rates",
    (
        "workload.span_ns",
        "workload.iops_mean",
        "workload.iops_peak_1s",
        "workload.transfer_throughput_bytes_per_s_mean",
        "workload.transfer_throughput_bytes_per_s_peak_1s",
        "workload.trim_throughput_bytes_per_s_mean",
        "workload.trim_throughput_bytes_per_s_peak_1s",
        "workload.burstiness",
        "workload.mix_over_time",
        "workload.rates_code",
        "workload.burstiness_code",
    ),
    (),
    compute,
)
