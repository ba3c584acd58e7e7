"""What a bench meter logged: columns, units, times, and how it gets onto the recording's clock."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import phase, write_recording
from power.test_power_of_phases import PLAN, power_in, write_live
from support import run_testdrive

from testdrive.cli import main
from testdrive.errors import UsageError
from testdrive.power import Attachment, attach, parse
from testdrive.power.attaching import attachment_of
from testdrive.power.csv_text import Layout, Log, read_log
from testdrive.recording import Recording

S = 1_000_000_000
CREATED = "2026-05-01T10:00:00.250Z"
CREATED_S = 1_777_629_600.25


def log_of(tmp_path: Path, text: str, **layout: Any) -> Log:
    file = tmp_path / "meter.csv"
    file.write_text(text)
    return read_log(file, Layout(**layout))


def recording_of(tmp_path: Path, **manifest: Any) -> Path:
    """Ten reads of 1 MB in 10 s."""
    rows = {"submit_ns": np.arange(10) * S, "latency_ns": 1000, "length_bytes": 1_000_000, "opcode": 0}
    settings = {"kind": "run", "created": CREATED, "phases": [phase(end_ns=10 * S)]} | manifest
    return write_recording(tmp_path / "a.rec", rows, **settings)


def constant_power(tmp_path: Path, times: list[str], watts: float = 5.0) -> Path:
    file = tmp_path / "meter.csv"
    file.write_text("time,power\n" + "".join(f"{at},{watts}\n" for at in times))
    return file


@pytest.mark.parametrize(
    ("text", "layout", "power_uw"),
    [
        ("t,Power (mW)\n0,1500\n1,2500\n", {"power": ("Power (mW)",)}, [1.5e6, 2.5e6]),
        ("t,power_W\n0,1.5\n1,2.5\n", {"power": ("power_W",)}, [1.5e6, 2.5e6]),
        ("t,flow\n0,1.5\n1,2.5\n", {"power": ("flow",)}, [1.5e6, 2.5e6]),
        ("t,flow\n0,1.5\n1,2.5\n", {"power": ("flow",), "power_unit": "uW"}, [1.5, 2.5]),
        ("0,9,1.5\n1,9,2.5\n", {"power": ("2",)}, [1.5e6, 2.5e6]),
        ("t,12V,3V3\n0,1,0.5\n1,2,0.5\n", {"power": ("12V", "3V3")}, [1.5e6, 2.5e6]),
        ("t,a mW,b W\n0,500,1\n1,500,2\n", {"power": ("a mW", "b W")}, [1.5e6, 2.5e6]),
        (
            "t,v1,i1,v2,i2\n0,12,0.1,3,0.1\n1,12,0.2,1,0.1\n",
            {"voltage": ("v1", "v2"), "current": ("i1", "i2")},
            [1.5e6, 2.5e6],
        ),
        ("t;P [W]\n0;1,5\n1;2,5\n", {"power": ("P [W]",)}, [1.5e6, 2.5e6]),
        ("t\tP\n0\t1.5\n1\t2.5\n", {"power": ("P",)}, [1.5e6, 2.5e6]),
    ],
)
def test_columns_and_units_are_what_the_header_and_the_options_say(
    tmp_path: Path, text: str, layout: dict[str, Any], power_uw: list[float]
) -> None:
    log = log_of(tmp_path, text, **layout)
    np.testing.assert_allclose(log.power_uw, power_uw)
    np.testing.assert_array_equal(log.time_ns, [0, S])
    assert not log.absolute


def test_what_the_meter_wrote_before_its_header_and_between_its_readings_is_passed_over(
    tmp_path: Path,
) -> None:
    text = "Model,X100\nRange,10 A\n\n\ufefft,P\n0,1\noverload,\n1e30,1\n1,nan\n2,3\n"
    log = log_of(tmp_path, text.replace("\ufeff", ""), time="t", power=("P",))
    np.testing.assert_allclose(log.power_uw, [1e6, 3e6])
    assert log.passed_over == 3


@pytest.mark.parametrize(
    ("stamp", "layout", "expected_ns"),
    [
        ("2026-05-01T10:00:00.5Z", {}, 1_777_629_600_500_000_000),
        ("2026-05-01 12:00:00.500+02:00", {}, 1_777_629_600_500_000_000),
        ("2026/05/01 10:00:00.5", {"utc": True}, 1_777_629_600_500_000_000),
        ("1777629600.5", {}, 1_777_629_600_500_000_000),
        ("1777629600500", {"time_unit": "ms"}, 1_777_629_600_500_000_000),
        ("1777629600500000001", {"time_unit": "ns"}, 1_777_629_600_500_000_001),
    ],
)
def test_times_since_1970_are_known_by_their_size_or_their_form(
    tmp_path: Path, stamp: str, layout: dict[str, Any], expected_ns: int
) -> None:
    log = log_of(tmp_path, f"{stamp},1\n{stamp},1\n", power=("1",), **layout)
    assert log.absolute
    assert int(log.time_ns[0]) == expected_ns


def test_dates_without_a_zone_are_local_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        log = log_of(tmp_path, "2026-05-01 06:00:00,1\n2026-05-01 06:00:01,1\n", power=("1",))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert int(log.time_ns[0]) == 1_777_629_600 * S


@pytest.mark.parametrize(
    ("text", "layout", "message"),
    [
        ("t,P\n0,1\n1,1\n", {"power": ("Q",)}, "no header with 'Q'; it has 't', 'P'"),
        ("t,P\n0,1\n", {"power": ("P",)}, "has 1 readings in the columns 0, P"),
        ("t,P,P\n0,1,1\n1,1,1\n", {"power": ("P",)}, "several columns 'P'"),
        ("2026-05-01,1\n5,1\n", {"power": ("1",)}, "mixes dates with times"),
        ("", {"power": ("P",)}, "it has nothing"),
        ("t,P\n0,1\n1,1\n", {}, "name the column of power"),
        ("t,P\n0,1\n1,1\n", {"power": ("P",), "voltage": ("P",)}, "and not both"),
        ("t,P\n0,1\n1,1\n", {"voltage": ("P",)}, "as many columns of voltage"),
        ("t,P\n0,1\n1,1\n", {"power": ("P",), "time_unit": "h"}, "'h' is no unit of time"),
        ("t,P\n0,1\n1,1\n", {"power": ("P",), "power_unit": "kW"}, "'kW' is no unit of power"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, text: str, layout: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        log_of(tmp_path, text, **layout)


def test_a_log_in_wall_time_is_brought_to_the_time_at_which_the_run_began(tmp_path: Path) -> None:
    path = recording_of(tmp_path)
    # The meter's clock is 90 s ahead of the host's.
    times = [f"{CREATED_S + 90 + second:.2f}" for second in range(-5, 16)]
    log = Attachment(constant_power(tmp_path, times), Layout(power=("power",)), offset_ns=-90 * S)
    attached = attach(path, log)
    assert (attached.start_ns, attached.end_ns, attached.readings) == (-5 * S, 15 * S, 21)
    power = power_in(path)
    assert power["mean_w"] == pytest.approx(5.0)
    assert power["idle_w"] == pytest.approx(5.0)
    assert power["energy_per_io_uj"] == pytest.approx(5e6)
    assert power["source"]["name"] == "csv:meter.csv"
    assert power["source"]["clock"] == "the meter's wall clock, taken for this host's within some ms, -90 s"


def test_what_a_log_has_of_the_hours_before_the_run_is_not_the_drives_idle_power(tmp_path: Path) -> None:
    path = recording_of(tmp_path)
    file = tmp_path / "meter.csv"
    # Another test until 10 s before this one: the meter logged all day.
    readings = [(at, 30.0 if at < -10 else 5.0) for at in range(-3600, 16)]
    file.write_text("time,power\n" + "".join(f"{CREATED_S + at:.2f},{watts}\n" for at, watts in readings))
    attach(path, Attachment(file, Layout(power=("power",))))
    assert power_in(path)["idle_w"] == pytest.approx(5.0)


def test_where_a_sampler_watched_its_clock_is_taken(tmp_path: Path) -> None:
    path = recording_of(tmp_path, created="2026-05-01T11:00:00Z")
    write_live(path, [])
    # Its recording began at 1,000,000 s of the wall clock.
    times = [f"{1_000_000 + second}" for second in range(11)]
    log = Attachment(constant_power(tmp_path, [f"{at}000" for at in times]), Layout(power=("power",)))
    with pytest.raises(UsageError, match="nothing of it is of that time"):
        attach(path, log)
    dates = [f"1970-01-12T13:46:{40 + second:02}Z" for second in range(11)]
    attached = attach(path, Attachment(constant_power(tmp_path, dates), Layout(power=("power",))))
    assert (attached.start_ns, attached.end_ns) == (0, 10 * S)


def test_times_of_the_meters_own_begin_with_the_recording(tmp_path: Path) -> None:
    path = recording_of(tmp_path)
    file = constant_power(tmp_path, [str(second) for second in range(20)])
    attach(path, Attachment(file, Layout(power=("power",)), offset_ns=-3 * S))
    with Recording.open(path) as recording:
        (metered,) = recording.meters()
    assert (metered.time_ns[0], metered.attached) == (-3 * S, True)
    assert metered.clock == "the meter's own, begun with the recording, -3 s"


def test_a_log_that_is_attached_again_replaces_the_one_before_and_stands_before_other_meters(
    tmp_path: Path,
) -> None:
    path = recording_of(tmp_path)
    write_live(path, [])
    for watts in (5.0, 7.0):
        file = constant_power(tmp_path, [str(second) for second in range(11)], watts)
        attach(path, Attachment(file, Layout(power=("power",))))
    assert power_in(path)["mean_w"] == pytest.approx(7.0)
    assert len(list((path / "meters").glob("attached-*"))) == 1


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"clock": {"source": "virtual", "shift_ns": 0}}, "virtual time"),
        ({"kind": "import"}, "nobody wrote down when"),
        (
            {"created": "2026-05-02T10:00:00Z"},
            r"is from -86,39\d\.\d s to .* goes from 0 s to 10.0 s.*--offset",
        ),
    ],
)
def test_a_log_of_another_time_is_an_error(tmp_path: Path, manifest: dict[str, Any], message: str) -> None:
    path = recording_of(tmp_path, **manifest)
    file = constant_power(tmp_path, [f"{CREATED_S + second:.2f}" for second in range(11)])
    with pytest.raises(UsageError, match=message):
        attach(path, Attachment(file, Layout(power=("power",))))
    assert not (path / "meters").exists()


def test_the_command_says_what_each_phase_drew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording_of(tmp_path)
    file = constant_power(tmp_path, [f"{CREATED_S + second:.2f}" for second in range(-5, 16)])
    assert main(["power", "attach", str(path), str(file), "--power", "power"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "21 readings, from -5.0 s to 15.0 s",
        "5.00 W",
        "0.2",
        "5.00 J",
        "idle before the run: 5.00 W",
    ):
        assert words in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    assert json.loads((path / "summary.json").read_text())["power"]["mean_w"] == pytest.approx(5.0)
    assert main(["power", "attach", str(path), str(file), "--power", "power", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attached"]["readings"] == 21
    assert main(["power", "attach", str(path), str(file), "--power", "nix"]) == 2


def test_every_option_of_attaching_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    import re

    assert main(["power", "attach", "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    documentation = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
    assert not {option for option in options if option not in documentation}


def test_a_log_beside_a_run_is_brought_in_when_it_has_ended(tmp_path: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN)
    now_s = time.time()
    file = constant_power(tmp_path, [f"{now_s + tenth / 10:.1f}" for tenth in range(-100, 1200)])
    made = tmp_path / "a.rec"
    meter = f"csv:{file}?time=time&power=power"
    drive = f"file:{tmp_path}/drive.img?size=16MiB"
    done = run_testdrive(
        "run", plan, "--drive", drive, "-o", made, "--power", meter, "--power-idle", "1200ms"
    )
    assert done.returncode == 0, done.stderr
    power = json.loads((made / "summary.json").read_text())["power"]
    assert (power["mean_w"], power["idle_w"]) == (pytest.approx(5.0), pytest.approx(5.0))
    assert "this host's within" in power["source"]["clock"]


def test_a_log_that_is_not_there_when_the_run_has_ended_is_a_warning(tmp_path: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN)
    made = tmp_path / "a.rec"
    drive = f"file:{tmp_path}/drive.img?size=16MiB"
    meter = f"csv:{tmp_path}/none.csv?power=power"
    done = run_testdrive("run", plan, "--drive", drive, "-o", made, "--power", meter, "--power-idle", "0s")
    assert done.returncode == 0, done.stderr
    warnings = json.loads((made / "summary.json").read_text())["warnings"]
    # A busy machine has others beside it, of too few I/Os for one.
    (warning,) = [each for each in warnings if each["code"] == "meter_failed"]
    assert "none.csv cannot be read" in warning["message"]
    assert "testdrive power attach" in warning["remedy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("csv:/nowhere/at/all.csv?power=p", "the folder of the file is not there"),
        ("csv:m.csv", "name the column of power"),
        ("csv:m.csv?power=p&offset=soon", "'soon' is not a duration"),
        ("csv:m.csv?power=p&zone=mars", "zone=mars is neither"),
    ],
)
def test_a_log_that_makes_no_sense_is_an_error_at_once(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        attachment_of(parse([text])[0])
    rails = attachment_of(parse(["csv:m.csv?power=12V %2B x+3V3&offset=-1.5s"])[0])
    assert rails.offset_ns == -1_500_000_000
    assert rails.layout.power == ("12V + x", "3V3")
