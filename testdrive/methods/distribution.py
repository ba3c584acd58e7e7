"""Latency percentiles at each queue depth: who waits, for how long, and how much of all waiting that is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from testdrive.manifest import Phase
from testdrive.methods.drawing import Axis, Figure, Findings, Part, Series, Table
from testdrive.methods.latency_curves import BINS_PER_DECADE, cumulated, spectrum
from testdrive.methods.method import Method
from testdrive.methods.runs import Run
from testdrive.methods.scales import round_above
from testdrive.metrics.percentiles import SAMPLES_MIN
from testdrive.metrics.scans import QUANTILES, Distribution
from testdrive.report import units, words
from testdrive.report.distribution import supported_share

#: I/Os longer than this wait, in the table and in the overview: an SSD's own reads and writes are far below.
WAIT_NS = 1_000_000
#: The depths whose figures are in sight at once; those between are folded.
OPEN_DEPTHS = (1, 32)
_NAME = re.compile(r"(writes|reads)-depth-(\d+)$")
_TABLED = ("p50", "p99", "p99_9", "p99_99")


@dataclass(frozen=True)
class Measured:
    """One phase of one drive: reads or writes at one depth."""

    run: Run
    phase: Phase
    operation: str
    depth: int

    @cached_property
    def latencies(self) -> Distribution:
        """The service times of its I/Os without an error."""
        return self.run.latencies(self.phase)

    @property
    def submitting_s(self) -> float:
        """How long it submitted: its length without waiting for the last I/Os, in the paced form without the
        pauses.
        """
        settings = self.phase.settings or {}
        length_ns = (self.phase.end_ns or self.phase.start_ns) - self.phase.start_ns
        length_ns = min(length_ns, int(settings.get("duration_ns") or length_ns))
        on_ns, off_ns = int(settings.get("on_ns") or 0), int(settings.get("off_ns") or 0)
        if not (on_ns and off_ns):
            return length_ns / 1e9
        whole, rest = divmod(length_ns, on_ns + off_ns)
        return (whole * on_ns + min(rest, on_ns)) / 1e9

    @property
    def iops(self) -> float:
        """I/Os completed for each second in which it submitted."""
        return self.run.totals(self.phase).ios / self.submitting_s if self.submitting_s > 0 else math.nan

    @property
    def waiting_share(self) -> float:
        """The share of the time of all I/Os that is spent in I/Os longer than :data:`WAIT_NS`."""
        share = self.latencies.weighted_share_at(WAIT_NS)
        return math.nan if share is None else 1 - share


def measured(run: Run) -> list[Measured]:
    """The phases of reads and of writes that the run got to, in its order."""
    found = ((phase, _NAME.match(phase.name)) for phase in run.phases)
    return [Measured(run, phase, match[1], int(match[2])) for phase, match in found if match]


def look(runs: Sequence[Run]) -> Findings:
    """The overview over the depths, then four figures for each depth: of writes, and of reads."""
    everything = [one for run in runs for one in measured(run) if one.latencies.n]
    figures: list[Figure] = []
    tables: list[Table] = []
    for operation in ("writes", "reads"):
        mine = [one for one in everything if one.operation == operation]
        if not mine:
            continue
        depths = sorted({one.depth for one in mine})
        tables.append(_table(mine, operation, depths))
        figures.append(_overview(runs, mine, operation, depths))
        scales = _Scales.of(mine)
        for depth in depths:
            figures += _figures([one for one in mine if one.depth == depth], scales)
    return Findings(figures, tables, _notes(runs, everything))


@dataclass(frozen=True)
class _Scales:
    """What the figures of all depths and drives have in common: depths are compared as drives are."""

    low_s: float
    high_s: float
    most_ios: float
    top_percent: float

    @classmethod
    def of(cls, mine: Sequence[Measured]) -> _Scales:
        # The fastest per mille is left out: a few I/Os would take half of the figure for nothing.
        low = min(max(one.latencies.quantile(1_000) or 1, 1) for one in mine)
        high = max(one.latencies.max or 1 for one in mine)
        bins = max(int(spectrum(one.latencies)[1].max()) for one in mine)
        return cls(
            10 ** (math.floor(math.log10(low) * BINS_PER_DECADE) / BINS_PER_DECADE) / 1e9,
            # One bin more, in which the spectrum comes down, and a little for the line's own width.
            10 ** ((math.floor(math.log10(max(high, low * 2)) * BINS_PER_DECADE) + 1.2) / BINS_PER_DECADE)
            / 1e9,
            10.0 ** math.ceil(math.log10(max(bins, 10))),
            100 * (1 - 0.2 / max(one.latencies.n for one in mine)),
        )


def _figures(mine: Sequence[Measured], scales: _Scales) -> list[Figure]:
    operation, depth = mine[0].operation, mine[0].depth
    paced = _common_pace(mine)
    part = Part(f"random {operation} at queue depth {depth}{paced}", depth in OPEN_DEPTHS)
    latency = Axis("service time (log)", "log", scales.low_s, scales.high_s, si_unit="s")
    ios = Axis(f"I/Os in each {_bin_words()} (log)", "log", 0.5, scales.most_ios, si_unit="IOPS")
    whole = Axis("share of I/O time at or below (%)", low=0.0, high=101.0)

    def nines(share_of: str) -> Axis:
        return Axis(f"share of {share_of} at or below (%)", "nines", 0.0, scales.top_percent)

    def figure(kind: str, title: str, caption: str, y: Axis, make: Callable[[Measured], Series]) -> Figure:
        key = f"distribution-{operation}-{depth}-{kind}"
        series = [make(one) for one in mine]
        return Figure(key, title, caption, latency, (y,), series, part, _chapter(operation))

    return [
        figure(
            "spectrum",
            "Distribution",
            "Hills are what the drive does often; what stands far to the right waited."
            " Latencies that no I/O had are at the foot.",
            ios,
            _spectrum_series,
        ),
        figure(
            "ios",
            "IO-weighted percentile",
            "A level stretch is a shelf: the I/Os above it take at least as long as where it ends.",
            nines("I/Os"),
            lambda one: _curve_series(one, weighted=False, nines=True),
        ),
        figure(
            "time",
            "Latency-weighted percentile",
            "What an observer who waits for one I/O after the other feels: each I/O weighs what it takes.",
            whole,
            lambda one: _curve_series(one, weighted=True, nines=False),
        ),
        figure(
            "time-nines",
            "Latency-weighted percentile, nines",
            "The same, with the last per cent of the time drawn out.",
            nines("I/O time"),
            lambda one: _curve_series(one, weighted=True, nines=True),
        ),
    ]


def _chapter(operation: str) -> str:
    return f"Random {operation}"


def _bin_words() -> str:
    return f"{(10 ** (1 / BINS_PER_DECADE) - 1) * 100:.0f} % of latency"


def _spectrum_series(one: Measured) -> Series:
    edges, counts = spectrum(one.latencies)
    # A logarithmic axis has no zero: empty bins are drawn below where it begins.
    heights = np.maximum(counts.astype(np.float64), 0.25)
    subject = one.run.subject
    return Series(
        subject.label,
        subject.ink,
        np.concatenate(([edges[0]], edges)) / 1e9,
        np.concatenate(([0.25], heights)),
        style="steps",
    )


def _curve_series(one: Measured, *, weighted: bool, nines: bool) -> Series:
    value, percent = cumulated(one.latencies, weighted=weighted)
    if nines:
        # 100 % is at infinity there: the last point is drawn half an I/O short of it.
        percent = np.minimum(percent, 100 * (1 - 0.5 / one.latencies.n))
    value, percent = np.append(value[:1], value), np.append(0.0, percent)
    faint = None
    if not weighted:
        # On its way up to the first share that rests on too few I/Os a line is firm as far as they carry it.
        limit = 100 * supported_share(one.latencies.n)
        faint = int(np.searchsorted(percent, limit, side="right"))
        if faint < len(percent):
            value, percent = np.insert(value, faint, value[faint]), np.insert(percent, faint, limit)
            faint += 1
    subject = one.run.subject
    return Series(subject.label, subject.ink, value / 1e9, percent, style="steps", faint_from=faint)


def _overview(runs: Sequence[Run], mine: Sequence[Measured], operation: str, depths: Sequence[int]) -> Figure:
    series = []
    for run in runs:
        by_depth = {one.depth: one for one in mine if one.run is run}
        x = np.array([float(depths.index(depth)) for depth in sorted(by_depth)])
        points = [by_depth[depth] for depth in sorted(by_depth)]
        for panel, values in enumerate(([one.iops for one in points], [_waiting(one) for one in points])):
            series.append(Series(run.subject.label, run.subject.ink, x, np.array(values), panel=panel))
    highest = max(one.iops for one in mine)
    most = max(max(_waiting(one) for one in mine), 1.0)
    return Figure(
        f"distribution-{operation}",
        f"Random {operation} against queue depth{_common_pace(mine)}",
        "Deeper queues bring more I/Os a second until the drive is busy; from there on they bring waiting.",
        Axis("queue depth", labels=tuple(f"{depth}" for depth in depths)),
        (
            Axis("IOPS", low=0.0, high=round_above(highest), si_unit="IOPS"),
            Axis(f"share of I/O time above {units.duration(WAIT_NS)} (%)", low=0.0, high=round_above(most)),
        ),
        [one for one in series if len(one.x)],
        chapter=_chapter(operation),
    )


def _waiting(one: Measured) -> float:
    return one.waiting_share * 100


def _table(mine: Sequence[Measured], operation: str, depths: Sequence[int]) -> Table:
    rows = []
    for depth in depths:
        for one in mine:
            if one.depth != depth:
                continue
            rows.append(
                [
                    one.run.subject.label,
                    f"{depth}",
                    units.count(one.iops),
                    units.percent(one.waiting_share, 2),
                    *(_percentile(one.latencies, name) for name in _TABLED),
                    units.time(one.latencies.max),
                    *([_steadiness(one)] if operation == "writes" else []),
                ]
            )
    head = ["drive", "queue depth", "IOPS", f"I/O time above {units.duration(WAIT_NS)}"]
    head += [name.replace("_", ".") for name in _TABLED] + ["max"]
    head += ["steady state"] if operation == "writes" else []
    title = f"Random {operation} at each queue depth{_common_pace(mine)}: service times"
    return Table(f"distribution-{operation}", title, head, rows, _chapter(operation))


def _percentile(latencies: Distribution, name: str) -> str:
    if latencies.n < SAMPLES_MIN.get(name, 1):
        return words.code("too_few_samples")
    return units.time(latencies.quantile(QUANTILES[name]))


def _steadiness(one: Measured) -> str:
    judged = _steady_state(one.run, one.depth)
    if judged is None:
        return units.ABSENT
    rounds = words.plural(len(judged.get("rounds", [])), "round")
    return f"after {rounds}" if judged.get("achieved") else f"not in {rounds}"


def _steady_state(run: Run, depth: int) -> dict[str, Any] | None:
    phase = run.phase(f"steady-depth-{depth}")
    return None if phase is None else (phase.accounting or {}).get("steady_state")


def _paced(one: Measured) -> str:
    settings = one.phase.settings or {}
    on_ns, off_ns = settings.get("on_ns"), settings.get("off_ns")
    if not (on_ns and off_ns):
        return ""
    return f", {units.duration(on_ns)} on and {units.duration(off_ns)} off"


def _common_pace(mine: Sequence[Measured]) -> str:
    """The pace for a title, which stands over all: nothing where they differ, which a note says."""
    paces = {_paced(one) for one in mine}
    return paces.pop() if len(paces) == 1 else ""


def _notes(runs: Sequence[Run], everything: Sequence[Measured]) -> list[str]:
    notes = []
    paces = {_paced(one) for one in everything}
    if len(paces) > 1:
        notes.append("These runs were paced differently: their drives had different times to tidy up.")
    planned = max((len(measured(run)) for run in runs), default=0)
    for run in runs:
        reached = len([one for one in everything if one.run is run])
        if reached < planned:
            notes.append(f"{run.subject.label} has {reached} of {planned} depths of writes and reads.")
    return notes


METHOD = Method(
    "distribution",
    "Latency percentiles",
    "4 KiB at random places of a part of the full drive, writes once they are steady and then reads. An"
    " average says what an I/O takes if time is dealt out evenly, and drives do not: most I/Os are fast,"
    " and a few wait while room is made. Look for shelves, where a curve runs level: their height is the"
    " share of I/Os that do not wait, and where they end is how long the others do. Weighted by latency,"
    " the same few can be most of the time. All depths and drives have the same scales, once for writes"
    " and once for reads.",
    look,
)
