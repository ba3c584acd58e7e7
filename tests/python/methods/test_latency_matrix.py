"""The latency matrix: its tables on latencies that are given, then on models and a loop device."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_runs import BuiltPhase, built_run, reads_and_writes
from support import loop_device, run_testdrive

from testdrive.manifest import READ
from testdrive.methods.latency_matrix import P99_999_SAMPLES_MIN
from testdrive.methods.method import all_methods
from testdrive.methods.runs import Run
from testdrive.recording import Recording
from testdrive.report.subject import subject

MIXES = (1.0, 0.65, 0.0)
REFUSED = "not supported: 512 B on 4,096 B blocks"


def cell(block_bytes: int, read_share: float, latencies_ns: Any, opcode: Any = READ) -> BuiltPhase:
    """One block size and mix."""
    name = f"blocks-{block_bytes}-reads-{read_share}"
    settings = {"block_bytes": block_bytes, "read_share": read_share}
    return BuiltPhase(name, latencies_ns=latencies_ns, opcode=opcode, settings=settings)


def look(*runs: Run) -> Any:
    """What the method makes of the runs."""
    return all_methods()["latency-matrix"].look(runs)


def test_the_average_and_the_maximum_are_those_of_the_latencies() -> None:
    run = built_run([cell(4096, 1.0, [10_000, 20_000, 60_000]), cell(4096, 0.0, [5_000, 7_000])])
    findings = look(run)
    assert findings.details[0].rows == [
        ["d", "4 KiB", "100 % reads", "3", "30.0 µs", "too few samples", "60.0 µs"],
        ["d", "4 KiB", "0 % reads", "2", "6.00 µs", "too few samples", "7.00 µs"],
    ]
    average, maximum = findings.figures
    np.testing.assert_allclose(average.series[0].y, [30e-6, 6e-6])
    np.testing.assert_allclose(maximum.series[0].y, [60e-6, 7e-6])
    assert {series.style for figure in findings.figures for series in figure.series} == {"bars"}


@pytest.mark.parametrize(("missing", "told"), [(0, "2.00 ms"), (1, "too few samples")])
def test_p99_999_needs_the_samples_that_bound_it(missing: int, told: str) -> None:
    # Rank ceil(0.99999 * 299,572) = 299,570: the third of the slowest.
    latencies = np.full(P99_999_SAMPLES_MIN - missing, 1_000)
    latencies[[10, 20, 30]] = [2_000_000, 4_000_000, 3_000_000]
    latencies[40] = 1_500_000
    row = look(built_run([cell(512, 1.0, latencies)])).details[0].rows[0]
    assert row[3:] == [f"{len(latencies):,}", "1.04 µs", told, "4.00 ms"]


def test_mixes_are_told_by_operation_too() -> None:
    run = built_run([cell(8192, 0.65, [40_000, 60_000, 10_000], reads_and_writes(2, 1))])
    whole, by_operation = look(run).details
    assert whole.rows == [["d", "8 KiB", "65 % reads", "3", "36.7 µs", "too few samples", "60.0 µs"]]
    assert by_operation.rows == [
        ["d", "8 KiB", "65 % reads", "reads", "2", "50.0 µs", "too few samples", "60.0 µs"],
        ["d", "8 KiB", "65 % reads", "writes", "1", "10.0 µs", "too few samples", "10.0 µs"],
    ]


def test_what_a_drive_does_not_support_is_said_and_not_drawn() -> None:
    left_out = [
        {"name": "x", "reason": REFUSED, "settings": {"block_bytes": 512, "read_share": share}}
        for share in MIXES
    ]
    coarse = built_run([cell(4096, 1.0, [20_000])], name="coarse", left_out=left_out)
    fine = built_run([cell(512, 1.0, [10_000]), cell(4096, 1.0, [30_000])], name="fine", at=1)
    findings = look(coarse, fine)
    average = findings.figures[0]
    assert average.x.labels[0] == "512 B\n100 % reads"
    assert len(average.x.labels) == 4
    np.testing.assert_array_equal(np.isnan(average.series[0].y), [True, True, True, False])
    assert average.caption.endswith("does not support the block size.")
    rows = findings.details[0].rows
    assert rows[0] == ["coarse", "512 B", "100 % reads", *["not supported"] * 4]
    assert rows[5] == ["fine", "512 B", "65 % reads", *["not reached"] * 4]
    assert findings.notes == [f"coarse: {REFUSED}."]


def test_a_run_that_reached_no_cell_has_nothing_to_draw() -> None:
    findings = look(built_run([]))
    assert (findings.figures, findings.details) == ([], [])


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drive with blocks of 512 B and one with 4,096 B under the plan, a second for each combination."""
    folder = tmp_path_factory.mktemp("latency") / "runs"
    drives = [f"sim:{name}?capacity=64MiB&superblocks=100" for name in ("consumer-mlc", "enterprise-read")]
    chosen = [part for drive in drives for part in ("--drive", drive)]
    done = run_testdrive("run", "latency", *chosen, "--set", "for=1s", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_matrix_is_one_thread_at_depth_one_of_nine_combinations(compared: Path) -> None:
    with Recording.open(compared / "consumer-mlc.rec") as recording:
        phases = recording.manifest.phases
    assert [phase.name for phase in phases[:3]] == ["purge", "fill", "random-writes"]
    found = [(each.settings["block_bytes"], each.settings["read_share"]) for each in phases[3:]]
    assert found == [(size, share) for size in (512, 4096, 8192) for share in MIXES]
    assert {(each.settings["threads"], each.settings["depth"]) for each in phases[3:]} == {(1, 1)}


def test_a_drive_with_larger_blocks_is_measured_without_the_smallest_and_says_why(compared: Path) -> None:
    with Recording.open(compared / "enterprise-read.rec") as recording:
        manifest = recording.manifest
        assert recording.manifest.drive.logical_block_bytes == 4096
    assert len([phase for phase in manifest.phases if phase.kind == "synthetic"]) == 6
    assert {one.reason for one in manifest.plan.left_out} == {REFUSED}
    assert [one.settings["read_share"] for one in manifest.plan.left_out] == list(MIXES)
    page = (compared / "comparison" / "index.html").read_text(encoding="utf-8")
    assert REFUSED in page


def test_the_tables_beside_the_page_are_the_recordings(compared: Path) -> None:
    with (compared / "comparison" / "tables" / "latency.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["average"] for row in rows if row["drive"].startswith("enterprise")][:3] == [
        "not supported"
    ] * 3
    with Recording.open(compared / "consumer-mlc.rec") as recording:
        run = Run(subject("d", "drive", 0, recording, {}))
        found = run.latencies(run.phase("blocks-4096-reads-0.0"))
    writes = next(row for row in rows if (row["block size"], row["mix"]) == ("4 KiB", "0 % reads"))
    assert writes["I/Os"] == f"{found.n:,}"
    # One I/O at a time: the time it took is what the I/Os took.
    assert found.sum == pytest.approx(1e9, rel=0.01)


def test_reading_a_part_of_a_page_before_writing_it_shows(compared: Path) -> None:
    with Recording.open(compared / "consumer-mlc.rec") as recording:
        findings = look(Run(subject("d", "drive", 0, recording, {})))
    average = dict(zip(findings.figures[0].x.labels, findings.figures[0].series[0].y, strict=True))
    assert average["512 B\n0 % reads"] > 3 * average["4 KiB\n0 % reads"]


@pytest.mark.slow
def test_at_full_length_every_combination_of_a_modelled_drive_has_a_p99_999(tmp_path: Path) -> None:
    path = tmp_path / "sata.rec"
    drive = "sim:sata?capacity=64MiB&superblocks=100"
    done = run_testdrive("run", "latency", "--drive", drive, "--keep", "slowest", "-o", path)
    assert done.returncode == 0, done.stderr
    with Recording.open(path) as recording:
        rows = look(Run(subject("d", "drive", 0, recording, {}))).details[0].rows
        lengths = [phase.end_ns - phase.start_ns for phase in recording.manifest.phases[3:]]
    assert len(rows) == 9
    assert min(lengths) >= 60_000_000_000
    assert not any("too few" in cell for row in rows for cell in row)


@pytest.mark.slow
def test_in_its_short_form_it_runs_on_a_loop_device(tmp_path: Path) -> None:
    path = tmp_path / "loop.rec"
    with loop_device(tmp_path / "drive.img", 64 << 20) as device:
        arguments = ["--drive", device, "--erase", device, "--short", "--set", "for=200ms"]
        done = run_testdrive("run", "latency", *arguments, "-o", path)
    assert done.returncode == 0, done.stderr
    with Recording.open(path) as recording:
        rows = look(Run(subject("d", "drive", 0, recording, {}))).details[0].rows
    assert len(rows) == 9
    assert not any("not" in cell for row in rows for cell in row)
