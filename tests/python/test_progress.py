"""Progress: what a terminal and a log are shown."""

from __future__ import annotations

import io

import pytest
from engine_stub import COMPLETE, PHASE, PROGRESS
from rich.console import Console

from testdrive.events import IMPORT_EVENTS, RUN_EVENTS, Event, parse
from testdrive.progress import Display, LineDisplay, LiveDisplay, display


class Clock:
    """Time that only passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def event(content: dict[str, object]) -> Event:
    import json

    kinds = IMPORT_EVENTS if "rows" in content else RUN_EVENTS
    found = parse(json.dumps(content), kinds)
    assert found is not None
    return found


def console(width: int = 80, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, highlight=False)


def text(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def test_a_log_gets_a_line_every_five_seconds_and_never_control_codes() -> None:
    clock, shown = Clock(), console()
    with LineDisplay(shown, "null:", clock) as lines:
        lines(event(PHASE))
        for second in range(1, 13):
            clock.now_s = second
            lines(event({**PROGRESS, "done_share": second / 100}))
        lines(event(COMPLETE))
    written = text(shown).splitlines()
    figures = "12,345 IOPS  48.0 MB/s  p50 92.0 µs  p99 310 µs  max 4.10 ms  late 2.00 µs"
    assert written == [
        "null:: replay begins",
        f"null:: replay  5 %  1:35 left  {figures}",
        f"null:: replay  10 %  1:30 left  {figures}",
        "null:: complete",
    ]
    assert "\x1b" not in text(shown)


def test_without_a_share_the_time_so_far_is_shown() -> None:
    clock, shown = Clock(), console()
    lines = LineDisplay(shown, "null:", clock)
    lines(event(PHASE))
    clock.now_s = 3700
    lines(event({**PROGRESS, "done_share": None, "errors": 2}))
    assert "1:01:40 so far" in text(shown)
    assert "2 errors" in text(shown)


@pytest.mark.parametrize("make", [LineDisplay, LiveDisplay])
def test_a_warning_is_shown_at_once_with_its_remedy(make: type[LineDisplay] | type[LiveDisplay]) -> None:
    shown = console()
    make(shown, "x")(event({"event": "warning", "code": "c", "message": "it is slow", "remedy": "be quick"}))
    assert text(shown) == "warning: it is slow; be quick\n"


def test_a_terminal_sees_phase_share_time_and_figures_in_80_columns() -> None:
    clock, shown = Clock(), console(terminal=True)
    uri = "file:/a/very/long/path/to/some/file/on/a/disk.img?size=4GiB"
    with LiveDisplay(shown, uri, clock) as live:
        live(event(PHASE))
        clock.now_s = 30
        live(event(PROGRESS))
        plain = console()
        plain.print(live._render())
    first, second = text(plain).splitlines()
    assert max(len(first), len(second)) <= 80
    for part in ("replay", "50 %", "0:30 left"):
        assert part in first
    assert "12,345 IOPS" in second
    assert "max 4.10 ms" in second


def test_an_import_shows_how_much_of_the_files_was_read() -> None:
    clock, shown = Clock(), console()
    lines = LineDisplay(shown, "sda.blktrace.0", clock)
    clock.now_s = 10
    lines(event({"event": "progress", "rows": 1234567, "bytes_read": 25, "bytes_total": 100}))
    assert text(shown) == "sda.blktrace.0: import  25 %  0:30 left  1,234,567 I/Os\n"


def test_the_console_decides_which_display_it_is() -> None:
    made: list[Display] = [display(console(terminal=True), "x"), display(console(), "x")]
    assert [type(each) for each in made] == [LiveDisplay, LineDisplay]
