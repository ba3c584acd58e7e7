"""Progress on a terminal: a few lines drawn again and again, warnings and ended phases above them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testdrive.events import Event, Finished, RoundOver, Warned
from testdrive.progress import words
from testdrive.progress.history import History, sparkline
from testdrive.progress.position import Position
from testdrive.report import units

#: From these columns on there is room for the lines with the last minutes, and for their names.
_SPARK_COLUMNS_MIN = 48
#: A wider picture than this is not easier to read.
_COLUMNS_MAX = 120
_NAME_COLUMNS = 5
_VALUE_COLUMNS = 9
_TOP_COLUMNS = 15
_SHARE_COLUMNS = 6


class LiveDisplay:
    """The phase, how far it is, what is left, its last minutes, and what the last interval was like."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._title = title
        self._position = Position(clock)
        # Drawn by a thread of the terminal's, so that clocks go on while the engine says nothing.
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._view, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        with self._lock:
            ended = self._position.take(event)
            if isinstance(event, Finished):
                ended = self._position.phase_end()
        if ended is not None:
            # Phases that are over stay on the screen above the picture.
            self._console.print(Text(str(ended), style="dim", no_wrap=True, overflow="ellipsis"))
        if isinstance(event, RoundOver):
            self._console.print(Text(words.round_over(event), style="dim", no_wrap=True, overflow="ellipsis"))
        if isinstance(event, Warned):
            self._console.print(warning(event))

    def _view(self) -> RenderableType:
        return _View(self)

    def render(self, options: ConsoleOptions) -> RenderableType:
        """The picture in so many columns as the options have."""
        width = min(options.max_width, _COLUMNS_MAX)
        with self._lock:
            return Group(*self._lines(width, options.ascii_only))

    def _lines(self, width: int, ascii_only: bool) -> list[RenderableType]:
        position = self._position
        lines: list[RenderableType] = [self._headline(width), self._bar(width)]
        if position.last is not None and width >= _SPARK_COLUMNS_MIN:
            lines += self._sparks(width, ascii_only)
        lines += [
            Text(line, style="dim", no_wrap=True, overflow="ellipsis")
            for line in wrapped(self._figures(width), width)
        ]
        if position.steady is not None:
            style = "green" if position.steady.achieved else ""
            parts = ["steady state:", *words.steady(position.steady).split("  ")]
            lines += [Text(line, style=style, no_wrap=True) for line in wrapped(parts, width)]
        return lines

    def _headline(self, width: int) -> Text:
        position = self._position
        phase = f"phase {position.ordinal.replace('/', ' of ')}  " if position.ordinal else ""
        left = position.left
        if position.stopping:
            right = "stopping"
        else:
            right = f"{words.clock(position.elapsed_s)} so far" if left is None else str(left)
        room = max(width - cell_len(right) - 2, 0)
        # A drive's URI may be long: its end is what is cut, then the phase's name, never the numbers.
        title = shortened(self._title, max(room - cell_len(phase) - cell_len(position.phase) - 2, 12))
        name = shortened(f"{phase}{position.phase}", max(room - cell_len(title) - 2, 0))
        gap = " " * max(width - cell_len(title) - 2 - cell_len(name) - cell_len(right), 1)
        line = Text.assemble((title, "bold"), "  ", name, gap, (right, "bold"), no_wrap=True)
        line.truncate(width)
        return line

    def _bar(self, width: int) -> Table:
        position = self._position
        plan = position.left_of_plan
        right = "" if plan is None else f"plan: {plan}"
        if cell_len(right) > width // 2:
            right = ""
        line = Table.grid(padding=0)
        bar_columns = max(width - _SHARE_COLUMNS - (cell_len(right) + 2 if right else 0), 4)
        line.add_column(width=bar_columns, no_wrap=True)
        line.add_column(width=_SHARE_COLUMNS, justify="right", no_wrap=True)
        line.add_column(no_wrap=True)
        bar = ProgressBar(
            total=1.0, completed=position.share or 0.0, width=bar_columns, pulse=position.share is None
        )
        line.add_row(bar, words.percent(position.share), f"  {right}" if right else "")
        return line

    def _sparks(self, width: int, ascii_only: bool) -> list[Text]:
        position, last = self._position, self._position.last
        assert last is not None
        columns = width - _NAME_COLUMNS - _VALUE_COLUMNS - _TOP_COLUMNS - 3
        return [
            _spark("IOPS", units.count(last.iops), position.iops, units.count, columns, ascii_only, "cyan"),
            _spark(
                "p99",
                units.time(last.latency_p99_ns),
                position.latency_p99_ns,
                units.time,
                columns,
                ascii_only,
                "magenta",
            ),
        ]

    def _figures(self, width: int) -> list[str]:
        """What the lines with the last minutes do not say; all of it where there is no room for them."""
        position, last = self._position, self._position.last
        if last is None or width < _SPARK_COLUMNS_MIN:
            return position.figures.split("  ") if position.figures else []
        parts = [] if last.throughput_bytes_per_s is None else [units.rate(last.throughput_bytes_per_s)]
        return [*parts, *words.latencies(last), *words.conditions(last)]


class _View:
    """Asks the display for its picture once the console has said how wide it is."""

    def __init__(self, shown: LiveDisplay) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> list[RenderableType]:
        return [self._shown.render(options)]


def _spark(
    name: str,
    value: str,
    history: History,
    unit: Callable[[float | None], str],
    columns: int,
    ascii_only: bool,
    style: str,
) -> Text:
    """``IOPS  12,345  ▂▃▅▇█  to 14,000``: now, over the last minutes, and what the full height is."""
    values = history.last(columns)
    top = max((each for each in values if each is not None), default=None)
    drawn = sparkline(values, ascii_only=ascii_only)
    # The newest cell stands at the right end, as on a recorder.
    return Text.assemble(
        (name.ljust(_NAME_COLUMNS), "bold"),
        value.rjust(_VALUE_COLUMNS),
        " ",
        (drawn.rjust(columns), style),
        " ",
        (f"max {unit(top)}", "dim"),
        no_wrap=True,
    )


def warning(event: Warned) -> RenderableType:
    """A warning, and below it what to do; both within the terminal's width."""
    parts: list[RenderableType] = [Text.assemble(("warning: ", "yellow"), event.message)]
    if event.remedy:
        parts.append(Padding(Text.assemble(("remedy: ", "dim"), event.remedy), (0, 0, 0, 2)))
    return Group(*parts)


def wrapped(parts: Sequence[str], width: int) -> list[str]:
    """Parts with two blanks between them, in as few lines as hold them, none of them divided."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] = f"{lines[-1]}  {part}"
        else:
            lines.append(shortened(part, width))
    return lines


def shortened(text: str, columns: int) -> str:
    """The text, with an ellipsis for what is beyond so many columns."""
    if cell_len(text) <= columns:
        return text
    return f"{set_cell_size(text, max(columns - 1, 0)).rstrip()}…" if columns > 0 else ""
