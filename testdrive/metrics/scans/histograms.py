"""The shared passes over a recording that keeps histograms and the slowest I/Os instead of every row.

What it can tell is exact: counts, bytes, sums, means, maxima and the I/Os of each second. Percentiles are the
longest latency of their bucket, at most 1/128 above the exact ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.metrics.scans.distribution import Distributions
from testdrive.metrics.scans.scan import Scan
from testdrive.recording import Arrays
from testdrive.segments import SERVICE

#: The error of a percentile that is read off the engine's buckets: their relative width.
BUCKET_ERROR_MAX = 1 / 128


class HistogramScan(Scan):
    """As :class:`~testdrive.metrics.scans.scan.Scan`, for a recording whose manifest says ``kept``.

    Only what :attr:`~testdrive.metrics.metric.Metric.needs` ``histograms`` may be asked of it.
    """

    @property
    def entries(self) -> Any:
        """The histograms of the service times in the measured phases, an Ibis table."""
        entries = self.recording.intervals()
        return entries.filter((entries.quantity == SERVICE) & entries.phase.isin(self._measured()))

    @cached_property
    def latency(self) -> Distributions:
        """Service times of the I/Os without an error, an entry for each bucket with its longest."""
        entries = self.entries.filter(self.entries.latency_ceiling_ns >= 0)
        found = self.execute(
            entries.group_by(code=entries.opcode, ceiling=entries.latency_ceiling_ns).aggregate(
                value=entries.max_ns.max(), count=entries["count"].sum(), total=entries.sum_ns.sum()
            )
        )
        return Distributions(*(found[key].astype(np.int64) for key in ("code", "value", "count", "total")))

    @cached_property
    def tallies(self) -> Arrays:
        """I/Os and bytes by opcode and fate."""
        entries = self.entries
        found = self.execute(
            entries.group_by(code=entries.opcode, failed=entries.latency_ceiling_ns < 0).aggregate(
                ios=entries["count"].sum(), bytes=entries.bytes.sum()
            )
        )
        rows = self.recording.slowest_rows()
        lost = rows.filter((rows.latency_ns < 0) & rows.phase.isin(self._measured()))
        unanswered = self.execute(
            lost.group_by(code=lost.opcode).aggregate(ios=lost.count(), bytes=lost.length_bytes.sum())
        )
        return _apart(found, unanswered)

    def _measured(self) -> list[int]:
        return [phase.index for phase in self.recording.manifest.measured_phases] or [-1]

    @cached_property
    def completions(self) -> NDArray[np.int64] | None:
        """I/Os completed without an error in each whole second of each measured phase, end to end."""
        entries = self.entries.filter(self.entries.latency_ceiling_ns >= 0)
        found = self.execute(
            entries.group_by("phase", "start_ns").aggregate(ios=entries["count"].sum().cast("int64"))
        )
        kept = self.recording.manifest.kept
        assert kept is not None, "only recordings with histograms are scanned so"
        parts = [np.zeros(0, np.int64)]
        for phase in self.recording.manifest.measured_phases:
            seconds = max((phase.end_ns or phase.start_ns) - phase.start_ns, 0) // kept.interval_ns
            counts = np.zeros(seconds, np.int64)
            mine = found["phase"] == phase.index
            place = (found["start_ns"][mine] - phase.start_ns) // kept.interval_ns
            inside = (place >= 0) & (place < seconds)
            counts[place[inside]] = found["ios"][mine][inside]
            parts.append(counts)
        return np.concatenate(parts)

    @property
    def percentile_error_max(self) -> float | None:
        """The relative error of percentiles."""
        return BUCKET_ERROR_MAX


def _apart(found: Arrays, unanswered: Arrays) -> Arrays:
    """The tallies, with those that were never answered taken out of those that failed."""
    parts: dict[str, list[Any]] = {key: [] for key in ("code", "ios", "bytes", "failed", "completed")}

    def add(code: int, ios: int, size: int, failed: bool, completed: bool) -> None:
        for key, value in zip(parts, (code, ios, size, failed, completed), strict=True):
            parts[key].append(value)

    lost = {
        int(code): (int(ios), int(size))
        for code, ios, size in zip(unanswered["code"], unanswered["ios"], unanswered["bytes"], strict=True)
    }
    for code, failed, ios, size in zip(
        found["code"], found["failed"], found["ios"], found["bytes"], strict=True
    ):
        missing, missing_bytes = lost.get(int(code), (0, 0)) if failed else (0, 0)
        add(int(code), int(ios) - missing, int(size) - missing_bytes, bool(failed), True)
        if missing:
            add(int(code), missing, missing_bytes, True, False)
    return {key: np.array(values) for key, values in parts.items()} | {
        "failed": np.array(parts["failed"], bool),
        "completed": np.array(parts["completed"], bool),
    }
