"""The stability plan: its table and figures on seconds that are given, then on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_runs import BuiltPhase, built_run
from support import run_testdrive

from testdrive.methods.method import all_methods
from testdrive.methods.runs import Run
from testdrive.plans import bind, load
from testdrive.recording import Recording
from testdrive.report.subject import subject

SECONDS = [90, 110, 100, 100, 60, 140]
FIT = {"mean": 50.0, "slope_per_round": 1.0, "intercept": 48.0, "range_share": 0.08, "slope_share": 0.08}


def settling(achieved: bool) -> BuiltPhase:
    """Six rounds, of which the last five are the window; a single second of them is recorded."""
    rounds = [{"iops": value} for value in (80, 48, 49, 50, 51, 52)]
    found = {
        "measure": "iops",
        "achieved": achieved,
        "rounds": rounds,
        "window_first_round": 1,
        "fit": FIT,
    }
    asked = {"measure": "iops", "round_ns": 60_000_000_000, "range_share": 0.2, "slope_share": 0.1}
    return BuiltPhase(
        "settling", iops=[3], settings={"steady_state": asked}, accounting={"steady_state": found}
    )


def mix(seconds: list[int], planned_s: int = 6) -> BuiltPhase:
    """The measured phase."""
    return BuiltPhase("mix", iops=seconds, settings={"duration_ns": planned_s * 1_000_000_000})


def look(*runs: Run) -> Any:
    """What the method makes of the runs."""
    return all_methods()["stability"].look(runs)


def test_the_table_has_mean_extremes_and_deviation_of_the_seconds() -> None:
    findings = look(built_run([settling(True), mix(SECONDS)]))
    # The deviations from 100 are 10, 10, 0, 0, 40, 40: sqrt(3400 / 6) = 23.80.
    assert findings.tables[0].rows == [["d", "6", "100.0", "60", "140", "23.8", "23.80 %"]]
    assert findings.notes == []


def test_the_steady_state_is_told_with_its_fit_and_bounds() -> None:
    findings = look(built_run([settling(True), mix(SECONDS)]))
    row = findings.tables[1].rows[0]
    assert row[1:] == ["reached", "6 of 60 s", "2 to 6", "50 IOPS", "+8.0 % (10 %)", "8.0 % (20 %)"]
    rounds = next(figure for figure in findings.figures if figure.key == "stability-rounds")
    drawn = {series.name: series for series in rounds.series}
    np.testing.assert_array_equal(drawn["d"].y, [80, 48, 49, 50, 51, 52])
    line = drawn["line through the last window"]
    np.testing.assert_array_equal(line.x, [2, 6])
    np.testing.assert_array_equal(line.y, [48, 52])
    bounds = [series.y[0] for series in rounds.series if series.name == "its mean ± 10 %"]
    assert bounds == pytest.approx([45, 55])


def test_a_drive_that_was_not_steady_is_named_above_the_figures() -> None:
    (note,) = look(built_run([settling(False), mix(SECONDS)])).notes
    assert note.startswith("d was not steady")


def test_the_scatter_has_every_second_of_every_drive_on_the_same_scales() -> None:
    one = built_run([settling(True), mix(SECONDS)], name="one", modelled=True)
    other = built_run([settling(True), mix([500, 510])], name="other", at=1)
    findings = look(one, other)
    figure = findings.figures[0]
    assert [series.name for series in figure.series] == ["one (modelled)", "other"]
    np.testing.assert_array_equal(figure.series[0].y, SECONDS)
    np.testing.assert_array_equal(figure.series[0].x, [1, 2, 3, 4, 5, 6])
    assert (figure.y[0].low, figure.x.high) == (0.0, 6.0)
    assert figure.y[0].high == pytest.approx(510 * 1.05)
    assert findings.notes == ["other ended after 2 s of 6 s."]


def test_a_run_that_ended_before_the_mix_is_shown_as_far_as_it_got() -> None:
    findings = look(built_run([settling(False)]))
    assert findings.tables[0].rows == [["d", *["not reached"] * 6]]
    assert [figure.key for figure in findings.figures] == ["stability-rounds"]
    assert findings.notes == ["d ended before the mix was measured."]


def test_a_mix_without_a_whole_second_has_no_figures_in_the_table() -> None:
    findings = look(built_run([settling(True), BuiltPhase("mix", latencies_ns=[1000, 2000])]))
    assert findings.tables[0].rows == [["d", *["no whole second"] * 6]]


def test_a_mix_in_which_nothing_completed_has_no_share_of_its_mean() -> None:
    findings = look(built_run([settling(True), mix([0, 0], planned_s=2)]))
    assert findings.tables[0].rows == [["d", "2", "0", "0", "0", "0", "no I/Os"]]


def test_the_plan_settles_with_the_mix_that_it_measures() -> None:
    settle, measured = bind(load("stability"), {"read-share": "0.5", "depth": "8"}).phases[-2:]
    same = ("read_share", "depth", "block_bytes", "span_share", "data")
    assert [getattr(settle, key) for key in same] == [getattr(measured, key) for key in same]
    assert (measured.read_share, measured.depth, measured.duration_ns) == (0.5, 8, 2_400_000_000_000)
    assert settle.steady_state.round_ns == 60_000_000_000


@pytest.mark.slow
def test_at_full_length_a_modelled_drive_is_steady_before_it_is_measured(tmp_path: Path) -> None:
    # Every part of the drive is sixty times as slow as the model's, so that 2,400 s are few I/Os.
    drive = (
        "sim:sata?capacity=256MiB&superblocks=500&firmware_read=828us&firmware_write=780us&program=126ms"
        "&erase=600ms&nand_read=2940us&nand_read_spread=540us"
    )
    path = tmp_path / "sata.rec"
    done = run_testdrive("run", "stability", "--drive", drive, "-o", path)
    assert done.returncode == 0, done.stderr
    with Recording.open(path) as recording:
        run = Run(subject("sata", "drive", 0, recording, {}))
        phases = {phase.name: phase for phase in run.phases}
        findings = all_methods()["stability"].look([run])
        seconds = run.seconds(phases["mix"]).ios
    assert list(phases) == ["purge", "fill", "random-writes", "settling", "mix"]
    issued = phases["mix"].accounting["issued"]
    reads, writes = issued["read"]["ios"], issued["write"]["ios"]
    assert reads / (reads + writes) == pytest.approx(0.7, abs=0.01)
    assert len(seconds) == 2400
    row = findings.tables[0].rows[0]
    assert row[1:2] + row[3:5] == ["2,400", f"{seconds.min():,}", f"{seconds.max():,}"]
    assert findings.tables[1].rows[0][1] == "reached"
    # Steady before means steady after: the mean of the run is that of the last window.
    assert seconds.mean() == pytest.approx(
        phases["settling"].accounting["steady_state"]["fit"]["mean"], rel=0.1
    )
