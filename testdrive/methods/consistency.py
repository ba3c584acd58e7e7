"""Performance consistency: IOPS of each second, of a full drive under random writes, over half an hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import Run
from testdrive.methods.scales import log_range, round_above
from testdrive.metrics.scans.distribution import rank

PHASES = ("writes", "writes-spare")
#: The linear figure reaches to this, or the smallest round number above it that holds all.
LINEAR_IOPS = 40_000.0


@dataclass(frozen=True)
class _Trace:
    """One drive's seconds in one phase."""

    name: str
    run: Run
    iops: NDArray[np.float64]
    from_s: int
    settled_s: int

    @property
    def settled(self) -> NDArray[np.float64]:
        """The last seconds, over which the table is."""
        return self.iops[max(len(self.iops) - self.settled_s, 0) :]


def look(runs: Sequence[Run]) -> Findings:
    """The trio of scatter plots for the whole span and for the limited one, and the table of the end."""
    figures: list[Figure] = []
    tables: list[Table] = []
    notes: list[str] = []
    for phase, suffix, words in zip(PHASES, ("", "-spare"), ("", ", with extra spare area"), strict=True):
        traces = [trace for run in runs if (trace := _trace(run, phase)) is not None]
        if not traces:
            continue
        figures += _trio(traces, suffix, words)
        tables.append(_table(traces, suffix, words))
        notes += _short_runs(traces)
    return Findings(figures, tables, notes)


def _trace(run: Run, name: str) -> _Trace | None:
    phase = run.phase(name)
    if phase is None:
        return None
    planned_s = int((phase.settings or {}).get("duration_ns") or 0) / 1e9
    seconds = run.seconds(phase)
    # Of 2,000 s the last 600 are shown larger and the last 400 judged; a shortened run keeps the proportions.
    planned = planned_s or seconds.whole
    return _Trace(
        run.subject.label,
        run,
        seconds.ios.astype(np.float64),
        from_s=round(planned * 0.7),
        settled_s=max(round(planned * 0.2), 1),
    )


def _trio(traces: Sequence[_Trace], suffix: str, words: str) -> list[Figure]:
    whole_s = float(max(len(trace.iops) for trace in traces))
    from_s = float(min(trace.from_s for trace in traces))
    low, high = log_range([trace.iops for trace in traces])
    late = [trace.iops[trace.from_s :] for trace in traces]
    linear = max([LINEAR_IOPS, *(round_above(float(part.max())) for part in late if len(part))])
    time = Axis("time since the first write (s)", low=0.0, high=whole_s)
    end = Axis("time since the first write (s)", low=from_s, high=whole_s)
    logarithmic = (Axis("IOPS in each second (log)", scale="log", low=low, high=high, si_unit="IOPS"),)
    straight = (Axis("IOPS in each second", low=0.0, high=linear, si_unit="IOPS"),)
    caption = "Each point is one second of one drive. A band that is narrow and level is consistent."
    if any((trace.iops == 0).any() for trace in traces):
        caption += " Seconds without a single I/O stand at the foot of the logarithmic axis."

    def figure(key: str, title: str, x: Axis, y: tuple[Axis, ...]) -> Figure:
        first = int(x.low or 0)
        series = [
            Series(
                trace.name,
                trace.run.subject.ink,
                np.arange(first + 1, len(trace.iops) + 1, dtype=np.float64),
                np.maximum(trace.iops[first:], y[0].low or 0.0),
                style="points",
            )
            for trace in traces
        ]
        return Figure(f"{key}{suffix}", f"{title}{words}", caption, x, y, series)

    return [
        figure("consistency-whole", "IOPS, the whole run", time, logarithmic),
        figure("consistency-end", f"IOPS from {from_s:.0f} s on, logarithmic", end, logarithmic),
        figure("consistency-linear", f"IOPS from {from_s:.0f} s on, linear", end, straight),
    ]


def _table(traces: Sequence[_Trace], suffix: str, words: str) -> Table:
    rows = []
    for trace in traces:
        settled = trace.settled
        if not len(settled):
            rows.append([trace.name, *["no whole second"] * 6])
            continue
        mean = float(settled.mean())
        rows.append(
            [
                trace.name,
                f"{len(settled):,}",
                f"{mean:,.0f}",
                f"{settled.min():,.0f}",
                f"{np.sort(settled)[rank(10_000, len(settled)) - 1]:,.0f}",
                f"{settled.std() / mean * 100:.1f} %" if mean else "no I/Os",
                f"{(settled < mean / 2).mean() * 100:.1f} %",
            ]
        )
    head = [
        "drive",
        "seconds judged",
        "mean IOPS",
        "least IOPS",
        "p1 IOPS",
        "standard deviation / mean",
        "seconds below half the mean",
    ]
    return Table(f"consistency{suffix}", f"The last seconds of the run{words}", head, rows)


def _short_runs(traces: Sequence[_Trace]) -> list[str]:
    return [
        f"{trace.name} ended after {len(trace.iops):,} s; its last seconds are judged all the same."
        for trace in traces
        if len(trace.iops) < trace.from_s + trace.settled_s
    ]


METHOD = Method(
    "consistency",
    "Performance consistency",
    "The drive is full and then written at random, 4 KiB at a time, for as long as it takes to see how it"
    " behaves once every write needs room made for it. The average hides what a virtual machine or a database"
    " feels: the seconds in which the drive does a tenth of it. Look for the height of the band at the end,"
    " for its width, and for points far below it.",
    look,
)
