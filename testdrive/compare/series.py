"""A run cut into windows with a histogram each, from which every figure of a resample is a weighted sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE
from testdrive.recording import Recording

WINDOW_NS = 100_000_000
WINDOWS_MAX = 2000
#: The width of a bucket in ln latency.
BUCKET_LN = math.log1p(1 / 128)


@dataclass(frozen=True)
class Series:
    """A run cut into windows: service times of its I/Os without an error.

    Attributes
    ----------
    counts
        I/Os by window and bucket, shape (windows, buckets).
    sums_ns
        Sum of the latencies of each window, shape (windows,).
    values_ns
        The greatest latency of each bucket, ascending, shape (buckets,): at most 1/128 above any value of the
        bucket.
    window_ns
        The width of a window.
    read_write_ios, read_write_sums_ns
        Reads and writes of each window and the sum of their latencies, shape (windows,): what the baseline is
        of.
    """

    counts: NDArray[np.float64]
    sums_ns: NDArray[np.float64]
    values_ns: NDArray[np.float64]
    window_ns: int
    read_write_ios: NDArray[np.int64]
    read_write_sums_ns: NDArray[np.int64]

    @property
    def ios(self) -> int:
        """How many I/Os it holds."""
        return int(self.counts.sum())

    @property
    def windows(self) -> int:
        """How many windows it has."""
        return len(self.sums_ns)


def window_series(recording: Recording) -> Series | None:
    """Cut a recording's measured rows into windows of 100 ms (or more, for runs of over 2,000 windows); None
    if empty.
    """
    rows = recording.table()
    done = rows.filter((rows.status == 0) & (rows.latency_ns >= 0))
    last = recording.execute(done.aggregate(last_ns=done.submit_ns.max()))["last_ns"]
    if not len(last) or np.isnan(last[0]):
        return None
    window_ns = max(WINDOW_NS, -(-int(last[0]) // WINDOWS_MAX))
    bucketed = done.select(
        window=(done.submit_ns // window_ns).cast("int64").clip(0, None),
        bucket=(ibis.greatest(done.latency_ns, 1).cast("float64").ln() / BUCKET_LN).floor().cast("int64"),
        latency_ns=done.latency_ns,
        read_write=done.opcode.isin((READ, WRITE)).cast("int64"),
    )
    found = recording.execute(
        bucketed.group_by(["window", "bucket"]).aggregate(
            ios=bucketed.count(),
            sum_ns=bucketed.latency_ns.sum().cast("float64"),
            max_ns=bucketed.latency_ns.max(),
            read_write_ios=bucketed.read_write.sum().cast("int64"),
            read_write_sum_ns=(bucketed.latency_ns * bucketed.read_write).sum().cast("int64"),
        )
    )
    buckets, column = np.unique(found["bucket"], return_inverse=True)
    windows = int(found["window"].max()) + 1
    counts = np.zeros((windows, len(buckets)))
    counts[found["window"], column] = found["ios"]
    values_ns = np.zeros(len(buckets))
    np.maximum.at(values_ns, column, found["max_ns"])
    sums_ns = np.bincount(found["window"], weights=found["sum_ns"], minlength=windows).astype(np.float64)
    read_write_ios, read_write_sums_ns = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
    np.add.at(read_write_ios, found["window"], found["read_write_ios"])
    np.add.at(read_write_sums_ns, found["window"], found["read_write_sum_ns"])
    return Series(counts, sums_ns, values_ns, window_ns, read_write_ios, read_write_sums_ns)
