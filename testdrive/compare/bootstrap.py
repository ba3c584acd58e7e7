"""Ratios between drives with confidence intervals from a moving-block bootstrap within each run.

Latencies are autocorrelated: one burst fills thousands of I/Os, so that resampling single I/Os would give
intervals far too
narrow. Whole blocks of time are drawn instead, longer than the correlation time (Kuensch 1989; block
bootstrap). A run is
first cut into windows with one histogram each, which makes a resample a weighted sum of histograms: its cost
does not
depend on the number of I/Os.

What such an interval covers is this run: how else the same drive might do under another run is seen only by
repeating it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.recording import Recording

RESAMPLES = 999
WINDOW_NS = 100_000_000
WINDOWS_MAX = 2000
BLOCKS_MIN = 8
# With twice the correlation time, intervals between runs that differ by chance alone excluded 1 in 13 % of
# simulations; blocks of this
# length, with the widening for few blocks, bring it to about the 5 % that are promised.
BLOCK_TIMES = 4
CONFIDENCE = 0.95
_BUCKET = math.log1p(1 / 128)
_SAMPLES = -math.log(0.05)
# The 97.5 % point of the normal distribution, for CONFIDENCE.
_NORMAL = 1.959964

Verdict = Literal["better", "worse", "indistinguishable", "too_few_blocks", "too_few_samples", "not_recorded"]
Metric = Literal["mean", "p50", "p90", "p99", "p99_9", "p99_99"]
METRICS: tuple[Metric, ...] = ("mean", "p50", "p90", "p99", "p99_9", "p99_99")
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


@dataclass(frozen=True)
class Series:
    """A run cut into windows: service times of all its I/Os without an error.

    Attributes
    ----------
    counts
        I/Os by window and bucket, shape (windows, buckets).
    sums_ns
        Sum of the latencies of each window, shape (windows,).
    values_ns
        The greatest latency of each bucket, ascending, shape (buckets,): at most 1/128 above any value of the
        bucket.
    """

    counts: NDArray[np.float64]
    sums_ns: NDArray[np.float64]
    values_ns: NDArray[np.float64]

    @property
    def ios(self) -> int:
        """How many I/Os it holds."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Ratio:
    """A drive's metric over the reference drive's; below 1 is faster.

    Attributes
    ----------
    ratio, low, high
        The estimate and its 95 % interval; None where `verdict` says why.
    noise_low, noise_high
        The same interval of the reference drive compared with itself: what is within is noise.
    """

    metric: Metric
    ratio: float | None
    low: float | None
    high: float | None
    noise_low: float | None
    noise_high: float | None
    verdict: Verdict


def window_series(recording: Recording) -> Series | None:
    """Cut a recording's measured rows into windows of 100 ms (or more, for runs of over 2,000 windows); None
    if empty.
    """
    rows = recording.table()
    done = rows.filter((rows.status == 0) & (rows.latency_ns >= 0))
    last = recording.execute(done.aggregate(last_ns=done.submit_ns.max()))["last_ns"]
    if not len(last) or np.isnan(last[0]):
        return None
    width_ns = max(WINDOW_NS, -(-int(last[0]) // WINDOWS_MAX))
    bucketed = done.select(
        window=(done.submit_ns // width_ns).cast("int64").clip(0, None),
        bucket=(ibis.greatest(done.latency_ns, 1).cast("float64").ln() / _BUCKET).floor().cast("int64"),
        latency_ns=done.latency_ns,
    )
    found = recording.execute(
        bucketed.group_by(["window", "bucket"]).aggregate(
            ios=bucketed.count(),
            sum_ns=bucketed.latency_ns.sum().cast("float64"),
            max_ns=bucketed.latency_ns.max(),
        )
    )
    buckets, column = np.unique(found["bucket"], return_inverse=True)
    windows = int(found["window"].max()) + 1
    counts = np.zeros((windows, len(buckets)))
    counts[found["window"], column] = found["ios"]
    sums_ns = np.bincount(found["window"], weights=found["sum_ns"], minlength=windows).astype(np.float64)
    values_ns = np.zeros(len(buckets))
    np.maximum.at(values_ns, column, found["max_ns"])
    return Series(counts, sums_ns, values_ns)


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


def estimates(series: Series, weights: NDArray[np.float64]) -> dict[Metric, NDArray[np.float64]]:
    """Return each metric of each weighting of the windows (rows of `weights`), in ns; NaN where no I/O was
    drawn.
    """
    counts = weights @ series.counts
    held = np.cumsum(counts, axis=1)
    total = held[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: dict[Metric, NDArray[np.float64]] = {"mean": (weights @ series.sums_ns) / total}
    for name in METRICS[1:]:
        # Rank ceil(p * n), rounded first since p is no exact binary fraction.
        rank = np.ceil(np.round(_QUANTILES[name] * total, 6))
        at = (held < rank[:, None]).sum(axis=1)
        found[name] = np.where(total > 0, series.values_ns[np.minimum(at, len(series.values_ns) - 1)], np.nan)
    return found


def compare(reference: Series | None, other: Series | None, seed: int = 1) -> list[Ratio]:
    """Return the ratio `other` / `reference` of each metric with its interval and verdict.

    `better` or `worse` needs the interval to exclude 1 and the ratio to lie outside what the reference drive
    gives when
    compared with itself. With fewer than `BLOCKS_MIN` blocks, or fewer I/Os than the percentile needs, there
    is no verdict.
    """
    if reference is None or other is None:
        return [Ratio(metric, None, None, None, None, None, "not_recorded") for metric in METRICS]
    block = max(block_windows(reference), block_windows(other))
    blocks = min(len(reference.sums_ns), len(other.sums_ns)) / block
    generator = np.random.default_rng(seed)
    drawn = [
        estimates(one, resample(one, min(block, len(one.sums_ns)), generator))
        for one in (reference, reference, other)
    ]
    whole = [estimates(one, np.ones((1, len(one.sums_ns)))) for one in (reference, other)]
    ios = min(reference.ios, other.ios)
    ratios = []
    for metric in METRICS:
        ratio = float(whole[1][metric][0] / whole[0][metric][0])
        if metric != "mean" and ios < _SAMPLES / (1 - _QUANTILES[metric]) - 1:
            ratios.append(Ratio(metric, None, None, None, None, None, "too_few_samples"))
            continue
        if blocks < BLOCKS_MIN:
            ratios.append(Ratio(metric, ratio, None, None, None, None, "too_few_blocks"))
            continue
        low, high = _interval(drawn[2][metric] / drawn[0][metric], ratio, blocks)
        noise_low, noise_high = _interval(drawn[1][metric] / drawn[0][metric], 1.0, blocks)
        verdict = _verdict(ratio, (low, high), (noise_low, noise_high))
        ratios.append(Ratio(metric, ratio, low, high, noise_low, noise_high, verdict))
    return ratios


def _interval(values: NDArray[np.float64], centre: float, blocks: float) -> tuple[float, float]:
    """Return the interval of resampled ratios around the estimate `centre`, widened for the number of blocks.

    Resampling n blocks gives the spread of n deviations with their own mean taken out, and as if it were
    known exactly.
    Student's t with n - 1 degrees of freedom puts that right, as for the mean of n values.
    """
    kept = np.sort(values[np.isfinite(values)])
    if not len(kept):
        return math.nan, math.nan
    edge = (1 - CONFIDENCE) / 2
    low, high = float(kept[int(edge * (len(kept) - 1))]), float(kept[math.ceil((1 - edge) * (len(kept) - 1))])
    wider = _student_t(blocks - 1) / _NORMAL * math.sqrt(blocks / (blocks - 1))
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
