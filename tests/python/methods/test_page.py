"""What stands around the figures of a standard test's page."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import builders
import numpy as np
import pytest
from built_runs import BuiltPhase, built_run
from rich.console import Console

from testdrive.cli.tables import METHOD_ROWS_MAX, method_table
from testdrive.methods.drawing import Axis, Figure, Findings, Series, Table
from testdrive.methods.images import draw
from testdrive.methods.looking import method_tables
from testdrive.methods.method import all_methods
from testdrive.methods.page import differences, write_method_page
from testdrive.methods.runs import Run
from testdrive.report import html, palette
from testdrive.report.conditions import warnings_box
from testdrive.report.subject import Subject


def run(**plan: object) -> Run:
    return built_run([BuiltPhase("mix", iops=[100] * 5)], **plan)


def test_a_short_run_says_above_its_figures_that_it_says_nothing_about_the_drive() -> None:
    box = warnings_box([run(short=True).subject, run().subject])
    assert box is not None
    assert "says nothing about the drive. Run it without --short." in box
    assert warnings_box([run().subject]) is None


def test_a_long_fact_has_the_width_of_the_page_and_a_short_one_has_not() -> None:
    made = html.facts(
        [("Model", "m" * html.LONG_FACT), ("Settings", "s" * (html.LONG_FACT + 1)), ("None", None)]
    )
    assert made.count("<div>") == 2
    assert made.count('<div class="wide"><dt>Settings') == 1


@pytest.mark.parametrize(("low", "high"), [(4e-5, 3e-4), (1e-6, 1.0)])
def test_a_logarithmic_axis_has_numbers_to_read_it_by_however_short_it_is(low: float, high: float) -> None:
    values = np.array([low, high])
    axis = Axis("service time (log)", scale="log", low=low, high=high, si_unit="s")
    series = Series("d", palette.drive(0), np.array([0.0, 1.0]), values)
    canvas = draw(Figure("k", "t", "c", Axis("time (s)"), (axis,), [series]))
    canvas.canvas.draw()
    shown = [tick for tick in canvas.axes[0].yaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len([tick for tick in shown if tick.label1.get_text()]) >= 3


def stability_recording(path: Path, **parameters: object) -> Path:
    drive = {"uri": "/dev/nvme1n1", "model": "Fast <1>", "firmware": "F2", "capacity_bytes": 10**12}
    columns = {"latency_ns": np.full(100, 1000), "length_bytes": np.full(100, 4096), "opcode": np.ones(100)}
    plan = {"name": "stability", "title": "Stability", "question": "How?", "figures": ["stability"]}
    return builders.write_recording(
        path, columns, kind="run", drive=drive, plan={**plan, "parameters": parameters}
    )


def test_the_page_says_which_drive_is_behind_the_name_of_a_recording(tmp_path: Path) -> None:
    page = write_method_page(
        [stability_recording(tmp_path / "a.rec")], tmp_path / "index.html"
    ).path.read_text()
    assert "On a (Fast &lt;1&gt;, firmware F2, 1.00 TB)." in page


def test_runs_that_were_not_asked_for_alike_are_compared_with_a_warning(tmp_path: Path) -> None:
    first = stability_recording(tmp_path / "a.rec", depth=32, span=1.0, data="zero")
    alike = stability_recording(tmp_path / "b.rec", depth=32, span=1.0, data="zero")
    other = stability_recording(tmp_path / "c.rec", depth=32, span=0.5)
    warning = "These runs had different parameters"
    assert warning not in write_method_page([first, alike], tmp_path / "alike.html").path.read_text()
    page = write_method_page([first, alike, other], tmp_path / "index.html").path.read_text()
    assert f"{warning} (span, data): " in page


def test_what_a_search_settles_for_each_drive_is_no_difference_of_what_was_asked() -> None:
    found = [(all_methods()["qos"], Findings([], []))]
    subjects = [
        subject_of({"rate": rate, "seed": seed, "span": 1.0}) for rate, seed in ((5000, 1), (70_000, 2))
    ]
    assert differences(subjects, found) == []
    (said,) = differences([*subjects, subject_of({"rate": 1, "seed": 1, "span": 0.5})], found)
    assert "(span)" in said


def subject_of(parameters: dict[str, object]) -> Subject:
    plan = SimpleNamespace(parameters=parameters)
    return cast(Subject, SimpleNamespace(manifest=SimpleNamespace(plan=plan)))


def test_a_terminal_has_the_tables_of_the_page(tmp_path):
    recording = stability_recording(tmp_path / "a.rec")
    written = write_method_page([recording], tmp_path / "index.html")
    assert written.tables
    assert method_tables([recording]) == written.tables
    for table in written.tables:
        assert shown(table) == [
            " ".join(each.split()) for each in (table.title, *map(" ".join, [table.head, *table.rows]))
        ]


def test_a_terminal_has_the_beginning_of_a_long_table_and_says_so():
    rows = [[f"drive {at}", f"{at}"] for at in range(METHOD_ROWS_MAX + 3)]
    lines = shown(Table("t", "IOPS", ["drive", "mean"], rows))
    assert lines[-2:] == [f"drive {METHOD_ROWS_MAX - 1} {METHOD_ROWS_MAX - 1}", "and 3 rows more on the page"]


def shown(table: Table) -> list[str]:
    """What a wide terminal shows of a table: the words of each line that has any."""
    console = Console(width=400, file=io.StringIO())
    console.print(method_table(table))
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    return [" ".join(words) for words in lines if words and set("".join(words)) != {"─"}]
