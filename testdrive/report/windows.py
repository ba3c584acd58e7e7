"""Series over time: latency lines and trims, each in windows of one width so that they share an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import TRIM, WRITE
from testdrive.recording import Recording
from testdrive.report.axes import round_up

WINDOW_NS = 100_000_000
WINDOWS_MAX = 2000
# With fewer I/Os in a window the element of rank ceil(0.99 n) is its maximum, and says nothing of its own.
P99_IOS_MIN = 100
# Buckets of this relative width bound the error of a window's p99 from above by 1/128.
_BUCKET = math.log1p(1 / 128)


@dataclass(frozen=True)
class LatencyLines:
    """Mean, p99 and maximum service time of the reads and writes submitted in each window, in ns; NaN where
    none.

    The p99 is NaN too in a window of fewer than `P99_IOS_MIN` I/Os.
    """

    mean_ns: NDArray[np.float64]
    p99_ns: NDArray[np.float64]
    max_ns: NDArray[np.float64]


@dataclass(frozen=True)
class TrimLines:
    """Bytes trimmed in each window (by submission) and the most trims outstanding at once in it."""

    trimmed_bytes: NDArray[np.int64]
    outstanding_max: NDArray[np.int64]


def window_ns(span_ns: float) -> int:
    """Return 100 ms, or for long spans the 1, 2 or 5 times a power of ten that keeps within `WINDOWS_MAX`
    windows.
    """
    return max(WINDOW_NS, int(round_up(max(span_ns, 1) / WINDOWS_MAX)))


def latency_lines(recording: Recording, width_ns: int, windows: int) -> LatencyLines:
    """Summarise the service time of successful reads and writes in each of `windows` windows of `width_ns`.

    The p99 is the element of rank ceil(0.99 n) of the window, at most 1/128 above its value (from buckets);
    the others are
    exact.
    """
    rows = recording.table()
    done = rows.filter((rows.status == 0) & (rows.latency_ns >= 0) & (rows.opcode <= WRITE))
    bucketed = done.select(
        window=_window(done.submit_ns, width_ns, windows),
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
    order = np.lexsort((found["bucket"], found["window"]))
    window, ios, sum_ns, max_ns = (found[name][order] for name in ("window", "ios", "sum_ns", "max_ns"))
    mean, p99, maximum = (np.full(windows, np.nan) for _ in range(3))
    starts = np.flatnonzero(np.diff(window, prepend=-1))
    for start, stop in pairwise([*starts, len(window)]):
        held = np.cumsum(ios[start:stop])
        # Integer arithmetic: 0.99 * n in floating point can land just above a whole rank.
        rank = -(-99 * int(held[-1]) // 100)
        at = window[start]
        mean[at] = sum_ns[start:stop].sum() / held[-1]
        if held[-1] >= P99_IOS_MIN:
            p99[at] = max_ns[start + np.searchsorted(held, rank)]
        maximum[at] = max_ns[stop - 1]
    return LatencyLines(mean, p99, maximum)


def trim_lines(recording: Recording, width_ns: int, windows: int) -> TrimLines | None:
    """Return bytes trimmed and trims outstanding in each window, or None where the recording has no trims."""
    rows = recording.table()
    trims = rows.filter(rows.opcode == TRIM)
    starts = trims.select(at_ns=trims.submit_ns, change=ibis.literal(1, "int64"), size=trims.length_bytes)
    done = trims.filter(trims.latency_ns >= 0)
    ends = done.select(
        at_ns=done.submit_ns + done.latency_ns,
        change=ibis.literal(-1, "int64"),
        size=ibis.literal(0, "int64"),
    )
    # An empty recording's columns are typed as never null, those of files are not: a union wants one type.
    types = {"at_ns": "int64", "change": "int64", "size": "int64"}
    events = ibis.union(starts.cast(types), ends.cast(types))
    # At the same instant the completion comes first: one trim following another at once is not two
    # outstanding.
    order = ibis.window(order_by=[events.at_ns, events.change], preceding=None, following=0)
    running = events.mutate(
        outstanding=events.change.sum().over(order), window=_window(events.at_ns, width_ns, windows)
    )
    found = recording.execute(
        running.group_by("window").aggregate(
            size=running["size"].sum(), change=running.change.sum(), peak=running.outstanding.max()
        )
    )
    if not len(found["window"]):
        return None
    size, change, peak = (np.zeros(windows, np.int64) for _ in range(3))
    at = found["window"]
    size[at], change[at], peak[at] = found["size"], found["change"], found["peak"]
    carried = np.concatenate([[0], np.cumsum(change)[:-1]])
    return TrimLines(size, np.maximum(peak, carried))


def _window(column: Any, width_ns: int, windows: int) -> Any:
    return (column // width_ns).cast("int64").clip(0, windows - 1)
