"""Progress for logs: lines with the time, the drive and the phase, few enough for a run of days.

Figures that do not fit beside them stand on lines below, indented: a log is read at 80 columns too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType

from rich.cells import cell_len
from rich.console import Console

from testdrive.events import (
    CaptureProgress,
    Event,
    ExportProgress,
    Failed,
    Finished,
    ImportProgress,
    PhaseBegun,
    Progress,
    RoundOver,
    Started,
    Stopping,
    Warned,
)
from testdrive.progress import words
from testdrive.progress.position import Position

#: How often a log gets a line, by how long the phase has lasted: (from that time on, seconds between lines).
INTERVALS_S = ((3600.0, 60.0), (300.0, 20.0), (0.0, 5.0))
#: Before what is left of a line that was too long.
_INDENT = "    "


class LineDisplay:
    """A line when a phase begins and ends, one every few seconds between, and one at the end."""

    def __init__(
        self,
        console: Console,
        title: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._console = console
        self._title = title
        self._clock = clock
        self._now = now
        self._position = Position(clock)
        self._printed_s = clock()

    def __enter__(self) -> LineDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Show one event."""
        position = self._position
        ended = position.take(event)
        if ended is not None:
            self._print_parts(f"ended: {ended}".split("  "))
        if isinstance(event, PhaseBegun):
            if event.rounds is None:
                self._print_parts([f"phase {position.ordinal} {position.phase}", "begins"])
        elif isinstance(event, RoundOver):
            self._print(words.round_over(event))
        elif isinstance(event, Warned):
            self._print(f"warning: {event.code}: {words.warning(event)}")
        elif isinstance(event, Progress | ImportProgress | ExportProgress | CaptureProgress):
            if self._clock() - self._printed_s >= self._interval_s():
                self._print_parts(self._parts())
        elif isinstance(event, Stopping):
            self._print("stopping: what is in flight is waited for")
        elif isinstance(event, Finished):
            last = position.phase_end()
            if last is not None:
                self._print_parts(f"ended: {last}".split("  "))
            self._print(event.status)
        else:
            # `started` says nothing that the first phase does not, and an error is told by whoever catches
            # it.
            assert isinstance(event, Started | Failed)

    def _parts(self) -> list[str]:
        position = self._position
        phase = f"phase {position.ordinal} {position.phase}" if position.ordinal else position.phase
        left, plan = position.left, position.left_of_plan
        parts = [
            phase,
            words.percent(position.share),
            f"{words.clock(position.elapsed_s)} so far" if left is None else str(left),
            f"plan {plan}" if plan is not None else "",
            *position.figures.split("  "),
            f"steady state: {words.steady(position.steady)}" if position.steady else "",
        ]
        return [part for part in parts if part]

    def _interval_s(self) -> float:
        elapsed_s = self._position.elapsed_s
        return next(interval_s for from_s, interval_s in INTERVALS_S if elapsed_s >= from_s)

    def _print_parts(self, parts: Sequence[str]) -> None:
        """Print parts with two blanks between them, none of them divided, on as many lines as they need."""
        lines = [self._stamped(parts[0])]
        for part in parts[1:]:
            if cell_len(lines[-1]) + 2 + cell_len(part) <= self._console.width:
                lines[-1] += f"  {part}"
            else:
                lines.append(f"{_INDENT}{part}")
        self._write("\n".join(lines))

    def _print(self, text: str) -> None:
        self._write(self._stamped(text))

    def _stamped(self, text: str) -> str:
        return f"{self._now():%Y-%m-%dT%H:%M:%SZ} {self._title}: {text}"

    def _write(self, text: str) -> None:
        self._printed_s = self._clock()
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)
