"""Meters beside a run that was interrupted and resumed: each part has its own clock, and no phase two."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import phase, write_recording
from cutting import cut_before_its_end
from power.test_power_of_phases import source
from power.trees import hwmon, sysfs_of
from support import run_testdrive, run_without_images

from testdrive.errors import UsageError
from testdrive.manifest import Gap
from testdrive.metrics import summarize
from testdrive.power.attaching import Attachment, attach
from testdrive.power.csv_text import Layout
from testdrive.power.files import FOLDER, FORMAT, live_files
from testdrive.power.parts import part_at, parts_of
from testdrive.recording import Recording

S = 1_000_000_000
#: The host's monotonic clock at the recording's time zero, before the interruption and after a reboot.
FIRST_NS, SECOND_NS = 700 * S, 50 * S
UNIX_NS = 1_700_000_000 * S
#: By the wall clock, how long the run stood still.
STILL_NS = 1000 * S
GAP = {"after_ns": 4 * S, "resumed_ns": 6 * S, "resumed_at": "2023-11-14T22:30:06.000Z", "set_aside": [0]}


def cut_recording(tmp_path: Path) -> Path:
    """4 s that were cut, a gap of 2 s, and 4 s that were run again."""
    rows = {"submit_ns": [5, 7 * S], "latency_ns": 1000, "length_bytes": 4096, "opcode": 0, "phase": [0, 1]}
    phases = [
        phase(0, kind="synthetic", measured=False, end_ns=4 * S),
        phase(1, kind="synthetic", start_ns=6 * S, end_ns=10 * S),
    ]
    return write_recording(
        tmp_path / "a.rec", rows, kind="run", phases=phases, gaps=[GAP], created="2023-11-14T22:13:20.000Z"
    )


def write_part(path: Path, name: str, tie: dict[str, int], watts: dict[float, float], **keys: Any) -> None:
    """A file of one part; ``watts`` by the recording's time in seconds, which may lie outside the part."""
    (path / FOLDER).mkdir(exist_ok=True)
    apart_ns = tie["monotonic_ns"] - tie["recording_ns"]
    lines: list[dict[str, Any]] = [{"format": FORMAT, "version": 1}, source(0, "hwmon:x", **keys), tie]
    for at_s, watt in watts.items():
        value = {"monotonic_ns": round(at_s * S) + apart_ns, "source": 0, "power_uw": round(watt * 1e6)}
        lines.append(value)
    (path / FOLDER / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def evenly(first_s: float, last_s: float, watt: float) -> dict[float, float]:
    return {round(at, 1): watt for at in np.arange(first_s, last_s + 0.05, 0.1)}


FIRST = {"recording_ns": 0, "monotonic_ns": FIRST_NS, "unix_ns": UNIX_NS}
SECOND = {"recording_ns": 6 * S, "monotonic_ns": SECOND_NS, "unix_ns": UNIX_NS + STILL_NS + 6 * S}


def test_two_parts_meet_in_the_middle_of_their_gap() -> None:
    gaps = [
        Gap(after_ns=4 * S, resumed_ns=6 * S),
        Gap(after_ns=9 * S, resumed_ns=11 * S),
    ]
    parts = parts_of(gaps)
    at = np.array([-S, 5 * S - 1, 5 * S, 10 * S - 1, 10 * S, 99 * S], np.int64)
    assert [list(part.holds(at)) for part in parts] == [
        [True, True, False, False, False, False],
        [False, False, True, True, False, False],
        [False, False, False, False, True, True],
    ]
    assert [part_at(parts, int(each)).gap for each in at] == [None, None, gaps[0], gaps[0], gaps[1], gaps[1]]
    assert len(parts_of([])) == 1


def test_each_phase_has_what_was_read_in_its_own_part(tmp_path: Path) -> None:
    path = cut_recording(tmp_path)
    # The first part was read on for 5 s after the cut, and the second for 5 s before it went on: neither is
    # a time of this recording, though the other part has the same.
    write_part(path, "live.jsonl", FIRST, evenly(-2, 9, 3.0))
    write_part(path, "live-2.jsonl", SECOND, evenly(1, 10, 7.0))
    with Recording.open(path) as recording:
        (metered,) = recording.meters()
        power = summarize(recording)["power"]
    assert np.all(np.diff(metered.time_ns) > 0)
    assert [each["mean_w"] for each in power["phases"]] == [pytest.approx(3.0), pytest.approx(7.0)]
    assert power["mean_w"] == pytest.approx(7.0)
    assert power["idle_w"] == pytest.approx(3.0)


def test_a_meter_that_came_only_with_the_resumption_has_its_time(tmp_path: Path) -> None:
    path = cut_recording(tmp_path)
    write_part(path, "live.jsonl", SECOND, evenly(1, 10, 7.0))
    with Recording.open(path) as recording:
        power = summarize(recording)["power"]
    assert power["phases"][0]["mean_w"] is None
    assert power["phases"][1]["mean_w"] == pytest.approx(7.0)


def test_parts_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name in ("live-10.jsonl", "live-2.jsonl", "live.jsonl", "attached-x.jsonl", "warnings.jsonl"):
        (folder / name).write_text("")
    assert [each.name for each in live_files(tmp_path)] == ["live.jsonl", "live-2.jsonl", "live-10.jsonl"]


@pytest.mark.parametrize("watched", [True, False])
def test_dates_of_a_log_are_brought_to_the_part_that_they_are_of(tmp_path: Path, watched: bool) -> None:
    path = cut_recording(tmp_path)
    if watched:
        write_part(path, "live.jsonl", FIRST, evenly(0, 4, 1.0))
        write_part(path, "live-2.jsonl", SECOND, evenly(6, 10, 1.0))
    log = tmp_path / "meter.csv"
    # Before, while the run stood still, and after it went on: 3 W, 9 W and 7 W.
    rows = [(at / 10, 3.0) for at in range(-20, 50)]
    rows += [(at, 9.0) for at in range(20, 900)]
    rows += [(1000 + at / 10, 7.0) for at in range(55, 101)]
    text = "".join(f"{UNIX_NS // S + at:.1f},{watt}\n" for at, watt in rows)
    log.write_text("Time,Power (W)\n" + text)
    found = attach(path, Attachment(log, Layout(time="Time", power=("Power (W)",))))
    assert found.readings < len(rows)
    with Recording.open(path) as recording:
        power = summarize(recording)["power"]
    assert [each["mean_w"] for each in power["phases"]] == [pytest.approx(3.0), pytest.approx(7.0)]


def test_a_log_of_the_time_between_two_parts_is_told(tmp_path: Path) -> None:
    path = cut_recording(tmp_path)
    log = tmp_path / "meter.csv"
    log.write_text("Time,W\n" + "".join(f"{UNIX_NS // S + at},9\n" for at in range(20, 900)))
    with pytest.raises(UsageError, match="fewer than two readings of the time in which the run was made"):
        attach(path, Attachment(log, Layout(time="Time", power=("W",))))


# Even where the host stands still for 2 s, two readings are within a phase and none 5 intervals apart.
PLAN = """
version = 1
name = "p"
title = "t"
question = "q"
[[phases]]
kind = "synthetic"
name = "first"
duration_ns = 3_000_000_000
rate_limit_iops = 500
[[phases]]
kind = "synthetic"
name = "second"
duration_ns = 3_000_000_000
rate_limit_iops = 500
"""


@pytest.mark.slow
def test_meters_go_on_beside_a_run_that_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = sysfs_of(tmp_path, monkeypatch, hwmon(0, "ina226", power1_input=4_000_000))
    plan, made = tmp_path / "p.toml", tmp_path / "a.rec"
    plan.write_text(PLAN)
    drive = ("--drive", f"file:{tmp_path}/drive.img?size=16MiB", "--power", "hwmon:ina226?rate=2")
    options = ("--power-idle", "0s", "-o", made)
    command = [Path(sys.executable).parent / "testdrive", "run", plan, *drive, *options]

    def attempt() -> tuple[int, str]:
        run = subprocess.Popen([os.fspath(each) for each in command], stderr=subprocess.PIPE, text=True)
        wait_for_phase(made, "second", run)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=300)
        return run.returncode, said

    cut_before_its_end(made, attempt, signal.SIGINT)
    (root / "hwmon/hwmon0/power1_input").write_text("9000000\n")
    refused = run_testdrive("run", plan, *drive, "--power-idle", "1s", "--resume", made)
    assert (refused.returncode, "leave it away" in refused.stderr) == (2, True)
    assert run_without_images("run", plan, *drive, "--resume", made) == 0
    assert [each.name for each in live_files(made)] == ["live.jsonl", "live-2.jsonl"]
    phases = {
        each["name"]: each for each in json.loads((made / "summary.json").read_text())["power"]["phases"]
    }
    assert phases["first"]["mean_w"] == pytest.approx(4.0)
    assert phases["second"]["mean_w"] == pytest.approx(9.0)
    assert phases["second"]["covered_share"] > 0.9
    assert run_without_images("report", made) == 0


def wait_for_phase(recording: Path, name: str, run: subprocess.Popen[str]) -> None:
    """Until the recording's manifest has begun a phase, or the run is over."""
    deadline_s = time.monotonic() + 120
    while run.poll() is None:
        manifest = recording / "manifest.json"
        if manifest.exists() and name in [p["name"] for p in json.loads(manifest.read_text())["phases"]]:
            return
        assert time.monotonic() < deadline_s, f"the phase {name} did not begin"
        time.sleep(0.05)
