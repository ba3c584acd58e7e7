"""Fixture for tests without the real engine: `fake_engine.py` in its place, with a scenario."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STARTED = {"event": "started", "output": "a.rec", "drive": {"uri": "null:"}, "phases": []}
PHASE = {
    "event": "phase",
    "index": 0,
    "name": "replay",
    "kind": "replay",
    "planned_ios": 2,
    "planned_ns": None,
}
PROGRESS = {
    "event": "progress",
    "phase": 0,
    "elapsed_ns": 1_000_000_000,
    "done_share": 0.5,
    "ios": 1,
    "bytes": 4096,
    "errors": 0,
    "iops": 12345.0,
    "throughput_bytes_per_s": 48_000_000.0,
    "latency_p50_ns": 92_000,
    "latency_p99_ns": 310_000,
    "latency_max_ns": 4_100_000,
    "in_flight": 3,
    "lateness_max_ns": 2_000,
}
COMPLETE = {
    "event": "finished",
    "status": "complete",
    "reason": None,
    "output": "a.rec",
    "counts": {"ios": 2},
}

SetScenario = Callable[..., None]


def error_event(kind: str, exit_status: int, message: str = "it is so") -> dict[str, Any]:
    return {"event": "error", "kind": kind, "message": message, "exit_status": exit_status}


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetScenario:
    """Put the fake engine in the real one's place; call it with the keys of a scenario."""
    program = tmp_path / "fake-engine"
    script = Path(__file__).with_name("fake_engine.py")
    # -S and -E: the stand-in needs nothing but the standard library, and has to start fast.
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {script} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("TESTDRIVE_ENGINE", str(program))

    def set_scenario(**keys: Any) -> None:
        monkeypatch.setenv("FAKE_ENGINE", json.dumps(keys))

    set_scenario(lines=[STARTED, PHASE, PROGRESS, COMPLETE])
    return set_scenario
