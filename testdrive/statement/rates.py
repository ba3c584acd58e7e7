"""Arrivals over time by opcode: I/Os and bytes in each window, and the busiest second within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import opcode_name
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.cells import SECOND_NS
from testdrive.statement.timeline import Timeline

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Rates:
    """I/Os and bytes of each opcode that occurs in each window of arrival.

    ``busiest_ios`` is the most I/Os of a second that begins in a window; None where windows are no longer
    than a second, or seconds are not counted in so long a recording. ``lengths_s`` is how long each window
    was.
    """

    ios: dict[str, Counts]
    bytes: dict[str, Counts]
    busiest_ios: Counts | None
    lengths_s: NDArray[np.float64]

    def payload(self) -> dict[str, Any]:
        """Return the form that the page's script reads."""
        # Bytes as floats: more than four billion in a window are usual.
        size = {name: values.astype(np.float64) for name, values in self.bytes.items()}
        return {"ios": self.ios, "bytes": size, "busiest": self.busiest_ios, "lengths_s": self.lengths_s}

    def total(self, what: Literal["ios", "bytes"], *opcodes: str) -> NDArray[np.float64]:
        """I/Os or bytes a second in each window, of some opcodes together, or of all."""
        counts = self.ios if what == "ios" else self.bytes
        chosen = [values for name, values in counts.items() if not opcodes or name in opcodes]
        result: NDArray[np.float64] = sum(chosen, np.zeros(len(self.lengths_s))) / self.lengths_s
        return result


def rates(scan: Scan, time: Timeline) -> Rates | None:
    """Count the arrivals in each window; None where the source had no times or there is no I/O."""
    if not scan.timed or not scan.extent.ios:
        return None
    rows = scan.rows
    rows = rows.select(code=rows.opcode, window=time.window(rows.intended_ns), length_bytes=rows.length_bytes)
    found = scan.execute(
        rows.group_by("code", "window").aggregate(ios=rows.count(), bytes=rows.length_bytes.sum())
    )
    ios: dict[str, Counts] = {}
    size: dict[str, Counts] = {}
    for code in np.unique(found["code"]):
        mine = found["code"] == code
        for target, what in ((ios, "ios"), (size, "bytes")):
            series = np.zeros(time.windows, np.int64)
            series[found["window"][mine]] = found[what][mine]
            target[opcode_name(int(code))] = series
    last_ns = max(scan.extent.complete_last_ns, scan.extent.intended_last_ns)
    return Rates(ios, size, _busiest(scan, time), time.lengths_s(last_ns))


def _busiest(scan: Scan, time: Timeline) -> Counts | None:
    cells = scan.cells
    if time.width_ns <= SECOND_NS or cells.width_ns > SECOND_NS:
        return None
    starts = np.arange(0, cells.n, cells.in_a_second)
    seconds = np.add.reduceat(cells.series("ios", "intended_cell"), starts)
    window = np.clip((cells.first + starts) * cells.width_ns // time.width_ns, 0, time.windows - 1)
    result = np.zeros(time.windows, np.int64)
    np.maximum.at(result, window, seconds)
    return result
