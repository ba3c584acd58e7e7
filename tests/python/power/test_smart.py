"""The SMART log of an NVMe drive: each field where the specification has it, and the command that asks for
it.
"""

from __future__ import annotations

import ctypes
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from builders import phase, write_recording
from power.test_power_of_phases import MONOTONIC_NS, source, write_live
from power.trees import sysfs_of

from testdrive.errors import UsageError
from testdrive.metrics import summarize
from testdrive.power import Sampler, found, nvme, parse
from testdrive.power.choice import open_meter
from testdrive.power.smart import decode
from testdrive.recording import Recording
from testdrive.report import write_report

S = 1_000_000_000


def page_of(**changes: bytes) -> bytes:
    """A log with a value of its own in every field, as the figure of the specification lays them out."""
    page = bytearray(512)
    struct.pack_into("<BHBBBB", page, 0, 0x04, 273 + 47, 98, 10, 7, 0)
    counters = (1000, 2000, 3000, 4000, 50, 60, 70, 80, 90, 100)
    for number, value in enumerate(counters):
        page[32 + 16 * number : 48 + 16 * number] = value.to_bytes(16, "little")
    struct.pack_into("<II8HIIII", page, 192, 11, 12, 273 + 51, 0, 273 - 5, 0, 0, 0, 0, 0, 21, 22, 23, 24)
    for at, content in changes.items():
        place = int(at.removeprefix("at_"))
        page[place : place + len(content)] = content
    return bytes(page)


def test_every_field_is_read_where_the_specification_has_it() -> None:
    assert decode(page_of()) == {
        "critical_warning_flags": 4,
        "available_spare_percent": 98,
        "available_spare_threshold_percent": 10,
        "percentage_used_percent": 7,
        "data_units_read": 1000,
        "data_units_written": 2000,
        "host_read_commands": 3000,
        "host_write_commands": 4000,
        "controller_busy_time_min": 50,
        "power_cycles": 60,
        "power_on_hours": 70,
        "unsafe_shutdowns": 80,
        "media_errors": 90,
        "error_log_entries": 100,
        "warning_temperature_time_min": 11,
        "critical_temperature_time_min": 12,
        "thermal_management_1_transitions": 21,
        "thermal_management_2_transitions": 22,
        "thermal_management_1_time_s": 23,
        "thermal_management_2_time_s": 24,
        "temperature_mc": 47_000,
        "sensor_1_temperature_mc": 51_000,
        "sensor_3_temperature_mc": -5_000,
    }


def test_counters_of_sixteen_bytes_are_taken_whole() -> None:
    huge = 2**127 + 1
    assert decode(page_of(at_48=huge.to_bytes(16, "little")))["data_units_written"] == huge


@pytest.mark.parametrize(("scale", "power_uw"), [(0, None), (1, 1234 * 100), (2, 1234 * 10_000), (3, None)])
def test_the_drives_own_power_has_its_scale(scale: int, power_uw: int | None) -> None:
    word = 1234 | scale << 16 | 1 << 20
    assert decode(page_of(at_240=struct.pack("<I", word))).get("power_uw") == power_uw


def test_a_log_of_another_length_is_none() -> None:
    with pytest.raises(ValueError, match="512 bytes, not 511"):
        decode(page_of()[:-1])


def test_the_command_is_laid_out_as_the_kernel_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def ioctl(descriptor: int, request: int, command: nvme.AdminCommand) -> int:
        seen.append((descriptor, request, bytes(command)))
        ctypes.memmove(command.addr, page_of(), 512)
        return 0

    monkeypatch.setattr("fcntl.ioctl", ioctl)
    assert nvme.get_log_page(5, 0x02, 512) == page_of()
    descriptor, request, command = seen[0]
    # NVME_IOCTL_ADMIN_CMD of linux/nvme_ioctl.h, and the structure of 72 bytes that its number holds.
    assert (descriptor, request, len(command)) == (5, 0xC048_4E41, 72)
    assert command[0] == 0x02
    assert struct.unpack_from("<I", command, 4)[0] == 0xFFFF_FFFF
    assert struct.unpack_from("<I", command, 36)[0] == 512
    # 128 dwords, less one, of log 02h.
    assert struct.unpack_from("<II", command, 40) == (0x007F_0002, 0)


def test_a_command_that_the_drive_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.ioctl", lambda *_: 0x4109)
    with pytest.raises(OSError, match="refused log page 0x02 with status 0x4109"):
        nvme.get_log_page(5, 0x02, 512)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("/dev/nvme0n1", "/dev/nvme0"),
        ("/dev/nvme12n3p1", "/dev/nvme12"),
        ("/dev/nvme3c1n1", "/dev/nvme3"),
        ("/dev/nvme7?engine=sync", "/dev/nvme7"),
        ("/dev/ng3n1?trim_ranges=256", "/dev/nvme3"),
        ("/dev/sda", None),
        ("file:/tmp/nvme", None),
    ],
)
def test_the_controller_of_a_namespace_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, device: str | None
) -> None:
    monkeypatch.setenv("TESTDRIVE_SYSFS", str(tmp_path))
    assert nvme.controller_of(text) == (None if device is None else Path(device))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nvme:/dev/sda", "is no NVMe drive"),
        ("nvme", "is no NVMe drive"),
        ("nvme:/dev/nvme99", "/dev/nvme99 cannot be opened: No such file"),
        ("nvme:/dev/nvme99?of=host", "leave of=host out"),
    ],
)
def test_what_is_no_drive_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_meter(parse([text])[0])


def test_the_hosts_drives_are_listed_with_what_stands_against_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sysfs_of(tmp_path, monkeypatch, {"nvme/nvme98/model": "X", "nvme/nvme105/model": "Y"})
    assert [(each.address, each.of) for each in found()] == [
        ("nvme:/dev/nvme98", "drive"),
        ("nvme:/dev/nvme105", "drive"),
    ]
    assert {each.obstacle is None for each in found()} == {False}


def test_a_log_that_was_not_asked_for_and_cannot_be_read_is_left_out() -> None:
    assert not Sampler([], parse(["nvme:/dev/nvme99"])).has_meters


def recording_with_logs(tmp_path: Path, *logs: bytes) -> Path:
    """A log at -1 s, then one each 2 s, beside a phase from 0 to 5 s."""
    rows = {"submit_ns": [5], "latency_ns": [1000], "length_bytes": [4096], "opcode": [0]}
    path = write_recording(tmp_path / "a.rec", rows, kind="run", phases=[phase(end_ns=5 * S)])
    meter = source(0, "nvme:/dev/nvme0n1", interval_ns=2 * S) | {
        "kind": "nvme",
        "title": "the SMART log of X",
    }
    lines = [
        {"monotonic_ns": MONOTONIC_NS + (2 * number - 1) * S, "source": 0, **decode(log)}
        for number, log in enumerate(logs)
    ]
    write_live(path, [meter, *lines])
    return path


def test_the_log_before_and_after_and_what_grew_are_on_the_page(tmp_path: Path) -> None:
    warm = page_of(at_1=struct.pack("<H", 273 + 71))
    after = page_of(
        at_1=struct.pack("<H", 273 + 60),
        at_48=(2500).to_bytes(16, "little"),
        at_224=struct.pack("<I", 30),
    )
    path = recording_with_logs(tmp_path, page_of(), warm, page_of(), after)
    with Recording.open(path) as recording:
        told = summarize(recording)["telemetry"]
    temperatures = [told[f"temperature_{when}_mc"] for when in ("before", "max", "after")]
    assert temperatures == [47_000, 71_000, 60_000]
    assert told["smart_before"]["data_units_written"] == 2000
    assert told["smart_growth"]["data_units_written"] == 500
    assert "percentage_used_percent" not in told["smart_growth"]
    assert told["throttled"] is True
    assert told["code"] is None
    page = write_report(path).read_text()
    for words in ("Temperature and SMART log", "71 °C", "256 MB", "Throttled lightly"):
        assert words in page
    # A log without power is no source of power.
    assert json.loads(json.dumps(summarize(Recording.open(path))))["power"]["code"] == "not_measured"


def smart_page(**counters: int) -> bytes:
    """A log in which only these thermal counters are not 0."""
    page = bytearray(page_of(at_192=bytes(8), at_216=bytes(16)))
    places = {"warning": 192, "critical": 196, "light": 216, "heavy": 220, "light_s": 224, "heavy_s": 228}
    for name, value in counters.items():
        struct.pack_into("<I", page, places[name], value)
    return bytes(page)


def thermal_warnings(path: Path) -> list[str]:
    with Recording.open(path) as recording:
        return [w["message"] for w in summarize(recording)["warnings"] if w["code"] == "thermal_limit"]


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({}, None),
        ({"warning": 2}, "2 min above the warning temperature"),
        ({"critical": 1, "warning": 2}, "1 min above the critical temperature, 2 min above the warning"),
        ({"light": 3}, "light throttling (begun 3 times)"),
        ({"heavy_s": 1500}, "heavy throttling (1,500 s)"),
        ({"heavy": 1, "heavy_s": 4, "light": 2}, "heavy throttling (begun 1 times, 4 s), light throttling"),
    ],
)
def test_what_the_log_counts_of_heat_while_measured_is_a_warning(
    tmp_path: Path, counters: dict[str, int], words: str | None
) -> None:
    # The phase is from 0 s to 5 s; readings at -1 s, 1 s, 3 s and 5 s.
    logs = [smart_page(), smart_page(), smart_page(**counters), smart_page(**counters)]
    found = thermal_warnings(recording_with_logs(tmp_path, *logs))
    assert len(found) == (words is not None)
    assert all(words in message for message in found if words)


def test_heat_before_and_after_what_is_measured_is_no_warning(tmp_path: Path) -> None:
    # Readings at -1 s, 1 s, ... 9 s: what the first has is old, and the last two are after the end.
    hot = [smart_page(heavy=n) for n in (7, 7, 7, 7, 7, 9)]
    path = recording_with_logs(tmp_path, *hot)
    assert thermal_warnings(path) == []
    with Recording.open(path) as recording:
        assert summarize(recording)["telemetry"]["throttled"] is True


def test_heat_over_two_phases_is_counted_once_and_a_counter_that_was_set_back_did_not_grow(
    tmp_path: Path,
) -> None:
    rows = {"submit_ns": [5], "latency_ns": [1000], "length_bytes": [4096], "opcode": [0]}
    spans = [phase(0, end_ns=2 * S), phase(1, start_ns=2 * S, end_ns=5 * S)]
    path = write_recording(tmp_path / "a.rec", rows, kind="run", phases=spans)
    meter = source(0, "nvme:/dev/nvme0n1", interval_ns=2 * S) | {"kind": "nvme", "title": "log"}
    lines = [
        {"monotonic_ns": MONOTONIC_NS + (2 * number - 1) * S, "source": 0, **decode(smart_page(light=light))}
        for number, light in enumerate([4, 4, 7, 0])
    ]
    write_live(path, [meter, *lines])
    (found,) = thermal_warnings(path)
    assert "light throttling (begun 3 times)" in found


def test_a_drive_that_tells_its_own_power_is_a_source_of_it(tmp_path: Path) -> None:
    drawing = page_of(at_240=struct.pack("<I", 650 | 2 << 16))
    with Recording.open(recording_with_logs(tmp_path, *[drawing] * 4)) as recording:
        power = summarize(recording)["power"]
    assert (power["mean_w"], power["source"]["name"]) == (pytest.approx(6.5), "nvme:/dev/nvme0n1")


def test_without_a_log_nothing_is_told(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "a.rec", {"submit_ns": [5]}, kind="run")
    with Recording.open(path) as recording:
        told = summarize(recording)["telemetry"]
    assert told.pop("code") == "not_measured"
    assert set(told.values()) == {None}
