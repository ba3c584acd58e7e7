"""The engine as a child process: every way in which it can end, told apart."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from engine_stub import COMPLETE, PHASE, PROGRESS, STARTED, SetScenario, error_event, scenario

from testdrive import engine, engine_process
from testdrive.errors import (
    DriveFailure,
    EngineError,
    Interrupted,
    SafetyRefusal,
    TestdriveError,
    UsageError,
)
from testdrive.events import Event, PhaseBegun, Progress, Started, Warned
from testdrive.job import DriveRequest, Job, ReplayPhase
from testdrive.recording import Recording

__all__ = ["scenario"]


def job(output: Path | str = "a.rec") -> Job:
    phase = ReplayPhase(kind="replay", recording=Path("prod.rec"), lba="scale")
    return Job(drive=DriveRequest(uri="null:"), output=Path(output), phases=[phase])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_events_arrive_in_order_and_the_last_is_returned(scenario: SetScenario) -> None:
    events: list[Event] = []
    finished = engine.run_job(job(), events.append)
    assert [type(event) for event in events[:3]] == [Started, PhaseBegun, Progress]
    assert events[-1] is finished
    assert finished.counts == {"ios": 2}
    progress = events[2]
    assert isinstance(progress, Progress)
    assert (progress.done_share, progress.latency_max_ns) == (0.5, 4_100_000)


def test_the_engine_gets_the_job_without_the_keys_left_to_it(scenario: SetScenario, tmp_path: Path) -> None:
    scenario(lines=[COMPLETE], save=str(tmp_path / "said"))
    engine.run_job(job())
    said = json.loads((tmp_path / "said").read_text())
    assert said["arguments"] == ["run"]
    assert said["job"] == {
        "version": 1,
        "drive": {"uri": "null:", "erase_signatures": False},
        "output": "a.rec",
        "phases": [{"kind": "replay", "recording": "prod.rec", "lba": "scale"}],
    }


def test_a_warning_and_an_event_of_a_newer_engine_do_not_end_the_run(scenario: SetScenario) -> None:
    warning = {"event": "warning", "code": "slow", "message": "m", "remedy": "r", "new_key": 1}
    scenario(lines=[warning, {"event": "telemetry", "watts": 5}, COMPLETE])
    events: list[Event] = []
    engine.run_job(job(), events.append)
    assert events[0] == Warned(event="warning", code="slow", message="m", remedy="r")
    assert len(events) == 2


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("usage", 2, UsageError),
        ("recording", 2, UsageError),
        ("refused", 3, SafetyRefusal),
        ("drive", 4, DriveFailure),
        ("recording", 4, DriveFailure),
        ("internal", 4, EngineError),
        ("internal", 101, EngineError),
    ],
)
def test_an_error_event_becomes_the_exception_of_its_status(
    scenario: SetScenario, kind: str, status: int, expected: type[TestdriveError]
) -> None:
    scenario(lines=[STARTED, error_event(kind, status, "the drive is mounted; unmount it")], exit=status)
    with pytest.raises(TestdriveError) as caught:
        engine.run_job(job())
    assert type(caught.value) is expected
    assert str(caught.value) == "the drive is mounted; unmount it"


@pytest.mark.parametrize(
    ("ended", "status", "expected"), [("failed", 4, DriveFailure), ("interrupted", 5, Interrupted)]
)
def test_a_run_that_did_not_complete_names_the_reason_and_the_recording(
    scenario: SetScenario, ended: str, status: int, expected: type[TestdriveError]
) -> None:
    scenario(lines=[{**COMPLETE, "status": ended, "reason": "I/O 7 got EIO"}], exit=status)
    with pytest.raises(expected, match=r"I/O 7 got EIO; what was recorded is kept in a\.rec"):
        engine.run_job(job())


def test_a_crash_is_told_with_the_last_words_of_the_engine(scenario: SetScenario) -> None:
    scenario(lines=[STARTED, PROGRESS], stderr="thread main panicked at 'broken'", exit=-signal.SIGABRT)
    with pytest.raises(EngineError, match="killed by signal 6") as caught:
        engine.run_job(job())
    assert "engine: thread main panicked" in str(caught.value)


def test_the_recording_of_a_crash_stays_and_opens_as_interrupted(
    scenario: SetScenario, tmp_path: Path
) -> None:
    manifest = {"format": "testdrive-recording", "version": 1, "kind": "run", "status": "running"}
    scenario(manifest=manifest, lines=[STARTED], exit=-signal.SIGKILL)
    with pytest.raises(EngineError, match="kept in"):
        engine.run_job(job(tmp_path / "a.rec"))
    with Recording.open(tmp_path / "a.rec") as recording:
        assert recording.manifest.status == "interrupted"


def test_an_engine_that_ends_without_a_word_is_an_error(scenario: SetScenario) -> None:
    scenario(lines=[STARTED], exit=0)
    with pytest.raises(EngineError, match="status 0 and did not say"):
        engine.run_job(job())


def test_a_completion_that_the_exit_status_contradicts_is_an_error(scenario: SetScenario) -> None:
    scenario(lines=[COMPLETE], exit=4)
    with pytest.raises(EngineError, match="status 4"):
        engine.run_job(job())


@pytest.mark.parametrize(
    "line", ["hello", "[1]", "{}", '{"event": "progress", "phase": 0}', '{"event": "phase", "index": "x"}']
)
def test_output_that_is_not_progress_stops_the_engine(
    scenario: SetScenario, tmp_path: Path, line: str
) -> None:
    scenario(lines=[STARTED, line], on_signal=[COMPLETE], save=str(tmp_path / "said"))
    with pytest.raises(EngineError, match="something else than progress"):
        engine.run_job(job())
    assert not is_alive(json.loads((tmp_path / "said").read_text())["pid"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_and_the_engine_ends_first(scenario: SetScenario, number: int) -> None:
    interrupted = {**COMPLETE, "status": "interrupted"}
    scenario(lines=[STARTED, PROGRESS], on_signal=[{**interrupted, "reason": "signal"}], exit=5)
    before = signal.getsignal(number)

    def interrupt(event: Event) -> None:
        if isinstance(event, Progress):
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted):
        engine.run_job(job(), interrupt)
    assert signal.getsignal(number) is before


def test_the_third_signal_kills_an_engine_that_does_not_listen(scenario: SetScenario, tmp_path: Path) -> None:
    scenario(lines=[STARTED, PROGRESS], deaf=True, save=str(tmp_path / "said"))

    def insist(event: Event) -> None:
        if isinstance(event, Progress):
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
                # Signals that arrive together count as one.
                time.sleep(0.01)

    with pytest.raises(Interrupted, match="interrupted at once"):
        engine.run_job(job(), insist)
    assert not is_alive(json.loads((tmp_path / "said").read_text())["pid"])


@pytest.mark.parametrize(
    ("last", "expected", "killable"),
    [
        (COMPLETE, None, True),
        ({**COMPLETE, "status": "failed", "reason": "the drive does not answer"}, DriveFailure, False),
        (error_event("drive", 4), DriveFailure, True),
    ],
)
def test_an_engine_that_cannot_end_after_its_last_word_is_not_waited_for(
    scenario: SetScenario,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    last: dict[str, Any],
    expected: type[TestdriveError] | None,
    killable: bool,
) -> None:
    scenario(lines=[STARTED, last], deaf=True, save=str(tmp_path / "said"))
    monkeypatch.setattr(engine_process, "_END_PATIENCE_S", 0.2)
    monkeypatch.setattr(engine_process, "_KILL_PATIENCE_S", 0.2 if not killable else 300)
    if not killable:
        # A thread that waits for the drive inside the kernel is not ended by SIGKILL either.
        monkeypatch.setattr("subprocess.Popen.kill", lambda process: None)
    if expected is None:
        assert engine.run_job(job()).status == "complete"
    else:
        with pytest.raises(expected) as caught:
            engine.run_job(job())
        assert caught.value.exit_status == 4
    pid = json.loads((tmp_path / "said").read_text())["pid"]
    warning = capsys.readouterr().err
    assert f"the engine (pid {pid})" in warning
    assert is_alive(pid) is not killable
    if not killable:
        assert "cannot end until the kernel gives up on the drive" in warning
        os.kill(pid, signal.SIGKILL)


def test_the_fourth_signal_leaves_an_engine_behind_that_not_even_a_kill_can_end(
    scenario: SetScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario(lines=[STARTED, PROGRESS], deaf=True, save=str(tmp_path / "said"))
    monkeypatch.setattr("subprocess.Popen.kill", lambda process: None)
    over = threading.Event()

    def insist() -> None:
        # Signals that arrive together count as one, so that four may not be enough.
        while not over.wait(0.05):
            os.kill(os.getpid(), signal.SIGINT)

    insisting = threading.Thread(target=insist)

    def begin(event: Event) -> None:
        if isinstance(event, Progress):
            insisting.start()

    # What comes when the run is over already is nobody's business.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with pytest.raises(Interrupted, match="ends when the kernel lets it"):
            engine.run_job(job(), begin)
    finally:
        over.set()
        if insisting.ident is not None:
            insisting.join()
        signal.signal(signal.SIGINT, before)
    os.kill(json.loads((tmp_path / "said").read_text())["pid"], signal.SIGKILL)


def test_a_failing_display_leaves_no_engine_behind(scenario: SetScenario, tmp_path: Path) -> None:
    scenario(lines=[STARTED, PHASE], on_signal=[COMPLETE], save=str(tmp_path / "said"))

    def fail(event: Event) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        engine.run_job(job(), fail)
    assert not is_alive(json.loads((tmp_path / "said").read_text())["pid"])


def test_an_import_passes_its_options_and_reads_its_own_progress(
    scenario: SetScenario, tmp_path: Path
) -> None:
    progress = {"event": "progress", "rows": 10, "bytes_read": 5, "bytes_total": 10}
    scenario(lines=[progress, COMPLETE], save=str(tmp_path / "said"))
    events: list[Event] = []
    engine.import_traces(
        [Path("x.csv")], Path("x.rec"), format_name="csv", columns="op=1", on_event=events.append
    )
    said = json.loads((tmp_path / "said").read_text())
    assert said["arguments"] == ["import", "x.csv", "-o", "x.rec", "--format", "csv", "--columns", "op=1"]
    assert events[0].model_dump()["rows"] == 10


@pytest.mark.parametrize(
    ("answer", "message"), [("nonsense", "did not answer with JSON"), ('{"a": 1}', "not a list")]
)
def test_a_list_that_is_none_is_an_error(scenario: SetScenario, answer: str, message: str) -> None:
    scenario(answers={"drives": answer})
    with pytest.raises(EngineError, match=message):
        engine.list_drives()


def test_lists_are_returned_as_they_are(scenario: SetScenario) -> None:
    drives: list[dict[str, Any]] = [{"uri": "/dev/x", "erasable": False}]
    scenario(answers={"drives": drives})
    assert engine.list_drives() == drives


def test_a_released_drive_is_told_of_as_the_engine_does(scenario: SetScenario, tmp_path: Path) -> None:
    answer = {"event": "released", "address": "0000:01:00.0", "driver": "nvme", "restored": True}
    scenario(answers={"drives": answer}, save=str(tmp_path / "said"))
    assert engine.release_drive("01:00.0") == answer
    scenario(answers={"drives": []})
    with pytest.raises(EngineError, match="not an object"):
        engine.release_drive("01:00.0")


def test_the_environment_names_the_engine_or_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("TESTDRIVE_ENGINE", str(program))
    with pytest.raises(EngineError, match="not a program"):
        engine.find_engine()
    program.chmod(0o755)
    assert engine.find_engine() == program


def test_an_engine_for_another_machine_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "engine"
    program.write_bytes(b"\x7fELF" + bytes(60))
    program.chmod(0o755)
    monkeypatch.setenv("TESTDRIVE_ENGINE", str(program))
    with pytest.raises(EngineError, match="cannot be started"):
        engine.run_job(job())
