"""The ratio of baselines: the mean latency of the calm windows.

The estimate is that of the two baselines in the decision table. The interval is from the bootstrap, with the
threshold of calm kept as it is: windows are calm or not once, and then drawn. Windows of runs of over 200 s
are wider than those of the table, so that the resamples are scaled to its estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from testdrive.compare.bootstrap import Draws, Floats, Ratio, Resampled, judged
from testdrive.metrics.scans.windows import joined_means

METRIC = "baseline"


def baseline_ratio(draws: Draws, reference: Mapping[str, Any], other: Mapping[str, Any]) -> Ratio:
    """Return the ratio of the baselines that two summaries hold; `no_baseline` where one has none."""
    base_ns, other_ns = reference.get("baseline_latency_ns"), other.get("baseline_latency_ns")
    if not base_ns or not other_ns:
        return Ratio.without_interval(METRIC, None, "no_baseline")
    ratio = float(other_ns / base_ns)
    limits_ns = [float(summary["calm_below_ns"]) for summary in (reference, other)]
    base = _baselines(draws.reference, limits_ns[0])
    drawn = _scaled(_baselines(draws.other, limits_ns[1]) / base, ratio, draws, limits_ns)
    return judged(METRIC, ratio, drawn, _baselines(draws.again, limits_ns[0]) / base, draws.blocks)


def _baselines(drawn: Resampled, calm_below_ns: float) -> Floats:
    """The mean latency of the reads and writes of the calm windows of each resample; NaN without any."""
    ios, sums_ns = drawn.series.read_write_ios, drawn.series.read_write_sums_ns
    calm = joined_means(ios, sums_ns) <= calm_below_ns
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = (drawn.weights @ (sums_ns * calm)) / (drawn.weights @ (ios * calm))
    return means


def _scaled(ratios: Floats, estimate: float, draws: Draws, limits_ns: list[float]) -> Floats:
    own = [
        float(_baselines(Resampled.whole(one.series), limit)[0])
        for one, limit in zip((draws.reference, draws.other), limits_ns, strict=True)
    ]
    return ratios * (estimate / (own[1] / own[0]))
