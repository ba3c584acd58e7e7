"""Showing where a run stands: live on a terminal, a line every few seconds in a log.

Everything goes to standard error, so that standard output holds nothing but data.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testdrive.events import (
    CaptureProgress,
    Event,
    ExportProgress,
    Failed,
    Finished,
    ImportProgress,
    PhaseBegun,
    Progress,
    Started,
    Warned,
)
from testdrive.report import units

#: Fewer bytes of a recording than this are none of its rows.
_RECORDED_BYTES_MIN = 1024
#: How often a log gets a line.
LINE_INTERVAL_S = 5.0
_BAR_COLUMNS = 24


class Display(Protocol):
    """Where progress goes. Called with each event; used as a context manager around the run."""

    def __call__(self, event: Event) -> None:
        """Show one event."""

    def __enter__(self) -> Display:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""


def display(console: Console, title: str) -> Display:
    """The display that suits the console: live on a terminal, lines elsewhere.

    Parameters
    ----------
    console : rich.console.Console
        Of standard error.
    title : str
        What is being run, such as the drive.
    """
    return LiveDisplay(console, title) if console.is_terminal else LineDisplay(console, title)


class _Position:
    """What the last events said: the phase, its share and the clock since its beginning."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_s = clock()
        self.phase = "starting"
        self.share: float | None = None
        self.figures = ""

    def take(self, event: Event) -> None:
        if isinstance(event, PhaseBegun):
            self._began_s = self._clock()
            self.phase, self.share, self.figures = event.name, None, ""
        elif isinstance(event, Progress):
            self.share, self.figures = event.done_share, figures(event)
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
            self.figures = capture_figures(event)

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began_s

    @property
    def left_s(self) -> float | None:
        """Time left at the pace so far, which for a model is faster than the workload's own clock."""
        if not self.share:
            return None
        return self.elapsed_s * (1 - min(self.share, 1.0)) / self.share


class LiveDisplay:
    """Two lines that are drawn again and again: how far it is, and what the last interval was like."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._title = title
        self._position = _Position(clock)
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self._position.take(event)
        if isinstance(event, Warned):
            self._console.print(warning_text(event))

    def _render(self) -> Group:
        position = self._position
        line = Table.grid(padding=(0, 1))
        # A drive's URI may be long: its end is what is cut, never the numbers.
        line.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
        for _ in range(4):
            line.add_column(no_wrap=True)
        line.add_row(
            Text(self._title, style="bold"),
            Text(position.phase),
            ProgressBar(
                total=1.0,
                completed=position.share or 0.0,
                width=_BAR_COLUMNS,
                pulse=position.share is None,
            ),
            Text(_percent(position.share)),
            Text(_time_left(position)),
        )
        return Group(line, Text(f"  {position.figures}", style="dim", no_wrap=True, overflow="ellipsis"))


class LineDisplay:
    """A line when a phase begins, one every few seconds, and one at the end."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._title = title
        self._clock = clock
        self._position = _Position(clock)
        self._printed_s = clock()

    def __enter__(self) -> LineDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self._position.take(event)
        if isinstance(event, PhaseBegun):
            self._print(f"{event.name} begins")
        elif isinstance(event, Warned):
            self._console.print(warning_text(event), soft_wrap=True)
        elif isinstance(event, Progress | ImportProgress | ExportProgress | CaptureProgress):
            if self._clock() - self._printed_s >= LINE_INTERVAL_S:
                position = self._position
                parts = [position.phase, _percent(position.share), _time_left(position), position.figures]
                self._print("  ".join(part.strip() for part in parts if part.strip()))
        elif isinstance(event, Finished):
            self._print(event.status)
        else:
            # `started` says nothing that the first phase does not, and an error is told by whoever catches
            # it.
            assert isinstance(event, Started | Failed)

    def _print(self, text: str) -> None:
        self._printed_s = self._clock()
        self._console.print(f"{self._title}: {text}", soft_wrap=True, markup=False, highlight=False)


def figures(event: Progress) -> str:
    """What the last interval was like, in the order in which it matters."""
    parts = []
    if event.iops is not None:
        parts.append(f"{units.count(event.iops)} IOPS")
    if event.throughput_bytes_per_s is not None:
        parts.append(units.rate(event.throughput_bytes_per_s))
    latencies = (("p50", event.latency_p50_ns), ("p99", event.latency_p99_ns), ("max", event.latency_max_ns))
    parts += [f"{name} {units.time(value)}" for name, value in latencies if value is not None]
    if event.lateness_max_ns is not None:
        parts.append(f"late {units.time(event.lateness_max_ns)}")
    if event.errors:
        parts.append(f"{units.count(event.errors)} errors")
    return "  ".join(parts)


def capture_figures(event: CaptureProgress) -> str:
    """What was seen so far, the last interval's rates, and whether something was lost."""
    parts = [f"{units.count(event.ios)} I/Os"]
    if event.iops is not None:
        parts.append(f"{units.count(event.iops)} IOPS")
    if event.throughput_bytes_per_s is not None:
        parts.append(units.rate(event.throughput_bytes_per_s))
    # Rows are encoded many at a time: before the first of them a file has hardly more than its name.
    if event.recorded_bytes >= _RECORDED_BYTES_MIN:
        parts.append(f"{units.size(event.recorded_bytes)} recorded")
    parts.append(f"{units.count(event.events_lost)} events lost")
    return "  ".join(parts)


def warning_text(event: Warned) -> Text:
    """A warning with its remedy, in one line."""
    remedy = f"; {event.remedy}" if event.remedy else ""
    return Text.assemble(("warning: ", "yellow"), f"{event.message}{remedy}")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * min(share, 1.0):3.0f} %"


def _time_left(position: _Position) -> str:
    left_s = position.left_s
    return f"{_clock_text(position.elapsed_s)} so far" if left_s is None else f"{_clock_text(left_s)} left"


def _clock_text(seconds: float) -> str:
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
