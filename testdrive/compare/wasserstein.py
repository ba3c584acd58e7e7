"""The Wasserstein-1 distance of ln latency: how far apart two runs' whole distributions are.

It is the area between the two distribution functions over ln latency, so that ln 2 = 0.69 is what a drive
gets that is twice as slow, or twice as fast, in everything. It is taken from histograms with buckets of
relative width 1/128, which puts it off by at most ln(1 + 1/128) = 0.008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from testdrive.compare.bootstrap import (
    BLOCKS_MIN,
    CONFIDENCE,
    Draws,
    Floats,
    Resampled,
    Verdict,
    widening,
)
from testdrive.compare.series import BUCKET_LN

METRIC = "wasserstein_1_ln_latency"


@dataclass(frozen=True)
class Distance:
    """How far apart two runs are.

    Attributes
    ----------
    distance
        In units of ln latency, at least 0; None where nothing was recorded.
    noise
        What the reference drive reaches against itself in 97.5 % of resamples; None with too few blocks.
    verdict
        `different` where the distance exceeds the noise and the error of the histograms.
    """

    distance: float | None
    noise: float | None
    verdict: Verdict

    @property
    def factor(self) -> float | None:
        """The distance as a factor of latency: that of a drive slower or faster by it in everything."""
        return None if self.distance is None else math.exp(self.distance)


def distance(draws: Draws) -> Distance:
    """Return the distance of two runs, with the reference's own noise."""
    whole = [Resampled.whole(one.series) for one in (draws.reference, draws.other)]
    found = float(wasserstein(*whole)[0])
    if draws.blocks < BLOCKS_MIN:
        return Distance(found, None, "too_few_blocks")
    drawn = wasserstein(draws.reference, draws.again)
    edge = (1 + CONFIDENCE) / 2
    noise = float(np.quantile(drawn, edge, method="inverted_cdf")) * widening(draws.blocks)
    different = found > max(noise, BUCKET_LN)
    return Distance(found, noise, "different" if different else "indistinguishable")


def wasserstein(one: Resampled, other: Resampled) -> Floats:
    """Return the distance of each resample of one run to that of the other, shape (resamples,)."""
    grid = np.union1d(one.series.values_ns, other.series.values_ns)
    apart = np.abs(_distribution(one, grid) - _distribution(other, grid))
    steps = np.diff(np.log(np.maximum(grid, 1)))
    area: Floats = apart[:, :-1] @ steps
    return area


def _distribution(drawn: Resampled, grid_ns: Floats) -> Floats:
    """The share of I/Os of each resample that took at most each of the times, shape (resamples, times)."""
    held = np.cumsum(drawn.histograms, axis=1)
    shares = np.pad(held, ((0, 0), (1, 0))) / np.maximum(held[:, -1:], 1)
    at = np.searchsorted(drawn.series.values_ns, grid_ns, side="right")
    found: Floats = shares[:, at]
    return found
