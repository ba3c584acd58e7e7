"""Cells of 100 ms: one pass over the rows that rates, windows, trims and lateness are taken from.

A recording longer than :data:`CELLS_MAX` cells (19 hours) gets cells of 1 s, one longer than eight days of
10 s, and so on by tens: what is held in memory does not grow with the time that was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from testdrive.recording import Arrays, Recording

#: Width of a cell, but of long recordings.
CELL_NS = 100_000_000
#: The most cells; more and they are made ten times as wide.
CELLS_MAX = 700_000
SECOND_NS = 1_000_000_000

#: An I/O that was submitted later than this counts as late.
LATE_NS = 1_000_000

_SUMMED = ("ios", "bytes", "latency_ns_sum", "lateness_ns_sum", "late_ios")


@dataclass(frozen=True)
class Cells:
    """I/Os counted by the cell that they were intended, submitted and completed in, their opcode and their
    fate.

    ``groups`` holds one row a combination: ``intended_cell``, ``submit_cell``, ``complete_cell`` (-1 without
    a completion), ``code`` (opcode), ``ok`` (completed without an error), ``ios``, ``bytes``,
    ``latency_ns_sum``, ``latency_ns_max``, ``submit_ns_min``, ``lateness_ns_sum``, ``late_ios``. Cells are
    ``width_ns`` wide and numbered from ``first``; the dense arrays that the methods return run from there to
    ``last``.
    """

    groups: Arrays
    first: int
    last: int
    width_ns: int = CELL_NS

    @property
    def n(self) -> int:
        """The number of cells from the first arrival or submission to the last completion."""
        return self.last - self.first + 1

    @property
    def in_a_second(self) -> int:
        """How many cells a second has, at least 1: wider cells stand for the second that they begin with."""
        return max(SECOND_NS // self.width_ns, 1)

    def time_ns(self, index: int) -> int:
        """When the cell at an index of the dense arrays begins."""
        return int((self.first + index) * self.width_ns)

    def chosen(self, opcodes: tuple[int, ...] | None = None, *, ok: bool | None = None) -> NDArray[np.bool_]:
        """Which groups have one of the opcodes and, unless ``ok`` is None, that fate."""
        mask = np.ones(len(self.groups["code"]), bool)
        if opcodes is not None:
            mask &= np.isin(self.groups["code"], opcodes)
        if ok is not None:
            mask &= self.groups["ok"] == ok
        return mask

    def series(self, what: str, by: str, chosen: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        """``what`` summed (its maximum or minimum, if the name says so) in each cell of column ``by``."""
        mask = self.groups[by] >= self.first
        if chosen is not None:
            mask = mask & chosen
        index, values = self.groups[by][mask] - self.first, self.groups[what][mask]
        if what in _SUMMED:
            result = np.zeros(self.n, np.int64)
            np.add.at(result, index, values)
        elif what.endswith("_max"):
            result = np.full(self.n, -1, np.int64)
            np.maximum.at(result, index, values)
        else:
            result = np.full(self.n, np.iinfo(np.int64).max, np.int64)
            np.minimum.at(result, index, values)
        return result

    def whole_seconds(self, series: NDArray[Any], seconds: int = 1) -> NDArray[Any] | None:
        """Cells summed to stretches of ``seconds``, counted from the first; a part at the end is left out.

        None where the cells are wider than that.
        """
        if self.width_ns > seconds * SECOND_NS:
            return None
        width = seconds * SECOND_NS // self.width_ns
        whole = len(series) // width * width
        result: NDArray[Any] = series[:whole].reshape(-1, width).sum(axis=1)
        return result


def cell_width_ns(first_ns: int, last_ns: int) -> int:
    """The width of the cells of a recording that lasts from one time to the other."""
    width_ns = CELL_NS
    while last_ns // width_ns - first_ns // width_ns >= CELLS_MAX:
        width_ns *= 10
    return width_ns


def scan_cells(recording: Recording, rows: Any, first_ns: int, last_ns: int) -> Cells:
    """Count the rows in cells. ``first_ns`` is the first arrival or submission, ``last_ns`` the last
    event.
    """
    last_ns = max(last_ns, first_ns)
    width_ns = cell_width_ns(first_ns, last_ns)
    ended = rows.submit_ns + rows.latency_ns
    rows = rows.select(
        intended_cell=rows.intended_ns // width_ns,
        submit_cell=rows.submit_ns // width_ns,
        complete_cell=ibis.ifelse(rows.latency_ns >= 0, ended // width_ns, -1),
        code=rows.opcode,
        ok=(rows.status == 0) & (rows.latency_ns >= 0),
        length_bytes=rows.length_bytes,
        latency_ns=ibis.greatest(rows.latency_ns, 0),
        submit_ns=rows.submit_ns,
        lateness_ns=rows.submit_ns - rows.intended_ns,
    )
    groups = recording.execute(
        rows.group_by("intended_cell", "submit_cell", "complete_cell", "code", "ok").aggregate(
            ios=rows.count(),
            bytes=rows.length_bytes.sum(),
            latency_ns_sum=rows.latency_ns.sum(),
            latency_ns_max=rows.latency_ns.max(),
            submit_ns_min=rows.submit_ns.min(),
            lateness_ns_sum=rows.lateness_ns.sum(),
            late_ios=(rows.lateness_ns > LATE_NS).sum(),
        )
    )
    return Cells(groups, first_ns // width_ns, last_ns // width_ns, width_ns)
