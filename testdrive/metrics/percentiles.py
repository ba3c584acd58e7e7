"""Latency percentiles by I/O and by latency, and the cumulative shares both ways.

Definitions, for n I/Os that completed without an error, with service times L_i:

- by I/O: the smallest x with #{L_i <= x} / n >= p, the element of rank ceil(p n), without interpolation;
- by latency: the smallest x with sum{L_i : L_i <= x} / sum L_i >= p, which weighs each I/O by the time it
took.

All values are exact, but for recordings that keep histograms instead of every row: there a percentile is the
longest latency in its bucket, at most ``percentile_error_max`` above the exact one. A percentile from p99 up
is published only with the samples that put a one-sided 95 % upper bound on it: the least n with
1 - p^n >= 0.95. No I/Os, or all failed: everything absent with the code ``no_completions``. One I/O: its
latency is p50, p90 and the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testdrive.metrics.metric import NO_COMPLETIONS, TOO_FEW_SAMPLES, Metric, Values
from testdrive.metrics.scans import QUANTILES, SHARE_THRESHOLDS_NS, Distribution, Scan
from testdrive.metrics.scans.distribution import Distributions

#: The fewest I/Os with which a percentile is published; p50 and p90 are with any.
SAMPLES_MIN: dict[str, int] = {
    "p99": 299,
    "p99_9": 2_995,
    "p99_99": 29_956,
    "p99_999": 299_572,
    "p99_9999": 2_995_731,
}

#: The code where every latency is zero, so that no share of their sum exists.
NO_LATENCY = "no_latency"


def compute(scan: Scan) -> Values:
    """The percentiles of all I/Os and of each opcode, and the shares at fixed latencies."""
    whole = scan.latency.whole
    values, codes = percentiles(scan.latency, scan.opcode_name)
    thresholds = SHARE_THRESHOLDS_NS
    return {
        "percentiles_ns": values,
        "percentile_codes": codes,
        "percentile_error_max": scan.percentile_error_max,
        "latency_samples": whole.n,
        "latency_mean_ns": whole.sum / whole.n if whole.n else None,
        "io_weighted_share_at_ns": {str(x): whole.share_at(x) for x in thresholds} if whole.n else None,
        "latency_weighted_share_at_ns": (
            {str(x): whole.weighted_share_at(x) for x in thresholds} if whole.sum > 0 else None
        ),
        "latency_weighted_code": _weighted_code(whole),
    }


def percentiles(found: Distributions, name_of: Callable[[int], str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Percentiles both ways of all I/Os and of each opcode, by the name that ``name_of`` gives it, and the
    same shape with codes of absence.
    """
    values, codes = _both_ways(found.whole)
    values["by_opcode"], codes["by_opcode"] = {}, {}
    for number in found.codes:
        name = name_of(number)
        values["by_opcode"][name], codes["by_opcode"][name] = _both_ways(found.of(number))
    return values, codes


def _both_ways(distribution: Distribution) -> tuple[dict[str, Any], dict[str, Any]]:
    values: dict[str, Any] = {"io_weighted": {}, "latency_weighted": {}}
    codes: dict[str, Any] = {"io_weighted": {}, "latency_weighted": {}}
    for name, millionths in QUANTILES.items():
        enough = distribution.n >= SAMPLES_MIN.get(name, 1)
        scarce = TOO_FEW_SAMPLES if distribution.n else NO_COMPLETIONS
        values["io_weighted"][name] = distribution.quantile(millionths) if enough else None
        codes["io_weighted"][name] = None if enough else scarce
        values["latency_weighted"][name] = distribution.weighted_quantile(millionths) if enough else None
        codes["latency_weighted"][name] = _weighted_code(distribution) if enough else scarce
    for weighting in ("io_weighted", "latency_weighted"):
        values[weighting]["max"] = distribution.max
        codes[weighting] = {name: code for name, code in codes[weighting].items() if code is not None}
    return values, codes


def _weighted_code(distribution: Distribution) -> str | None:
    if not distribution.n:
        return NO_COMPLETIONS
    return None if distribution.sum > 0 else NO_LATENCY


METRIC = Metric(
    "latency percentiles",
    (
        "percentiles_ns",
        "percentile_codes",
        "percentile_error_max",
        "latency_samples",
        "latency_mean_ns",
        "io_weighted_share_at_ns",
        "latency_weighted_share_at_ns",
        "latency_weighted_code",
    ),
    ("latency_ns",),
    compute,
    needs="histograms",
)
