"""The ratio of stall times: the share of the run in which the oldest outstanding I/O was older than x.

The estimate is that of the two shares in the decision table. For the interval the stalled time of each window
is taken from the I/Os that were slower than x, and windows are drawn as for every other ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testdrive.compare.bootstrap import Draws, Floats, Ratio, Resampled, judged
from testdrive.compare.series import Series
from testdrive.metrics.scans.intervals import covered_before, union
from testdrive.recording import Recording

#: The most slow I/Os that are fetched for an interval.
SLOW_IOS_MAX = 2_000_000
# With more resamples than this in which nothing stalled there is no ratio to make an interval of.
_EMPTY_SHARE_MAX = 0.01

#: Nanoseconds of stall in each window, by threshold, shape (windows,).
Stalls = dict[int, Floats]


def metric_name(threshold_ns: int) -> str:
    """The name of the metric of one threshold."""
    return f"stall_time_over_{threshold_ns}_ns"


def stalled_ns(recording: Recording, series: Series, thresholds_ns: Sequence[int]) -> Stalls:
    """Return how long each window was stalled, for the thresholds that few enough I/Os are slower than.

    What is still outstanding after the last window counts in it.
    """
    slow_ios = {x: int(series.counts[:, series.values_ns > x].sum()) for x in thresholds_ns}
    kept = [x for x in thresholds_ns if slow_ios[x] <= SLOW_IOS_MAX]
    if not kept:
        return {}
    rows = recording.table()
    slow = rows.filter((rows.status == 0) & (rows.latency_ns > min(kept)))
    found = recording.execute(slow.select("submit_ns", "latency_ns"))
    submit, complete = found["submit_ns"], found["submit_ns"] + found["latency_ns"]
    edges = np.arange(series.windows + 1) * series.window_ns
    edges[-1] = np.iinfo(np.int64).max // 2
    return {x: np.diff(covered_before(*union(submit + x, complete), edges)).astype(np.float64) for x in kept}


def stall_ratio(
    draws: Draws,
    threshold_ns: int,
    summaries: tuple[Mapping[str, Any], Mapping[str, Any]],
    stalls: tuple[Stalls, Stalls],
) -> Ratio:
    """Return the ratio of the stall times of two runs at one threshold.

    Parameters
    ----------
    draws
        The resamples of both.
    summaries, stalls
        Of the reference and the other: the summary, and what :func:`stalled_ns` gives.

    Returns
    -------
    Ratio
        `no_stall` where the other never stalls, `no_stall_in_reference` where only it does, `too_few_stalls`
        where resamples of the reference come without one, `no_interval` where there are too many slow I/Os.
    """
    metric = metric_name(threshold_ns)
    shares = [(summary.get("stall_time") or {}).get(str(threshold_ns)) for summary in summaries]
    if None in shares:
        return Ratio.without_interval(metric, None, "not_recorded")
    if not shares[1]:
        return Ratio.without_interval(metric, 0.0 if shares[0] else None, "no_stall")
    if not shares[0]:
        return Ratio.without_interval(metric, None, "no_stall_in_reference")
    ratio = float(shares[1] / shares[0])
    if not all(threshold_ns in one for one in stalls):
        return Ratio.without_interval(metric, ratio, "no_interval")
    base = _stalled(draws.reference, stalls[0][threshold_ns])
    again = _stalled(draws.again, stalls[0][threshold_ns])
    other = _stalled(draws.other, stalls[1][threshold_ns])
    if max(float((one <= 0).mean()) for one in (base, again, other)) > _EMPTY_SHARE_MAX:
        return Ratio.without_interval(metric, ratio, "too_few_stalls")
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = again / base
        # Each run's stall time is a share of its own length, as in the table.
        whole = float(stalls[1][threshold_ns].sum() / stalls[0][threshold_ns].sum())
        drawn = other / base * (ratio / whole)
    return judged(metric, ratio, drawn, noise, draws.blocks)


def _stalled(drawn: Resampled, stalled_by_window_ns: Floats) -> Floats:
    total: Floats = drawn.weights @ stalled_by_window_ns
    return total
