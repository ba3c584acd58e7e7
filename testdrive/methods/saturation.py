"""Write saturation: a fresh drive under random writes for hours, with zeroes and with incompressible data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from testdrive.methods.cliff import SECONDS_MIN
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.method import Method
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import headroom, log_range
from testdrive.methods.written import Written, fills_axis
from testdrive.report import palette, units

#: The phases, by what they write.
PHASES = {"all-zero": "writes-zeroes", "incompressible": "writes"}
#: As many points are drawn of each run at most; of a longer one each is the mean of several seconds.
POINTS_MAX = 1_800
#: Up to this a run's time is drawn in seconds, above in minutes.
SECONDS_SHOWN_MAX = 600
IOPS_INK, LATENCY_INK = palette.drive(0), palette.drive(1)


@dataclass(frozen=True)
class _Writes(Written):
    """One drive's run with one kind of data."""

    data: str

    @property
    def name(self) -> str:
        return f"{self.run.subject.label}, {self.data}"

    @property
    def planned_s(self) -> int:
        return int((self.phase.settings or {}).get("duration_ns") or 0) // SECOND_NS


@dataclass(frozen=True)
class _Scales:
    """What all panels of all figures share."""

    step: int
    whole_s: float
    whole_fills: float
    iops: Axis
    latency: Axis

    @property
    def minutes(self) -> bool:
        return self.whole_s > SECONDS_SHOWN_MAX

    @property
    def time(self) -> Axis:
        unit, scale = ("min", 60.0) if self.minutes else ("s", 1.0)
        return Axis(f"time since the first write ({unit})", low=0.0, high=self.whole_s / scale)

    @property
    def fills(self) -> Axis:
        return fills_axis(self.whole_fills)


def look(runs: Sequence[Run]) -> Findings:
    """IOPS of both kinds of data, IOPS and latency on two axes over time and fills, and the levels."""
    found = {data: _writes(runs, data) for data in PHASES}
    drawn = [writes for each in found.values() for writes in each if writes.seconds.whole]
    figures = []
    if drawn:
        scales = _scales(drawn)
        figures.append(_both_data(drawn, scales))
        full = [writes for writes in drawn if writes.data == "incompressible"]
        if full:
            figures += [_two_axes(full, scales, over) for over in ("time", "fills")]
    everything = [writes for each in found.values() for writes in each]
    return Findings(figures, [_table(everything)] if everything else [], _notes(runs, everything))


def _writes(runs: Sequence[Run], data: str) -> list[_Writes]:
    return [_Writes(run, phase, data) for run in runs if (phase := run.phase(PHASES[data])) is not None]


def _scales(drawn: Sequence[_Writes]) -> _Scales:
    whole_s = max(writes.seconds.whole for writes in drawn)
    step = -(-whole_s // POINTS_MAX)
    points = [writes.points(step) for writes in drawn]
    highest = max(float(each.iops.max(initial=0.0)) for each in points)
    low, high = log_range([each.latency_s for each in points])
    title = "IOPS in each second" if step == 1 else f"mean IOPS of each {step} s"
    fills = [float(writes.fills[-1]) for writes in drawn if writes.data == "incompressible"]
    return _Scales(
        step,
        float(whole_s),
        max((each for each in fills if math.isfinite(each)), default=0.0),
        Axis(title, low=0.0, high=headroom(highest), si_unit="IOPS"),
        Axis("mean latency (log)", scale="log", low=low, high=high, si_unit="s"),
    )


def _both_data(drawn: Sequence[_Writes], scales: _Scales) -> Figure:
    """One drive has both kinds of data in one panel; of several, each kind has a panel with all drives."""
    several = len({writes.run for writes in drawn}) > 1
    kinds = [data for data in PHASES if any(writes.data == data for writes in drawn)]
    series = []
    for writes in drawn:
        points = writes.points(scales.step)
        subject = writes.run.subject
        ink = subject.ink if several or writes.data == "incompressible" else palette.drive(2)
        name = subject.label if several else writes.name
        panel = kinds.index(writes.data) if several else 0
        series.append(
            Series(name, ink, points.ends_s / (60 if scales.minutes else 1), points.iops, "points", panel)
        )
    return Figure(
        "saturation-data",
        f"IOPS with {' and with '.join(kinds)} data",
        "A drive that compresses, or leaves out blocks of zeroes, has more spare area with data that can be"
        " compressed and falls later, less, or not at all. Where both lie together the data makes no"
        " difference.",
        scales.time,
        (scales.iops,) * (len(kinds) if several else 1),
        series,
        headings=tuple(f"{data} data" for data in kinds) if several else (),
    )


def _two_axes(full: Sequence[_Writes], scales: _Scales, over: str) -> Figure:
    """A panel for each drive, with IOPS at the left and mean latency at the right."""
    left, right = replace(scales.iops, ink=IOPS_INK), replace(scales.latency, ink=LATENCY_INK)
    series = []
    for panel, writes in enumerate(full):
        points = writes.points(scales.step)
        iops, latency = points.iops, points.latency_s
        x = points.ends_s / (60 if scales.minutes else 1) if over == "time" else points.fills
        known = np.isfinite(x)
        series.append(Series("IOPS", IOPS_INK, x[known], iops[known], "points", panel))
        series.append(Series("mean latency", LATENCY_INK, x[known], latency[known], "points", panel, "right"))
        at = _cliff_at(writes, scales, over)
        if at is not None:
            top = np.array([0.0, scales.iops.high or 0.0])
            series.append(Series("cliff", palette.ORIGINAL, np.full(2, at), top, "rule", panel))
    axis, words, more = scales.time, "time", ""
    if over == "fills":
        axis, words = scales.fills, "drive fills"
        more = (
            " Over drive fills, drives of different sizes and speeds fall where their spare area is used up."
        )
    return Figure(
        f"saturation-{over}",
        f"IOPS and mean latency with incompressible data, over {words}",
        "IOPS at the left, mean latency on a logarithmic axis at the right. Where there is a cliff, the"
        f" dotted line is at it.{more}",
        axis,
        (left,) * len(full),
        series,
        right=(right,) * len(full),
        headings=tuple(writes.run.subject.label for writes in full),
    )


def _cliff_at(writes: _Writes, scales: _Scales, over: str) -> float | None:
    seconds = writes.levels.cliff_s
    if seconds is None:
        return None
    if over == "time":
        return seconds / (60 if scales.minutes else 1)
    return _fills_by(writes, seconds)


def _fills_by(writes: _Writes, seconds: int) -> float | None:
    """How often the drive was written in so many seconds; None where its capacity is not known."""
    fills = float(writes.fills[seconds - 1]) if seconds else 0.0
    return fills if math.isfinite(fills) else None


def _table(everything: Sequence[_Writes]) -> Table:
    head = [
        "drive, data",
        "IOPS at the start",
        "cliff after",
        "drive fills before it",
        "halfway down after",
        "settled IOPS",
        "settled / start",
        "drive fills in all",
        "write amplification",
    ]
    return Table(
        "saturation", "From the start to where it settles", head, [_row(writes) for writes in everything]
    )


def _row(writes: _Writes) -> list[str]:
    levels, whole = writes.levels, writes.seconds.whole
    if levels.start_iops is None:
        return [writes.name, *["no whole second"] * 8]
    total = _fills_by(writes, whole)
    fills = "capacity not known" if total is None else units.number(total)
    start = [writes.name, units.number(levels.start_iops)]
    amplification = writes.write_amplification()
    if levels.end_iops is None:
        short = f"too short: {whole} s, not {SECONDS_MIN}"
        return [*start, short, *["too short"] * 4, fills, amplification]
    if levels.cliff_s is None:
        cliff = ["no cliff", f"none in {fills}" if total is not None else fills, "no cliff"]
    else:
        before = _fills_by(writes, levels.cliff_s)
        cliff = [
            units.duration(levels.cliff_s * SECOND_NS),
            fills if before is None else units.number(before),
            units.duration((levels.halfway_s or 0) * SECOND_NS),
        ]
    settled = units.number(levels.end_iops) + ("" if levels.settled else ", still changing")
    ratio = units.percent(levels.end_iops / levels.start_iops) if levels.start_iops else "no I/Os"
    return [*start, *cliff, settled, ratio, fills, amplification]


def _notes(runs: Sequence[Run], everything: Sequence[_Writes]) -> list[str]:
    notes = []
    for run in runs:
        for data, name in PHASES.items():
            asked = data == "incompressible" or run.parameter("zeroes", "yes") == "yes"
            if asked and run.phase(name) is None:
                notes.append(f"{run.subject.label} ended before {data} data was written.")
    said: dict[str, list[str]] = {}
    for writes in everything:
        for sentence in _sentences(writes):
            said.setdefault(sentence, []).append(writes.name)
    # What holds for several of them is said once.
    return [*notes, *(f"{'; '.join(names)}: {sentence}" for sentence, names in said.items())]


def _sentences(writes: _Writes) -> list[str]:
    """What a reader must know of one run, without its name."""
    said = []
    whole, total = writes.seconds.whole, _fills_by(writes, writes.seconds.whole)
    if whole < writes.planned_s:
        planned = units.duration(writes.planned_s * SECOND_NS)
        said.append(f"ended after {units.duration(whole * SECOND_NS)} of {planned}.")
    span_share = float((writes.phase.settings or {}).get("span_share") or 1.0)
    if span_share < 1:
        said.append(
            f"only {units.percent(span_share)} of the drive was used, so that most of it was spare area;"
            " drive fills are of the whole drive."
        )
    if total is not None and total < 1:
        said.append(
            f"only {units.number(total)} of the drive was written; a cliff would come after one drive fill at"
            " the earliest, unless a cache is used up before. Give it more time."
        )
    return said


METHOD = Method(
    "saturation",
    "Write saturation",
    "4 KiB random writes, 32 in flight, on a drive that was purged and not filled: at first there are"
    " erased blocks for every write. Once the spare area is used up as well, each write needs room made for"
    " it, and IOPS fall: the write cliff. Look for how much was written until then, how deep it falls,"
    " whether it settles, and what the data does to all this. The start is the median of the first ten"
    " seconds; settled is the mean of the last fifth. Halfway down is the first second below the middle of"
    " both, on a logarithmic scale, from which the drive does not come back; the cliff comes after the last"
    " second before that with nine tenths of the start. Write amplification is over the whole run, by the"
    " drive's own counters.",
    look,
)
