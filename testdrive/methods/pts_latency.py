"""Latency in steady state of one I/O at a time, after the manner of SNIA's performance test specification.

The average is the mean of the mean latencies of the window's rounds, the longest is that of all of them.
Source: SNIA, Solid State Storage Performance Test Specification 2.0.1, latency test. It is no claim to comply
with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.matrix import Mix, absent, matrices_of, mix_name
from testdrive.methods.method import Method
from testdrive.methods.rounds import Cell, convergence, steadiness_rows
from testdrive.methods.runs import Run
from testdrive.methods.scales import log_range, round_above
from testdrive.report import units

GROUP = "latency"
MIXES = (1.0, 0.65, 0.0)
TRACKED = {("reads-0.0-block-4096", "latency"): "4 KiB, writes"}


def look(runs: Sequence[Run]) -> Findings:
    """The rounds until steady, and bars and tables of the average and the longest."""
    made = matrices_of(runs, GROUP)
    if not made.found:
        return Findings([], [], made.notes)
    places = [(share, size) for size in made.sizes for share in MIXES]
    figures = [
        _bars(made.cells, places, "mean_ns"),
        _bars(made.cells, places, "max_ns"),
        convergence("pts-latency-rounds", "Average latency in each round, until steady", made.found, TRACKED),
    ]
    tables = [_table(made.cells, made.refused, places), steadiness_rows(made.found, TRACKED)]
    return Findings(figures, tables, made.notes)


def _bars(
    cells: dict[Run, dict[Mix, Cell]], places: Sequence[Mix], value: Literal["mean_ns", "max_ns"]
) -> Figure:
    longest = value == "max_ns"
    series = []
    heights = {
        run: np.array([getattr(mine[place], value) / 1e9 if place in mine else math.nan for place in places])
        for run, mine in cells.items()
    }
    at = np.arange(len(places), dtype=np.float64)
    for run, mine in heights.items():
        series.append(Series(run.subject.label, run.subject.ink, at, mine, style="bars"))
    labels = tuple(f"{units.block(size)} {mix_name(share)}" for share, size in places)
    if longest:
        low, high = log_range(heights.values())
        axis = Axis("longest latency (log)", "log", low, high, si_unit="s")
    else:
        highest = max(float(np.nanmax(mine, initial=0.0)) for mine in heights.values())
        axis = Axis("average latency", low=0.0, high=round_above(highest), si_unit="s")
    return Figure(
        "pts-latency-longest" if longest else "pts-latency-average",
        f"{'Longest' if longest else 'Average'} latency of one I/O at a time",
        "Of all of the window's rounds, on a logarithmic axis: how long the worst I/O of them took."
        if longest
        else "Means of the window's rounds.",
        Axis("block size, reads/writes", labels=labels),
        (axis,),
        series,
    )


def _table(
    cells: dict[Run, dict[Mix, Cell]], refused: dict[Run, dict[Mix, str]], places: Sequence[Mix]
) -> Table:
    rows = []
    for run, mine in cells.items():
        for share, size in places:
            name = f"{run.subject.label}, {units.block(size)}, {mix_name(share)}"
            cell = mine.get((share, size))
            if cell is None:
                rows.append([name, *[absent(refused[run], (share, size))] * 3])
                continue
            if not math.isfinite(cell.mean_ns):
                rows.append([name, *["no I/Os"] * 3])
                continue
            rows.append([name, units.time(cell.mean_ns), units.time(cell.max_ns), units.number(cell.iops)])
    head = ["drive, block size, reads/writes", "average", "longest", "IOPS"]
    return Table("pts-latency", "Latency of one I/O at a time, in steady state", head, rows)


METHOD = Method(
    "pts-latency",
    "Latency in steady state (PTS-style)",
    "After the manner of SNIA's performance test specification: the drive is purged and written twice over in"
    " order; then nine combinations of mix and block size are run for a minute each with one I/O at a time,"
    " and this round is repeated until the average latency of 4 KiB writes is steady over five rounds. The"
    " average says how fast the drive answers when nothing else waits, the longest how long it may let an"
    " application wait all the same.",
    look,
)
