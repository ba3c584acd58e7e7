"""The sampler beside a run: what it writes, and that no meter can end or hold up the run."""

from __future__ import annotations

import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import phase, write_recording
from power.trees import hwmon, sysfs_of

from testdrive.errors import RecordingError, UsageError
from testdrive.events import PhaseBegun, Progress, Started, Warned
from testdrive.power import Sampler, parse
from testdrive.power.clock import KEPT_EVERY_NS, ClockWatch, Mapping, Tie
from testdrive.power.files import FOLDER, LIVE_NAME
from testdrive.power.hwmon import HwmonMeter
from testdrive.recording import Recording

S = 1_000_000_000
FAST = "hwmon:ina226?rate=100"


def begun(start_ns: int = 0) -> PhaseBegun:
    return PhaseBegun(event="phase", index=0, name="a", kind="synthetic", start_ns=start_ns)


def progress(elapsed_ns: int) -> Progress:
    return Progress(event="progress", phase=0, elapsed_ns=elapsed_ns)


@pytest.fixture
def chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = sysfs_of(tmp_path, monkeypatch, hwmon(0, "ina226", power1_input=4_000_000))
    return root / "hwmon" / "hwmon0" / "power1_input"


@pytest.fixture
def second_reading(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a meter is read for the second time: what the first reading showed has its time then."""
    begun, read = threading.Event(), HwmonMeter.read
    readings = itertools.count(1)

    def noted(meter: HwmonMeter) -> dict[str, int]:
        if next(readings) == 2:
            begun.set()
        return read(meter)

    monkeypatch.setattr(HwmonMeter, "read", noted)
    return begun


def recording_of(tmp_path: Path, end_ns: int = 100 * S) -> Path:
    rows = {"submit_ns": [5], "latency_ns": [1000], "length_bytes": [4096], "opcode": [0]}
    return write_recording(tmp_path / "a.rec", rows, kind="run", phases=[phase(end_ns=end_ns)])


def lines_until(path: Path, wanted: int) -> list[dict[str, Any]]:
    """The whole lines of the file, once there are so many."""
    deadline_s = time.monotonic() + 120
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= wanted:
            return [json.loads(line) for line in lines[:wanted]]
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_each_reading_is_in_the_file_while_the_run_goes_on(
    chip: Path, second_reading: threading.Event, tmp_path: Path
) -> None:
    path = recording_of(tmp_path)
    with Sampler(parse([FAST])) as sampler:
        assert second_reading.wait(120)
        assert not (path / FOLDER).exists(), "nothing is written before the recording exists"
        sampler.follow(Started(event="started", output=path))
        sampler.follow(begun(7))
        lines = lines_until(path / FOLDER / LIVE_NAME, 12)
    assert lines[0] == {"format": "testdrive-meters", "version": 1}
    assert (lines[1]["name"], lines[1]["of"], lines[1]["interval_ns"]) == ("hwmon:ina226", "drive", S // 100)
    samples = [line for line in lines if "power_uw" in line]
    assert {line["power_uw"] for line in samples} == {4_000_000}
    with Recording.open(path) as recording:
        (metered,) = recording.meters()
        assert (np.diff(metered.time_ns) > 0).all()
        # What was read before the recording's time zero has a time before it.
        assert metered.time_ns[0] < 0
        assert recording.manifest.warnings == []


def test_a_meter_that_fails_in_the_middle_is_a_warning_and_is_read_again(chip: Path, tmp_path: Path) -> None:
    path = recording_of(tmp_path)
    told: list[Warned] = []
    with Sampler(parse([FAST])) as sampler:
        sampler.follow(Started(event="started", output=path))
        sampler.follow(begun())
        lines_until(path / FOLDER / LIVE_NAME, 6)
        chip.rename(chip.with_name("gone"))
        deadline_s = time.monotonic() + 120
        while not told:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
            told += sampler.follow(progress(S))
        before = len((path / FOLDER / LIVE_NAME).read_text().splitlines())
        chip.with_name("gone").rename(chip)
        lines_until(path / FOLDER / LIVE_NAME, before + 1)
        told += sampler.follow(progress(2 * S))
    assert [warning.code for warning in told] == ["meter_failed"]
    assert "the meter hwmon:ina226 could not be read" in told[0].message
    with Recording.open(path) as recording:
        assert [warning.code for warning in recording.manifest.warnings] == ["meter_failed"]


def test_a_meter_that_hangs_does_not_hold_up_the_end(chip: Path, tmp_path: Path, monkeypatch: Any) -> None:
    path = recording_of(tmp_path)
    released = threading.Event()
    monkeypatch.setattr("testdrive.power.sampler._END_PATIENCE_S", 0.05)
    monkeypatch.setattr("testdrive.power.hwmon.HwmonMeter.read", lambda _: released.wait(60) and {})
    monkeypatch.setattr("testdrive.power.sampler.open_meter", _unread)
    with Sampler(parse([FAST])) as sampler:
        sampler.follow(Started(event="started", output=path))
    released.set()
    assert ["does not answer" in warning.message for warning in sampler.news()] == [True]


def test_a_meter_is_told_of_though_its_name_begins_that_of_another(
    chip: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    path = recording_of(tmp_path)
    released = threading.Event()
    monkeypatch.setattr("testdrive.power.sampler._END_PATIENCE_S", 0.05)
    monkeypatch.setattr("testdrive.power.hwmon.HwmonMeter.read", lambda _: released.wait(60) and {})
    monkeypatch.setattr("testdrive.power.sampler.open_meter", _unread)
    with Sampler(parse(["hwmon:ina226:power1", "hwmon:ina226"])) as sampler:
        sampler.follow(Started(event="started", output=path))
    released.set()
    assert len(sampler.news()) == 2


def _unread(choice: Any) -> Any:
    from testdrive.power import hwmon as module

    return module.HwmonMeter(next(module.channels()), choice)


def test_a_meter_that_cannot_be_opened_leaves_nothing_behind(chip: Path) -> None:
    with pytest.raises(UsageError, match="no chip 'other'"):
        Sampler(parse([FAST, "hwmon:other"]))


def test_a_disk_that_is_full_ends_the_writing_and_not_the_run(chip: Path, tmp_path: Path) -> None:
    path = recording_of(tmp_path)
    (path / FOLDER).write_text("a file where the folder should be")
    with Sampler(parse([FAST])) as sampler:
        told = sampler.follow(Started(event="started", output=path)) + sampler.follow(begun())
    assert ["cannot be written" in warning.message for warning in told] == [True]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: [*lines[:2], "x\n", *lines[3:]], "damaged in line 3"),
        (lambda lines: [*lines[:2], "[]\n", *lines[3:]], "is no JSON object"),
        (lambda lines: [*lines[:2], "{}\n", *lines[3:]], "damaged in line 3: 'source'"),
        (lambda lines: ['{"format":"other"}\n', *lines[1:]], "is not of meters"),
        (lambda lines: [lines[0].replace("1", "9"), *lines[1:]], "version 9, newer than the 1"),
        (lambda lines: [line.replace('"power_uw":4', '"power_uw":"four"') for line in lines], "damaged"),
    ],
)
def test_damage_is_told_and_a_torn_last_line_is_none(
    chip: Path, tmp_path: Path, damage: Any, message: str
) -> None:
    path = recording_of(tmp_path)
    with Sampler(parse([FAST])) as sampler:
        sampler.follow(Started(event="started", output=path))
        sampler.follow(begun())
    file = path / FOLDER / LIVE_NAME
    lines = file.read_text().splitlines(keepends=True)
    with Recording.open(path) as recording:
        whole = len(recording.meters()[0].time_ns)
    file.write_text("".join(lines) + '{"monotonic_ns":12')
    with Recording.open(path) as recording:
        assert len(recording.meters()[0].time_ns) == whole
    file.write_text("".join(damage(lines)))
    with Recording.open(path) as recording, pytest.raises(RecordingError, match=message):
        recording.meters()


def test_of_many_words_of_the_clock_the_least_late_is_kept() -> None:
    watch = ClockWatch()
    first = watch.observe(begun(5 * S), 105 * S + 40_000_000, 0)
    assert first == Tie(5 * S, 105 * S + 40_000_000, 0)
    assert watch.observe(progress(S), 106 * S + 3_000_000, 0) is None
    assert watch.observe(progress(2 * S), 107 * S + 9_000_000, 0) is None
    last = watch.last()
    assert last is not None
    assert last.apart_ns == 100 * S + 3_000_000
    assert watch.last() is None
    # The first word was late; the later one corrects it.
    mapping = Mapping.of([first, last])
    assert mapping is not None
    times = mapping.to_recording_ns(np.array([100 * S, 106 * S], np.int64))
    assert list(times) == [-3_000_000, 6 * S - 3_000_000]


def test_clocks_that_drift_apart_are_followed() -> None:
    # 50 parts in a million, over an hour: 0.18 s at its end.
    watch, ties = ClockWatch(), []
    for second in range(3601):
        event = begun() if not second else progress(second * S)
        tie = watch.observe(event, 10**15 + second * S + second * 50_000, 0)
        ties += [tie] if tie else []
    mapping = Mapping.of([*ties, *filter(None, [watch.last()])])
    assert mapping is not None
    assert len(mapping.at_ns) <= 3601 * S // KEPT_EVERY_NS + 2
    at = np.array([10**15 + second * (S + 50_000) for second in (0, 1800, 3600)], np.int64)
    np.testing.assert_allclose(mapping.to_recording_ns(at), np.array([0, 1800, 3600]) * S, atol=10_000_000)


def test_a_captures_clock_is_the_kernels_less_whole_seconds(chip: Path, tmp_path: Path) -> None:
    shift_ns = (time.monotonic_ns() // S - 3) * S
    clock = {"source": "clock_monotonic", "shift_ns": shift_ns}
    rows = {"submit_ns": [5], "latency_ns": [1000], "length_bytes": [4096], "opcode": [0]}
    path = write_recording(tmp_path / "a.rec", rows, kind="capture", clock=clock)
    before_ns = time.monotonic_ns()
    with Sampler(parse([FAST])) as sampler:
        sampler.follow(Started(event="started", output=path))
    after_ns = time.monotonic_ns()
    with Recording.open(path) as recording:
        (metered,) = recording.meters()
    assert metered.clock.endswith("within 1 ms")
    assert before_ns - shift_ns <= metered.time_ns[0] <= metered.time_ns[-1] <= after_ns - shift_ns


def test_a_run_without_a_word_of_its_clock_has_no_times(chip: Path, tmp_path: Path) -> None:
    path = recording_of(tmp_path)
    with Sampler(parse([FAST])) as sampler:
        sampler.follow(Started(event="started", output=path))
    with Recording.open(path) as recording:
        assert recording.meters() == []
    assert Mapping.of([]) is None
