"""The latency matrix: one I/O at a time, for small blocks and three mixes; average, p99.999 and maximum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testdrive.manifest import READ, WRITE, Phase
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import Run
from testdrive.methods.scales import headroom, log_range
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.metrics.scans import QUANTILES, Distribution
from testdrive.report import units

#: The fewest I/Os behind a p99.999: those that put a one-sided 95 % upper bound on it, the least n with
#: 1 - p^n >= 0.95, as for the percentiles of a summary. Its nearest rank is below the maximum's from 100,000
#: on, but of so few I/Os none is beyond the true p99.999 with a probability of 0.37.
P99_999_SAMPLES_MIN = SAMPLES_MIN["p99_999"]
HEAD = ["I/Os", "average", "p99.999", "maximum"]

Place = tuple[int, float]
"""Block size in bytes, and share of reads."""


@dataclass(frozen=True)
class _Cell:
    """One block size and mix on one drive."""

    run: Run
    phase: Phase

    @cached_property
    def whole(self) -> Distribution:
        return self.run.latencies(self.phase)

    def of(self, code: int) -> Distribution:
        """The latencies of one opcode alone."""
        return self.run.latencies(self.phase, code)


def look(runs: Sequence[Run]) -> Findings:
    """Bars of the average and of the maximum, a table of all, and one of the mixes by operation."""
    cells = {run: _cells(run) for run in runs}
    refused = {run: _refused(run) for run in runs}
    places = sorted(
        {place for run in runs for place in (*cells[run], *refused[run])},
        key=lambda place: (place[0], -place[1]),
    )
    figures = []
    if any(cells.values()):
        figures = [_bars(cells, places, refused, maximum=maximum) for maximum in (False, True)]
    tables = [_table(cells, refused, places)] if places else []
    mixed = [place for place in places if 0 < place[1] < 1]
    if any(place in each for place in mixed for each in cells.values()):
        tables.append(_by_operation(cells, mixed))
    return Findings(figures, [], _notes(refused), tables)


def _cells(run: Run) -> dict[Place, _Cell]:
    return {
        _place(phase.settings or {}): _Cell(run, phase) for phase in run.phases if phase.kind == "synthetic"
    }


def _refused(run: Run) -> dict[Place, str]:
    """What the drive does not support, with why."""
    plan = run.recording.manifest.plan
    return {_place(one.settings): one.reason for one in (plan.left_out if plan else [])}


def _place(settings: dict[str, object]) -> Place:
    block_bytes, read_share = settings.get("block_bytes", 4096), settings.get("read_share", 1.0)
    assert isinstance(block_bytes, int)
    assert isinstance(read_share, int | float)
    return block_bytes, float(read_share)


def _mix(read_share: float) -> str:
    return f"{read_share * 100:g} % reads"


def _mean_ns(found: Distribution) -> float:
    return found.sum / found.n if found.n else math.nan


def _bars(
    cells: dict[Run, dict[Place, _Cell]],
    places: Sequence[Place],
    refused: dict[Run, dict[Place, str]],
    *,
    maximum: bool,
) -> Figure:
    series = []
    for run, mine in cells.items():
        found = [mine[place].whole if place in mine else None for place in places]
        seconds = [
            math.nan if one is None or one.max is None else (one.max if maximum else _mean_ns(one)) / 1e9
            for one in found
        ]
        x = np.arange(len(places), dtype=np.float64)
        series.append(Series(run.subject.label, run.subject.ink, x, np.array(seconds), style="bars"))
    labels = tuple(f"{units.block(size)}\n{_mix(share)}" for size, share in places)
    x_axis = Axis("block size and mix", low=-0.5, high=len(places) - 0.5, labels=labels)
    missing = (
        " Where a bar is missing the drive does not support the block size." if any(refused.values()) else ""
    )
    if maximum:
        low, high = log_range([one.y for one in series])
        axis = Axis("maximum latency (log)", scale="log", low=low, high=high, si_unit="s")
        caption = (
            "The single slowest I/O of each combination. It is one event: a longer run finds a longer one,"
            " so compare runs of the same length."
        )
        return Figure("latency-max", "Maximum latency", caption + missing, x_axis, (axis,), series)
    highest = max((float(value) for one in series for value in one.y if math.isfinite(value)), default=0.0)
    axis = Axis("average latency", low=0.0, high=headroom(highest), si_unit="s")
    caption = "What a single I/O takes on average while nothing else waits for the drive."
    return Figure("latency-average", "Average latency", caption + missing, x_axis, (axis,), series)


def _values(found: Distribution) -> list[str]:
    if not found.n:
        return ["0", *["no I/Os"] * 3]
    p99_999 = "too few samples"
    if found.n >= P99_999_SAMPLES_MIN:
        p99_999 = units.time(found.quantile(QUANTILES["p99_999"]))
    return [f"{found.n:,}", units.time(_mean_ns(found)), p99_999, units.time(found.max)]


def _table(
    cells: dict[Run, dict[Place, _Cell]], refused: dict[Run, dict[Place, str]], places: Sequence[Place]
) -> Table:
    rows = []
    for run, mine in cells.items():
        for place in places:
            name = [run.subject.label, units.block(place[0]), _mix(place[1])]
            if place in mine:
                rows.append([*name, *_values(mine[place].whole)])
            else:
                rows.append([*name, *[refused[run].get(place, "not reached").partition(":")[0]] * len(HEAD)])
    title = "One I/O at a time, one thread"
    return Table("latency", title, ["drive", "block size", "mix", *HEAD], rows)


def _by_operation(cells: dict[Run, dict[Place, _Cell]], mixed: Sequence[Place]) -> Table:
    rows = []
    for run, mine in cells.items():
        for place in mixed:
            if place not in mine:
                continue
            for code, operation in ((READ, "reads"), (WRITE, "writes")):
                name = [run.subject.label, units.block(place[0]), _mix(place[1]), operation]
                rows.append([*name, *_values(mine[place].of(code))])
    title = "The mixes, by operation"
    return Table("latency-by-operation", title, ["drive", "block size", "mix", "operation", *HEAD], rows)


def _notes(refused: dict[Run, dict[Place, str]]) -> list[str]:
    notes = []
    for run, mine in refused.items():
        notes += [f"{run.subject.label}: {reason}." for reason in dict.fromkeys(mine.values())]
    return notes


METHOD = Method(
    "latency-matrix",
    "Latency matrix",
    "One thread issues one I/O, waits for it, and issues the next: what is measured is the drive's own"
    " time, without anything that waits in a queue. The drive is full and was written over at random. Look"
    " for what a write costs beside a read, for block sizes below the drive's own (512 B may have to be"
    " read, changed and written back), and for how far the maximum lies above the average. p99.999 is the"
    f" element of rank ceil(0.99999 n), shown from {P99_999_SAMPLES_MIN:,} I/Os on: fewer put no 95 % upper"
    " bound on it.",
    look,
)
