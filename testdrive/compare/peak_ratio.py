"""The ratio of peaks: the single slowest read or write of each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testdrive.compare.bootstrap import Ratio

METRIC = "peak"


def peak_ratio(reference: Mapping[str, Any], other: Mapping[str, Any]) -> Ratio:
    """Return the ratio of the peaks that two summaries hold.

    It has no interval: a resample holds no value beyond the largest of the run, so that the bootstrap does
    not hold for a maximum (Bickel and Freedman 1981).
    """
    base_ns, other_ns = reference.get("peak_latency_ns"), other.get("peak_latency_ns")
    if not base_ns or not other_ns:
        return Ratio.without_interval(METRIC, None, "not_recorded")
    return Ratio.without_interval(METRIC, float(other_ns / base_ns), "no_interval")
