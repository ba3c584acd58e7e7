"""Ratios of the mean and the percentiles of the service time, with bootstrap intervals."""

from __future__ import annotations

import math

import numpy as np

from testdrive.compare.bootstrap import Draws, Floats, Ratio, Resampled, judged

#: The metrics in their order, with the share of each percentile.
METRICS = ("mean", "p50", "p90", "p99", "p99_9", "p99_99")
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
# A one-sided 95 % upper bound of a percentile needs this many I/Os for each one expected beyond it.
_SAMPLES = -math.log(0.05)


def estimates(drawn: Resampled) -> dict[str, Floats]:
    """Return each metric of each resample, in ns, shape (resamples,); NaN where no I/O was drawn."""
    held = np.cumsum(drawn.histograms, axis=1)
    values_ns, total = drawn.series.values_ns, held[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: dict[str, Floats] = {"mean": (drawn.weights @ drawn.series.sums_ns) / total}
    for name, share in _QUANTILES.items():
        # Rank ceil(p * n), rounded first since p is no exact binary fraction.
        rank = np.ceil(np.round(share * total, 6))
        at = (held < rank[:, None]).sum(axis=1)
        found[name] = np.where(total > 0, values_ns[np.minimum(at, len(values_ns) - 1)], np.nan)
    return found


def percentile_ratios(draws: Draws) -> list[Ratio]:
    """Return the ratio of each of `METRICS`; of a percentile only where both runs have enough I/Os for it."""
    reference, again, other = (estimates(one) for one in (draws.reference, draws.again, draws.other))
    whole = [estimates(Resampled.whole(one.series)) for one in (draws.reference, draws.other)]
    ios = min(draws.reference.series.ios, draws.other.series.ios)
    ratios = []
    for metric in METRICS:
        if metric != "mean" and ios < _SAMPLES / (1 - _QUANTILES[metric]) - 1:
            ratios.append(Ratio.without_interval(metric, None, "too_few_samples"))
            continue
        ratio = float(whole[1][metric][0] / whole[0][metric][0])
        drawn, noise = other[metric] / reference[metric], again[metric] / reference[metric]
        ratios.append(judged(metric, ratio, drawn, noise, draws.blocks))
    return ratios
