"""The consistency plan on modelled drives: its phases, its figures on the same scales, its table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from support import run_testdrive

from testdrive.methods.method import all_methods
from testdrive.methods.runs import Run, Seconds
from testdrive.methods.scales import log_range, round_above
from testdrive.plans import bind, load
from testdrive.recording import Recording
from testdrive.report.subject import subject


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two modelled drives under the plan for 10 s each time."""
    folder = tmp_path_factory.mktemp("consistency") / "runs"
    drives = [f"sim:{name}?capacity=1GiB&superblocks=500" for name in ("sata", "consumer-mlc")]
    chosen = [part for drive in drives for part in ("--drive", drive)]
    done = run_testdrive("run", "consistency", *chosen, "--set", "for=10s", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def seconds_of(run: Run, name: str) -> Seconds:
    """The seconds of a phase that the run must have."""
    phase = run.phase(name)
    assert phase is not None
    return run.seconds(phase)


def test_several_drives_are_compared_at_once(runs: Path) -> None:
    page = runs / "comparison" / "index.html"
    assert page.is_file()
    for name in ("whole", "end", "linear", "whole-spare", "end-spare", "linear-spare"):
        assert (page.parent / "figures" / f"consistency-{name}.png").stat().st_size > 10_000


def test_the_drive_is_full_before_and_a_quarter_is_left_unused_the_second_time(runs: Path) -> None:
    with Recording.open(runs / "sata.rec") as recording:
        phases = {phase.name: phase for phase in recording.manifest.phases}
    assert list(phases) == ["purge", "fill", "writes", "purge-spare", "fill-spare", "writes-spare"]
    filled = {name: phases[name].accounting["issued"]["write"]["bytes"] for name in ("fill", "fill-spare")}
    assert filled == {"fill": 1 << 30, "fill-spare": 3 << 28}
    assert [phase.measured for phase in phases.values()] == [False, False, True, False, False, False]
    assert phases["writes"].end_ns - phases["writes"].start_ns >= 10_000_000_000


def test_more_spare_area_means_more_writes_in_the_same_time(runs: Path) -> None:
    with Recording.open(runs / "sata.rec") as recording:
        run = Run(subject("sata", "drive", 0, recording, {}))
        whole, spare = (seconds_of(run, name) for name in ("writes", "writes-spare"))
    assert spare.ios[-2:].mean() > 1.2 * whole.ios[-2:].mean()


def test_the_table_is_over_the_last_fifth(runs: Path) -> None:
    with (runs / "comparison" / "tables" / "consistency.csv").open(encoding="utf-8") as file:
        table = {row["drive"]: row for row in csv.DictReader(file)}
    with Recording.open(runs / "sata.rec") as recording:
        run = Run(subject("sata", "drive", 0, recording, {}))
        seconds = seconds_of(run, "writes")
    settled = seconds.ios[-2:]
    row = table["sata (modelled)"]
    assert row["seconds judged"] == "2"
    assert row["least IOPS"] == f"{settled.min():,}"
    assert float(row["standard deviation / mean"].split()[0]) == pytest.approx(
        settled.std() / settled.mean() * 100, abs=0.05
    )


def test_all_drives_of_a_figure_share_its_scales_and_say_that_they_are_modelled(runs: Path) -> None:
    with Recording.open(runs / "sata.rec") as one, Recording.open(runs / "consumer-mlc.rec") as other:
        both = [Run(subject(f"d{at}", "drive", at, each, {})) for at, each in enumerate((one, other))]
        findings = all_methods()["consistency"].look(both)
    assert [figure.key for figure in findings.figures[:3]] == [
        "consistency-whole",
        "consistency-end",
        "consistency-linear",
    ]
    for figure in findings.figures:
        assert [series.name for series in figure.series] == ["d0 (modelled)", "d1 (modelled)"]
        for series in figure.series:
            inside = series.y[series.y > 0]
            assert figure.y[0].low <= inside.min()
            assert inside.max() <= figure.y[0].high


def test_the_short_form_scales_the_plan_and_can_be_overruled() -> None:
    bound = bind(load("consistency"), {"for": "3s"}, short=True)
    writes = next(phase for phase in bound.phases if phase.name == "writes")
    assert (writes.duration_ns, writes.span_share) == (3_000_000_000, 0.1)


def test_round_numbers_are_at_least_what_they_hold() -> None:
    assert [round_above(value) for value in (0, 1, 40_000, 40_001, 81_000, 999)] == [
        1,
        1,
        40_000,
        50_000,
        100_000,
        1_000,
    ]
    assert log_range([np.array([0.0, 250.0, 3_000.0])]) == (100.0, 10_000.0)
    assert log_range([np.array([0.0])]) == (1.0, 10.0)
