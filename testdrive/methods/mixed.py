"""The mixed sweep: throughput, power, and throughput for each watt, against the share of reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import Run
from testdrive.methods.scales import round_above
from testdrive.report import units

#: The mix of the table and of the bars.
HEADLINE_READ_SHARE = 0.7
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class _Point:
    """One mix at one depth on one drive. ``power_w`` is NaN where nothing measured it."""

    read_share: float
    depth: int
    iops: float
    bytes_per_s: float
    mean_latency_ns: float
    power_w: float

    @property
    def bytes_per_s_w(self) -> float:
        """Throughput for each watt."""
        return self.bytes_per_s / self.power_w if self.power_w > 0 else math.nan


def look(runs: Sequence[Run]) -> Findings:
    """Throughput against the mix for each depth, power where it is known, and the headline mix."""
    points = {run: _points(run) for run in runs}
    depths = sorted({point.depth for found in points.values() for point in found})
    figures = [_throughput(points, depth) for depth in depths]
    measured = {run: found for run, found in points.items() if any(point.power_w > 0 for point in found)}
    if measured:
        figures += [_power(measured, depth) for depth in depths]
    bars = _bars(points, depths)
    notes = [
        f"{run.subject.label}: power was {NOT_MEASURED}."
        for run, found in points.items()
        if found and run not in measured
    ]
    return Findings([*figures, *([bars] if bars else [])], [_table(points, depths)] if depths else [], notes)


def _points(run: Run) -> list[_Point]:
    found = []
    for phase in run.phases:
        settings = phase.settings or {}
        length_s = ((phase.end_ns or phase.start_ns) - phase.start_ns) / 1e9
        if phase.kind != "synthetic" or length_s <= 0:
            continue
        latencies, totals = run.latencies(phase), run.totals(phase)
        found.append(
            _Point(
                read_share=float(settings.get("read_share", 1.0)),
                depth=int(settings.get("depth", 32)),
                iops=totals.ios / length_s,
                bytes_per_s=totals.bytes / length_s,
                mean_latency_ns=latencies.sum / latencies.n if latencies.n else math.nan,
                power_w=run.power_w(phase),
            )
        )
    return found


_MIX = Axis("share of reads (%), writes are the rest", low=100.0, high=0.0)


def _against_mix(
    points: dict[Run, list[_Point]], depth: int, values: Sequence[tuple[str, float]]
) -> list[Series]:
    """A line for each drive in each panel: ``values`` are attributes of a point, with their scale."""
    series = []
    for run, found in points.items():
        mine = [point for point in found if point.depth == depth]
        for panel, (name, scale) in enumerate(values):
            series.append(
                Series(
                    run.subject.label,
                    run.subject.ink,
                    np.array([point.read_share * 100 for point in mine]),
                    np.array([getattr(point, name) / scale for point in mine]),
                    panel=panel,
                )
            )
    return series


def _highest(points: dict[Run, list[_Point]], name: str, scale: float) -> float:
    found = [getattr(point, name) / scale for mine in points.values() for point in mine]
    return round_above(max([value for value in found if math.isfinite(value)], default=0.0))


def _throughput(points: dict[Run, list[_Point]], depth: int) -> Figure:
    return Figure(
        f"mixed-throughput-{depth}",
        f"Throughput against the mix, queue depth {depth}",
        "Reads alone at the left, writes alone at the right; a valley between them is what mixing costs.",
        _MIX,
        (Axis("throughput (MB/s)", low=0.0, high=_highest(points, "bytes_per_s", 1e6)),),
        _against_mix(points, depth, [("bytes_per_s", 1e6)]),
    )


def _power(points: dict[Run, list[_Point]], depth: int) -> Figure:
    return Figure(
        f"mixed-power-{depth}",
        f"Power against the mix, queue depth {depth}",
        "Mean power while each mix was measured, and the throughput that each watt bought.",
        _MIX,
        (
            Axis("mean power (W)", low=0.0, high=_highest(points, "power_w", 1)),
            Axis("MB/s for each W", low=0.0, high=_highest(points, "bytes_per_s_w", 1e6)),
        ),
        _against_mix(points, depth, [("power_w", 1), ("bytes_per_s_w", 1e6)]),
    )


def _headline(found: Sequence[_Point], depth: int) -> _Point | None:
    return next(
        (
            point
            for point in found
            if point.depth == depth and math.isclose(point.read_share, HEADLINE_READ_SHARE)
        ),
        None,
    )


def _bars(points: dict[Run, list[_Point]], depths: Sequence[int]) -> Figure | None:
    series = []
    for run, found in points.items():
        heads = [_headline(found, depth) for depth in depths]
        if any(heads):
            heights = np.array([head.bytes_per_s / 1e6 if head else math.nan for head in heads])
            x = np.arange(len(depths), dtype=np.float64)
            series.append(Series(run.subject.label, run.subject.ink, x, heights, style="bars"))
    if not series:
        return None
    return Figure(
        "mixed-70-30",
        "Throughput with 70 % reads and 30 % writes",
        "The mix that most services come near to.",
        Axis("queue depth", labels=tuple(f"{depth}" for depth in depths)),
        (Axis("throughput (MB/s)", low=0.0),),
        series,
    )


def _table(points: dict[Run, list[_Point]], depths: Sequence[int]) -> Table:
    rows = []
    for run, found in points.items():
        for depth in depths:
            head = _headline(found, depth)
            name = f"{run.subject.label}, depth {depth}"
            if head is None:
                rows.append([name, *["not reached"] * 5])
                continue
            power = f"{units.significant(head.power_w)} W" if head.power_w > 0 else NOT_MEASURED
            rows.append(
                [
                    name,
                    units.number(head.iops),
                    units.number(head.bytes_per_s / 1e6),
                    units.time(head.mean_latency_ns),
                    power,
                    units.significant(head.bytes_per_s_w / 1e6) if head.power_w > 0 else NOT_MEASURED,
                ]
            )
    columns = ["drive", "IOPS", "MB/s", "mean latency", "mean power", "MB/s for each W"]
    return Table("mixed-70-30", "70 % reads and 30 % writes", columns, rows)


METHOD = Method(
    "mixed",
    "Mixed reads and writes",
    "4 KiB at random places of a drive in service: full, and written over at random once. From reads alone to"
    " writes alone in steps of a tenth, at queue depth 32 over 8 threads and 128 over 16. Drives are sold by"
    " the two ends of these curves and live between them: look for how deep the valley is, and at which mix"
    " it begins.",
    look,
)
