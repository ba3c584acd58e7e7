"""Host idle recovery, after the manner of SNIA's performance test specification.

A drive that is written at random until steady is then written in bursts with rests of 5 to 50 s between
them, and after each length of rest without any again. The IOPS of a burst are the I/Os that completed from
its beginning to the next one's, over the time in which it was written to. The gain of a length of rest is the
mean over the last fifth of its bursts, over that of the steady state. The drive is back once no 10 s of the
writes that follow have a mean above 110 % of the steady state's.

Source of the lengths and of the sequence: SNIA, Solid State Storage Performance Test Specification 2.0.1,
host idle recovery. What gain and return are is this tool's own definition. It is no claim to comply with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import Phase
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Style, Table
from testdrive.methods.method import Method
from testdrive.methods.rounds import UNMARKED_POINTS
from testdrive.methods.runs import SECOND_NS, Run
from testdrive.methods.scales import round_above
from testdrive.methods.steadiness import Steadiness, steadiness_of, steadiness_table
from testdrive.report import palette, units

#: The lengths of rest by number, which is in the names of their phases.
RESTS = (1, 2, 3, 4, 5)
STEADY = "writes"
#: Above this share of the steady state's mean a drive is not back yet.
BACK_SHARE = 1.10
BACK_WINDOW_S = 10
#: The part of the bursts, the last ones, whose mean is the gain's.
LAST_SHARE = 5


@dataclass(frozen=True)
class _Rests:
    """One drive with one length of rest: its bursts, and the writes after them."""

    number: int
    rest_ns: int
    bursts: NDArray[np.float64]
    return_iops: NDArray[np.float64]

    @property
    def name(self) -> str:
        """The length of the rest."""
        return units.duration(self.rest_ns)

    @property
    def reached_iops(self) -> float:
        """The mean of the last fifth of the bursts; NaN without any."""
        count = len(self.bursts)
        return float(self.bursts[-max(count // LAST_SHARE, 1) :].mean()) if count else math.nan

    def back_s(self, steady_iops: float) -> int | None:
        """How many seconds the writes go on until the drive is back; None if that was not seen."""
        whole = len(self.return_iops)
        if whole < BACK_WINDOW_S:
            return None
        sums = np.concatenate([[0.0], np.cumsum(self.return_iops)])
        means = (sums[BACK_WINDOW_S:] - sums[:-BACK_WINDOW_S]) / BACK_WINDOW_S
        above = np.flatnonzero(means > steady_iops * BACK_SHARE)
        if not len(above):
            return 0
        ends_s = int(above[-1]) + BACK_WINDOW_S
        return ends_s if ends_s < whole else None


class _Drive:
    """One drive's run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.steady_phase = run.phase(STEADY)

    @property
    def label(self) -> str:
        return self.run.subject.label

    @cached_property
    def steadiness(self) -> Steadiness | None:
        return steadiness_of(self.steady_phase)

    @cached_property
    def steady_iops(self) -> float:
        """The mean of the steady state's window; of all of these writes where there was no whole window."""
        if self.steadiness is not None and self.steadiness.fit is not None:
            return self.steadiness.fit.mean
        if self.steady_phase is None:
            return math.nan
        seconds = self.run.seconds(self.steady_phase)
        return float(seconds.ios.mean()) if seconds.whole else math.nan

    @cached_property
    def rests(self) -> list[_Rests]:
        found = []
        for number in RESTS:
            phase, back = self.run.phase(f"idle-{number}"), self.run.phase(f"return-{number}")
            if phase is None:
                continue
            after = np.zeros(0) if back is None else self.run.seconds(back).ios.astype(np.float64)
            rest_ns = int((phase.settings or {})["off_ns"])
            found.append(_Rests(number, rest_ns, _bursts(self.run, phase), after))
        return found


def _bursts(run: Run, phase: Phase) -> NDArray[np.float64]:
    """IOPS of each whole burst, over the time in which it was written to."""
    settings = phase.settings or {}
    on_ns, off_ns = int(settings["on_ns"]), int(settings["off_ns"])
    period_s = (on_ns + off_ns) / SECOND_NS
    seconds = run.seconds(phase)
    reached = np.concatenate([[0.0], np.cumsum(seconds.ios)])
    # What completes of a burst in its rest belongs to it. A cut within a second takes that part of it.
    cuts = np.arange(0.0, seconds.whole + 1e-9, period_s)
    counted = np.diff(np.interp(cuts, np.arange(len(reached)), reached))
    return np.asarray(counted / (on_ns / SECOND_NS), dtype=np.float64)


def look(runs: Sequence[Run]) -> Findings:
    """The bursts of each length of rest, the writes after them, and what the rests brought."""
    drives = [_Drive(run) for run in runs]
    notes = [
        f"{drive.label} ended before it had any rest." if not drive.rests else f"{drive.label} {words}"
        for drive in drives
        if (words := _short(drive))
    ]
    drawn = [drive for drive in drives if drive.rests]
    steadiness = [(drive.label, drive.steadiness) for drive in drives if drive.steady_phase is not None]
    tables = [steadiness_table("steady-state", steadiness)] if steadiness else []
    if not drawn:
        return Findings([], tables, notes)
    figures = [_gains(drawn), _curves(drawn, returning=False), _curves(drawn, returning=True)]
    return Findings(figures, [_table(drawn), *tables], notes)


def _short(drive: _Drive) -> str:
    reached = len(drive.rests)
    if reached < len(RESTS):
        return f"ended after {reached} of {len(RESTS)} lengths of rest."
    return ""


def _gains(drawn: Sequence[_Drive]) -> Figure:
    series = []
    places = np.arange(len(RESTS), dtype=np.float64)
    names = {rests.number: rests.name for drive in drawn for rests in drive.rests}
    highest = [0.0, 0.0]
    for drive in drawn:
        reached = {rests.number: rests.reached_iops for rests in drive.rests}
        iops = np.array([reached.get(number, math.nan) for number in RESTS])
        for panel, heights in enumerate((iops, iops / drive.steady_iops)):
            series.append(Series(drive.label, drive.run.subject.ink, places, heights, "bars", panel))
            highest[panel] = max(highest[panel], float(np.nanmax(heights, initial=0.0)))
    return Figure(
        "pts-idle-gain",
        "What rests bring",
        "IOPS while the drive is written to, in the last fifth of the bursts, and the same over the IOPS of"
        " the steady state without rests: 1 means that rests bring nothing.",
        Axis("rest between bursts", labels=tuple(names.get(number, "not reached") for number in RESTS)),
        (
            Axis("IOPS in bursts", low=0.0, high=round_above(highest[0]), si_unit="IOPS"),
            Axis("over the steady state", low=0.0, high=round_above(highest[1])),
        ),
        series,
    )


def _curves(drawn: Sequence[_Drive], *, returning: bool) -> Figure:
    """A panel for each drive, with a line for each length of rest."""
    series: list[Series] = []
    highest, last = 0.0, 1.0
    for panel, drive in enumerate(drawn):
        for at, rests in enumerate(drive.rests):
            values = rests.return_iops if returning else rests.bursts
            x = np.arange(1, len(values) + 1, dtype=np.float64)
            ink = palette.drive(at)
            style: Style = "points" if returning else "line"
            series.append(Series(f"{rests.name} of rest", ink, x, values, style, panel))
            highest = max(highest, float(values.max(initial=0.0)))
            last = max(last, float(len(values)))
        level = np.full(UNMARKED_POINTS, drive.steady_iops)
        ends = np.linspace(1.0, last, UNMARKED_POINTS)
        series.append(Series("steady state without rests", palette.ORIGINAL, ends, level, panel=panel))
        highest = max(highest, 0.0 if math.isnan(drive.steady_iops) else drive.steady_iops)
    each = "IOPS in each second" if returning else "IOPS in each burst"
    axes = (Axis(each, low=0.0, high=round_above(highest), si_unit="IOPS"),) * len(drawn)
    headings = tuple(drive.label for drive in drawn)
    if returning:
        return Figure(
            "pts-idle-return",
            "IOPS after the last rest, written to without rests again",
            "Each point is a second. Where the points lie above the dotted line, the drive still lives on"
            " what it gained in the rests.",
            Axis("time since the last rest (s)", low=0.0, high=last),
            axes,
            series,
            headings=headings,
        )
    return Figure(
        "pts-idle-bursts",
        "IOPS of each burst, for each length of rest",
        "Each burst of writes is followed by a rest. The dotted line is the steady state without rests, from"
        " which the first burst begins.",
        Axis("burst", low=0.0, high=last + 1),
        axes,
        series,
        headings=headings,
    )


def _table(drawn: Sequence[_Drive]) -> Table:
    rows = []
    for drive in drawn:
        for rests in drive.rests:
            back_s = rests.back_s(drive.steady_iops)
            reached = rests.reached_iops
            known = math.isfinite(reached)
            rows.append(
                [
                    f"{drive.label}, {rests.name}",
                    units.count(len(rests.bursts)),
                    units.number(float(rests.bursts[0])) if known else "no whole burst",
                    units.number(reached) if known else "no whole burst",
                    units.number(drive.steady_iops) if math.isfinite(drive.steady_iops) else "not known",
                    f"{reached / drive.steady_iops:.2f}" if known and drive.steady_iops > 0 else "not known",
                    _back(rests, back_s),
                ]
            )
    head = [
        "drive, rest",
        "bursts",
        "IOPS of the first burst",
        "IOPS of the last fifth",
        "IOPS of the steady state",
        "gain",
        "back within",
    ]
    return Table("pts-idle", "What rests of the host bring", head, rows)


def _back(rests: _Rests, back_s: int | None) -> str:
    if back_s is not None:
        return units.duration(back_s * SECOND_NS) if back_s else "at once"
    whole = len(rests.return_iops)
    if whole < BACK_WINDOW_S:
        return f"too short: {whole} s, not {BACK_WINDOW_S}"
    return f"not within {units.duration(whole * SECOND_NS)}"


METHOD = Method(
    "pts-idle",
    "Host idle recovery (PTS-style)",
    "After the manner of SNIA's performance test specification: 4 KiB random writes until steady, then bursts"
    " of 5 s with rests between them, 360 of each length of rest, and after each length half an hour without"
    " rests. Servers are seldom busy all the time: a drive that tidies up while the host rests is faster when"
    " it comes back. Look for how much is gained by which rest, and for how long it lasts.",
    look,
)
