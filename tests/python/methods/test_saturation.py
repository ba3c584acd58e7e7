"""Write saturation: its table and figures on seconds that are given, then on models."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_runs import CAPACITY_BYTES, BuiltPhase, built_run
from support import run_testdrive

from testdrive.methods.drawing import Figure
from testdrive.methods.method import all_methods
from testdrive.methods.runs import Run
from testdrive.plans import bind, load
from testdrive.recording import Recording
from testdrive.report.subject import subject

#: The drive of built runs takes 100 s at 100 IOPS to be written once.
FALLING = [100] * 150 + [20] * 250
COUNTED = {"host_written_bytes": 1000, "nand_written_bytes": 2500}


def writes(name: str, seconds: list[int], planned_s: int | None = None, **more: Any) -> BuiltPhase:
    """A phase of writes."""
    settings = {"duration_ns": (len(seconds) if planned_s is None else planned_s) * 1_000_000_000}
    return BuiltPhase(name, iops=seconds, settings=settings, **more)


def both(zeroes: list[int], incompressible: list[int], **options: Any) -> Run:
    """A run with both kinds of data."""
    phases = [writes("writes-zeroes", zeroes), writes("writes", incompressible, counted=COUNTED)]
    return built_run(phases, **options)


def look(*runs: Run) -> Any:
    """What the method makes of the runs."""
    return all_methods()["saturation"].look(runs)


def figure_of(findings: Any, key: str) -> Figure:
    """The figure of this key."""
    return next(figure for figure in findings.figures if figure.key == key)


def test_the_table_has_the_start_the_cliff_and_where_it_settles() -> None:
    zeroes, incompressible = look(both([100] * 400, FALLING)).tables[0].rows
    assert zeroes == [
        "d, all-zero",
        "100",
        "no cliff",
        "none in 4.00",
        "no cliff",
        "100",
        "100 %",
        "4.00",
        "not told by the drive",
    ]
    # 150 s at 100 IOPS are one and a half times its 10,000 blocks, and 250 s at 20 another half.
    assert incompressible == [
        "d, incompressible",
        "100",
        "2 min 30 s",
        "1.50",
        "2 min 30 s",
        "20.0",
        "20.0 %",
        "2.00",
        "2.50",
    ]


def test_what_still_changes_at_the_end_is_not_called_settled() -> None:
    falling = list(range(200, 100, -1))
    row = look(both([100] * 30, falling)).tables[0].rows[1]
    assert row[5] == "110, still changing"


def test_a_run_too_short_to_be_judged_says_so() -> None:
    row = look(both([100] * 10, [100] * 10)).tables[0].rows[1]
    assert row == ["d, incompressible", "100", "too short: 10 s, not 25", *["too short"] * 4, "0.100", "2.50"]


def test_a_drive_that_was_not_written_over_once_is_named_above_the_figures() -> None:
    findings = look(both([100] * 400, [100] * 50))
    (note,) = findings.notes
    assert note.startswith("d, incompressible: only 0.500 of the drive was written")


def test_a_drive_of_which_a_part_was_used_is_named_above_the_figures() -> None:
    phase = writes("writes", FALLING)
    phase.settings = {**phase.settings, "span_share": 0.25}
    (note,) = look(built_run([phase], parameters={"zeroes": "no"})).notes
    assert note.startswith("d, incompressible: only 25.0 % of the drive was used")


def test_what_holds_for_several_runs_is_said_once() -> None:
    first, second = (
        built_run([writes("writes", [100] * 50)], name=name, parameters={"zeroes": "no"}) for name in "de"
    )
    (note,) = look(first, second).notes
    assert note.startswith("d, incompressible; e, incompressible: only 0.500 of the drive was written")


def test_a_run_that_ended_early_is_shown_as_far_as_it_got() -> None:
    cut = built_run([writes("writes-zeroes", [100] * 120, planned_s=400)])
    findings = look(cut)
    assert [figure.key for figure in findings.figures] == ["saturation-data"]
    assert findings.notes == [
        "d ended before incompressible data was written.",
        "d, all-zero: ended after 120 s of 6 min 40 s.".replace("120 s", "2 min"),
    ]


def test_without_zeroes_nothing_is_missed() -> None:
    findings = look(built_run([writes("writes", FALLING)], parameters={"zeroes": "no"}))
    assert findings.notes == []
    assert [row[0] for row in findings.tables[0].rows] == ["d, incompressible"]


def test_iops_stand_at_the_left_and_latency_at_the_right_with_the_cliff_between() -> None:
    slow = writes("writes", FALLING, latency_ns=20_000)
    findings = look(built_run([slow], parameters={"zeroes": "no"}))
    for key, cliff in (("saturation-time", 150.0), ("saturation-fills", 1.5)):
        figure = figure_of(findings, key)
        iops, latency, mark = figure.series
        assert [(one.name, one.side) for one in figure.series] == [
            ("IOPS", "left"),
            ("mean latency", "right"),
            ("cliff", "left"),
        ]
        np.testing.assert_array_equal(iops.y, FALLING)
        np.testing.assert_allclose(latency.y, 20e-6)
        np.testing.assert_allclose(mark.x, cliff)
        assert (figure.right[0].scale, figure.right[0].low, figure.right[0].high) == ("log", 1e-5, 1e-4)
        assert (figure.y[0].ink, figure.right[0].ink) == (iops.ink, latency.ink)
    fills = figure_of(findings, "saturation-fills").series[0].x
    np.testing.assert_allclose(fills, np.cumsum(FALLING) * 4096 / CAPACITY_BYTES)


def test_of_several_drives_each_has_a_panel_on_the_same_scales() -> None:
    one = both([100] * 400, FALLING, name="one")
    other = both([50] * 400, [30] * 400, name="other", at=1)
    findings = look(one, other)
    data = figure_of(findings, "saturation-data")
    assert data.headings == ("all-zero data", "incompressible data")
    assert [(series.name, series.panel) for series in data.series] == [
        ("one", 0),
        ("other", 0),
        ("one", 1),
        ("other", 1),
    ]
    over_time = figure_of(findings, "saturation-time")
    assert over_time.headings == ("one", "other")
    for axes in (data.y, over_time.y, over_time.right):
        assert len(set(axes)) == 1
    assert [series.name for series in over_time.series if series.panel == 1] == ["IOPS", "mean latency"]


def test_of_a_long_run_each_point_is_the_mean_of_several_seconds() -> None:
    seconds = [1, 3] * 1000 + [5]
    findings = look(built_run([writes("writes", seconds)], parameters={"zeroes": "no"}))
    figure = figure_of(findings, "saturation-time")
    assert figure.y[0].title == "mean IOPS of each 2 s"
    assert figure.x.title == "time since the first write (min)"
    np.testing.assert_array_equal(figure.series[0].y, np.full(1000, 2.0))
    np.testing.assert_allclose(figure.series[0].x, np.arange(2, 2001, 2) / 60)


def test_the_plan_purges_before_each_kind_of_data_and_never_fills() -> None:
    phases = bind(load("saturation"), {}).phases
    assert [(phase.kind, phase.name) for phase in phases] == [
        ("prepare", "purge-zeroes"),
        ("synthetic", "writes-zeroes"),
        ("prepare", "purge"),
        ("synthetic", "writes"),
    ]
    assert {phase.method for phase in phases if phase.kind == "prepare"} == {"purge"}
    assert [(phase.data, phase.duration_ns) for phase in phases[1::2]] == [
        ("zero", 18_000_000_000_000),
        ("incompressible", 18_000_000_000_000),
    ]
    assert len(bind(load("saturation"), {"zeroes": "no"}).phases) == 2


@pytest.mark.slow
def test_at_full_length_zeroes_keep_a_compressing_drive_fast_and_other_data_does_not(tmp_path: Path) -> None:
    # 300 minutes and twenty drive fills both: every part of the drive is two hundred times as slow.
    drive = (
        "sim:sata-compressing?capacity=256MiB&superblocks=500&firmware_write=2500us&program=420ms&erase=2s"
    )
    path = tmp_path / "compressing.rec"
    done = run_testdrive("run", "saturation", "--drive", drive, "-o", path)
    assert done.returncode == 0, done.stderr
    report = run_testdrive("report", path)
    assert report.returncode == 0, report.stderr
    with Recording.open(path) as recording:
        run = Run(subject("d", "drive", 0, recording, {}))
        findings = look(run)
    for name in ("writes-zeroes", "writes"):
        phase = run.phase(name)
        assert phase.end_ns - phase.start_ns >= 18_000_000_000_000
    with (path / "tables" / "saturation.csv").open(encoding="utf-8") as file:
        zeroes, other = csv.DictReader(file)
    assert zeroes["cliff after"] == "no cliff"
    assert float(zeroes["settled / start"].removesuffix(" %")) > 95
    assert 1.0 < float(other["drive fills before it"]) < 3.0
    assert float(other["drive fills in all"]) > 4
    assert float(other["settled / start"].removesuffix(" %")) < 50
    assert float(other["write amplification"]) > 5 * float(zeroes["write amplification"])
    # What the table says is to be seen: IOPS fall and latency rises across the dotted line.
    iops, latency, mark = figure_of(findings, "saturation-fills").series
    before, after = iops.x < mark.x[0], iops.x > 2 * mark.x[0]
    assert iops.y[before].min() > 1.5 * iops.y[after].max()
    assert latency.y[before].max() < latency.y[after].min() / 1.5
    drawn = {
        series.name.rsplit(", ")[-1]: series.y for series in figure_of(findings, "saturation-data").series
    }
    assert np.ptp(drawn["all-zero"]) < 0.1 * drawn["all-zero"].mean()
    assert drawn["incompressible"][-100:].mean() < 0.5 * drawn["all-zero"][-100:].mean()
