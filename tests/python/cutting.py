"""Runs that are cut before their end, on a host that may stand still for seconds while they go on."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from testdrive.errors import Interrupted

TRIES = 10


def cut_before_its_end(recording: Path, attempt: Callable[[], tuple[int, str]], number: int) -> None:
    """Let a run be cut by a signal; where it completed before the signal came, put all back and try again.

    Parameters
    ----------
    recording : Path
        What the run writes, or goes on with.
    attempt : callable
        Makes the run and sends the signal; returns the exit status, and what was said, for people.
    number : int
        The signal's.
    """
    before = recording.with_name(f"{recording.name}.before")
    if recording.exists():
        shutil.copytree(recording, before)
    for _ in range(TRIES):
        status, said = attempt()
        assert status in (0, _status_after(number)), f"status {status}: {said}"
        # The signal may also have come when only the page was left to be written.
        if json.loads((recording / "manifest.json").read_text())["status"] != "complete":
            assert status, said
            shutil.rmtree(before, ignore_errors=True)
            return
        shutil.rmtree(recording)
        if before.exists():
            shutil.copytree(before, recording)
    pytest.fail(f"{TRIES} runs completed before they were cut")


def _status_after(number: int) -> int:
    """How a process ends after a signal that it listens to, or that nobody can listen to."""
    return -number if number == signal.SIGKILL else Interrupted.exit_status
