"""Distributions of service time and lateness, as curves that are exact at their points.

Both weightings come from one histogram with a count, a sum and a maximum in each bucket: at a bucket's
maximum F_IO and F_L
are exact, and between two points the curve is at most 1/128 wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.recording import Recording

_BUCKET = math.log1p(1 / 128)
# For a one-sided 95 % upper bound on quantile p, p**n <= 0.05: so about 3 / (1 - p) I/Os.
_SAMPLES = -math.log(0.05)


@dataclass(frozen=True)
class Curve:
    """A cumulative distribution.

    Attributes
    ----------
    value_ns
        Increasing; each the greatest value of its bucket.
    io_share, time_share
        Share of I/Os, and of the sum of their values, at or below `value_ns`. Each ends at 1.
    ios
        How many values there are.
    """

    value_ns: NDArray[np.int64]
    io_share: NDArray[np.float64]
    time_share: NDArray[np.float64]
    ios: int

    @property
    def supported_share(self) -> float:
        """Return the highest percentile that so many I/Os support (see metrics: p99 needs 299)."""
        return supported_share(self.ios)


def supported_share(ios: int) -> float:
    """Return the highest percentile, as a share, that so many I/Os support."""
    return max(0.0, 1 - _SAMPLES / ios) if ios else 0.0


def service_curve(recording: Recording) -> Curve:
    """Return the distribution of the service time of all I/Os without an error, as the summary's percentiles
    are.
    """
    rows = recording.table()
    done = rows.filter((rows.status == 0) & (rows.latency_ns >= 0))
    return _curve(recording, done.select(value=done.latency_ns))


def lateness_curve(recording: Recording) -> Curve:
    """Return the distribution of lateness (submission less intended time) of all I/Os; early ones count as
    0.
    """
    rows = recording.table()
    return _curve(recording, rows.select(value=ibis.greatest(rows.submit_ns - rows.intended_ns, 0)))


def _curve(recording: Recording, values: Any) -> Curve:
    bucketed = values.mutate(
        bucket=(ibis.greatest(values.value, 1).cast("float64").ln() / _BUCKET).floor().cast("int64")
    )
    found = recording.execute(
        bucketed.group_by("bucket").aggregate(
            ios=bucketed.count(),
            sum_ns=bucketed.value.sum().cast("float64"),
            max_ns=bucketed.value.max(),
        )
    )
    order = np.argsort(found["bucket"])
    ios, sum_ns, max_ns = (found[name][order] for name in ("ios", "sum_ns", "max_ns"))
    total, total_ns = int(ios.sum()), float(sum_ns.sum())
    io_share = np.cumsum(ios) / max(total, 1)
    time_share = np.cumsum(sum_ns) / total_ns if total_ns else io_share
    return Curve(max_ns, io_share, time_share, total)
