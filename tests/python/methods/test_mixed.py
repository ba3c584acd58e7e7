"""The mixed sweep on a modelled drive: each mix at both depths, recomputed from what was counted."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support import run_testdrive

from testdrive.methods.drawing import Findings
from testdrive.methods.method import all_methods
from testdrive.methods.runs import Run
from testdrive.recording import Recording
from testdrive.report.subject import subject

SHARES = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A modelled drive under the sweep, a fifth of a second each."""
    path = tmp_path_factory.mktemp("mixed") / "sata.rec"
    drive = "sim:sata?capacity=1GiB&superblocks=500"
    done = run_testdrive("run", "mixed", "--drive", drive, "--set", "for=200ms", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def looked_at(path: Path) -> tuple[Findings, dict[tuple[float, int], float], dict[tuple[float, int], float]]:
    """The findings; and by read share and depth, bytes a second and watts as the manifest has them."""
    with Recording.open(path) as opened:
        findings = all_methods()["mixed"].look([Run(subject("d", "drive", 0, opened, {}))])
        throughput, power = {}, {}
        for phase in opened.manifest.phases:
            if phase.kind != "synthetic":
                continue
            assert phase.end_ns is not None
            length_s = (phase.end_ns - phase.start_ns) / 1e9
            key = (phase.settings["read_share"], phase.settings["depth"])
            throughput[key] = sum(count["bytes"] for count in phase.accounting["issued"].values()) / length_s
            counters = phase.drive_counters
            power[key] = (counters.after.energy_uj - counters.before.energy_uj) / 1e6 / length_s
    return findings, throughput, power


def test_every_mix_is_run_at_both_depths_after_the_drive_was_prepared(recording: Path) -> None:
    with Recording.open(recording) as opened:
        names = [phase.name for phase in opened.manifest.phases]
        threads = {phase.settings["depth"]: phase.settings["threads"] for phase in opened.manifest.phases[3:]}
    assert names[:3] == ["purge", "fill", "random-writes"]
    assert names[3:] == [f"reads-{share}-depth-{depth}" for depth in (32, 128) for share in SHARES]
    assert threads == {32: 8, 128: 16}


def test_the_curves_are_what_was_issued_over_the_time_it_took(recording: Path) -> None:
    findings, throughput, power = looked_at(recording)
    figures = {figure.key: figure for figure in findings.figures}
    for depth in (32, 128):
        (series,) = figures[f"mixed-throughput-{depth}"].series
        assert series.name == "d (modelled)"
        np.testing.assert_allclose(series.x, [share * 100 for share in SHARES])
        expected = [throughput[share, depth] / 1e6 for share in SHARES]
        # What was in flight at the end completes after the last moment that is counted as issued.
        np.testing.assert_allclose(series.y, expected, rtol=0.02)
        watts, for_each_watt = figures[f"mixed-power-{depth}"].series
        np.testing.assert_allclose(watts.y, [power[share, depth] for share in SHARES])
        np.testing.assert_allclose(for_each_watt.y, series.y / watts.y)


def test_the_headline_is_the_point_at_seventy_percent_reads(recording: Path) -> None:
    findings, throughput, power = looked_at(recording)
    (table,) = findings.tables
    assert [row[0] for row in table.rows] == ["d (modelled), depth 32", "d (modelled), depth 128"]
    for row, depth in zip(table.rows, (32, 128), strict=True):
        assert float(row[2]) == pytest.approx(throughput[0.7, depth] / 1e6, rel=0.02)
        assert float(row[4].removesuffix(" W")) == pytest.approx(power[0.7, depth], rel=0.01)
    bars = next(figure for figure in findings.figures if figure.key == "mixed-70-30")
    assert bars.x.labels == ("32", "128")
    assert bars.series[0].style == "bars"


def test_power_that_nothing_measured_is_said_to_be_so(recording: Path) -> None:
    with Recording.open(recording) as opened:
        for phase in opened.manifest.phases:
            phase.drive_counters = None
        findings = all_methods()["mixed"].look([Run(subject("d", "drive", 0, opened, {}))])
    assert not any("power" in figure.key for figure in findings.figures)
    assert findings.notes == ["d (modelled): power was not measured."]
    assert {row[4] for row in findings.tables[0].rows} == {"not measured"}


def test_a_run_that_was_cut_short_is_shown_as_far_as_it_got(recording: Path) -> None:
    with Recording.open(recording) as opened:
        opened.manifest.phases = opened.manifest.phases[:8]
        findings = all_methods()["mixed"].look([Run(subject("d", "drive", 0, opened, {}))])
    throughput = [figure for figure in findings.figures if "throughput" in figure.key]
    assert [len(figure.series[0].x) for figure in throughput] == [5]
    assert not any(math.isnan(value) for value in throughput[0].series[0].y)
