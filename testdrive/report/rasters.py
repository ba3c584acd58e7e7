"""Density rasters: how many I/Os fall in each cell of a plot, so that a page's size does not grow with the
run.

Each is one grouped count over the recording's rows, whatever their number; only the cells come back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import OPCODES
from testdrive.recording import Arrays, Recording
from testdrive.report.axes import Axis

Raster = NDArray[np.int64]


def latency_rasters(recording: Recording, time: Axis, latency: Axis) -> dict[str, Raster]:
    """Count I/Os by submission time and service time.

    Parameters
    ----------
    recording
        Rows of its measured phases. Failed I/Os and I/Os without a completion are left out, as they have no
        latency; all others are in exactly one cell.
    time, latency
        Axes over `submit_ns` and `latency_ns`, in ns.

    Returns
    -------
    dict
        For each opcode name that occurs, counts of shape (latency.cells, time.cells).
    """
    rows = recording.table()
    done = rows.filter((rows.status == 0) & (rows.latency_ns >= 0))
    cells = done.select(
        opcode=done.opcode, column=time.cell(done.submit_ns), row=latency.cell(done.latency_ns)
    )
    counted = _counted(recording, cells)
    rasters: dict[str, Raster] = {}
    for code in np.unique(counted["opcode"]):
        mine = counted["opcode"] == code
        raster = np.zeros((latency.cells, time.cells), np.int64)
        raster[counted["row"][mine], counted["column"][mine]] = counted["ios"][mine]
        rasters[_name(int(code))] = raster
    return rasters


def offset_rasters(recording: Recording, time: Axis, offset: Axis) -> dict[str, Raster]:
    """Count the I/Os that touch each cell of address and submission time.

    A large trim touches many cells of addresses, and drawing only its start would hide most of it. So each
    I/O counts
    once in every row of cells from its first to its last byte.

    Parameters
    ----------
    recording
        Rows of its measured phases. Flushes and I/Os without an offset are left out.
    time, offset
        Axes over `submit_ns` in ns and over `offset_bytes`.

    Returns
    -------
    dict
        For each opcode name that occurs, counts of shape (offset.cells, time.cells).
    """
    rows = recording.table()
    placed = rows.filter((rows.offset_bytes >= 0) & (rows.length_bytes > 0))
    cells = placed.select(
        opcode=placed.opcode,
        column=time.cell(placed.submit_ns),
        first=offset.cell(placed.offset_bytes),
        last=offset.cell(placed.offset_bytes + placed.length_bytes - 1),
    )
    counted = _counted(recording, cells)
    rasters: dict[str, Raster] = {}
    for code in np.unique(counted["opcode"]):
        mine = counted["opcode"] == code
        # Starts less ends, summed up the rows, is the number that touch each row, at a cost free of their
        # lengths.
        change = np.zeros((offset.cells + 1, time.cells), np.int64)
        np.add.at(change, (counted["first"][mine], counted["column"][mine]), counted["ios"][mine])
        np.add.at(change, (counted["last"][mine] + 1, counted["column"][mine]), -counted["ios"][mine])
        rasters[_name(int(code))] = np.cumsum(change, axis=0)[:-1]
    return rasters


def extent(recording: Recording) -> dict[str, int | None]:
    """Return the bounds that axes need, each None where nothing has it.

    Returns
    -------
    dict
        `submit_max_ns`, `latency_min_ns`, `latency_max_ns` (of I/Os with a latency), `end_max_bytes`.
    """
    rows = recording.table()
    done = (rows.status == 0) & (rows.latency_ns >= 0)
    placed = (rows.offset_bytes >= 0) & (rows.length_bytes > 0)
    bounds = rows.aggregate(
        submit_max_ns=rows.submit_ns.max(),
        latency_min_ns=rows.latency_ns.min(where=done),
        latency_max_ns=rows.latency_ns.max(where=done),
        end_max_bytes=(rows.offset_bytes + rows.length_bytes).max(where=placed),
    )
    found = recording.execute(bounds)
    return {name: None if np.isnan(values[0]) else int(values[0]) for name, values in found.items()}


def _counted(recording: Recording, cells: Any) -> Arrays:
    return recording.execute(cells.group_by(list(cells.columns)).aggregate(ios=cells.count()))


def _name(code: int) -> str:
    return OPCODES[code] if 0 <= code < len(OPCODES) else f"opcode {code}"
