"""Addresses against time, as fine as a page can hold: what the zoomable figure is drawn from.

The I/Os are counted in cells of a grid whose two sides are powers of two, and only cells that hold any are
kept. A page draws from them whatever is in sight: coarse cells for all of it, and the finest where it is
zoomed into. Few I/Os get a grid so fine that each is almost on its own; many get the finest whose cells still
fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import opcode_name
from testdrive.metrics.scans import Scan
from testdrive.recording import Arrays
from testdrive.report.axes import Axis
from testdrive.report.rasters import Raster
from testdrive.statement.addresses import Addresses
from testdrive.statement.timeline import Timeline

#: The finest grid that is made, as powers of two.
BITS_MAX = 16
#: The grid that many I/Os are counted in first: columns of time and rows of addresses.
COLUMN_BITS, ROW_BITS = 11, 9
#: How often they are counted again on a finer one, each time in another pass.
_REFINEMENTS_MAX = 2
_SECTOR_BYTES = 512
_NAMES = ("code", "column", "first", "last")


@dataclass(frozen=True)
class Places:
    """Cells of a grid with the I/Os that begin in them.

    Attributes
    ----------
    cells : dict of ndarray
        For each cell that holds any, in the order of ``code``, ``column`` and ``first``: opcode, column of
        time, first and last row of addresses that the I/Os touch, and ``ios``.
    column_bits, row_bits : int
        The grid has 2 to their power columns and rows.
    time : Axis
        The times that the grid lies over; its ``cells`` are the columns.
    addresses : Addresses
        The addresses that the grid lies over.
    """

    cells: Arrays
    column_bits: int
    row_bits: int
    time: Axis
    addresses: Addresses

    def __len__(self) -> int:
        return len(self.cells["ios"])

    @property
    def opcodes(self) -> list[int]:
        """The opcodes that occur."""
        return [int(code) for code in np.unique(self.cells["code"])]

    def coarser(self) -> Places:
        """The same on a grid of half the columns and rows, or of half the columns if there is but one row."""
        columns, rows = min(self.column_bits, 1), min(self.row_bits, 1)
        shifted = {"code": self.cells["code"], "column": self.cells["column"] >> columns}
        shifted |= {name: self.cells[name] >> rows for name in ("first", "last")}
        return replace(
            self,
            cells=_joined(shifted, self.cells["ios"]),
            column_bits=self.column_bits - columns,
            row_bits=self.row_bits - rows,
            time=replace(self.time, cells=self.time.cells >> columns),
        )

    def raster(self, code: int, columns_max: int, rows_max: int) -> Raster:
        """The I/Os of an opcode that touch each cell of a grid of at most so many columns and rows."""
        columns = max(self.column_bits - (columns_max.bit_length() - 1), 0)
        rows = max(self.row_bits - (rows_max.bit_length() - 1), 0)
        mine = self.cells["code"] == code
        column, first, last = (
            self.cells[name][mine] >> shift
            for name, shift in (("column", columns), ("first", rows), ("last", rows))
        )
        # Starts less ends, summed up the rows, is the number that touch each row, however many rows one
        # touches.
        change = np.zeros(((1 << (self.row_bits - rows)) + 1, 1 << (self.column_bits - columns)), np.int64)
        np.add.at(change, (first, column), self.cells["ios"][mine])
        np.add.at(change, (last + 1, column), -self.cells["ios"][mine])
        result: Raster = np.cumsum(change, axis=0)[:-1]
        return result

    def payload(self) -> dict[str, Any]:
        """Return the form that the page's script reads: cells in columns, rows as steps from one to the
        next.
        """
        return {
            "column_bits": self.column_bits,
            "row_bits": self.row_bits,
            "time": self.time.payload(),
            "length_bytes": self.addresses.length_bytes,
            "segments": self.addresses.payload(),
            "opcodes": {opcode_name(code): self._packed(code) for code in self.opcodes},
        }

    def _packed(self, code: int) -> dict[str, NDArray[Any]]:
        mine = self.cells["code"] == code
        column, first = self.cells["column"][mine], self.cells["first"][mine]
        begins = np.diff(column, prepend=-1) != 0
        return {
            "in_column": np.bincount(column, minlength=1 << self.column_bits),
            # Steps are small and alike where cells lie close, so that they pack well.
            "step": np.where(begins, first, np.diff(first, prepend=0)),
            "more": self.cells["last"][mine] - first,
            "ios": self.cells["ios"][mine],
        }


def places(scan: Scan, time: Timeline, cells_max: int, axis: Addresses) -> Places | None:
    """Count the I/Os by time and address on the finest grid with at most about ``cells_max`` cells in use.

    None where the source had no offsets, lengths or times, or no I/O touches an address.
    """
    if scan.absent_columns & {"offset_bytes", "length_bytes"} or not scan.timed:
        return None
    if not scan.extent.end_last_bytes:
        return None
    bits = (COLUMN_BITS, ROW_BITS) if scan.extent.ios > cells_max else (BITS_MAX, BITS_MAX)
    found = _counted(scan, time, axis, *bits)
    for _ in range(_REFINEMENTS_MAX):
        # Each finer grid has at most four times the cells, and most have fewer.
        finer = int(np.log2(cells_max / max(len(found), 1)) // 2)
        if finer < 1 or bits == (BITS_MAX, BITS_MAX):
            break
        bits = (min(bits[0] + finer, BITS_MAX), min(bits[1] + finer, BITS_MAX))
        found = _counted(scan, time, axis, *bits)
    while len(found) > cells_max and found.column_bits > 0:
        found = found.coarser()
    return found


def _counted(scan: Scan, time: Timeline, axis: Addresses, column_bits: int, row_bits: int) -> Places:
    # No row is narrower than a sector.
    while row_bits > 0 and axis.length_bytes >> row_bits < _SECTOR_BYTES:
        row_bits -= 1
    columns, along = time.axis(1 << column_bits), Axis(0, max(axis.length_bytes, 1), 1 << row_bits)
    rows = scan.rows
    rows = rows.filter((rows.offset_bytes >= 0) & (rows.length_bytes > 0))
    rows = rows.select(
        code=rows.opcode.cast("int32"),
        column=columns.cell(rows.intended_ns).cast("int32"),
        first=along.cell(axis.position(rows.offset_bytes)).cast("int32"),
        last=along.cell(axis.position(rows.offset_bytes + rows.length_bytes - 1)).cast("int32"),
    )
    counted = scan.execute(rows.group_by(*_NAMES).aggregate(ios=rows.count()))
    cells = {name: counted.pop(name).astype(np.int32) for name in _NAMES}
    return Places(_joined(cells, counted["ios"]), column_bits, row_bits, columns, axis)


def _joined(keys: dict[str, NDArray[np.int32]], ios: NDArray[np.int64]) -> Arrays:
    """The cells in order, equal ones added up."""
    if not len(ios):
        return {**keys, "ios": ios}
    order = np.lexsort([keys[name] for name in reversed(_NAMES)])
    ordered = {name: keys[name][order] for name in _NAMES}
    new = np.zeros(len(ios), bool)
    new[0] = True
    for values in ordered.values():
        new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(new)
    return {
        **{name: values[starts] for name, values in ordered.items()},
        "ios": np.add.reduceat(ios[order], starts),
    }
