"""The figures of power: each phase's, what a watt bought, idle power, and which source they are from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import phase, write_recording
from power.trees import hwmon, rapl, sysfs_of
from support import run_testdrive, run_without_images

from testdrive.metrics import summarize
from testdrive.power.files import FOLDER, FORMAT, LIVE_NAME
from testdrive.recording import Recording
from testdrive.report.power import power_lines

S = 1_000_000_000
MONOTONIC_NS = 77 * S
PLAN = """
version = 1
name = "p"
title = "t"
question = "q"
figures = ["latency"]
[[phases]]
kind = "synthetic"
duration_ns = 1_500_000_000
rate_limit_iops = 2000
"""


def source(number: int, name: str, of: str = "drive", interval_ns: int = S // 10) -> dict[str, Any]:
    return {
        "source": number,
        "name": name,
        "kind": "hwmon",
        "of": of,
        "title": f"the meter {name}",
        "interval_ns": interval_ns,
        "shape": "instant",
        "uncertainty": "1 %",
        "details": {},
    }


def write_live(recording: Path, lines: list[dict[str, Any]]) -> None:
    """A file of meters whose clock was 77 s at the recording's time zero."""
    tie = {"recording_ns": 0, "monotonic_ns": MONOTONIC_NS, "unix_ns": 1_000_000 * S}
    (recording / FOLDER).mkdir()
    head = {"format": FORMAT, "version": 1}
    (recording / FOLDER / LIVE_NAME).write_text(
        "".join(json.dumps(line) + "\n" for line in (head, tie, *lines))
    )


def samples(number: int, first_s: float, last_s: float, watts: Any) -> list[dict[str, Any]]:
    """Ten readings in a second; ``watts`` is a function of the time."""
    times_s = np.arange(round(first_s * 10), round(last_s * 10) + 1) / 10
    return [
        {"monotonic_ns": MONOTONIC_NS + round(at * S), "source": number, "power_uw": round(watts(at) * 1e6)}
        for at in times_s
    ]


def two_phases(tmp_path: Path, **manifest: Any) -> Path:
    """2 s of preparation, then 4 s in which 8 reads of 1 MB completed and one failed."""
    rows = {
        "submit_ns": np.array([S, *range(2 * S, 6 * S, S // 2), 5 * S]),
        "latency_ns": 1000,
        "length_bytes": 1_000_000,
        "opcode": 0,
        "status": [0] * 9 + [5],
        "phase": [0] + [1] * 9,
    }
    phases = [
        phase(0, kind="prepare", measured=False, end_ns=2 * S),
        phase(1, kind="synthetic", start_ns=2 * S, end_ns=6 * S),
    ]
    return write_recording(tmp_path / "a.rec", rows, kind="run", phases=phases, **manifest)


def power_in(path: Path) -> dict[str, Any]:
    with Recording.open(path) as recording:
        found: dict[str, Any] = summarize(recording)["power"]
        return found


def test_each_phase_has_its_mean_and_what_that_bought(tmp_path: Path) -> None:
    path = two_phases(tmp_path)
    watts = lambda at: 2.0 if at < 0 else 3.0 if at < 2 else 5.0  # noqa: E731
    write_live(path, [source(0, "ina226"), *samples(0, -3, 7, watts)])
    power = power_in(path)
    assert power["mean_w"] == pytest.approx(5.0)
    assert power["energy_j"] == pytest.approx(20.0)
    assert power["throughput_bytes_per_s_per_w"] == pytest.approx(8e6 / 4 / 5)
    assert power["iops_per_w"] == pytest.approx(2 / 5)
    assert power["energy_per_io_uj"] == pytest.approx(20e6 / 8)
    assert power["covered_share"] == 1.0
    # The last tenth of a second before the run rises to the preparation's level.
    assert power["idle_w"] == pytest.approx((2.0 * 2.9 + 2.5 * 0.1) / 3)
    assert power["code"] is None
    assert power["source"]["uncertainty"] == "1 %"
    assert "tied to the recording's within" in power["source"]["clock"]
    prepared, measured = power["phases"]
    assert prepared["mean_w"] == pytest.approx((3.0 * 1.9 + 4.0 * 0.1) / 2)
    assert measured["energy_per_io_uj"] == power["energy_per_io_uj"]


def test_a_phase_of_which_too_little_was_measured_has_no_figure(tmp_path: Path) -> None:
    path = two_phases(tmp_path)
    write_live(path, [source(0, "ina226"), *samples(0, 0, 5.5, lambda _: 4.0)])
    power = power_in(path)
    assert (power["mean_w"], power["code"]) == (None, "partly_measured")
    assert power["covered_share"] == pytest.approx(3.5 / 4)
    assert power["energy_per_io_uj"] is None
    assert power["idle_w"] is None
    assert power["phases"][0]["mean_w"] == pytest.approx(4.0)


def test_a_phase_between_two_readings_has_no_figure(tmp_path: Path) -> None:
    path = two_phases(tmp_path)
    slow = [
        sample for sample in samples(0, -9, 9, lambda _: 4.0) if sample["monotonic_ns"] % (9 * S) == 5 * S
    ]
    assert len(slow) == 3
    write_live(path, [source(0, "slow", interval_ns=9 * S), *slow])
    power = power_in(path)
    assert (power["mean_w"], power["code"], power["covered_share"]) == (None, "partly_measured", 1.0)


def test_where_nothing_measured_it_nothing_is_said(tmp_path: Path) -> None:
    power = power_in(two_phases(tmp_path))
    assert (power["mean_w"], power["source"], power["code"]) == (None, None, "not_measured")
    assert power["covered_share"] == 0.0
    assert power["phases"] is None


def test_the_host_is_context_and_never_the_drive(tmp_path: Path) -> None:
    path = two_phases(tmp_path)
    write_live(path, [source(0, "rapl", of="host"), *samples(0, -3, 7, lambda _: 90.0)])
    power = power_in(path)
    assert (power["mean_w"], power["code"]) == (None, "not_measured")
    assert power["host"][0]["mean_w"] == pytest.approx(90.0)
    assert power["host"][0]["idle_w"] == pytest.approx(90.0)


def test_the_first_meter_that_was_named_is_the_drives(tmp_path: Path) -> None:
    path = two_phases(tmp_path)
    lines = [source(0, "rapl", of="host"), source(1, "first"), source(2, "second")]
    for number in range(3):
        lines += samples(number, 0, 7, lambda _, number=number: number)
    write_live(path, lines)
    power = power_in(path)
    assert (power["source"]["name"], power["mean_w"]) == ("first", pytest.approx(1.0))


def counted(index: int, before: int, after: int, **changes: Any) -> dict[str, Any]:
    counters = {"before": {"energy_uj": before}, "after": {"energy_uj": after}}
    return phase(index, **changes) | {"drive_counters": counters}


def test_a_drive_that_counts_its_energy_itself_is_a_source(tmp_path: Path) -> None:
    rows = {"submit_ns": [3 * S], "latency_ns": 1000, "length_bytes": 4096, "opcode": 0, "phase": 1}
    phases = [
        counted(0, 0, 1_000_000, measured=False, end_ns=2 * S),
        counted(1, 1_000_000, 9_000_000, start_ns=2 * S, end_ns=6 * S),
    ]
    path = write_recording(tmp_path / "a.rec", rows, kind="run", phases=phases)
    power = power_in(path)
    assert (power["mean_w"], power["energy_j"], power["covered_share"]) == (2.0, 8.0, 1.0)
    assert power["source"]["name"] == "ledger"
    # A meter beside it is nearer to the truth than what the drive says of itself.
    write_live(path, [source(0, "ina226"), *samples(0, 0, 7, lambda _: 3.0)])
    assert power_in(path)["mean_w"] == pytest.approx(3.0)


@pytest.mark.parametrize("keep", ["rows", "slowest"])
def test_trims_are_ios_but_move_no_bytes(keep: str, tmp_path: Path) -> None:
    plan = PLAN.replace(
        'kind = "synthetic"', 'kind = "prepare"\nmethod = "purge"\n[[phases]]\nkind = "synthetic"'
    )
    (tmp_path / "p.toml").write_text(plan)
    path = tmp_path / "a.rec"
    ran = run_testdrive(
        "run", tmp_path / "p.toml", "--drive", "sim:sata?capacity=1GiB", "--keep", keep, "-o", path
    )
    assert ran.returncode == 0, ran.stderr
    purge, measured = power_in(path)["phases"]
    assert purge["iops_per_w"] > 0
    assert purge["throughput_bytes_per_s_per_w"] is None
    assert measured["throughput_bytes_per_s_per_w"] == pytest.approx(measured["iops_per_w"] * 4096)


def test_what_is_drawn_over_time_has_gaps_where_nobody_measured(tmp_path: Path) -> None:
    path = two_phases(tmp_path)
    readings = samples(0, 0, 3, lambda _: 4.0) + samples(0, 5, 7, lambda _: 6.0)
    write_live(path, [source(0, "ina226"), *readings])
    with Recording.open(path) as recording:
        lines = power_lines(recording)
    assert lines is not None
    np.testing.assert_allclose(lines.power_mw, [4000, np.nan, np.nan, 6000])
    np.testing.assert_array_equal(lines.start_ns, np.arange(4) * S)
    assert lines.has_gaps
    assert lines.mean_w == pytest.approx(5.0)


def test_a_run_beside_a_meter_has_its_figures_on_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = hwmon(0, "ina226", power1_input=4_000_000) | rapl(0, 5, 1_000_000)
    sysfs_of(tmp_path, monkeypatch, files)
    plan = tmp_path / "p.toml"
    # Even where the host stands still for 2 s, two readings are within it and none 5 intervals apart.
    plan.write_text(PLAN.replace("1_500_000_000", "3_000_000_000"))
    drive = f"file:{tmp_path}/drive.img?size=16MiB"
    made = tmp_path / "a.rec"
    meters = ("--power", "hwmon:ina226?rate=2", "--power", "rapl?rate=2", "--power-idle", "2s")
    assert run_without_images("run", plan, "--drive", drive, "-o", made, *meters) == 0
    power = json.loads((made / "summary.json").read_text())["power"]
    assert power["mean_w"] == pytest.approx(4.0)
    assert power["idle_w"] == pytest.approx(4.0)
    assert power["host"][0]["mean_w"] == pytest.approx(0.0)
    assert power["covered_share"] > 0.9
    issued = json.loads((made / "manifest.json").read_text())["counts"]
    assert power["energy_per_io_uj"] == pytest.approx(power["energy_j"] * 1e6 / issued["ios"])
    assert run_without_images("report", made) == 0
    page = (made / "report.html").read_text()
    assert "4.00 W" in page
    assert "by ina226 power1; uncertainty: not stated by the meter" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--power", "hwmon:none"), "has no channel with power or energy"),
        (("--power", "hwmon:x?drive=null:"), "is no drive of this run"),
    ],
)
def test_a_meter_that_is_not_there_is_an_error_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    sysfs_of(tmp_path, monkeypatch, {})
    made, image = tmp_path / "a.rec", tmp_path / "drive.img"
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN)
    done = run_testdrive("run", plan, "--drive", f"file:{image}?size=16MiB", "-o", made, *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not made.exists()
    assert not image.exists()


def test_no_meter_is_read_beside_virtual_time_or_for_a_drive_that_nobody_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sysfs_of(tmp_path, monkeypatch, hwmon(0, "ina226", power1_input=4_000_000))
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN)
    done = run_testdrive("run", plan, "--drive", "sim:sata", "--power", "hwmon:ina226")
    assert (done.returncode, "virtual time" in done.stderr) == (2, True)
    two = [f"file:{tmp_path}/{name}?size=16MiB" for name in "ab"]
    each = ("--drive", two[0], "--drive", two[1], "--power", "hwmon:ina226", "-o", tmp_path / "out")
    done = run_testdrive("run", plan, *each)
    assert (done.returncode, "add ?drive=URI" in done.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


def test_the_meters_of_a_host_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sysfs_of(tmp_path, monkeypatch, hwmon(0, "ina226", power1_input=4_000_000) | rapl(0, 1, 2))
    assert [each["address"] for each in json.loads(run_testdrive("power", "list", "--json").stdout)] == [
        "hwmon:ina226:power1",
        "rapl",
    ]
    assert "hwmon:ina226:power1" in run_testdrive("power", "list").stdout
    sysfs_of(tmp_path / "none", monkeypatch, {})
    assert "No meter was found" in run_testdrive("power", "list").stdout
