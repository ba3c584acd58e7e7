"""Going on with an interrupted run: what is kept byte for byte, what is run again, and what is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cutting import cut_before_its_end
from support import loop_device

from testdrive.engine import find_engine, run_job
from testdrive.errors import SafetyRefusal, UsageError
from testdrive.events import Event, PhaseBegun, Progress, Started, Warned
from testdrive.job import DriveRequest, Job, Keep, SyntheticPhase
from testdrive.plans import bind, load
from testdrive.recording import Recording

PLAN = """
version = 1
name = "long"
title = "Long"
question = "Does it go on?"

[parameters.for]
type = "duration"
default = "1h"
help = "how long each phase lasts"

[[phases]]
kind = "prepare"
name = "fill"
method = "sequential"

[[phases]]
kind = "synthetic"
name = "first"
ios = 400
depth = 4

[[phases]]
kind = "synthetic"
name = "{second}"
read_share = {reads}
rate_limit_iops = 2000
ios = {ios}
"""


@pytest.fixture
def drive(tmp_path: Path) -> str:
    """A file that stands for a drive."""
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.write(bytes(8 << 20))
    return f"file:{path}"


def job(
    directory: Path, drive: str, *, ios: int, reads: float = 1.0, resume: bool = False, **keys: Any
) -> Job:
    plan = directory / "long.toml"
    text = PLAN.replace("{second}", "second").replace("{reads}", str(reads)).replace("{ios}", str(ios))
    plan.write_text(text)
    bound = bind(load(str(plan)), {})
    erase = keys.pop("erase", drive.removeprefix("file:"))
    return Job(
        drive=DriveRequest(uri=drive, erase=erase),
        output=directory / "a.rec",
        plan=bound.described(),
        phases=bound.phases,
        segment_s=0.2,
        resume=resume or None,
        **keys,
    )


def started_engine(request: Job) -> subprocess.Popen[str]:
    """The engine at work on a job, as long as a test wants it to."""
    engine = subprocess.Popen(
        [os.fspath(find_engine()), "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert engine.stdin is not None
    engine.stdin.write(json.dumps(request.to_json_object()))
    engine.stdin.close()
    return engine


def cut(
    request: Job, number: int, *, phase: str = "second", segments: int = 1, progress: bool = False
) -> None:
    """Run the job until a phase has begun and segments of it are closed, then end the engine by a signal.

    With ``progress``, also until the engine has told of I/Os of it.
    """
    cut_before_its_end(request.output, lambda: attempt(request, number, phase, segments, progress), number)


def attempt(request: Job, number: int, phase: str, segments: int, progress: bool) -> tuple[int, str]:
    """Make the run and send the signal, which may find it complete; the exit status, and the last word."""
    engine = started_engine(request)
    assert engine.stdout is not None
    last = ""
    index = None
    for last in engine.stdout:
        event = json.loads(last)
        if event["event"] == "phase" and event["name"] == phase:
            index = event["index"]
            if not progress:
                break
        if event["event"] == "progress" and event["phase"] == index and event["ios"]:
            break
    deadline_s = time.monotonic() + 120
    before = segments_of(request)
    while segments_of(request) < before + segments and engine.poll() is None:
        assert time.monotonic() < deadline_s, "no segment was closed"
        time.sleep(0.02)
    engine.send_signal(number)
    rest = engine.stdout.readlines()
    return engine.wait(120), (rest or [last])[-1]


def segments_of(request: Job) -> int:
    return len(list((request.output / "ios").glob("*.parquet")))


def digests(recording: Path) -> dict[str, str]:
    files = sorted((recording / "ios").glob("*.parquet"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def phases(recording: Path) -> list[tuple[str, bool]]:
    with Recording.open(recording) as opened:
        return [(phase.name, phase.measured) for phase in opened.manifest.phases]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_goes_on_in_the_same_recording_with_what_was_there_untouched(
    tmp_path: Path, drive: str, number: signal.Signals
) -> None:
    cut(job(tmp_path, drive, ios=3000), number)
    recording = tmp_path / "a.rec"
    # Opening it puts it right after a kill.
    with Recording.open(recording) as opened:
        assert opened.manifest.status == "interrupted"
        partial_ios = int(
            opened.execute(
                opened.all_rows().filter(opened.all_rows().phase == 2).count().name("n").as_table()
            )["n"][0]
        )
    kept = digests(recording)
    told: list[Event] = []
    run_job(job(tmp_path, drive, ios=3000, resume=True), told.append)

    after = digests(recording)
    assert {name: after[name] for name in kept} == kept
    assert len(after) > len(kept)
    assert phases(recording) == [
        ("fill", False),
        ("first", True),
        ("second-partial", False),
        ("second", True),
    ]
    with Recording.open(recording) as opened:
        manifest = opened.manifest
        assert (manifest.status, manifest.status_reason) == ("complete", None)
        (gap,) = manifest.gaps
        assert gap.set_aside == [2]
        assert gap.resumed_ns > gap.after_ns
        assert manifest.phases[3].start_ns >= gap.resumed_ns
        assert manifest.phases[2].end_ns <= gap.after_ns
        rows = opened.all_rows()
        counted = opened.execute(rows.group_by(rows.phase).aggregate(n=rows.count()).order_by("phase"))["n"]
        assert counted[1] == 400
        assert counted[2] == partial_ios > 0
        assert counted[3] == 3000
        assert manifest.counts.ios == counted.sum()
        assert int(opened.execute(opened.table().count().name("n").as_table())["n"][0]) == 3400
        assert [each.code for each in manifest.warnings].count("resumed") == 1
    (began,) = [each for each in told if isinstance(each, Started)]
    assert (began.phases_before, [each.name for each in began.phases]) == (2, ["second"])
    assert [each.name for each in told if isinstance(each, PhaseBegun)] == ["second"]
    assert any(isinstance(each, Progress) and each.phase == 3 for each in told)
    (warned,) = [each for each in told if isinstance(each, Warned) and each.code == "resumed"]
    assert "that phase is run again, from its beginning" in warned.message


def test_a_run_may_be_interrupted_and_resumed_more_than_once(tmp_path: Path, drive: str) -> None:
    cut(job(tmp_path, drive, ios=3000), signal.SIGKILL)
    cut(job(tmp_path, drive, ios=3000, resume=True), signal.SIGINT)
    run_job(job(tmp_path, drive, ios=3000, resume=True))
    names = [name for name, measured in phases(tmp_path / "a.rec") if measured]
    assert names == ["first", "second"]
    assert ("second-partial-2", False) in phases(tmp_path / "a.rec")
    with Recording.open(tmp_path / "a.rec") as opened:
        assert [gap.set_aside for gap in opened.manifest.gaps] == [[2], [3]]


def test_preparation_that_was_cut_is_run_again_from_its_first_phase(tmp_path: Path, drive: str) -> None:
    plan = tmp_path / "prepared.toml"
    plan.write_text(
        'version = 1\nname = "prepared"\ntitle = "t"\nquestion = "q"\n'
        '[[phases]]\nkind = "prepare"\nname = "fill"\nmethod = "sequential"\n'
        '[[phases]]\nkind = "synthetic"\nname = "write"\nread_share = 0\nios = 3000\nrate_limit_iops = 2000\n'
    )
    bound = bind(load(str(plan)), {})
    keys: dict[str, Any] = {
        "drive": DriveRequest(uri=drive, erase=drive.removeprefix("file:")),
        "output": tmp_path / "a.rec",
        "phases": bound.phases,
        "segment_s": 0.2,
    }
    cut(Job(**keys), signal.SIGINT, phase="write")
    run_job(Job(**keys, resume=True))
    wanted = [("fill-superseded", False), ("write-partial", False), ("fill", False), ("write", True)]
    assert phases(tmp_path / "a.rec") == wanted


def test_another_plan_another_drive_and_a_complete_run_are_refused(tmp_path: Path, drive: str) -> None:
    cut(job(tmp_path, drive, ios=3000), signal.SIGINT)
    manifest = (tmp_path / "a.rec/manifest.json").read_bytes()
    other = tmp_path / "other.img"
    other.write_bytes(bytes(8 << 20))
    refused: list[tuple[Callable[[], Job], str]] = [
        (lambda: job(tmp_path, drive, ios=3001, resume=True), "phase 'second', ios was 3000 and is 3001"),
        (lambda: job(tmp_path, drive, ios=3000, resume=True, keep="slowest"), "--keep"),
        (lambda: job(tmp_path, f"file:{other}", ios=3000, resume=True), "another drive: its path was"),
    ]
    for make, message in refused:
        with pytest.raises(UsageError, match=message):
            run_job(make())
        assert (tmp_path / "a.rec/manifest.json").read_bytes() == manifest
    run_job(job(tmp_path, drive, ios=3000, resume=True))
    with pytest.raises(UsageError, match="its run is complete"):
        run_job(job(tmp_path, drive, ios=3000, resume=True))


def test_the_consent_is_asked_for_anew(tmp_path: Path) -> None:
    with loop_device(tmp_path / "disk", 8 << 20) as device:
        cut(job(tmp_path, str(device), ios=3000, reads=0.5), signal.SIGKILL)
        wait_until_unclaimed(device)
        with pytest.raises(SafetyRefusal, match="nobody consented"):
            run_job(job(tmp_path, str(device), ios=3000, reads=0.5, resume=True, erase=None))
        wait_until_unclaimed(device)
        run_job(job(tmp_path, str(device), ios=3000, reads=0.5, resume=True))
    assert phases(tmp_path / "a.rec")[-1] == ("second", True)


def wait_until_unclaimed(device: Path | str) -> None:
    """Wait for the kernel: it ends what a killed process had in flight, and its claim, after the process."""
    deadline_s = time.monotonic() + 60
    while is_claimed(device):
        assert time.monotonic() < deadline_s, f"{device} is still claimed"
        time.sleep(0.01)


def is_claimed(device: Path | str) -> bool:
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return True
        raise
    return False


def test_the_model_of_an_interrupted_run_is_gone_with_it(tmp_path: Path) -> None:
    request = job(tmp_path, "sim:sata?capacity=1GiB", ios=50_000_000, erase=None)
    second = request.phases[2]
    assert isinstance(second, SyntheticPhase)
    second.rate_limit_iops = None
    cut(request, signal.SIGINT, phase="first", segments=0)
    resumed = request.model_copy(update={"resume": True})
    with pytest.raises(UsageError, match="a model, whose state was gone with the run"):
        run_job(resumed)


def test_a_run_that_keeps_the_slowest_goes_on_too(tmp_path: Path, drive: str) -> None:
    keep: Keep = "slowest"
    cut(job(tmp_path, drive, ios=3000, keep=keep), signal.SIGINT, segments=0, progress=True)
    run_job(job(tmp_path, drive, ios=3000, keep=keep, resume=True))
    with Recording.open(tmp_path / "a.rec") as opened:
        assert opened.manifest.status == "complete"
        entries = opened.intervals()
        entries = entries.filter((entries.quantity == 0) & (entries.phase == 3))
        counted = opened.execute(entries.aggregate(n=entries["count"].sum()))["n"][0]
    assert counted == 3000


def test_the_command_resumes_one_drive_without_an_output(tmp_path: Path, drive: str) -> None:
    command = [sys.executable, "-m", "testdrive", "run", "mixed", "--drive", drive, "--resume"]
    ran = subprocess.run([*command, tmp_path / "none.rec"], capture_output=True, text=True, check=False)
    assert (ran.returncode, "there is no such recording" in ran.stderr) == (2, True)
    ran = subprocess.run([*command, tmp_path, "-o", "b.rec"], capture_output=True, text=True, check=False)
    assert (ran.returncode, "leave --output" in ran.stderr) == (2, True)
