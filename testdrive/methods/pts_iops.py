"""IOPS in steady state for every mix and block size, after the manner of SNIA's test specification.

Each value is the mean of the rates of the window's rounds. Source of the matrix, the rounds and the criteria:
SNIA, Solid State Storage Performance Test Specification 2.0.1, IOPS test. It is no claim to comply with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.matrix import Mix, absent, matrices_of, mix_name
from testdrive.methods.method import Method
from testdrive.methods.rounds import (
    Cell,
    convergence,
    steadiness_rows,
)
from testdrive.methods.runs import Run
from testdrive.methods.scales import log_range
from testdrive.report import palette, units

GROUP = "iops"
MIXES = (1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0)
TRACKED = {
    ("reads-0.0-block-4096", "iops"): "4 KiB, writes",
    ("reads-0.65-block-65536", "iops"): "64 KiB, 65/35",
    ("reads-1.0-block-1048576", "iops"): "1 MiB, reads",
}
#: The mixes whose figure has all drives in one panel.
COMPARED = (1.0, 0.65, 0.0)


def look(runs: Sequence[Run]) -> Findings:
    """The rounds until steady, the matrix of each drive as a table and as curves, and the drives compared."""
    made = matrices_of(runs, GROUP)
    cells, sizes = made.cells, made.sizes
    if not made.found:
        return Findings([], [], made.notes)
    figures = [
        convergence("pts-iops-rounds", "IOPS in each round, until steady", made.found, TRACKED),
        _by_size(cells, sizes),
    ]
    if len(made.found) > 1:
        figures.append(_compared(cells, sizes))
    tables = [steadiness_rows(made.found, TRACKED)]
    tables += [_matrix(run, cells[run], made.refused[run], sizes) for run, _ in made.found]
    return Findings(figures, tables, made.notes)


def _iops(cells: dict[Mix, Cell], read_share: float, sizes: Sequence[int]) -> NDArray[np.float64]:
    missing = Cell(0, *[float("nan")] * 4)
    return np.array([cells.get((read_share, size), missing).iops for size in sizes])


def _axes(cells: dict[Run, dict[Mix, Cell]], sizes: Sequence[int]) -> tuple[Axis, Axis]:
    low, high = log_range([np.array([cell.iops for cell in mine.values()]) for mine in cells.values()])
    # A mark for every doubling, with the name of those that were run.
    steps = range(int(_places(sizes)[-1]) + 1)
    named = dict(zip(_places(sizes).astype(int), sizes, strict=True))
    labels = tuple(units.block(named[step]) if step in named else "" for step in steps)
    x = Axis("block size (log2)", labels=labels)
    return x, Axis("IOPS (log)", "log", low, high, si_unit="IOPS")


def _places(sizes: Sequence[int]) -> NDArray[np.float64]:
    """Where block sizes stand on an axis on which each doubling is a step."""
    return np.asarray(np.log2(np.array(sizes) / sizes[0]), dtype=np.float64)


def _by_size(cells: dict[Run, dict[Mix, Cell]], sizes: Sequence[int]) -> Figure:
    """A panel for each drive, with a line for each mix."""
    x, y = _axes(cells, sizes)
    places = _places(sizes)
    series = [
        Series(
            f"{mix_name(share)} reads/writes",
            palette.drive(at),
            places,
            _iops(mine, share, sizes),
            panel=panel,
        )
        for panel, mine in enumerate(cells.values())
        for at, share in enumerate(MIXES)
    ]
    return Figure(
        "pts-iops-matrix",
        "IOPS against block size, for each mix",
        "Means of the window's rounds. A line for each mix of reads and writes; each mark stands for blocks"
        " of twice the size.",
        x,
        (y,) * len(cells),
        series,
        headings=tuple(run.subject.label for run in cells),
    )


def _compared(cells: dict[Run, dict[Mix, Cell]], sizes: Sequence[int]) -> Figure:
    """A panel for each of three mixes, with all drives."""
    x, y = _axes(cells, sizes)
    places = _places(sizes)
    series = [
        Series(run.subject.label, run.subject.ink, places, _iops(mine, share, sizes), panel=panel)
        for panel, share in enumerate(COMPARED)
        for run, mine in cells.items()
    ]
    return Figure(
        "pts-iops-drives",
        "IOPS against block size, drives side by side",
        "Means of the window's rounds: reads alone, 65 % reads, and writes alone.",
        x,
        (y,) * len(COMPARED),
        series,
        headings=tuple(f"{mix_name(share)} reads/writes" for share in COMPARED),
    )


def _matrix(run: Run, cells: dict[Mix, Cell], refused: dict[Mix, str], sizes: Sequence[int]) -> Table:
    """PTS's table: a row for each block size, a column for each mix of reads and writes."""
    rows = []
    for size in sizes:
        row = [units.block(size)]
        for share in MIXES:
            cell = cells.get((share, size))
            row.append(units.number(cell.iops) if cell else absent(refused, (share, size)))
        rows.append(row)
    title = f"{run.subject.label}: IOPS by block size, and share of reads and writes"
    head = ["block size", *(mix_name(share) for share in MIXES)]
    return Table(f"pts-iops-{run.subject.key}", title, head, rows)


METHOD = Method(
    "pts-iops",
    "IOPS in steady state (PTS-style)",
    "After the manner of SNIA's performance test specification: the drive is purged and written twice over in"
    " order; then every combination of seven mixes and eight block sizes is run at random places for a"
    " minute, and this round is repeated until three of them are steady over five rounds. Each value is the"
    " mean of these five. Look first at whether the drives became steady, then down the columns: where a"
    " column is level, the drive is limited by I/Os a second, and where it halves from one row to the next,"
    " by bytes.",
    look,
)
