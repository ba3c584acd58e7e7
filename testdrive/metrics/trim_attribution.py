"""How far the bursts of latency go with the trims. This is correlation: a cause is never claimed from it.

- ``excess_share``: of the excess of a burst, the sum of (latency - baseline) over its reads and writes, the
share that
  belongs to I/Os that overlap an outstanding trim or start within one window (100 ms) after one completed.
  The I/Os of a burst are those submitted between its onset and its end; without a baseline the level before
  the burst stands for it. The top-level value is that of the burst with the largest latency.
- ``near_trims_time_share``: the share of the run's time in which an I/O that starts is near a trim; an excess
  share that is no greater says nothing.
- ``correlation``: Pearson's r of the bytes trimmed in each window with the level of latency (ln of the mean)
0-10 s
  later: the lag at which it is greatest, and the p-value of that greatest r among 999 circular shifts of the
  trims (by more than 10 s, from a fixed seed). Series are taken as circular, so that every shift is compared
  alike.
- ``streams``: which streams submitted the trims.

Codes: ``no_trims``; ``no_burst`` (for the share alone); ``too_short`` (for the correlation, under 30 s);
``constant`` (one of the series does not vary); ``no_completions``. A cause is shown only by a counterfactual:
the same replay with the trims left out, split or paced, compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import TRIM
from testdrive.metrics.metric import NO_COMPLETIONS, NO_TRIMS, NOT_RECORDED, TOO_SHORT, Metric, Values
from testdrive.metrics.scans import CELL_NS, Level, Scan
from testdrive.metrics.scans.cells import SECOND_NS
from testdrive.metrics.scans.intervals import covered_before
from testdrive.metrics.scans.trim_overlap import excess_by_burst, influence
from testdrive.metrics.workload_trim_pattern import listed_streams

LAG_S_MAX = 10
SHIFTS = 999
_SHORTEST_S = 30
_SEED = 20_240_501


def compute(scan: Scan) -> Values:
    """Share of the excess, correlation and streams."""
    trims = scan.cells.chosen((TRIM,))
    level = scan.level
    if level is None or not trims.any():
        return METRIC.absent(NO_COMPLETIONS if level is None else NO_TRIMS)
    trimmed_bytes = scan.cells.series("bytes", "submit_cell", trims)
    bursts = _bursts(scan, level)
    largest = max(bursts, key=lambda burst: burst["peak_latency_ns"], default=None)
    streams = None if "stream" in scan.absent_columns else listed_streams(scan)
    return {
        "trim_attribution.excess_share": largest["excess_share"] if largest else None,
        "trim_attribution.excess_share_code": None if largest else "no_burst",
        "trim_attribution.bursts": bursts,
        "trim_attribution.near_trims_time_share": _time_share(scan),
        **correlation(trimmed_bytes[: len(level.ios)], level.log_latency, level.width_ns),
        "trim_attribution.streams": streams,
        "trim_attribution.single_stream": len(streams) == 1 if streams is not None else None,
        "trim_attribution.streams_code": None if streams is not None else NOT_RECORDED,
        "trim_attribution.cause_claimed": False,
        "trim_attribution.code": None,
    }


def _bursts(scan: Scan, level: Level) -> list[dict[str, Any]]:
    """The excess of each burst and the share of it that goes with trims."""
    result = []
    for burst, found in zip(level.bursts, excess_by_burst(scan, level), strict=True):
        reference_ns = level.mean_ns(level.calm)
        if burst.end is None:
            earlier = level.calm & (np.arange(len(level.ios)) < burst.onset)
            reference_ns = level.mean_ns(earlier) or reference_ns
        excess = [
            found[f"{which}_ns"] - found[f"{which}_ios"] * (reference_ns or 0.0) for which in ("all", "near")
        ]
        result.append(
            {
                "onset_ns": level.time_ns(burst.onset),
                "peak_latency_ns": found["peak_ns"],
                "ios": found["all_ios"],
                "ios_near_trims": found["near_ios"],
                "excess_ns": excess[0],
                "excess_near_trims_ns": excess[1],
                "excess_share": excess[1] / excess[0] if excess[0] > 0 else None,
            }
        )
    return result


def _time_share(scan: Scan) -> float | None:
    extent = scan.extent
    edges = np.array([extent.submit_first_ns, extent.complete_last_ns])
    before, after = covered_before(*influence(scan), edges)
    return float(after - before) / extent.span_ns if extent.span_ns else None


def correlation(
    trimmed_bytes: NDArray[Any], log_latency: NDArray[np.float64], width_ns: int = CELL_NS
) -> Values:
    """The greatest correlation of trims with the latency 0-10 s later, its lag and its p-value.

    Parameters
    ----------
    trimmed_bytes, log_latency : ndarray, one entry a cell
    width_ns : int, the width of a cell
    """
    key = "trim_attribution.correlation"
    n, lags = len(log_latency), max(LAG_S_MAX * SECOND_NS // width_ns, 1)
    if n * width_ns < _SHORTEST_S * SECOND_NS:
        return {key: None, f"{key}_code": TOO_SHORT}
    trims = trimmed_bytes - trimmed_bytes.mean()
    # Idle windows say nothing: they get the mean, which adds nothing to a correlation.
    latency = np.nan_to_num(log_latency - np.nanmean(log_latency))
    scale = float(np.sqrt((trims**2).sum() * (latency**2).sum()))
    if scale <= 1e-12 * n:
        return {key: None, f"{key}_code": "constant"}
    # r[k]: the correlation with the latency k windows later, all k at once.
    r = np.fft.irfft(np.conj(np.fft.rfft(trims)) * np.fft.rfft(latency), n) / scale
    greatest = np.lib.stride_tricks.sliding_window_view(np.concatenate((r, r[:lags])), lags + 1).max(axis=1)
    lag = int(np.argmax(r[: lags + 1]))
    shifts = np.random.default_rng(_SEED).integers(lags + 1, n - lags, SHIFTS)
    as_great = int((greatest[shifts] >= greatest[0]).sum())
    return {
        key: {
            "r": float(r[lag]),
            "lag_ns": lag * width_ns,
            "p_value": (1 + as_great) / (1 + SHIFTS),
            "shifts": SHIFTS,
        },
        f"{key}_code": None,
    }


METRIC = Metric(
    "trim attribution",
    (
        "trim_attribution.excess_share",
        "trim_attribution.excess_share_code",
        "trim_attribution.bursts",
        "trim_attribution.near_trims_time_share",
        "trim_attribution.correlation",
        "trim_attribution.correlation_code",
        "trim_attribution.streams",
        "trim_attribution.single_stream",
        "trim_attribution.streams_code",
        "trim_attribution.cause_claimed",
        "trim_attribution.code",
    ),
    ("latency_ns", "opcode"),
    compute,
)
