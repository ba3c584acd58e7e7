"""What a modelled drive measured of itself, as the reader gives it: whole, after a crash, and damaged."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import missing

from testdrive.engine import find_engine
from testdrive.errors import EngineError, RecordingError
from testdrive.recording import Recording, Span
from testdrive.report import write_report
from testdrive.report.power import PowerLines, power_lines
from testdrive.telemetry import Series

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


def test_the_report_draws_what_was_measured_and_says_that_it_is_modelled(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "warm.rec"
    shutil.copytree(whole, copy)
    page = write_report(copy).read_text()
    section = page[page.index('<section id="power"') :]
    section = section[: section.index("</section>")]
    assert 'class="badge"' in section
    assert "(modelled)." in section
    assert 'data-plot="power"' in section
    assert (copy / "figures" / "power.png").stat().st_size > 10_000
    with (copy / "tables" / "power.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["end_ns"]) for row in rows[:3]] == [S, 2 * S, 3 * S]
    drawn_uj = sum(float(row["power_mw"]) * (int(row["end_ns"]) - int(row["start_ns"])) / 1e6 for row in rows)
    # What the NAND does after the last I/O is in the telemetry and not in a measured phase.
    assert drawn_uj == pytest.approx(telemetry_of(whole)["energy"].value[-1], rel=0.01)
    assert all(25_000 < int(row["temperature_mc"]) < 90_000 for row in rows)


def measured(
    time_s: list[float], energy_uj: list[int], power_mw: list[int], spans_s: list[tuple[float, float]]
) -> PowerLines | None:
    """What is drawn of these rows in these measured phases."""
    time_ns = np.round(np.array(time_s) * S).astype(np.int64)
    sensors = {
        "energy": Series("uJ", time_ns, np.array(energy_uj)),
        "power": Series("mW", time_ns, np.array(power_mw)),
    }
    spans, laid_ns = [], 0
    for index, (start_s, end_s) in enumerate(spans_s):
        start_ns, end_ns = round(start_s * S), round(end_s * S)
        spans.append(Span(index, start_ns, end_ns, start_ns - laid_ns))
        laid_ns += end_ns - start_ns
    recording: Any = SimpleNamespace(
        telemetry=lambda: sensors,
        measured_spans=lambda: spans,
        meters=list,
        manifest=SimpleNamespace(phases=[], drive=None),
    )
    return power_lines(recording)


def test_steps_are_cut_to_the_measured_phases_and_laid_one_behind_the_other() -> None:
    rows = ([1, 2, 10, 11, 11.01], [1_000_000, 3_000_000, 11_000_000, 16_000_000, 16_010_000])
    power_mw = [2_000, 2_000, 1_000, 5_000, 1_000]
    lines = measured(*rows, power_mw, [(1.5, 3.0), (9.5, 10.25)])
    assert lines is not None
    # The second phase begins where the first ends; the last 10 ms are no step of their own.
    assert (lines.start_ns / S).tolist() == [0, 0.5, 1.5, 2.0]
    assert (lines.end_ns / S).tolist() == [0.5, 1.5, 2.0, 2.25]
    assert lines.power_mw == pytest.approx([2_000, 1_000, 1_000, 5_010 / 1.01])
    assert lines.energy_j == pytest.approx(1 + 1 + 0.5 + 5.01 / 1.01 / 4)
    whole = measured(*rows, power_mw, [(0, 12)])
    assert whole is not None
    assert whole.energy_j == pytest.approx(16.01)
    assert whole.start_ns[0] == S // 2, "the first row's mean power tells since when"
    assert measured(*rows, power_mw, [(20, 30)]) is None


def test_a_day_is_drawn_in_a_bounded_number_of_steps_that_lose_no_energy() -> None:
    seconds = np.arange(1, 86_401)
    energy_uj = np.cumsum(np.where(seconds % 7 == 0, 9_000_000, 4_000_000))
    lines = measured(list(seconds), list(energy_uj), [4_000] * 86_400, [(0, 86_400)])
    assert lines is not None
    assert 600 <= len(lines.power_mw) <= 1200
    assert lines.energy_j == pytest.approx(energy_uj[-1] / 1e6)


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
