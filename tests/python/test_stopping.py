"""Signals between runs: none is forgotten, whatever is at work when it comes."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from pathlib import Path

import pytest
from engine_stub import SetScenario, scenario

from testdrive import engine, engine_process, running
from testdrive.cli import main, searching
from testdrive.errors import Interrupted
from testdrive.job import DriveRequest, Job, ReplayPhase
from testdrive.plans import BoundPlan
from testdrive.running import Result
from testdrive.stopping import signals_stop

__all__ = ["scenario"]


def swallowed(number: int = signal.SIGINT) -> None:
    """A signal whose exception goes no further than the library that it comes to."""
    with contextlib.suppress(Interrupted):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_was_swallowed_is_remembered(number: int) -> None:
    before = signal.getsignal(number)
    with signals_stop() as stop_if_asked:
        stop_if_asked()
        swallowed(number)
        with pytest.raises(Interrupted, match=f"interrupted by {signal.Signals(number).name}"):
            stop_if_asked()
    assert signal.getsignal(number) == before


def test_a_signal_after_the_engines_last_word_stops_what_comes_next_and_not_the_run(
    scenario: SetScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = engine_process._wait

    def wait_and_be_asked(process: subprocess.Popen[str]) -> int | None:
        status = wait(process)
        signal.raise_signal(signal.SIGINT)
        return status

    monkeypatch.setattr(engine_process, "_wait", wait_and_be_asked)
    phase = ReplayPhase(kind="replay", recording=Path("prod.rec"), lba="scale")
    job = Job(drive=DriveRequest(uri="null:"), output=Path("a.rec"), phases=[phase])
    assert engine.run_job(job).status == "complete"
    with signals_stop(), pytest.raises(Interrupted, match="interrupted by SIGINT"):
        engine.run_job(job)


def test_a_search_ends_though_a_library_swallowed_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(searching, "_tell", lambda *_: swallowed())
    settings = ("slice=2s", "for=2s", "prepare=none", "from=2", "highest=64")
    chosen = [part for each in settings for part in ("--set", each)]
    drive = ("--drive", "sim:sata?capacity=64MiB")
    status = main(["run", "act-rating", "--short", *drive, *chosen, "-o", str(tmp_path / "out"), "--json"])
    assert status == Interrupted.exit_status
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert len(result["trials"]) == 1, "the one that was over"
    assert "interrupted by SIGINT" in result["unfinished"]


def test_the_next_drive_is_not_begun_though_a_library_swallowed_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = running._read

    def read_and_swallow(bound: BoundPlan, result: Result) -> None:
        read(bound, result)
        swallowed()

    monkeypatch.setattr(running, "_read", read_and_swallow)
    drives = [part for name in ("sata", "consumer-qlc") for part in ("--drive", f"sim:{name}?capacity=64MiB")]
    settings = ("--set", "for=100ms")
    status = main(["run", "mixed", "--short", *drives, *settings, "-o", str(tmp_path / "out"), "--json"])
    assert status == Interrupted.exit_status
    first, second = json.loads(capsys.readouterr().out)["results"]
    assert Path(first["recording"]).exists()
    assert (second["recording"], len(list((tmp_path / "out").glob("*.rec")))) == (None, 1)
