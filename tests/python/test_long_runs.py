"""Runs that keep histograms and the slowest I/Os, held to the same runs with every row, on a model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import missing, run_testdrive

from testdrive.engine import find_engine
from testdrive.errors import EngineError, UsageError
from testdrive.manifest import READ, WRITE
from testdrive.methods.runs import Run
from testdrive.metrics import summarize
from testdrive.recording import Recording
from testdrive.report.subject import subject
from testdrive.segments import RESPONSE

DRIVE = (
    "sim:consumer-mlc?capacity=1GiB&superblocks=500&fault_stall_at_ns=2500000000&fault_stall_ns=400000000"
    "&fault_read_error_rate=0.0005&fault_read_error_length_bytes=1073741824"
)
PLAN = """
version = 1
name = "mix"
title = "Mix"
question = "How does it take a mix?"
figures = ["consistency"]

[[phases]]
kind = "prepare"
method = "sequential"

[[phases]]
kind = "synthetic"
name = "writes"
read_share = 0.7
depth = 16
duration_ns = 5_500_000_000
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same run twice: `rows` with every row, `slowest` without."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "mix.toml").write_text(PLAN)
    made = {}
    for keep in ("rows", "slowest"):
        made[keep] = folder / f"{keep}.rec"
        run_testdrive_well(
            "run",
            folder / "mix.toml",
            "--drive",
            DRIVE,
            "--keep",
            keep,
            "--on-error",
            "continue",
            "-o",
            made[keep],
        )
    return made


def run_testdrive_well(*arguments: str | Path) -> str:
    """The standard output of a command that must succeed."""
    done = run_testdrive(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def summaries(recordings: dict[str, Path]) -> tuple[dict[str, Any], dict[str, Any]]:
    found = []
    for keep in ("rows", "slowest"):
        with Recording.open(recordings[keep]) as recording:
            found.append(summarize(recording))
    return found[0], found[1]


def test_what_histograms_tell_exactly_is_what_the_rows_tell(recordings: dict[str, Path]) -> None:
    rows, slowest = summaries(recordings)
    assert slowest["io_counts"] == rows["io_counts"]
    assert rows["io_counts"]["errors"] > 5
    assert slowest["latency_mean_ns"] == rows["latency_mean_ns"]
    assert slowest["latency_samples"] == rows["latency_samples"]
    assert slowest["write_amplification"] == rows["write_amplification"]
    maxima = [one["percentiles_ns"]["io_weighted"]["max"] for one in (rows, slowest)]
    assert maxima[0] == maxima[1] > 300_000_000


def test_percentiles_are_at_most_a_bucket_above_the_exact_ones(recordings: dict[str, Path]) -> None:
    rows, slowest = summaries(recordings)
    assert rows["percentile_error_max"] is None
    bound = slowest["percentile_error_max"]
    compared = 0
    for weighting in ("io_weighted", "latency_weighted"):
        for name, exact in rows["percentiles_ns"][weighting].items():
            found = slowest["percentiles_ns"][weighting][name]
            assert (found is None) == (exact is None), name
            if exact is not None:
                assert exact <= found <= exact * (1 + bound), (weighting, name)
                compared += 1
    assert compared >= 8


def test_what_needs_every_row_is_absent_with_the_reason(recordings: dict[str, Path]) -> None:
    _, slowest = summaries(recordings)
    for key in ("baseline", "recovery"):
        assert slowest[f"{key}_code"] == "rows_not_kept"
    assert slowest["baseline_latency_ns"] is None
    json.dumps(slowest, allow_nan=False)


def test_seconds_and_distributions_of_a_phase_agree(recordings: dict[str, Path]) -> None:
    found = []
    for keep in ("rows", "slowest"):
        with Recording.open(recordings[keep]) as recording:
            run = Run(subject("one", "drive", 0, recording, {}))
            phase = run.phase("writes")
            assert phase is not None
            seconds = run.seconds(phase, WRITE)
            found.append((seconds, run.seconds(phase), run.latencies(phase, READ)))
    for rows, slowest in zip(found[0][:2], found[1][:2], strict=True):
        for key in ("ios", "bytes", "sum_ns", "max_ns"):
            np.testing.assert_array_equal(getattr(rows, key), getattr(slowest, key))
    assert found[0][0].whole == 5
    assert 0 < found[0][0].ios.sum() < found[0][1].ios.sum()
    exact, bucketed = found[0][2], found[1][2]
    assert (bucketed.n, bucketed.sum, bucketed.max) == (exact.n, exact.sum, exact.max)
    assert len(bucketed.value) < len(exact.value)


def test_the_slowest_rows_are_far_fewer_and_hold_the_stall(recordings: dict[str, Path]) -> None:
    with Recording.open(recordings["slowest"]) as recording:
        assert not recording.segments
        rows = recording.slowest_rows()
        found = recording.execute(rows.aggregate(ios=rows.count(), max_ns=rows.latency_ns.max()))
        assert found["max_ns"][0] > 300_000_000
        assert 0 < found["ios"][0] < recording.manifest.counts.ios


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["inspect"], "inspected"),
        (["export", "-o", "x.csv", "--format", "csv"], "not every row"),
        (["replay", "--drive", "null:?size=1GiB"], "not every row"),
    ],
)
def test_what_needs_every_row_refuses_and_says_what_to_do(
    recordings: dict[str, Path], tmp_path: Path, command: list[str], words: str
) -> None:
    arguments = [str(tmp_path / part) if part == "x.csv" else part for part in command[1:]]
    done = run_testdrive(command[0], recordings["slowest"], *arguments)
    assert done.returncode == 2, done.stderr
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_crash_costs_the_open_seconds_and_nothing_else(tmp_path: Path) -> None:
    try:
        engine = find_engine()
    except EngineError:
        missing("the engine's release build")
    path = tmp_path / "crashed.rec"
    phase = {"kind": "synthetic", "read_share": 0.5, "depth": 8, "duration_ns": 3_600_000_000_000}
    job = {
        "version": 1,
        "drive": {"uri": "sim:sata?capacity=1GiB&superblocks=500"},
        "output": str(path),
        "keep": "slowest",
        "segment_s": 0.2,
        "phases": [phase],
    }
    process = subprocess.Popen(
        [os.fspath(engine), "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(job))
    process.stdin.close()
    try:
        while len(list((path / "intervals").glob("*.parquet"))) < 3:
            assert process.stdout.readline(), "the engine ended by itself"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with Recording.open(path) as recording:
        assert recording.recovered
        manifest = recording.manifest
        assert manifest.status == "interrupted"
        entries = recording.intervals()
        counted = recording.execute(entries.aggregate(ios=entries["count"].sum()))
        assert manifest.counts.ios == int(counted["ios"][0]) > 0
        assert not list(path.glob("*/*.open"))
        assert summarize(recording)["io_counts"]["ios"] == manifest.counts.ios


def test_recordings_of_different_tests_are_not_compared(recordings: dict[str, Path], tmp_path: Path) -> None:
    from testdrive.methods.page import write_method_page

    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "plan.toml").write_text(PLAN.replace('name = "mix"', 'name = "other"'))
    other = folder / "other.rec"
    run_testdrive_well(
        "run",
        folder / "plan.toml",
        "--drive",
        DRIVE,
        "--on-error",
        "continue",
        "--keep",
        "slowest",
        "-o",
        other,
    )
    with pytest.raises(UsageError, match="different tests"):
        write_method_page([recordings["slowest"], other], tmp_path / "index.html")


def test_response_times_of_an_open_loop_that_falls_behind_are_those_of_the_rows(tmp_path: Path) -> None:
    text = PLAN[: PLAN.index("[[phases]]")] + textwrap.dedent(
        """
        [[phases]]
        kind = "synthetic"
        name = "arrivals"
        arrivals = { process = "poisson", rate_iops = 100000 }
        max_in_flight = 64
        duration_ns = 1_500_000_000
        """
    )
    (tmp_path / "open.toml").write_text(text)
    drive = "sim:sata?capacity=1GiB&superblocks=500"
    for keep in ("rows", "slowest"):
        run_testdrive_well(
            "run", tmp_path / "open.toml", "--drive", drive, "--keep", keep, "-o", tmp_path / f"{keep}.rec"
        )
    with Recording.open(tmp_path / "rows.rec") as recording:
        rows = recording.all_rows()
        start_ns = recording.manifest.phases[0].start_ns
        response_ns = rows.submit_ns + rows.latency_ns - rows.intended_ns
        second = (rows.submit_ns + rows.latency_ns - start_ns) // 1_000_000_000
        expected = recording.execute(
            rows.group_by(second=second).aggregate(
                count=rows.count(), sum_ns=response_ns.sum(), max_ns=response_ns.max()
            )
        )
    with Recording.open(tmp_path / "slowest.rec") as recording:
        entries = recording.intervals()
        entries = entries.filter(entries.quantity == RESPONSE)
        second = (entries.start_ns - recording.manifest.phases[0].start_ns) // 1_000_000_000
        found = recording.execute(
            entries.group_by(second=second).aggregate(
                count=entries["count"].sum(), sum_ns=entries.sum_ns.sum(), max_ns=entries.max_ns.max()
            )
        )
    assert len(expected["second"]) >= 2
    for arrays in (expected, found):
        order = np.argsort(arrays["second"])
        for key in arrays:
            arrays[key] = arrays[key][order].astype(np.int64)
    assert expected["max_ns"].max() > 100_000_000
    for key, values in expected.items():
        np.testing.assert_array_equal(found[key], values)
