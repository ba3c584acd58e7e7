"""Progress: what a terminal and a log are shown."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from engine_stub import COMPLETE, PHASE, PROGRESS, STARTED
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from testdrive.events import IMPORT_EVENTS, RUN_EVENTS, Event, Stopping, parse
from testdrive.progress import Display, LineDisplay, LiveDisplay, display
from testdrive.progress.history import History, mean, sparkline
from testdrive.progress.live import shortened, wrapped

STAMP = "2026-01-02T03:04:05Z"
PLANNED = [
    {"name": "purge", "kind": "prepare", "planned_ios": 1000, "planned_ns": None},
    {"name": "fill", "kind": "prepare", "planned_ios": 1000, "planned_ns": None},
    {"name": "random-write", "kind": "synthetic", "planned_ios": None, "planned_ns": 600_000_000_000},
]
STEADY = {
    "measure": "iops",
    "rounds": 7,
    "rounds_max": 25,
    "round_ns": 10_000_000_000,
    "window": 5,
    "value": 12345.0,
    "fit": {"range_share": 0.25, "slope_share": -0.034},
    "range_share_max": 0.2,
    "slope_share_max": 0.1,
    "achieved": False,
}


class Clock:
    """Time that only passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def now() -> datetime:
    return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def event(content: dict[str, Any]) -> Event:
    kinds = IMPORT_EVENTS if "rows" in content else RUN_EVENTS
    found = parse(json.dumps(content), kinds)
    assert found is not None
    return found


def begins(index: int) -> Event:
    return event({**PHASE, **PLANNED[index], "index": index})


def console(width: int = 80, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, highlight=False)


def text(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def picture(live: LiveDisplay, width: int = 80) -> list[str]:
    """The lines of the view as a terminal of so many columns has them, without trailing blanks."""
    plain = console(width)
    plain.print(live._view())
    return [line.rstrip() for line in text(plain).splitlines()]


def test_a_log_gets_a_line_every_five_seconds_and_never_control_codes() -> None:
    clock, shown = Clock(), console()
    with LineDisplay(shown, "null:", clock, now) as lines:
        lines(event({**STARTED, "phases": [{"name": "replay", "kind": "replay"}]}))
        lines(event(PHASE))
        for second in range(1, 13):
            clock.now_s = second
            lines(event({**PROGRESS, "done_share": second / 100}))
        lines(event(COMPLETE))
    rest = "    48.0 MB/s  p50 92.0 µs  p99 310 µs  max 4.10 ms  in flight 3  late 2.00 µs"
    assert text(shown).splitlines() == [
        f"{STAMP} null:: phase 1/1 replay  begins",
        f"{STAMP} null:: phase 1/1 replay  5 %  1:35 left  12,345 IOPS",
        rest,
        f"{STAMP} null:: phase 1/1 replay  10 %  1:30 left  12,345 IOPS",
        rest,
        f"{STAMP} null:: ended: 1/1 replay  0:01  1 I/Os  1 IOPS  4.10 kB/s",
        f"{STAMP} null:: complete",
    ]
    assert "\x1b" not in text(shown)


def test_a_log_of_hours_gets_a_line_a_minute() -> None:
    clock, shown = Clock(), console()
    lines = LineDisplay(shown, "null:", clock, now)
    lines(event(PHASE))
    for second in range(0, 7200):
        clock.now_s = second
        lines(event(PROGRESS))
    # 60 in the first five minutes, 3 a minute in the rest of the first hour, one a minute in the second.
    assert 280 <= text(shown).count(STAMP) <= 286


def test_a_log_stays_within_80_columns_and_divides_no_figure() -> None:
    clock, shown = Clock(), console()
    title = "/dev/nvme1n1 (confirming 12 at 1.23x)"
    with LineDisplay(shown, title, clock, now) as lines:
        lines(event({**STARTED, "phases": [{"name": "settling", "kind": "replay"}]}))
        lines(event({**PHASE, "name": "settling"}))
        clock.now_s = 6
        lines(event({**PROGRESS, "done_share": 0.5}))
        lines(event(COMPLETE))
    written = text(shown).splitlines()
    assert max(map(len, written)) <= 80
    assert written[0] == f"{STAMP} {title}: phase 1/1 settling"
    assert written[1] == "    begins"
    assert written[3] == "    50 %  0:06 left  12,345 IOPS  48.0 MB/s  p50 92.0 µs  p99 310 µs"
    assert all(line.startswith((STAMP, "    ")) for line in written)


def test_a_round_is_told_of_as_a_whole_once_it_is_over() -> None:
    clock, shown = Clock(), console()
    position = {"name": "matrix", "round": 2, "rounds_max": 25}
    fit = {"mean": 5.0}
    tracked = [
        {"phase": "a", "measure": "iops", "value": 5.0, "fit": fit, "achieved": True},
        {"phase": "b", "measure": "latency", "value": None, "fit": None, "achieved": False},
    ]
    titles = [
        {"name": "fill", "kind": "prepare"},
        *({"name": name, "kind": "k", "rounds": position} for name in "ab"),
    ]
    with LineDisplay(shown, "null:", clock, now) as lines:
        lines(event({"event": "started", "phases": titles}))
        lines(event({**PHASE, "name": "b", "rounds": position}))
        lines(event({**PROGRESS, "done_share": 0.2}))
        # The third round begins with the group's first phase again.
        lines(event({**PHASE, "name": "a", "rounds": position}))
        clock.now_s = 6
        lines(event({**PROGRESS, "done_share": 0.5}))
        lines(event({"event": "round", **position, "achieved": False, "tracked": tracked}))
        lines(event({"event": "round", **position, "achieved": True, "tracked": tracked[:1]}))
    written = [line.split(" ", 1)[1] for line in text(shown).splitlines() if line.startswith(STAMP)]
    assert written[0] == "null:: phase 2/3 round 3: a  50 %  0:06 left"
    assert "    plan at least 0:06 left  12,345 IOPS" in text(shown)
    assert written[1:] == [
        "null:: matrix: round 3 of at most 25 ended, 1 of 2 figures steady",
        "null:: matrix: round 3 of at most 25 ended, steady",
    ]


def test_without_a_share_the_time_so_far_is_shown() -> None:
    clock, shown = Clock(), console()
    lines = LineDisplay(shown, "null:", clock, now)
    lines(event(PHASE))
    clock.now_s = 3700
    lines(event({**PROGRESS, "done_share": None, "errors": 2}))
    assert "1:01:40 so far" in text(shown)
    assert "2 errors" in text(shown)


def test_a_warning_in_a_log_has_its_code_and_its_remedy_in_one_line() -> None:
    shown = console()
    told = event({"event": "warning", "code": "c", "message": "it is slow", "remedy": "be quick"})
    LineDisplay(shown, "x", now=now)(told)
    assert text(shown) == f"{STAMP} x: warning: c: it is slow; be quick\n"


def test_a_warning_on_a_terminal_has_its_remedy_below_it_and_stays_within_the_width() -> None:
    shown = console(width=40)
    message = "the drive was so slow that this does not fit in forty columns"
    LiveDisplay(shown, "x")(event({"event": "warning", "code": "c", "message": message, "remedy": "be it"}))
    lines = text(shown).splitlines()
    assert lines[0].startswith("warning: the drive was so slow")
    assert lines[-1].rstrip() == "  remedy: be it"
    assert max(len(line) for line in lines) <= 40


def test_a_terminal_sees_phase_share_time_and_figures_in_80_columns() -> None:
    clock, shown = Clock(), console(terminal=True)
    uri = "file:/a/very/long/path/to/some/file/on/a/disk.img?size=4GiB"
    with LiveDisplay(shown, uri, clock) as live:
        live(event({**STARTED, "phases": PLANNED}))
        live(begins(0))
        clock.now_s = 30
        live(event(PROGRESS))
        lines = picture(live)
    assert max(map(cell_len, lines)) <= 80
    assert "phase 1 of 3  purge" in lines[0]
    assert lines[0].endswith("0:30 left")
    assert "50 %" in lines[1]
    # The fill's end is not known, and the last phase takes ten minutes.
    assert lines[1].endswith("plan: at least 10:30 left")
    assert lines[2].startswith("IOPS    12,345 ")
    assert lines[2].endswith("█ max 12,345")
    assert lines[3].startswith("p99     310 µs ")
    assert lines[4] == "48.0 MB/s  p50 92.0 µs  p99 310 µs  max 4.10 ms  in flight 3  late 2.00 µs"


@pytest.mark.parametrize("width", [20, 33, 47, 48, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_none_is_broken(width: int) -> None:
    clock, shown = Clock(), console(width, terminal=True)
    live = LiveDisplay(shown, "/dev/nvme0n1", clock)
    live(event({**STARTED, "phases": PLANNED}))
    live(begins(1))
    for second in range(300):
        clock.now_s = second
        live(event({**PROGRESS, "done_share": None, "steady_state": STEADY, "iops": 10_000.0 + second}))
    lines = picture(live, width)
    assert max(map(cell_len, lines)) <= width
    whole = "  ".join(lines)
    for part in ("p50 92.0 µs", "max 4.10 ms", "in flight 3", "late 2.00 µs", "slope 3.4 %"):
        # What is too long for the terminal is cut, and never broken in two.
        assert shortened(part, width) in whole


def test_the_way_to_a_steady_state_is_shown_beside_its_limits() -> None:
    clock = Clock()
    live = LiveDisplay(console(terminal=True), "x", clock)
    live(begins(2))
    clock.now_s = 70
    live(event({**PROGRESS, "elapsed_ns": 70_000_000_000, "done_share": None, "steady_state": STEADY}))
    lines = picture(live, 100)
    assert lines[0].endswith("at most 3:00 left")
    assert (
        lines[-1]
        == "steady state:  round 7 of at most 25  range 25.0 % (limit 20 %)  slope 3.4 % (limit 10 %)"
    )


def test_before_the_first_window_it_is_said_when_judging_begins() -> None:
    live = LiveDisplay(console(terminal=True), "x", Clock())
    live(event({**PROGRESS, "steady_state": {**STEADY, "rounds": 2, "fit": None}}))
    assert picture(live)[-1] == "steady state:  round 2 of at most 25  judged from round 5 on"


def test_phases_that_are_over_stay_above_the_picture() -> None:
    shown = console()
    live = LiveDisplay(shown, "x", Clock())
    live(event({**STARTED, "phases": PLANNED}))
    live(begins(0))
    live(event({**PROGRESS, "elapsed_ns": 2_000_000_000, "ios": 3000, "bytes": 12_000_000, "errors": 1}))
    live(begins(1))
    assert text(shown).rstrip() == "1/3 purge  0:02  3,000 I/Os  1,500 IOPS  6.00 MB/s  1 errors"


def test_the_time_of_a_plan_is_known_where_every_phase_ends_by_time() -> None:
    clock = Clock()
    live = LiveDisplay(console(terminal=True), "x", clock)
    live(event({**STARTED, "phases": [PLANNED[2], PLANNED[2]]}))
    live(begins(2))
    clock.now_s = 300
    live(event({**PROGRESS, "elapsed_ns": 300_000_000_000}))
    assert picture(live)[1].endswith("plan: 15:00 left")


def test_a_models_plan_is_judged_by_the_pace_of_its_own_clock() -> None:
    clock = Clock()
    live = LiveDisplay(console(terminal=True), "x", clock)
    live(event({**STARTED, "phases": [PLANNED[2], PLANNED[2]], "drive": {"modelled": True}}))
    live(begins(2))
    clock.now_s = 3
    live(event({**PROGRESS, "elapsed_ns": 300_000_000_000}))
    assert picture(live)[1].endswith("plan: 0:09 left")


def test_a_resumed_run_counts_the_phases_that_were_done_before() -> None:
    shown = console()
    lines = LineDisplay(shown, "x", now=now)
    lines(event({**STARTED, "phases": PLANNED[1:], "phases_before": 1}))
    lines(begins(1))
    assert "phase 2/3 fill  begins" in text(shown)


def test_after_a_signal_the_picture_says_that_it_stops() -> None:
    live = LiveDisplay(console(terminal=True), "x", Clock())
    live(begins(0))
    live(Stopping())
    assert picture(live)[0].endswith("stopping")


def test_a_terminal_is_left_as_it_was_after_an_error() -> None:
    shown = console(terminal=True)

    def fail() -> None:
        with LiveDisplay(shown, "x", Clock()) as live:
            live(begins(0))
            live(event(PROGRESS))
            raise RuntimeError("the engine is gone")

    with pytest.raises(RuntimeError):
        fail()
    written = text(shown)
    # The cursor is shown again, and the last thing that happens to the picture is that it is erased.
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    assert written.rindex("\x1b[2K") > written.rindex("IOPS")


def test_without_colours_nothing_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = console(terminal=True)
    with LiveDisplay(shown, "x", Clock()) as live:
        live(begins(0))
        live(event({**PROGRESS, "steady_state": STEADY}))
    colours = [f"\x1b[{code}m" for code in (*range(30, 38), *range(90, 98))]
    assert not [colour for colour in colours if colour in text(shown)]


def test_an_import_shows_how_much_of_the_files_was_read() -> None:
    clock, shown = Clock(), console()
    lines = LineDisplay(shown, "sda.blktrace.0", clock, now)
    clock.now_s = 10
    lines(event({"event": "progress", "rows": 1234567, "bytes_read": 25, "bytes_total": 100}))
    assert text(shown) == f"{STAMP} sda.blktrace.0: import  25 %  0:30 left  1,234,567 I/Os\n"


def test_the_console_decides_which_display_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    made: list[Display] = [display(console(terminal=True), "x"), display(console(), "x")]
    assert [type(each) for each in made] == [LiveDisplay, LineDisplay]
    monkeypatch.setenv("TERM", "dumb")
    assert type(display(console(terminal=True), "x")) is LineDisplay


def test_a_sparkline_starts_at_zero_and_tells_nothing_from_none() -> None:
    assert sparkline([0, 1, 4, 8, None, 8]) == "_▂▅█ █"
    assert sparkline([0, 1, 4, 8], ascii_only=True) == "_:+@"
    assert sparkline([]) == ""


def test_cells_of_a_history_are_joined_by_their_rule_and_keep_gaps() -> None:
    means, peaks = History(mean), History(max)
    for time_s, value in ((0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (6.5, 7.0)):
        means.add(time_s, value)
        peaks.add(time_s, value)
    assert means.last(10) == [2.0, 5.0, None, 7.0]
    assert peaks.last(10) == [3.0, 5.0, None, 7.0]
    assert means.last(2) == [7.0]


@given(
    st.lists(st.text(st.characters(codec="ascii"), min_size=1, max_size=30), max_size=10), st.integers(1, 90)
)
def test_wrapping_keeps_every_part_and_the_width(parts: list[str], width: int) -> None:
    lines = wrapped(parts, width)
    assert all(cell_len(line) <= width for line in lines)
    assert len(lines) <= len(parts)
