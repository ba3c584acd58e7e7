"""Ratios between drives with confidence intervals from a moving-block bootstrap within each run.

Latencies are autocorrelated: one burst fills thousands of I/Os, so that resampling single I/Os would give
intervals far too narrow. Whole blocks of time are drawn instead, longer than the correlation time (Kuensch
1989; block bootstrap). A run is first cut into windows (:mod:`testdrive.compare.series`), which makes a
resample a weighted sum of them: its cost does not depend on the number of I/Os.

What such an interval covers is this run: how else the same drive might do under another run is seen only by
repeating it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testdrive.compare.series import Series

RESAMPLES = 999
BLOCKS_MIN = 8
# With twice the correlation time, intervals between runs that differ by chance alone excluded 1 in 13 % of
# simulations; blocks of this length, with the widening for few blocks, bring it to about the 5 % that are
# promised.
BLOCK_TIMES = 4
CONFIDENCE = 0.95
# The 97.5 % point of the normal distribution, for CONFIDENCE.
_NORMAL = 1.959964

Floats = NDArray[np.float64]
Verdict = Literal[
    "better",
    "worse",
    "different",
    "indistinguishable",
    "too_few_blocks",
    "too_few_samples",
    "too_few_stalls",
    "not_recorded",
    "no_baseline",
    "no_stall",
    "no_stall_in_reference",
    "no_interval",
]


@dataclass(frozen=True)
class Ratio:
    """A drive's metric over the reference drive's; below 1 is better.

    Attributes
    ----------
    ratio, low, high
        The estimate and its 95 % interval; None where `verdict` says why.
    noise_low, noise_high
        The same interval of the reference drive compared with itself: what is within is noise.
    """

    metric: str
    ratio: float | None
    low: float | None
    high: float | None
    noise_low: float | None
    noise_high: float | None
    verdict: Verdict

    @classmethod
    def without_interval(cls, metric: str, ratio: float | None, verdict: Verdict) -> Ratio:
        """A ratio without an interval, or none at all; the verdict says why."""
        return cls(metric, ratio, None, None, None, None, verdict)


@dataclass(frozen=True)
class Resampled:
    """A run and how often each of its windows was drawn in each resample, shape (resamples, windows)."""

    series: Series
    weights: Floats

    @cached_property
    def histograms(self) -> Floats:
        """I/Os by bucket of each resample, shape (resamples, buckets)."""
        drawn: Floats = self.weights @ self.series.counts
        return drawn

    @classmethod
    def whole(cls, series: Series) -> Resampled:
        """The run itself: every window once."""
        return cls(series, np.ones((1, series.windows)))


@dataclass(frozen=True)
class Draws:
    """What a comparison of two runs draws: both, and the reference once more for its own noise.

    Attributes
    ----------
    reference, again, other
        The resamples.
    blocks
        How many blocks the shorter run consists of.
    """

    reference: Resampled
    again: Resampled
    other: Resampled
    blocks: float


def draw(reference: Series, other: Series, seed: int = 1) -> Draws:
    """Resample two runs in blocks of the length that the longer-correlated one needs."""
    block = max(block_windows(reference), block_windows(other))
    generator = np.random.default_rng(seed)

    def resampled(one: Series) -> Resampled:
        return Resampled(one, resample(one, min(block, one.windows), generator))

    blocks = min(reference.windows, other.windows) / block
    return Draws(resampled(reference), resampled(reference), resampled(other), blocks)


def block_windows(series: Series) -> int:
    """Return the length of a block in windows: `BLOCK_TIMES` the correlation time of ln mean latency, at
    least ten.

    The correlation time is the first lag at which the autocorrelation falls below 1/e; a window without I/Os
    takes the value
    before it.
    """
    ios = series.counts.sum(axis=1)
    held = np.flatnonzero(ios)
    nearest = held[np.maximum(np.searchsorted(held, np.arange(len(ios)), side="right") - 1, 0)]
    level = np.log(np.maximum(series.sums_ns[nearest], 1) / ios[nearest])
    level = level - level.mean()
    power = float(level @ level)
    if power <= 1e-12 * len(level):
        return min(10, len(ios))
    # The autocorrelation at every lag at once, padded so that it does not wrap.
    spectrum = np.abs(np.fft.rfft(level, 2 * len(level))) ** 2
    correlation = np.fft.irfft(spectrum)[: len(level)] / power
    below = np.flatnonzero(correlation < 1 / math.e)
    time = int(below[0]) if len(below) else len(level)
    return min(max(BLOCK_TIMES * time, 10), len(ios))


def resample(series: Series, block: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return how often each window is drawn in each resample, shape (RESAMPLES, windows).

    Blocks start anywhere and wrap around the end, so that every window is as likely as any other.
    """
    windows = len(series.sums_ns)
    blocks = -(-windows // block)
    start = generator.integers(0, windows, (RESAMPLES, blocks))
    length = np.full(blocks, block)
    length[-1] = windows - (blocks - 1) * block
    stop = start + length
    wrapped = stop > windows
    # A block adds one to each of its windows: a step up at its start and down at its end, summed along the
    # run.
    base = np.arange(RESAMPLES)[:, None] * (windows + 1)

    def steps(at: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(at, minlength=RESAMPLES * (windows + 1))

    change = steps((base + start).ravel()) - steps((base + np.minimum(stop, windows)).ravel())
    around = np.broadcast_to(base, start.shape)[wrapped]
    change += steps(around) - steps(around + stop[wrapped] - windows)
    weights: NDArray[np.float64] = np.cumsum(change.reshape(RESAMPLES, windows + 1)[:, :-1], axis=1).astype(
        float
    )
    return weights


def judged(metric: str, ratio: float, drawn: Floats, noise: Floats, blocks: float) -> Ratio:
    """Return the ratio with its interval and verdict.

    `better` or `worse` needs the interval to exclude 1 and the ratio to lie outside what the reference drive
    gives when compared with itself. With fewer than `BLOCKS_MIN` blocks there is no verdict.

    Parameters
    ----------
    ratio
        The estimate, above 0.
    drawn, noise
        The ratio in each resample, of the two drives and of the reference to itself, shape (resamples,).
    blocks
        How many blocks the shorter run consists of.
    """
    if blocks < BLOCKS_MIN:
        return Ratio.without_interval(metric, ratio, "too_few_blocks")
    low, high = _interval(drawn, ratio, blocks)
    noise_low, noise_high = _interval(noise, 1.0, blocks)
    verdict = _verdict(ratio, (low, high), (noise_low, noise_high))
    return Ratio(metric, ratio, low, high, noise_low, noise_high, verdict)


def widening(blocks: float) -> float:
    """Return how much wider an interval has to be than the resamples spread.

    Resampling n blocks gives the spread of n deviations with their own mean taken out, and as if it were
    known exactly. Student's t with n - 1 degrees of freedom puts that right, as for the mean of n values.
    """
    return _student_t(blocks - 1) / _NORMAL * math.sqrt(blocks / (blocks - 1))


def _interval(values: Floats, centre: float, blocks: float) -> tuple[float, float]:
    """Return the interval of resampled ratios around the estimate `centre`, widened for the number of
    blocks.
    """
    kept = np.sort(values[np.isfinite(values)])
    if not len(kept):
        return math.nan, math.nan
    edge = (1 - CONFIDENCE) / 2
    low, high = float(kept[int(edge * (len(kept) - 1))]), float(kept[math.ceil((1 - edge) * (len(kept) - 1))])
    wider = widening(blocks)
    return min(low, centre * (low / centre) ** wider), max(high, centre * (high / centre) ** wider)


def _student_t(freedom: float) -> float:
    """Return the 97.5 % point of Student's t by its expansion around the normal's (Abramowitz and Stegun
    26.7.5).
    """
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _verdict(ratio: float, interval: tuple[float, float], noise: tuple[float, float]) -> Verdict:
    if interval[1] < 1 and ratio < noise[0]:
        return "better"
    if interval[0] > 1 and ratio > noise[1]:
        return "worse"
    return "indistinguishable"


def as_dict(ratio: Ratio) -> dict[str, Any]:
    """Return the ratio under the names that tables and JSON use."""
    return {
        "metric": ratio.metric,
        "ratio": ratio.ratio,
        "low": ratio.low,
        "high": ratio.high,
        "noise_low": ratio.noise_low,
        "noise_high": ratio.noise_high,
        "verdict": ratio.verdict,
    }
