"""Channels of the kernel's hardware monitoring, on trees laid out as its documentation has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from power.trees import hwmon, rapl, sysfs_of

from testdrive.errors import UsageError
from testdrive.power import found, parse
from testdrive.power.choice import open_meter
from testdrive.power.meter import Meter


def opened(text: str) -> Meter:
    return open_meter(parse([text])[0])


def test_a_chip_is_found_by_its_drivers_name_its_directory_and_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sysfs_of(tmp_path, monkeypatch, hwmon(3, "ina226", power1_input=4_250_000, temp1_input=41_500))
    chip = root / "hwmon" / "hwmon3"
    addresses = ("ina226", "hwmon3", str(chip), f"{chip}/power1_input", f"{chip}:power1", "ina226:power1")
    for address in addresses:
        meter = opened(f"hwmon:{address}")
        assert meter.read() == {"power_uw": 4_250_000, "chip_temperature_mc": 41_500}
        assert meter.source.of == "drive"


def test_average_power_and_a_counter_of_energy_are_channels_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = hwmon(
        0,
        "lab",
        power1_average=2_000_000,
        power1_average_interval=250,
        power1_accuracy="0.5%",
        power1_label="3V3",
        energy1_input=77,
        energy4_input=5,
        power2_input=1_000_000,
        power2_average=900_000,
    )
    sysfs_of(tmp_path, monkeypatch, files)
    first = opened("hwmon:lab")
    assert first.read() == {"energy_uj": 77, "power_uw": 2_000_000}
    assert first.source.title == "lab power1 (3V3)"
    assert first.source.uncertainty == "0.5 % by its driver; each value is the mean of 250 ms"
    assert opened("hwmon:lab:3V3").read() == first.read()
    assert opened("hwmon:lab:power2").read() == {"power_uw": 1_000_000}
    assert opened("hwmon:lab:energy4").read() == {"energy_uj": 5}
    assert [each.address for each in found()] == [
        "hwmon:lab:power1",
        "hwmon:lab:power2",
        "hwmon:lab:energy4",
    ]


def test_meters_of_the_host_are_never_taken_for_the_drives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = hwmon(0, "power_meter", power1_average=9) | hwmon(1, "nvme", temp1_input=3) | rapl(0, 1, 2)
    sysfs_of(tmp_path, monkeypatch, files)
    assert [(each.address, each.of) for each in found()] == [
        ("hwmon:power_meter:power1", "host"),
        ("rapl", "host"),
    ]
    assert opened("hwmon:power_meter").source.of == "host"
    assert opened("hwmon:power_meter?of=drive").source.of == "drive"
    assert opened("rapl").source.of == "host"
    with pytest.raises(UsageError, match="never a drive's"):
        opened("rapl?of=drive")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hwmon:ina999", r"no chip 'ina999' .* there are hwmon:ina226:power1 \(hwmon0\)"),
        ("hwmon", "names no chip"),
        ("hwmon:twin", "several chips have the name 'twin'; give one of hwmon1, hwmon2"),
        ("hwmon:ina226:power9", "no channel 'power9'; it has power1"),
        ("hwmon:torn", "cannot be read: .* holds 'N/A', which is no integer"),
        ("rapl:7", "no such counter .* it has intel-rapl:0"),
        ("magic:x", "'magic' is no kind of meter; use one of hwmon, quarch, nvme, rapl"),
        ("hwmon:ina226?speed=2", "'speed' is no key of hwmon"),
        ("hwmon:ina226?rate=0", "rate=0 is no number of readings"),
        ("hwmon:ina226?rate=1e9", "at most 100"),
        ("hwmon:ina226?rate=2&rate=3", "given twice"),
        ("hwmon:ina226?of=moon", "of=moon is neither"),
    ],
)
def test_what_cannot_be_opened_says_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    files = hwmon(0, "ina226", power1_input=1) | rapl(0, 1, 2) | hwmon(3, "torn", power1_input="N/A")
    twins = hwmon(1, "twin", power1_input=1) | hwmon(2, "twin", power1_input=1)
    sysfs_of(tmp_path, monkeypatch, files | twins)
    with pytest.raises(UsageError, match=message):
        opened(text)


def test_a_host_without_meters_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sysfs_of(tmp_path, monkeypatch, {})
    assert found() == []
    with pytest.raises(UsageError, match="has no channel with power or energy"):
        opened("hwmon:ina226")


def test_a_meter_is_given_once() -> None:
    with pytest.raises(UsageError, match="given twice"):
        parse(["hwmon:x", "hwmon:x?rate=5"])
    assert parse(["hwmon:x?rate=5"])[0].interval_ns == 200_000_000


def test_the_processors_counter_goes_on_where_it_wraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = rapl(0, 900, 1000) | rapl(1, 10, 1000) | rapl(2, 5, 1000, name="psys")
    root = sysfs_of(tmp_path, monkeypatch, files)
    meter = opened("rapl")
    assert meter.read() == {"energy_uj": 0}
    first, second = (root / f"powercap/intel-rapl:{number}/energy_uj" for number in (0, 1))
    first.write_text("950\n")
    second.write_text("30\n")
    assert meter.read() == {"energy_uj": 70}
    first.write_text("150\n")
    assert meter.read() == {"energy_uj": 70 + 200}
    second.write_text("20\n")
    assert meter.read() == {"energy_uj": 270 + 990}


def test_a_counter_that_was_set_back_without_telling_its_range_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sysfs_of(tmp_path, monkeypatch, {"powercap/intel-rapl:0/energy_uj": 900})
    meter = opened("rapl")
    (root / "powercap/intel-rapl:0/energy_uj").write_text("4\n")
    with pytest.raises(OSError, match="set back"):
        meter.read()
    (root / "powercap/intel-rapl:0/energy_uj").write_text("9\n")
    assert meter.read() == {"energy_uj": 5}
