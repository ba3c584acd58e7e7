"""Runs of the plan act on modelled drives, files and loop devices: what was asked is done and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_reader import read_log
from support import loop_device, run_testdrive

from testdrive.act.counts import MS_NS, US_NS, count
from testdrive.act.load import derive_load
from testdrive.act.verdict import judge, load_phase
from testdrive.plans import bind, load
from testdrive.recording import Recording

DRIVE = "sim:enterprise-mixed?capacity=256MiB"
SECOND_NS = 10**9


def run(path: Path, *options: str | Path) -> tuple[int, dict[str, Any]]:
    done = run_testdrive("run", "act", *options, "-o", path, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["results"][0]


def short(*settings: str, seconds: int = 4) -> list[str]:
    wanted = (f"for={seconds}s", "slice=2s", *settings)
    return [part for each in wanted for part in ("--set", each)]


def reads_of(path: Path | str, seconds: int, keys: dict[str, int], drives: int = 1) -> int:
    """How many small reads completed in time, once every I/O that was due has gone or is counted.

    A busy host hands over late, and what it has not handed over at the end does not go at all. Within a gap
    each of the three streams may be cut.
    """
    derived = derive_load(bind(load("act"), keys).values)
    due = seconds * (derived.reads_per_s + derived.large_reads_per_s + derived.large_writes_per_s) / drives
    with Recording.open(path) as recording:
        phase = load_phase(recording)
        assert phase is not None
        # What completed after the end is a stretch of its own.
        counted = count(recording, phase, seconds * SECOND_NS, 2)
        not_issued = int((phase.accounting or {})["arrivals_not_issued"])
    assert abs(sum(int(each.ios.sum()) for each in counted.values()) + not_issued - due) <= 3
    reads = int(counted["reads"].ios[0])
    assert 0 < reads <= seconds * derived.reads_per_s / drives
    return reads


def test_the_rates_are_those_that_were_derived_and_the_run_passes(tmp_path: Path) -> None:
    status, result = run(tmp_path / "a.rec", *short("rating=3"), "--drive", DRIVE)
    assert (status, result["metrics"]["act.verdict"]) == (0, "pass")
    with Recording.open(tmp_path / "a.rec") as recording:
        names = [phase.name for phase in recording.manifest.phases]
        phase = load_phase(recording)
        assert phase is not None
        counted = count(recording, phase, 4 * SECOND_NS, 1)
    assert names == ["zero", "salt", "load"]
    ios = {name: int(each.ios[0]) for name, each in counted.items()}
    # 6,000 reads/s, and 70.59 large blocks of each kind, for 4 s.
    assert ios == {"reads": 24_000, "large-block-reads": 283, "large-block-writes": 282}


def test_the_service_threads_of_a_large_host_begin_at_once(tmp_path: Path) -> None:
    options = short("rating=1", "arrivals=act", "service-threads=320", "prepare=none", seconds=2)
    status, result = run(tmp_path / "a.rec", *options, "--drive", DRIVE)
    # 6 a second of each of 320 threads.
    assert (status, result["metrics"]["act.reads"]) == (0, 2 * 6 * 320)


def test_histograms_and_rows_of_the_same_run_are_judged_alike(tmp_path: Path) -> None:
    drive = "sim:consumer-qlc?capacity=256MiB"
    options = [*short("rating=8", "prepare=salt"), "--drive", drive]
    found = []
    for keep in ("rows", "slowest"):
        run(tmp_path / f"{keep}.rec", *options, "--keep", keep)
        with Recording.open(tmp_path / f"{keep}.rec") as recording:
            phase = load_phase(recording)
            assert phase is not None
            counted = [count(recording, phase, SECOND_NS, 4, unit_ns) for unit_ns in (MS_NS, US_NS)]
            found.append((judge(recording), counted))
    (by_rows, rows), (by_histograms, histograms) = found
    assert by_rows == by_histograms
    assert by_rows.slices[0].above[0] > 0, "something must be slow, or nothing was compared"
    for one, other in zip(rows, histograms, strict=True):
        assert one.keys() == other.keys()
        for name, counts in one.items():
            assert np.array_equal(counts.service, other[name].service)
            assert np.array_equal(counts.response, other[name].response)


def test_a_drive_that_cannot_keep_up_fails_the_test_and_is_no_failure_of_the_drive(tmp_path: Path) -> None:
    options = short("rating=900", "prepare=none", "max-lag-sec=1", seconds=10)
    status, result = run(tmp_path / "a.rec", *options, "--drive", "sim:sata?capacity=256MiB")
    assert (status, result["error"]) == (1, None)
    metrics = result["metrics"]
    assert metrics["act.verdict"] == "fail"
    assert metrics["act.cannot_keep_up"]["lag_ns"] > SECOND_NS
    assert metrics["act.reasons"][0].startswith("the drive cannot keep up")
    assert metrics["act.slices"] < metrics["act.slices_planned"] == 5


def test_an_io_error_fails_the_run(tmp_path: Path) -> None:
    drive = f"{DRIVE}&fault_read_error_rate=0.001&fault_read_error_length_bytes={1 << 28}"
    options = [*short("prepare=none"), "--drive", drive]
    status, result = run(tmp_path / "a.rec", *options, "--on-error", "continue")
    assert (status, result["metrics"]["act.verdict"]) == (1, "fail")
    assert "I/Os failed" in result["metrics"]["act.reasons"][0]
    status, result = run(tmp_path / "b.rec", *options)
    assert (status, result["metrics"]["act.verdict"]) == (4, "fail")


def test_a_configuration_brings_its_drives_with_it(tmp_path: Path) -> None:
    images = [tmp_path / "a.img", tmp_path / "b.img"]
    names = ",".join(map(str, images))
    path = tmp_path / "act_storage.conf"
    path.write_text(
        f"device-names: {names}\nfile-size-mbytes: 32\ntest-duration-sec: 2\n"
        "read-reqs-per-sec: 400\nwrite-reqs-per-sec: 200\n"
    )
    options = ["--config", path, "--set", "slice=1s", "--set", "prepare=salt"]
    done = run_testdrive("run", "act", *options, "-o", tmp_path / "out", "--json")
    results = json.loads(done.stdout)["results"]
    assert [result["drive"] for result in results] == [f"file:{image}?size=32MiB" for image in images]
    paths = [result["recording"] for result in results]
    keys = {"read-reqs-per-sec": 400, "write-reqs-per-sec": 200}
    reads = [reads_of(path, 2, keys, drives=2) for path in paths]
    done = run_testdrive("export", *paths, "--format", "act-log", "-o", tmp_path / "act.txt")
    assert done.returncode == 0, done.stderr
    log = read_log(tmp_path / "act.txt")
    assert log.derived["internal-read-reqs-per-sec"] == "400"
    assert sum(log.after[2]["reads"].values()) == sum(reads)
    # The configuration's rates are of both drives, of which one has half.
    done = run_testdrive("export", paths[0], "--format", "act-log", "-o", tmp_path / "one.txt")
    assert done.returncode == 0, done.stderr
    half = read_log(tmp_path / "one.txt")
    assert (half.configuration["num-devices"], half.derived["internal-read-reqs-per-sec"]) == ("1", "200")


def test_the_command_needs_a_drive_or_a_configuration() -> None:
    done = run_testdrive("run", "act")
    assert done.returncode == 2
    assert "--drive is missing" in done.stderr


@pytest.mark.slow
def test_a_short_act_on_a_loop_device_can_be_read_as_the_original_is(tmp_path: Path) -> None:
    with loop_device(tmp_path / "disk.img", 64 << 20) as device:
        path = tmp_path / "a.rec"
        options = [*short("prepare=full"), "--drive", str(device), "--erase", str(device)]
        run(path, *options, "--on-error", "stop")
        made = tmp_path / "act.txt"
        assert run_testdrive("export", path, "--format", "act-log", "-o", made).returncode == 0
    log = read_log(made)
    assert list(log.after) == [1, 2, 3, 4]
    assert f"{device}-reads" in log.names
    assert sum(log.after[4]["reads"].values()) == reads_of(path, 4, {})
    assert sum(log.after[4]["large-block-writes"].values()) <= 95


@pytest.mark.slow
def test_a_whole_hour_is_a_slice_in_virtual_time(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    settings = [part for each in ("for=1h", "prepare=salt") for part in ("--set", each)]
    status, result = run(path, *settings, "--drive", DRIVE)
    assert status == 0
    found = {
        key: result["metrics"][f"act.{key}"] for key in ("slices", "slices_planned", "reads", "slice_ns")
    }
    assert found == {"slices": 1, "slices_planned": 1, "reads": 7_200_000, "slice_ns": 3600 * SECOND_NS}
