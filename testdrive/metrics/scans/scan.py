"""The passes over the rows that metrics share, each made once and only if a metric asks for it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import TRIM, UNKNOWN, opcode_name
from testdrive.metrics.scans.cells import SECOND_NS, Cells, scan_cells
from testdrive.metrics.scans.depths import Depths, depths
from testdrive.metrics.scans.distribution import (
    RELATIVE_ERROR_MAX,
    Distribution,
    Distributions,
    distributions,
)
from testdrive.metrics.scans.extents import Touched, fetch_touched
from testdrive.metrics.scans.regions import Regions, count_regions
from testdrive.metrics.scans.sample import Sample, take_sample
from testdrive.metrics.scans.seconds import Seconds, seconds_of_cells, seconds_of_rows
from testdrive.metrics.scans.windows import Level, level
from testdrive.recording import Arrays, Recording

#: Latencies at which the cumulative shares and the stall time are published.
SHARE_THRESHOLDS_NS: tuple[int, ...] = (
    *(step * 10**power for power in range(3, 9) for step in (1, 5)),
    10**9,
    10**10,
)

#: Up to this many I/Os every percentile is exact. Beyond, those of lateness and response time are read off
#: buckets, to save two passes over the rows; those of the service time are exact always.
EXACT_IOS_MAX = 20_000_000


@dataclass(frozen=True)
class Extent:
    """How many I/Os there are and between which times; zeros if there are none.

    ``complete_last_ns`` is the last completion, or the last submission if that is later. ``latency_ns_max``
    is of any I/O, failed or not. ``offset_first_bytes`` and ``end_last_bytes`` bound the addresses of all
    I/Os with a length.
    """

    ios: int
    intended_first_ns: int
    intended_last_ns: int
    submit_first_ns: int
    submit_last_ns: int
    complete_last_ns: int
    latency_ns_max: int
    offset_first_bytes: int = 0
    end_last_bytes: int = 0

    @property
    def span_ns(self) -> int:
        """From the first submission to the last completion: the wall-clock time of the run."""
        return self.complete_last_ns - self.submit_first_ns


class Scan:
    """The rows of a recording's measured phases, and the shared passes over them.

    Attributes
    ----------
    recording : Recording
        Where it comes from.
    rows : ibis table
        The rows of the measured phases (:meth:`Recording.table`).
    absent_columns : frozenset of str
        Columns that the source did not have.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.rows = recording.table()
        self.absent_columns = frozenset(recording.manifest.absent_columns)

    def execute(self, expression: Any) -> Arrays:
        """Run an Ibis expression and return its columns as numpy arrays."""
        return self.recording.execute(expression)

    @property
    def timed(self) -> bool:
        """Whether the source had times of any kind."""
        return not self.absent_columns.issuperset(("intended_ns", "submit_ns"))

    @property
    def told_apart(self) -> bool:
        """Whether the source said what each I/O was. Where it did not, rows hold a filler for the opcode."""
        return "opcode" not in self.absent_columns

    def opcode_name(self, code: int) -> str:
        """The name of an opcode of the rows; ``unknown`` where the source did not tell I/Os apart."""
        return opcode_name(int(code)) if self.told_apart else UNKNOWN

    @property
    def ok_rows(self) -> Any:
        """The I/Os that completed without an error: the only ones that enter latency figures."""
        return self.rows.filter((self.rows.status == 0) & (self.rows.latency_ns >= 0))

    @cached_property
    def extent(self) -> Extent:
        """Number of I/Os, first and last times."""
        rows = self.rows
        ended = ((rows.latency_ns > 0).ifelse(rows.latency_ns, 0) + rows.submit_ns).max()
        placed = (rows.length_bytes > 0) & (rows.offset_bytes >= 0)
        found = self.execute(
            rows.aggregate(
                ios=rows.count(),
                intended_first_ns=rows.intended_ns.min(),
                intended_last_ns=rows.intended_ns.max(),
                submit_first_ns=rows.submit_ns.min(),
                submit_last_ns=rows.submit_ns.max(),
                complete_last_ns=ended,
                latency_ns_max=rows.latency_ns.max(),
                offset_first_bytes=rows.offset_bytes.min(where=placed).fill_null(0),
                end_last_bytes=(rows.offset_bytes + rows.length_bytes).max(where=placed).fill_null(0),
            )
        )
        if not found["ios"][0]:
            return Extent(*[0] * len(fields(Extent)))
        return Extent(**{name: int(values[0]) for name, values in found.items()})

    @cached_property
    def cells(self) -> Cells:
        """The I/Os counted in cells of 100 ms."""
        extent = self.extent
        first_ns = min(extent.intended_first_ns, extent.submit_first_ns)
        return scan_cells(
            self.recording, self.rows, first_ns, max(extent.complete_last_ns, extent.intended_last_ns)
        )

    @cached_property
    def seconds(self) -> Seconds:
        """The arrivals in each second, and the busiest of them. Not without I/Os."""
        if self.cells.width_ns <= SECOND_NS:
            return seconds_of_cells(self.cells)
        extent = self.extent
        last_ns = max(extent.complete_last_ns, extent.intended_last_ns)
        return seconds_of_rows(self.recording, self.rows, self.cells.time_ns(0), last_ns)

    @cached_property
    def level(self) -> Level | None:
        """Latency over time and its bursts, or None if no read or write completed without an error."""
        return level(self.cells)

    @cached_property
    def shapes(self) -> Arrays:
        """I/Os counted by opcode (``code``), ``length_bytes``, alignment and fate.

        ``alignment_bytes`` is the largest power of two, up to 1 MiB, that divides offset and length.
        ``failed`` is true with a status other than 0, ``completed`` with a latency.
        """
        rows = self.rows
        place = rows.offset_bytes | rows.length_bytes | (1 << 20)
        rows = rows.select(
            code=rows.opcode,
            length_bytes=rows.length_bytes,
            alignment_bytes=place & -place,
            failed=rows.status != 0,
            completed=rows.latency_ns >= 0,
        )
        return self.execute(rows.group_by(*rows.columns).aggregate(ios=rows.count()))

    @cached_property
    def tallies(self) -> Arrays:
        """I/Os (``ios``) and ``bytes`` by opcode (``code``) and fate (``failed``, ``completed``)."""
        shapes = self.shapes
        return {
            "code": shapes["code"],
            "ios": shapes["ios"],
            "bytes": shapes["ios"] * shapes["length_bytes"],
            "failed": shapes["failed"],
            "completed": shapes["completed"],
        }

    @cached_property
    def completions(self) -> NDArray[np.int64] | None:
        """I/Os completed without an error in each whole second from the first cell on; None where the cells
        are too wide to tell.
        """
        if not self.extent.ios:
            return np.zeros(0, np.int64)
        cells = self.cells
        return cells.whole_seconds(cells.series("ios", "complete_cell", cells.chosen(ok=True)))

    @property
    def percentile_error_max(self) -> float | None:
        """The relative error of percentiles of the service time; None where they are exact."""
        return None

    @cached_property
    def touched(self) -> Touched:
        """The distinct extents of addresses, and when they were touched."""
        return fetch_touched(self)

    @cached_property
    def regions(self) -> Regions:
        """How often each part of the address space was read and written."""
        return count_regions(self.recording, self.rows, self.extent.end_last_bytes)

    @cached_property
    def latency(self) -> Distributions:
        """Service times of the I/Os without an error."""
        return distributions(self.recording, self.ok_rows, "latency_ns", thresholds=SHARE_THRESHOLDS_NS)

    @property
    def exact(self) -> bool:
        """Whether the recording is short enough for percentiles of every kind to be exact."""
        return self.extent.ios <= EXACT_IOS_MAX

    @property
    def relative_error_max(self) -> float | None:
        """The error of percentiles of lateness and response time, or None if they are exact."""
        return None if self.exact else RELATIVE_ERROR_MAX

    @cached_property
    def lateness(self) -> Distribution:
        """The lateness (``submit_ns - intended_ns``) of every I/O, exact if :attr:`exact`."""
        rows = self.rows
        # Of all opcodes together: the fewer the groups, the faster the pass.
        rows = rows.select(opcode=ibis.literal(0), lateness_ns=rows.submit_ns - rows.intended_ns)
        found = distributions(self.recording, rows, "lateness_ns", weighted=False, exact=self.exact)
        return found.whole

    @cached_property
    def closed_loop(self) -> bool:
        """Whether the I/Os had no schedule: nothing was early or late by a nanosecond, outside of a timed
        replay or an open loop.

        A timed replay on a modelled drive is never late either, and yet has a schedule.
        """
        timed = any(
            (phase.kind == "replay" and (phase.settings or {}).get("pace", "timed") == "timed")
            or (phase.kind == "synthetic" and (phase.settings or {}).get("arrivals") is not None)
            for phase in self.recording.manifest.measured_phases
        )
        return not timed and bool((self.lateness.value == 0).all())

    @cached_property
    def trims(self) -> Arrays:
        """When trims acted: the first submission ``start_ns`` and the last completion ``end_ns`` of those
        that were submitted in the same tenth of a cell, so close that they act as one
        (scans/trim_overlap.py).
        """
        rows = self.rows.filter(self.rows.opcode == TRIM)
        ended = rows.submit_ns + ibis.greatest(rows.latency_ns, 0)
        return self.execute(
            rows.group_by(bin=rows.submit_ns // (self.cells.width_ns // 10)).aggregate(
                start_ns=rows.submit_ns.min(), end_ns=ended.max()
            )
        )

    @cached_property
    def trim_streams(self) -> Arrays:
        """The trims of each ``stream``: ``ios`` and ``bytes``."""
        rows = self.rows.filter(self.rows.opcode == TRIM)
        return self.execute(
            rows.group_by("stream").aggregate(ios=rows.count(), bytes=rows.length_bytes.sum())
        )

    @cached_property
    def depths(self) -> Depths:
        """How many I/Os are outstanding and for how long, of the sample."""
        return depths(self.sample)

    @cached_property
    def sample(self) -> Sample:
        """The rows in order, whole or in slices."""
        extent = self.extent
        return take_sample(
            self.recording,
            self.rows,
            extent.ios,
            first_ns=extent.submit_first_ns,
            last_ns=extent.complete_last_ns,
            reach_ns=extent.latency_ns_max,
        )
