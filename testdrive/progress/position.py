"""Where a run stands, from the events so far: the phase, its share, what is left, and the last minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testdrive.events import (
    CaptureProgress,
    Event,
    ExportProgress,
    ImportProgress,
    PhaseBegun,
    PhaseTitle,
    Progress,
    RoundPosition,
    Started,
    SteadyProgress,
    Stopping,
)
from testdrive.progress import words
from testdrive.progress.history import History, mean
from testdrive.report import units


@dataclass(frozen=True)
class Left:
    """Time that is left; at least that much where phases follow whose end nobody knows, or at most."""

    seconds: float
    bound: str = ""

    def __str__(self) -> str:
        return f"{self.bound}{words.clock(self.seconds)} left"


@dataclass(frozen=True)
class PhaseEnd:
    """What came of a phase that is over."""

    ordinal: str
    name: str
    elapsed_ns: int
    ios: int
    bytes: int
    errors: int

    def __str__(self) -> str:
        parts = [f"{self.ordinal} {self.name}", words.clock(self.elapsed_ns / 1e9)]
        parts.append(f"{units.count(self.ios)} I/Os")
        if self.elapsed_ns > 0 and self.ios:
            parts.append(units.iops(self.ios / self.elapsed_ns * 1e9))
            parts.append(units.rate(self.bytes / self.elapsed_ns * 1e9))
        if self.errors:
            parts.append(f"{units.count(self.errors)} errors")
        return "  ".join(parts)


class Position:
    """What the last events said.

    Parameters
    ----------
    clock : callable
        Seconds that pass here, by which the time left is judged: a modelled drive's own clock is faster.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_s = clock()
        self._phases: list[PhaseTitle] = []
        self._before = 0
        self._modelled = False
        self._begun = 0
        self._round: RoundPosition | None = None
        self.phase = "starting"
        self.share: float | None = None
        self.figures = ""
        self.last: Progress | None = None
        self.stopping = False
        self.iops = History(mean)
        self.latency_p99_ns = History(max)

    def take(self, event: Event) -> PhaseEnd | None:
        """Take an event in; a phase that begins tells what came of the one before it."""
        ended = None
        if isinstance(event, Started):
            self._phases, self._before = event.phases, event.phases_before
            self._modelled = bool((event.drive or {}).get("modelled"))
        elif isinstance(event, PhaseBegun):
            ended = self.phase_end()
            self._begin(event)
        elif isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Stopping):
            self.stopping = True
        elif isinstance(event, ImportProgress):
            self.phase = "import"
            self.share = (
                event.bytes_read / event.bytes_total if event.bytes_read and event.bytes_total else None
            )
            self.figures = f"{units.count(event.rows)} I/Os"
        elif isinstance(event, ExportProgress):
            self.phase = "export"
            self.share = event.rows / event.rows_total if event.rows_total else None
            self.figures = f"{units.count(event.rows)} I/Os"
        elif isinstance(event, CaptureProgress):
            self.phase, self.share = "capture", event.done_share
            self.figures = words.capture_figures(event)
        return ended

    def _begin(self, event: PhaseBegun) -> None:
        self._begun = self._number_of(event)
        self._began_s = self._clock()
        self._round = event.rounds
        self.phase, self.share, self.figures, self.last = event.name, None, "", None
        if event.rounds is not None:
            self.phase = f"round {event.rounds.round + 1}: {event.name}"
        self.iops.clear()
        self.latency_p99_ns.clear()

    def _number_of(self, event: PhaseBegun) -> int:
        """Which of the announced phases begins; those of a group are announced once and come again."""
        if event.rounds is not None:
            wanted = (event.rounds.name, event.name)
            for number, phase in enumerate(self._phases, start=1):
                if phase.rounds is not None and (phase.rounds.name, phase.name) == wanted:
                    return number
        return self._begun + 1

    def _progress(self, event: Progress) -> None:
        self.last, self.share, self.figures = event, event.done_share, words.figures(event)
        now_s = self._clock()
        if event.iops is not None:
            self.iops.add(now_s, event.iops)
        if event.latency_p99_ns is not None:
            self.latency_p99_ns.add(now_s, event.latency_p99_ns)

    @property
    def ordinal(self) -> str:
        """``3/9``; without the whole where more phases come than were announced; empty without phases."""
        if not self._begun:
            return ""
        number, total = self._before + self._begun, self._before + len(self._phases)
        return f"{number}/{total}" if number <= total else str(number)

    @property
    def is_last(self) -> bool:
        """Whether no phase follows."""
        return self._begun >= len(self._phases) and self._round is None

    @property
    def elapsed_s(self) -> float:
        """Since the phase began."""
        return self._clock() - self._began_s

    @property
    def steady(self) -> SteadyProgress | None:
        """How far the phase is on its way to a steady state, where it is to end in one."""
        return self.last.steady_state if self.last else None

    @property
    def left(self) -> Left | None:
        """What is left of the phase at the pace so far, which for a model is faster than its own clock."""
        if self.share:
            return Left(self.elapsed_s * (1 - min(self.share, 1.0)) / self.share)
        steady = self.steady
        if steady is None or not steady.rounds:
            return None
        rounds_left = max(steady.rounds_max - self._rounds_done(steady), 0.0)
        return Left(self.elapsed_s * rounds_left / self._rounds_done(steady), "at most ")

    def _rounds_done(self, steady: SteadyProgress) -> float:
        """Rounds so far, with the part of the one that is going on where its length is known."""
        if self.last is None or not steady.round_ns:
            return float(steady.rounds)
        return max(self.last.elapsed_ns / steady.round_ns, float(steady.rounds))

    @property
    def left_of_plan(self) -> Left | None:
        """What is left of all phases together; None in the last one, and where nothing can be said.

        Phases that end by time are counted at the pace of this one, others not at all, and those of a group
        for one round: then it is at least that much.
        """
        if self.is_last or not self._begun:
            return None
        here = self.left
        following = [phase.planned_ns for phase in self._phases[self._begun :]]
        known = [planned_ns for planned_ns in following if planned_ns is not None]
        once = self._round is None and all(phase.rounds is None for phase in self._phases[self._begun :])
        certain = here is not None and not here.bound and len(known) == len(following) and once
        seconds = (0.0 if here is None or here.bound else here.seconds) + sum(known) / 1e9 * self._pace()
        if not seconds:
            return None
        return Left(seconds, "" if certain else "at least ")

    def _pace(self) -> float:
        """Seconds here for each second of the drive's clock: 1 for a drive, mostly less for a model."""
        if not self._modelled or self.last is None or self.last.elapsed_ns <= 0:
            return 1.0
        return self.elapsed_s * 1e9 / self.last.elapsed_ns

    def phase_end(self) -> PhaseEnd | None:
        """What came of the phase so far; None where nothing was told of one.

        None for a phase of a group: a round may have dozens of them, and is told of as a whole.
        """
        last = self.last
        if last is None or self._round is not None:
            return None
        return PhaseEnd(self.ordinal, self.phase, last.elapsed_ns, last.ios, last.bytes, last.errors)
