"""Sequential throughput in steady state, after the manner of SNIA's performance test specification.

Each value is the mean of the rates of the window's rounds. Source: SNIA, Solid State Storage Performance Test
Specification 2.0.1, throughput test. It is no claim to comply with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.rounds import Cell, cell_of, convergence, group_of, notes_of, steadiness_rows
from testdrive.methods.runs import Run
from testdrive.methods.scales import round_above
from testdrive.report import units

SIZES = (131072, 1048576)
DIRECTIONS = {1.0: "reads", 0.0: "writes"}
#: The phases, in the order of the bars, with their names for people.
PLACES = {
    (read_share, size): f"{units.block(size)} {direction}"
    for size in SIZES
    for read_share, direction in DIRECTIONS.items()
}


def look(runs: Sequence[Run]) -> Findings:
    """The rounds of both block sizes until steady, and the throughput of each direction."""
    found, notes = [], []
    cells: dict[Run, dict[tuple[float, int], Cell]] = {run: {} for run in runs}
    for size in SIZES:
        for run in runs:
            group = group_of(run, f"throughput-{size}")
            notes += notes_of(run, group, f" of {units.block(size)}")
            if group is None:
                continue
            found.append((run, group))
            for read_share in DIRECTIONS:
                cells[run][read_share, size] = cell_of(run, group.window(_phase(read_share, size)))
    if not found:
        return Findings([], [], notes)
    names = {(_phase(*place), "throughput"): name for place, name in PLACES.items()}
    figures = [
        _bars(cells),
        convergence("pts-throughput-rounds", "Throughput in each round, until steady", found, names),
    ]
    return Findings(figures, [_table(cells), steadiness_rows(found, names)], notes)


def _phase(read_share: float, size: int) -> str:
    return f"reads-{read_share}-block-{size}"


def _bars(cells: dict[Run, dict[tuple[float, int], Cell]]) -> Figure:
    series, highest = [], 0.0
    places = np.arange(len(PLACES), dtype=np.float64)
    for run, mine in cells.items():
        heights = np.array([mine[place].bytes_per_s / 1e6 if place in mine else math.nan for place in PLACES])
        highest = max(highest, float(np.nanmax(heights, initial=0.0)))
        series.append(Series(run.subject.label, run.subject.ink, places, heights, style="bars"))
    return Figure(
        "pts-throughput",
        "Sequential throughput in steady state",
        "Means of the window's rounds.",
        Axis("block size and direction", labels=tuple(PLACES.values())),
        (Axis("throughput (MB/s)", low=0.0, high=round_above(highest)),),
        series,
    )


def _table(cells: dict[Run, dict[tuple[float, int], Cell]]) -> Table:
    rows = [
        [
            run.subject.label,
            *(
                units.number(mine[place].bytes_per_s / 1e6) if place in mine else "not reached"
                for place in PLACES
            ),
        ]
        for run, mine in cells.items()
    ]
    head = ["drive", *(f"{name}, MB/s" for name in PLACES.values())]
    return Table("pts-throughput", "Sequential throughput in steady state", head, rows)


METHOD = Method(
    "pts-throughput",
    "Throughput in steady state (PTS-style)",
    "After the manner of SNIA's performance test specification: for 128 KiB and for 1 MiB the drive is purged"
    " and written twice over in order; then it is read and written sequentially for a minute each, and this"
    " round is repeated until both are steady over five rounds. Each value is the mean of these five. A drive"
    " that needs large blocks to be fast is seen by the difference of the two sizes.",
    look,
)
