"""Searches that do not come to their end, and trials that end before theirs: what was tried is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import write_recording
from support import loop_device, run_testdrive
from workloads import write_source

from testdrive.events import PhaseBegun, Progress
from testdrive.recording import Recording
from testdrive.search.bisection import Found, Trial
from testdrive.search.early import EndedEarly, Watch, equal
from testdrive.search.history import HISTORY_NAME, read_history

SECOND_NS = 10**9
SHORT = ("--short", "--set", "slice=2s", "--set", "for=2s", "--set", "prepare=none")


def histories(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"**/{HISTORY_NAME}"))


def test_a_drive_that_vanishes_leaves_an_unfinished_search(tmp_path: Path) -> None:
    # Trials are over before it is gone, and only the run that is to confirm them lasts so long.
    drive = "sim:sata?capacity=256MiB&fault_gone_at_ns=4000000000"
    settings = ("--set", "from=2", "--set", "highest=2", "--set", "confirm-for=6s")
    options = (*SHORT, *settings, "--drive", drive)
    done = run_testdrive("run", "act-rating", *options, "-o", tmp_path / "out", "--json")
    assert done.returncode == 4, done.stderr
    content = json.loads(done.stdout)
    (result,) = content["results"]
    assert result["rating"] is None
    assert result["unfinished"].startswith("confirming 2 at 2x: the run failed")
    assert [trial["rating"] for trial in result["trials"]] == [2]
    history = read_history(Path(result["recording"]))
    assert history is not None
    assert (history["value"], history["unfinished"]) == (None, result["unfinished"])
    page = Path(content["page"]).read_text()
    assert "the search is unfinished, and has no result" in page
    assert "The unfinished search on" in page
    assert "confirmed rating" not in page, "there is none to draw"


@pytest.mark.slow
def test_a_search_that_is_interrupted_tells_what_was_tried(tmp_path: Path) -> None:
    image, out = tmp_path / "drive.img", tmp_path / "out"
    image.write_bytes(bytes(32 << 20))
    command = [sys.executable, "-m", "testdrive", "run", "act-rating", *SHORT, "-o", os.fspath(out)]
    options = ["--set", "from=8", "--drive", f"file:{image}", "--erase", os.fspath(image)]
    with subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(r"8x (passes|fails)", line):
                break
        # Even one that is killed leaves what it had.
        (early,) = histories(out)
        kept = read_history(early.parent)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 5
    assert kept is not None
    assert "without a word" in kept["unfinished"]
    (last,) = histories(out)
    history = read_history(last.parent)
    assert history is not None
    assert "interrupted" in history["unfinished"]
    assert "unfinished after" in " ".join(said.split())


def test_nothing_is_a_result_before_the_search_is_over(tmp_path: Path) -> None:
    done = run_testdrive(
        "run", "act-rating", *SHORT, "--drive", f"file:{tmp_path}/absent", "-o", tmp_path / "out", "--json"
    )
    assert done.returncode != 0
    (result,) = json.loads(done.stdout)["results"]
    assert (result["rating"], result["recording"], result["trials"]) == (None, None, [])
    found = Found(None, [Trial(8.0, True), Trial(16.0, False)], "bisection", unfinished="stopped")
    assert found.is_monotone


def kept_rows(path: Path, seconds: int) -> tuple[Path, str]:
    """A recording of one phase with a read each 100 ms, and the phase's name."""
    times = list(range(0, seconds * SECOND_NS, SECOND_NS // 10))
    made = write_recording(path, {"submit_ns": times, "latency_ns": [1_000] * len(times)})
    with Recording.open(made) as recording:
        return made, recording.manifest.phases[0].name


def told(watch: Watch, elapsed_s: float) -> None:
    """A word of progress, and what a look that follows from it finds."""
    watch.follow(PhaseBegun(event="phase", index=0, name=watch.phase, kind="synthetic"))
    watch.follow(Progress(event="progress", phase=0, elapsed_ns=int(elapsed_s * SECOND_NS)))
    watch.end()
    watch.follow(Progress(event="progress", phase=0, elapsed_ns=0))


def test_a_trial_ends_once_a_whole_slice_is_there_and_does_not_hold(tmp_path: Path) -> None:
    path, phase = kept_rows(tmp_path / "a.rec", 30)
    looked: list[int] = []

    def judge(_: Recording, whole: int) -> list[str]:
        looked.append(whole)
        return ["too slow"] if whole >= 2 else []

    watch = Watch(path, phase, equal(10 * SECOND_NS, 5), judge)
    told(watch, 11)
    assert looked == [], "histograms of whole seconds may still come"
    told(watch, 13)
    told(watch, 14)
    assert looked == [1], "each slice is judged once"
    with pytest.raises(EndedEarly, match="ended early after slice 2 of 5: too slow") as ended:
        told(watch, 25)
    assert ended.value.slices == 2


def test_a_slice_that_is_not_yet_on_disk_is_not_judged(tmp_path: Path) -> None:
    path, phase = kept_rows(tmp_path / "a.rec", 10)
    watch = Watch(path, phase, equal(10 * SECOND_NS, 5), lambda *_: ["too slow"])
    told(watch, 25)


def test_of_a_recording_that_lags_behind_the_run_the_slices_on_disk_are_judged(tmp_path: Path) -> None:
    path, phase = kept_rows(tmp_path / "a.rec", 30)
    watch = Watch(path, phase, equal(10 * SECOND_NS, 9), lambda *_: ["too slow"])
    with pytest.raises(EndedEarly) as ended:
        told(watch, 85)
    assert ended.value.slices == 2


def test_after_the_last_slice_nothing_is_ended(tmp_path: Path) -> None:
    path, phase = kept_rows(tmp_path / "a.rec", 30)
    told(Watch(path, phase, equal(10 * SECOND_NS, 2), lambda *_: ["too slow"]), 25)


def test_slices_may_be_of_any_length_and_margin(tmp_path: Path) -> None:
    path, phase = kept_rows(tmp_path / "a.rec", 30)
    looked: list[int] = []

    def judge(_: Recording, whole: int) -> list[str]:
        looked.append(whole)
        return []

    ends_ns = [each * SECOND_NS for each in (4, 5, 20, 21)]
    watch = Watch(path, phase, ends_ns, judge, margin_ns=3 * SECOND_NS)
    for elapsed_s in (6.9, 7.1, 8.1, 23.5):
        told(watch, elapsed_s)
    assert looked == [1, 2, 3]
    # The last, of whatever length, is judged with the whole recording.
    assert Watch(path, phase, [each * 100 * SECOND_NS for each in (1, 2)], judge).segment_s == 10.0


LOOKING = """
import sys
from pathlib import Path
from rich.console import Console
from testdrive.events import PhaseBegun, Progress
from testdrive.progress import display
from testdrive.search.early import Watch, watched

watch = Watch(Path(sys.argv[1]), sys.argv[2], [4 * 10**9, 8 * 10**9, 12 * 10**9], lambda *_: [])
with watched(lambda title: display(Console(stderr=True), title), watch)("a trial") as shown:
    loaded = set(sys.modules)
    shown(PhaseBegun(event="phase", index=0, name=sys.argv[2], kind="synthetic"))
    shown(Progress(event="progress", phase=0, elapsed_ns=7 * 10**9))
    watch.end()
    print(watch._held, sorted(name for name in set(sys.modules) - loaded if not name.startswith("rich")))
"""


def test_what_a_look_takes_is_loaded_before_the_run(tmp_path: Path) -> None:
    path, phase = kept_rows(tmp_path / "a.rec", 30)
    command = [sys.executable, "-c", LOOKING, os.fspath(path), phase]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1 []\n"), done.stderr


@pytest.mark.slow
def test_a_trial_on_a_file_ends_early_and_says_so(tmp_path: Path) -> None:
    image = tmp_path / "drive.img"
    image.write_bytes(bytes(32 << 20))
    settings = ("p50<1ns", "interval=1s", "for=600s", "settle=0s", "prepare=none")
    single = ("from=2000", "lowest=2000", "highest=2000")
    chosen = [part for each in (*settings, *single) for part in ("--set", each)]
    drive = ("--drive", f"file:{image}", "--erase", image)
    done = run_testdrive("run", "qos", *drive, *chosen, "-o", tmp_path / "out", "--json")
    assert done.returncode == 1, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    (trial,) = result["trials"]
    assert 1 <= trial["ended_after"] < 600
    assert (trial["passes"], result["unfinished"]) == (False, None)
    history = read_history(Path(result["recording"]))
    assert history is not None
    why = history["history"][0]["reasons"][0]
    assert why.startswith(f"ended early after interval {trial['ended_after']} of 600: p50 of the reads")
    with Recording.open(result["recording"]) as recording:
        assert recording.manifest.status == "interrupted"


@pytest.mark.slow
def test_a_replay_on_a_file_ends_early_and_says_so(tmp_path: Path) -> None:
    image = tmp_path / "drive.img"
    image.write_bytes(bytes(32 << 20))
    times_ns = [at * SECOND_NS // 20 for at in range(12_000)]
    same = {"latency_ns": 1_000, "offset_bytes": 0, "length_bytes": 4_096, "opcode": 0}
    columns = {"submit_ns": times_ns, **{name: [value] * 12_000 for name, value in same.items()}}
    source = write_source(tmp_path / "own.rec", columns)
    settings = ("p50<1ns", "interval=1s", "settle=0s", "prepare=none", "lowest=1", f"recording={source}")
    chosen = [part for each in settings for part in ("--set", each)]
    drive = ("--drive", f"file:{image}", "--erase", image)
    done = run_testdrive("run", "headroom", *drive, *chosen, "-o", tmp_path / "out", "--json")
    assert done.returncode == 1, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    (trial,) = result["trials"]
    assert 1 <= trial["ended_after"] < 600
    history = read_history(Path(result["recording"]))
    assert history is not None
    ended = f"ended early after interval {trial['ended_after']} of 600: p50 of the reads of interval"
    assert any(why.startswith(ended) for why in history["history"][0]["reasons"])
    assert result["breaks_first"]["start_ns"] == 0
    with Recording.open(result["recording"]) as recording:
        assert recording.manifest.status == "interrupted"


def written_bytes(path: Path) -> int:
    with Recording.open(path) as recording:
        written = recording.manifest.counts.by_opcode["write"].bytes
    return int(written)


def check_settled(folder: Path, capacity_bytes: int, trials: list[dict[str, Any]]) -> None:
    """Before each confirming run, and before no other, the whole device was written over."""
    numbers = [number for number, trial in enumerate(trials, start=1) if trial["confirming"]]
    settled = sorted(folder.glob("settled-*.rec"))
    assert [path.name for path in settled] == [f"settled-{number:02}.rec" for number in numbers]
    for path in settled:
        assert written_bytes(path) == capacity_bytes


@pytest.mark.slow
def test_a_device_is_stepped_down_from_an_overload_and_settled_before_it_is_confirmed(tmp_path: Path) -> None:
    size_bytes, out = 32 << 20, tmp_path / "out"
    # The first is more than any device takes; the second passes where the host is not too busy.
    settings = ("method=step-down", "from=900", "step=899", "slice=1s", "for=2s", "max-lag-sec=1")
    chosen = [part for each in settings for part in ("--set", each)]
    with loop_device(tmp_path / "disk.img", size_bytes) as device:
        drive = ("--drive", str(device), "--erase", str(device))
        done = run_testdrive("run", "act-rating", "--short", *drive, *chosen, "-o", out, "--json")
    assert done.stdout, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    trials = result["trials"]
    assert [trial["rating"] for trial in trials][:2] == [900, 1]
    assert not trials[0]["passes"]
    assert [trial["confirming"] for trial in trials] == [False, False, True][
        : 3 if trials[1]["passes"] else 2
    ]
    assert result["rating"] == (1 if trials[-1]["confirming"] and trials[-1]["passes"] else None)
    assert done.returncode == (0 if result["rating"] else 1)
    assert written_bytes(out / "prepared.rec") == size_bytes
    check_settled(out, size_bytes, trials)
    history = read_history(Path(result["recording"]))
    assert history is not None
    assert (history["method"], history["history"][0]["cannot_keep_up"]) == ("step-down", True)


@pytest.mark.slow
def test_a_device_is_written_over_before_a_rate_is_confirmed(tmp_path: Path) -> None:
    size_bytes, out = 32 << 20, tmp_path / "out"
    # A rule that holds on the busiest host, so that there is something to confirm.
    settings = ("max<60s", "interval=1s", "for=1s", "settle=0s", "read-share=0.5", "span=1", "prepare=random")
    single = ("from=500", "lowest=500", "highest=500")
    chosen = [part for each in (*settings, *single) for part in ("--set", each)]
    with loop_device(tmp_path / "disk.img", size_bytes) as device:
        drive = ("--drive", str(device), "--erase", str(device))
        done = run_testdrive("run", "qos", *drive, *chosen, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert [(trial["rate_iops"], trial["confirming"]) for trial in result["trials"]] == [
        (500, False),
        (500, True),
    ]
    check_settled(out, size_bytes, result["trials"])
