"""What a modelled drive measured of itself, as the reader gives it: whole, after a crash, and damaged."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import missing

from testdrive.engine import find_engine
from testdrive.errors import EngineError, RecordingError
from testdrive.recording import Recording

S = 1_000_000_000
#: Felt within seconds.
WARM = "sim:consumer-highend?capacity=1GiB&thermal_resistance_mc_per_w=10000&thermal_time_constant=5s"


def engine() -> Path:
    try:
        return find_engine()
    except EngineError:
        missing("the engine's release build")


def job(output: Path, seconds: int) -> str:
    phase = {"kind": "synthetic", "read_share": 0.5, "depth": 16, "duration_ns": seconds * S}
    return json.dumps({"version": 1, "drive": {"uri": WARM}, "output": str(output), "phases": [phase]})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("telemetry") / "a.rec"
    subprocess.run([engine(), "run"], input=job(output, 4), text=True, check=True, stdout=subprocess.DEVNULL)
    return output


def telemetry_of(path: Path) -> dict[str, Any]:
    with Recording.open(path) as recording:
        return recording.telemetry()


def test_the_energy_of_a_run_is_what_the_drives_counters_grew_by(whole: Path) -> None:
    sensors = telemetry_of(whole)
    assert {name: series.unit for name, series in sensors.items()} == {
        "power": "mW",
        "energy": "uJ",
        "temperature": "mC",
    }
    energy, power = sensors["energy"], sensors["power"]
    np.testing.assert_array_equal(energy.time_ns[:4], np.arange(1, 5) * S)
    phase = json.loads((whole / "manifest.json").read_text())["phases"][0]
    counters = phase["drive_counters"]
    assert energy.value[-1] == counters["after"]["energy_uj"] - counters["before"]["energy_uj"]
    # Each mean power times its time is what was drawn: to the rounding of a milliwatt.
    drawn_uj = power.value * np.diff(energy.time_ns, prepend=0) / 1e6
    np.testing.assert_allclose(drawn_uj, np.diff(energy.value, prepend=0), atol=501)
    assert (np.diff(sensors["temperature"].value) > 0).all()


def test_a_run_that_was_killed_keeps_the_telemetry_until_then(tmp_path: Path) -> None:
    output = tmp_path / "a.rec"
    process = subprocess.Popen([engine(), "run"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    process.stdin.write(job(output, 36_000))
    process.stdin.close()
    deadline = time.monotonic() + 60
    file = output / "telemetry.jsonl"
    while not file.exists() or len(file.read_text().splitlines()) < 9:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    sensors = telemetry_of(output)
    assert json.loads((output / "manifest.json").read_text())["status"] == "interrupted"
    np.testing.assert_array_equal(sensors["energy"].time_ns[:3], np.arange(1, 4) * S)
    # As if the last line had not been written whole.
    file.write_text(file.read_text() + '{"time_ns":99000')
    after = telemetry_of(output)
    np.testing.assert_array_equal(after["energy"].value, sensors["energy"].value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: [*lines[:2], "{}\n", *lines[3:]], "damaged in line 3: 'sensor'"),
        (lambda lines: [*lines[:1], "x\n", *lines[2:]], "damaged in line 2"),
        (lambda lines: [lines[0].replace('"value":', '"value":1e3,"was":'), *lines[1:]], "is no integer"),
        (lambda lines: lines[:-1], "has 14 rows, and the manifest has 15"),
        (lambda lines: [lines[0][:9]], "damaged in line 1"),
    ],
)
def test_damage_is_told_with_its_place(whole: Path, tmp_path: Path, damage: Any, message: str) -> None:
    copy = tmp_path / "a.rec"
    shutil.copytree(whole, copy)
    file = copy / "telemetry.jsonl"
    file.write_text("".join(damage(file.read_text().splitlines(keepends=True))))
    with pytest.raises(RecordingError, match=message):
        telemetry_of(copy)


def test_telemetry_that_the_manifest_knows_and_that_is_gone_is_an_error(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a.rec"
    shutil.copytree(whole, copy)
    (copy / "telemetry.jsonl").unlink()
    with pytest.raises(RecordingError, match="cannot be read"):
        telemetry_of(copy)


def test_a_drive_that_measures_nothing_has_none(tmp_path: Path) -> None:
    output = tmp_path / "a.rec"
    null = {"version": 1, "drive": {"uri": "null:"}, "output": str(output)}
    phases = [{"kind": "synthetic", "ios": 10}]
    subprocess.run(
        [engine(), "run"],
        input=json.dumps({**null, "phases": phases}),
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert telemetry_of(output) == {}
