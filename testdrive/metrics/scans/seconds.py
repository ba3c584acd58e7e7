"""The seconds of a recording: the busiest of them, and how their counts of arrivals vary.

Taken from the cells where these are no wider than a second, so without another pass over the rows. Of longer
recordings they are counted in the query engine, which gives back the few figures alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, TRIM, WRITE
from testdrive.metrics.scans.cells import SECOND_NS, Cells
from testdrive.recording import Recording


@dataclass(frozen=True)
class Busiest:
    """The most I/Os and the most bytes that arrived in one second, not always in the same one."""

    ios: int
    bytes: int


@dataclass(frozen=True)
class Seconds:
    """Arrivals counted in seconds from the first cell on.

    Attributes
    ----------
    whole : int
        The number of whole seconds; a part of one at the end takes part in the busiest ones only.
    mean, variance : float or None
        Of the arrivals in the whole seconds; the variance is that of a sample. None where there are too few.
    busiest, transfers, trims : Busiest
        Of all I/Os, of reads and writes, of trims.
    by_opcode : dict of int to Busiest
        Of each opcode that occurs.
    busiest_ns : int
        When the second with the most arrivals begins, the first of equal ones.
    peak_whole : int
        The most arrivals in a whole second.
    """

    whole: int
    mean: float | None
    variance: float | None
    busiest: Busiest
    transfers: Busiest
    trims: Busiest
    by_opcode: dict[int, Busiest]
    busiest_ns: int
    peak_whole: int

    @property
    def peak_to_mean(self) -> float | None:
        """The most arrivals of a whole second, over their mean."""
        return self.peak_whole / self.mean if self.mean else None

    @property
    def dispersion(self) -> float | None:
        """The index of dispersion: variance over mean."""
        return self.variance / self.mean if self.mean and self.variance is not None else None


def seconds_of_cells(cells: Cells) -> Seconds:
    """Count the seconds of cells that are no wider than one."""
    ios = cells.series("ios", "intended_cell")
    whole = cells.whole_seconds(ios)
    assert whole is not None, "cells wider than a second hold no seconds"
    codes = np.unique(cells.groups["code"]).tolist()
    starts = np.arange(0, cells.n, cells.in_a_second)
    return Seconds(
        len(whole),
        float(whole.mean()) if len(whole) else None,
        float(whole.var(ddof=1)) if len(whole) > 1 else None,
        _busiest(cells, codes),
        _busiest(cells, (READ, WRITE)),
        _busiest(cells, (TRIM,)),
        by_opcode={code: _busiest(cells, (code,)) for code in codes},
        busiest_ns=cells.time_ns(int(starts[np.argmax(np.add.reduceat(ios, starts))])),
        peak_whole=int(whole.max(initial=0)),
    )


def _busiest(cells: Cells, codes: Iterable[int]) -> Busiest:
    chosen = cells.chosen(tuple(codes))
    starts = np.arange(0, cells.n, cells.in_a_second)

    def greatest(what: str) -> int:
        return int(np.add.reduceat(cells.series(what, "intended_cell", chosen), starts).max())

    return Busiest(greatest("ios"), greatest("bytes"))


def seconds_of_rows(recording: Recording, rows: Any, first_ns: int, last_ns: int) -> Seconds:
    """Count the seconds from ``first_ns`` to ``last_ns`` in the query engine."""
    whole = (last_ns - first_ns) // SECOND_NS
    placed = rows.select(
        second=(rows.intended_ns - first_ns) // SECOND_NS, code=rows.opcode, length_bytes=rows.length_bytes
    )
    each = placed.group_by("second", "code").aggregate(ios=placed.count(), bytes=placed.length_bytes.sum())
    opcodes = recording.execute(each.group_by("code").aggregate(ios=each.ios.max(), bytes=each.bytes.max()))
    moved, trimmed = each.code.isin((READ, WRITE)), each.code == TRIM
    totals = each.group_by("second").aggregate(
        ios=each.ios.sum(),
        bytes=each.bytes.sum(),
        transfers=each.ios.sum(where=moved).fill_null(0),
        transferred=each.bytes.sum(where=moved).fill_null(0),
        trims=each.ios.sum(where=trimmed).fill_null(0),
        trimmed=each.bytes.sum(where=trimmed).fill_null(0),
    )
    names = ("ios", "bytes", "transfers", "transferred", "trims", "trimmed")
    ended = totals.second < whole
    squares = (totals.ios.cast("float64") * totals.ios).sum(where=ended)
    found = recording.execute(
        totals.aggregate(
            **{name: totals[name].max() for name in names},
            arrived=totals.ios.sum(where=ended),
            squares=squares,
            peak_whole=totals.ios.max(where=ended),
        )
    )
    busiest = recording.execute(
        totals.filter(totals.ios == int(found["ios"][0])).aggregate(second=totals.second.min())
    )
    most = {name: int(found[name][0]) for name in names}
    mean = float(found["arrived"][0]) / whole
    return Seconds(
        whole,
        mean,
        (float(found["squares"][0]) - whole * mean**2) / (whole - 1),
        Busiest(most["ios"], most["bytes"]),
        Busiest(most["transfers"], most["transferred"]),
        Busiest(most["trims"], most["trimmed"]),
        by_opcode=_by_opcode(opcodes),
        busiest_ns=first_ns + int(busiest["second"][0]) * SECOND_NS,
        peak_whole=int(found["peak_whole"][0]),
    )


def _by_opcode(found: dict[str, NDArray[Any]]) -> dict[int, Busiest]:
    return {
        int(code): Busiest(int(ios), int(size))
        for code, ios, size in zip(found["code"], found["ios"], found["bytes"], strict=True)
    }
