"""The search of a speed: what it tells, what is the host's fault, and modelled drives with known answers."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives_without_runs import no_display, no_word
from support import run_testdrive
from workloads import write_source

from testdrive.errors import UsageError
from testdrive.plans import load
from testdrive.running import RunOptions, Target
from testdrive.search.bisection import Found, Trial
from testdrive.search.history import read_history
from testdrive.search.speeds import SpeedDrive

US = 1_000
SECOND_NS = 1_000_000_000
#: Reads of it take 10 us of the processor, one after the other, and nothing else that matters.
FIRMWARE_US = 10
SERIAL = (
    f"sim:sata?capacity=1GiB&initial_state=empty&firmware_read={FIRMWARE_US}us&firmware_read_page=0ns"
    "&read_pipeline=0ns&host_link=1000GB/s"
)
#: The busiest part comes second; each lasts 100 ms.
GAPS_US = (100, 40, 200)


def evenly_spaced(folder: Path, gaps_us: Sequence[int] = GAPS_US, *, write_share: float = 0.0) -> Path:
    """I/Os with the same gap between two of them, another in each tenth of a second."""
    length_us = 100_000
    times = [at * length_us + np.arange(0, length_us, gap) for at, gap in enumerate(gaps_us)]
    submit = np.concatenate(times) * US
    random = np.random.default_rng(3)
    columns = {
        "submit_ns": submit,
        "latency_ns": np.full(len(submit), 50 * US),
        "offset_bytes": random.integers(0, 1 << 17, len(submit)) * 8192,
        "length_bytes": np.full(len(submit), 4096),
        "opcode": (random.random(len(submit)) < write_share).astype(int),
    }
    return write_source(folder / "own.rec", columns)


def a_drive(source: Path, options: RunOptions | None = None, **given: Any) -> SpeedDrive:
    target = Target("sim:sata?capacity=1GiB", None, Path("nowhere"))
    values = {"rules": "max<1ms", "recording": str(source), "interval": "100ms", **given}
    return SpeedDrive(load("headroom"), values, target, options or RunOptions(), no_display, no_word)


def a_trial(speed: float, *, passes: bool, host_late_ns: int | None = None) -> Trial:
    first = {"start_ns": 100_000_000, "end_ns": 200_000_000, "what": "p99.9 1.4 ms"}
    figures = {
        "breaks_first": None if passes else first,
        "host_late_ns": host_late_ns,
        "limited_by": None if host_late_ns is None else "host",
        "left_out": {},
    }
    return Trial(speed, passes, reasons=[] if passes else ["too slow"], figures=figures)


def test_the_result_is_told_in_times_of_the_workload(tmp_path: Path) -> None:
    drive = a_drive(evenly_spaced(tmp_path), **{"at-least": "5"})
    found = Found(3.2, [a_trial(3.3, passes=False), a_trial(3.2, passes=True)], "bisection")
    # 1,000 I/Os, 2,500 and 500, in 0.2998 s; all in one second.
    assert drive.told(found) == (
        "takes 3.2 times this workload (max<1ms in every interval); 3.3 times does not hold: interval"
        " 0:00.100..0:00.200 p99.9 1.4 ms; that is 42,695 IOPS on average and 12,800 in its busiest second; 2"
        " trials; fail: it must be at least 5 times"
    )
    assert drive.fails(found)
    below = Found(0.6, [a_trial(0.61, passes=False), a_trial(0.6, passes=True)], "bisection")
    assert "does not take this workload as recorded, only 0.6 times its speed" in drive.told(below)
    nothing = Found(None, [a_trial(0.1, passes=False)], "bisection")
    assert "does not take this workload even at 0.1 times its speed" in drive.told(nothing)
    assert drive.fails(nothing)
    everything = Found(100.0, [a_trial(100.0, passes=True)], "bisection")
    assert "100 times is the most that may be tried (highest)" in drive.told(everything)
    host = Found(
        4.0, [a_trial(4.1, passes=False, host_late_ns=1_300_000), a_trial(4.0, passes=True)], "bisection"
    )
    assert "at 4.1 times this host sends late itself (p99 1.30 ms after the time)" in drive.told(host)
    assert drive.facts(host)["host_limited"]
    behind = dataclasses.replace(a_trial(4.1, passes=False), reasons=["this host cannot keep up"])
    behind.figures["limited_by"] = "host"
    late = Found(4.0, [behind, a_trial(4.0, passes=True)], "bisection")
    assert "at 4.1 times this host cannot keep up" in drive.told(late)
    lost = Found(None, [a_trial(0.1, passes=False, host_late_ns=1_300_000)], "bisection")
    assert drive.told(lost).startswith("nothing is known of it; even 0.1 times this workload is too much for")
    assert not drive.facts(found)["host_limited"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"rules": "p99.99<1s"}, "p99.99 needs 29,956 reads"),
        ({"lowest": "0"}, "lowest is 0"),
        ({"lowest": "3", "highest": "2"}, "give a lower lowest"),
        ({"lba": "skip"}, "not one of scale, wrap, scale-excess"),
        ({"at-least": "0"}, "at-least is 0"),
        ({"from": "3s", "to": "2s"}, "give a later end"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, given: dict[str, str], wanted: str) -> None:
    with pytest.raises(UsageError, match=re.escape(wanted)):
        a_drive(evenly_spaced(tmp_path), **given).scale()


def test_trials_keep_every_row(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--keep slowest"):
        a_drive(evenly_spaced(tmp_path), RunOptions(keep="slowest")).scale()


def test_speeds_begin_as_recorded_within_what_may_be_tried(tmp_path: Path) -> None:
    source = evenly_spaced(tmp_path)
    scale, start = a_drive(source).scale()
    assert (scale.lowest, scale.highest, start) == (0.1, 100, 1.0)
    assert a_drive(source, lowest="4").scale()[1] == 4.0


def test_nothing_is_written_where_the_recording_is_refused(tmp_path: Path) -> None:
    missing = ("headroom", "--set", "max<1s", "--set", f"recording={tmp_path / 'none.rec'}")
    done = run_testdrive("run", *missing, "--drive", SERIAL, "-o", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert "none.rec" in done.stderr
    assert not (tmp_path / "out").exists()


def test_arrivals_of_a_recording_lead_from_qos_to_headroom(tmp_path: Path) -> None:
    done = run_testdrive("run", "qos", "--set", "p99.9<1ms", "--arrivals", "my.rec", "--drive", SERIAL)
    assert done.returncode == 2
    wanted = "testdrive run headroom --set recording=my.rec --set 'p99.9<1ms'"
    assert wanted in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_drive_that_serves_one_after_the_other_takes_what_its_queue_allows(tmp_path: Path) -> None:
    source = evenly_spaced(tmp_path)
    settings = ["max<200us", "interval=100ms", "settle=0s", "prepare=none", f"recording={source}"]
    options = [part for each in settings for part in ("--set", each)]
    done = run_testdrive("run", "headroom", *options, "--drive", SERIAL, "--json", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["results"][0]
    # Of n I/Os a gap apart, served one after the other, the last has waited (n - 1) (F - gap / speed).
    gap_us = min(GAPS_US)
    ios = 100_000 // gap_us
    border = gap_us / (FIRMWARE_US - (200 - FIRMWARE_US) / (ios - 1))
    assert result["speed"] <= border <= result["failing_speed"] <= result["speed"] * 1.02
    assert result["breaks_first"]["start_ns"] == 100_000_000
    assert result["recorded_mean_iops"] == pytest.approx(4_000 / 0.2998, rel=1e-3)
    assert result["is_monotone"]
    history = read_history(Path(result["recording"]))
    assert history is not None
    assert [trial["value"] for trial in history["history"][:4]] == [1.0, 2.0, 4.0, 8.0]
    assert all(trial["figures"]["intervals"]["ios"] == [1_000, 2_500, 500] for trial in history["history"])
    page = Path(tmp_path / "out" / "index.html").read_text()
    assert "Which part of the workload breaks first" in page
    assert "modelled" in page


@pytest.mark.slow
def test_a_drive_that_falls_behind_ends_its_trial_and_a_slow_one_takes_less_than_was_recorded(
    tmp_path: Path,
) -> None:
    # 25,000 a second of a drive that takes 12,500: more is outstanding in the end than a replay allows.
    source = evenly_spaced(tmp_path, [40] * 4, write_share=0.1)
    slow = SERIAL.replace(f"firmware_read={FIRMWARE_US}us", "firmware_read=80us&firmware_write=80us")
    settings = ["p99<2ms", "interval=100ms", "settle=50ms", "prepare=random", "max-lag=5ms", "resolution=0.1"]
    options = [part for each in (*settings, f"recording={source}") for part in ("--set", each)]
    done = run_testdrive("run", "headroom", *options, "--drive", slow, "--json", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "1x fails: the drive cannot keep up" in done.stderr
    result = json.loads(done.stdout)["results"][0]
    assert 0.4 < result["speed"] < 0.6
    assert result["speed"] < result["failing_speed"] <= result["speed"] * 1.1
    history = read_history(Path(result["recording"]))
    assert history is not None
    first = history["history"][0]
    assert (first["value"], first["cannot_keep_up"]) == (1.0, True)
    # The confirming run begins in a state of its own.
    assert list((tmp_path / "out").glob("settled-*.state"))
    assert result["trials"][-1]["confirming"]


def test_a_trial_on_a_real_drive_is_watched_by_the_intervals_of_the_workload_at_its_speed(
    tmp_path: Path,
) -> None:
    drive = a_drive(evenly_spaced(tmp_path))
    watch = drive.watch(drive.bound(**drive.load(4.0, False)), tmp_path / "running.rec")
    assert watch is not None
    # Three intervals of 100 ms, at four times the speed.
    assert list(watch.ends_ns) == [25_000_000, 50_000_000, 75_000_000]
    assert watch.called == "interval"
    off = a_drive(evenly_spaced(tmp_path / "b"), **{"early-end": "no"})
    assert off.watch(off.bound(**off.load(4.0, False)), tmp_path / "running.rec") is None
    one = a_drive(evenly_spaced(tmp_path / "c"), interval="1s")
    assert one.watch(one.bound(**one.load(4.0, False)), tmp_path / "running.rec") is None
    slow = a_drive(evenly_spaced(tmp_path / "d"), rules="mean<7s")
    longer = slow.watch(slow.bound(**slow.load(4.0, False)), tmp_path / "running.rec")
    assert longer is not None
    assert longer.margin_ns == 7 * SECOND_NS


@pytest.mark.parametrize(
    ("uri", "write_share", "prepare", "settled", "repeats"),
    [
        # A modelled drive that is only read would do the same again.
        ("sim:sata?capacity=1GiB", 0.0, "full", [("full", 4)], False),
        ("sim:sata?capacity=1GiB", 0.5, "random", [("random", 4)], False),
        ("sim:sata?capacity=1GiB", 0.5, "sequential", [], True),
        ("sim:sata?capacity=1GiB", 0.5, "none", [], True),
        ("/dev/loop9", 0.0, "full", [], False),
        ("/dev/loop9", 0.5, "sequential", [("sequential", 4)], False),
        ("/dev/loop9", 0.5, "none", [], False),
    ],
)
def test_a_confirming_run_begins_in_another_state_or_is_called_a_repetition(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uri: str,
    write_share: float,
    prepare: str,
    settled: list[tuple[str, int]],
    repeats: bool,
) -> None:
    drive = a_drive(evenly_spaced(tmp_path, write_share=write_share), prepare=prepare)
    drive.target = dataclasses.replace(drive.target, uri=uri)
    drive.trials = 3
    before = Path("prepared.state") if uri.startswith("sim:") and prepare != "none" else None
    drive.state = before
    done: list[tuple[str, int]] = []

    def prepared(whole: Any, name: str, state: Path | None) -> None:
        done.append((whole.values["prepare"], whole.values["seed"]))

    monkeypatch.setattr(drive, "_prepare", prepared)
    after = drive.settle()
    assert done == settled
    assert (
        drive.facts(Found(None, [a_trial(1.0, passes=False)], "bisection"))["confirming_repeats"] is repeats
    )
    assert (after != before) is (uri.startswith("sim:") and bool(settled))


def test_how_long_a_trial_takes_is_told_before_a_real_drive_is_touched(tmp_path: Path) -> None:
    # 300 ms of the recording, and 100 ms of it before.
    drive = a_drive(evenly_spaced(tmp_path), settle="100ms")
    assert drive.foretold() is None, "virtual time"
    drive.target = dataclasses.replace(drive.target, uri="/dev/loop9")
    told = "a trial at 1 times takes 400 ms, one at 0.1 times, the lowest that may be tried, 4 s"
    assert drive.foretold() == f"{told}; there are about a dozen"
    fast = a_drive(evenly_spaced(tmp_path / "fast"), settle="1m", lowest=2)
    fast.target = drive.target
    assert fast.foretold() == "a trial at 2 times takes 300 ms; there are about a dozen"
