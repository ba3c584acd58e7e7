"""Rates of the workload: IOPS and throughput, in total and by opcode, burstiness, the busiest minute, and the
mix of operations over time.

All are of arrivals (``intended_ns``), failed or not. Seconds and minutes are counted from the first 100 ms
cell; a part of one at the end counts for the peak, not for burstiness (``burstiness_code`` ``too_short``
under two seconds). The mean rates are over the time from the first to the last event, so one I/O at a
single instant has none (``rates_code`` ``no_span``). Under a second there is no peak of one, under a minute
no busiest minute (``peak_code`` and ``busiest_minute_code`` ``too_short``). The index of dispersion is the
variance of the counts over their mean: 1 for Poisson arrivals, more for bursts; it needs two intervals. No
I/Os: ``no_ios``. A source without times: ``not_recorded``.

Throughput is told apart for transfers (reads and writes) and trims: a trim names bytes without moving them,
and a few large ones would hide what the drive really transfers. Where the source did not say what each
I/O was, all of them stand as ``unknown``, and what is of transfers, trims or reads alone is null
(``throughput_code`` ``not_recorded``). Where it had no lengths, so is every throughput.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, TRIM, WRITE
from testdrive.metrics.metric import NO_IOS, NOT_RECORDED, TIMES, TOO_LONG, TOO_SHORT, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.cells import SECOND_NS

#: The mix over time has at most this many intervals, each a whole number of seconds.
MIX_INTERVALS_MAX = 300
_MINUTE_NS = 60 * SECOND_NS


def compute(scan: Scan) -> Values:
    """Mean and peak rates, burstiness, the busiest minute and the mix over time."""
    extent, cells = scan.extent, scan.cells
    if not extent.ios:
        return METRIC.absent(NO_IOS)
    first_ns = min(extent.intended_first_ns, extent.submit_first_ns)
    span_ns = max(extent.complete_last_ns, extent.intended_last_ns) - first_ns
    ten_seconds = cells.whole_seconds(cells.series("ios", "intended_cell"), 10)
    minute = _busiest_minute(scan) if span_ns >= _MINUTE_NS else None
    return {
        "workload.span_ns": span_ns,
        "workload.iops_mean": _mean(extent.ios, span_ns),
        **_peaks(scan, span_ns),
        "workload.rates_by_opcode": _by_opcode(scan, span_ns),
        "workload.burstiness": {
            "peak_to_mean_1s": scan.seconds.peak_to_mean,
            "index_of_dispersion_1s": scan.seconds.dispersion,
            "index_of_dispersion_10s": _dispersion(ten_seconds),
        },
        "workload.busiest_minute": minute,
        "workload.mix_over_time": _mix(scan),
        "workload.rates_code": None if span_ns else "no_span",
        "workload.peak_code": None if span_ns >= SECOND_NS else TOO_SHORT,
        "workload.burstiness_code": None if scan.seconds.whole > 1 else TOO_SHORT,
        "workload.busiest_minute_code": None if minute else _without_minute(span_ns),
        "workload.throughput_code": None if scan.told_apart and _sized(scan) else NOT_RECORDED,
    }


def _peaks(scan: Scan, span_ns: int) -> Values:
    """The busiest second, and the throughput of transfers and trims with theirs."""
    seconds, peak = scan.seconds, span_ns >= SECOND_NS
    values: Values = {
        "workload.iops_peak_1s": seconds.busiest.ios if peak else None,
        "workload.iops_peak_time_ns": seconds.busiest_ns if peak else None,
    }
    for name, codes, busiest in (
        ("transfer", (READ, WRITE), seconds.transfers),
        ("trim", (TRIM,), seconds.trims),
    ):
        moved = int(scan.cells.groups["bytes"][scan.cells.chosen(codes)].sum())
        key = f"workload.{name}_throughput_bytes_per_s"
        known = scan.told_apart and _sized(scan)
        values[f"{key}_mean"] = _mean(moved, span_ns) if known else None
        values[f"{key}_peak_1s"] = busiest.bytes if peak and known else None
    return values


def _sized(scan: Scan) -> bool:
    return "length_bytes" not in scan.absent_columns


def _mean(number: int, span_ns: int) -> float | None:
    return number / (span_ns / 1e9) if span_ns else None


def _without_minute(span_ns: int) -> str:
    return TOO_SHORT if span_ns < _MINUTE_NS else TOO_LONG


def _by_opcode(scan: Scan, span_ns: int) -> dict[str, dict[str, float | None]]:
    groups, peak, sized = scan.cells.groups, span_ns >= SECOND_NS, _sized(scan)
    result: dict[str, dict[str, float | None]] = {}
    for code, busiest in sorted(scan.seconds.by_opcode.items()):
        mine = groups["code"] == code
        result[scan.opcode_name(code)] = {
            "iops_mean": _mean(int(groups["ios"][mine].sum()), span_ns),
            "iops_peak_1s": busiest.ios if peak else None,
            "throughput_bytes_per_s_mean": _mean(int(groups["bytes"][mine].sum()), span_ns)
            if sized
            else None,
            "throughput_bytes_per_s_peak_1s": busiest.bytes if peak and sized else None,
        }
    return result


def _dispersion(counts: NDArray[Any] | None) -> float | None:
    if counts is None or len(counts) < 2 or not counts.any():
        return None
    return float(counts.var(ddof=1) / counts.mean())


def _busiest_minute(scan: Scan) -> dict[str, Any] | None:
    """The minute with the most arrivals, the first of equal ones; None where cells are wider than that."""
    cells = scan.cells
    if cells.width_ns > _MINUTE_NS:
        return None
    width = _MINUTE_NS // cells.width_ns
    starts = np.arange(0, cells.n, width)

    def summed(what: str, *codes: int) -> NDArray[Any]:
        return np.add.reduceat(cells.series(what, "intended_cell", cells.chosen(codes or None)), starts)

    ios, reads, writes = summed("ios"), summed("ios", READ), summed("ios", WRITE)
    at = int(ios.argmax())
    transfers, told = int(reads[at] + writes[at]), scan.told_apart
    moved = int(summed("bytes", READ, WRITE)[at]) / 60 if told and _sized(scan) else None
    return {
        "start_ns": cells.time_ns(int(starts[at])),
        "ios": int(ios[at]),
        "iops": int(ios[at]) / 60,
        "transfer_throughput_bytes_per_s": moved,
        "read_share": int(reads[at]) / transfers if transfers and told else None,
    }


def _mix(scan: Scan) -> dict[str, Any]:
    """I/Os and bytes of each opcode that occurs, in equal intervals, of which the last may be cut short."""
    cells = scan.cells
    width = cells.in_a_second * -(-cells.n // (cells.in_a_second * MIX_INTERVALS_MAX))
    starts = np.arange(0, cells.n, width)
    mix: dict[str, Any] = {
        "interval_ns": width * cells.width_ns,
        "time_ns": [cells.time_ns(int(start)) for start in starts],
        "ios": {},
        "bytes": {},
    }
    for number in np.unique(cells.groups["code"]):
        chosen = cells.chosen((int(number),))
        for what in ("ios", "bytes") if _sized(scan) else ("ios",):
            series = np.add.reduceat(cells.series(what, "intended_cell", chosen), starts)
            mix[what][scan.opcode_name(number)] = [int(value) for value in series]
    return mix


METRIC = Metric(
    "workload rates",
    (
        "workload.span_ns",
        "workload.iops_mean",
        "workload.iops_peak_1s",
        "workload.iops_peak_time_ns",
        "workload.transfer_throughput_bytes_per_s_mean",
        "workload.transfer_throughput_bytes_per_s_peak_1s",
        "workload.trim_throughput_bytes_per_s_mean",
        "workload.trim_throughput_bytes_per_s_peak_1s",
        "workload.rates_by_opcode",
        "workload.burstiness",
        "workload.busiest_minute",
        "workload.mix_over_time",
        "workload.rates_code",
        "workload.peak_code",
        "workload.burstiness_code",
        "workload.busiest_minute_code",
        "workload.throughput_code",
    ),
    (TIMES,),
    compute,
)
