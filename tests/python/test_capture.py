"""`testdrive capture`: the command with a stand-in for the engine, and with the real one on a loop device."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from engine_stub import SetScenario, error_event, scenario  # noqa: F401 - a fixture
from support import loop_device, missing, run_testdrive, run_without_images

from testdrive.cli import main
from testdrive.engine import find_engine
from testdrive.errors import EngineError
from testdrive.recording import Recording

INSTANCES = Path("/sys/kernel/tracing/instances")
STARTED = {"event": "started", "output": "a.rec", "devices": [], "buffer_bytes_per_cpu": 1}
PROGRESS = {
    "event": "progress",
    "elapsed_ns": 500_000_000,
    "done_share": 0.5,
    "events_lost": 7,
    "recorded_bytes": 1000,
    "ios": 1234,
    "bytes": 4096,
    "iops": 2468.0,
    "throughput_bytes_per_s": 8192.0,
    "devices": [],
}


def finished(status: str = "complete", **keys: Any) -> dict[str, Any]:
    recording = {
        "device": "sda",
        "output": "a.rec",
        "status": status,
        "counts": {"ios": 5, "span_ns": 1_000_000_000},
        "dropped": [],
    }
    counts = {"ios": 5, "bytes": 20480, "errors": 0, "span_ns": 1_000_000_000}
    event = {"event": "finished", "status": status, "reason": None, "output": "a.rec", "counts": counts}
    return {**event, "events_lost": 0, "recordings": [recording], **keys}


def test_options_reach_the_engine_in_its_own_units(
    scenario: SetScenario,  # noqa: F811
    tmp_path: Path,
) -> None:
    saved = tmp_path / "saved"
    scenario(lines=[STARTED, PROGRESS, finished()], save=str(saved))
    options = ["--for", "1m30s", "--max-size", "1MiB", "--events", "issue", "--buffer", "64KiB"]
    assert main(["capture", "sda", "sdb", "-o", str(tmp_path / "x"), *options]) == 0
    arguments = json.loads(saved.read_text())["arguments"]
    assert arguments == [
        *("capture", "-o", str(tmp_path / "x"), "--for=90000000000ns", "--max-size=1048576"),
        *("--events=issue", "--buffer=65536", "--", "sda", "sdb"),
    ]


def test_the_end_says_what_was_captured_what_was_lost_and_what_comes_next(
    scenario: SetScenario,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario(lines=[STARTED, PROGRESS, finished(events_lost=1234, reason="it is large enough")])
    assert main(["capture", "/dev/sda"]) == 0
    said = capsys.readouterr().out
    assert "sda: 5 I/Os over 1.00 s" in said
    assert "1,234 events were lost" in said
    assert "ended: it is large enough" in said
    assert "next: testdrive inspect a.rec" in said
    assert main(["capture", "/dev/sda", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["events_lost"], data["recordings"][0]["device"]) == (1234, "sda")


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (error_event("unavailable", 2, "tracefs is not mounted"), 2),
        (error_event("trace", 4, "the buffers could not be read"), 4),
        (finished("interrupted", reason="stopped by a signal before its time"), 5),
        (finished("failed", reason="its disk is full"), 4),
    ],
)
def test_what_goes_wrong_ends_with_its_message_and_status(
    scenario: SetScenario,  # noqa: F811
    last: dict[str, Any],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario(lines=[STARTED, last], exit=status)
    assert main(["capture", "sda", "-o", str(tmp_path / "x.rec")]) == status
    assert (last.get("message") or last["reason"]) in capsys.readouterr().err


def captures_here() -> None:
    """Skip where nothing can be captured."""
    if os.geteuid() or not INSTANCES.is_dir():
        missing("the right to capture (root, and tracefs at /sys/kernel/tracing)")


def read_blocks(device: Path, blocks: int) -> None:
    """Read past the page cache, a block at a time."""
    command = ["dd", f"if={device}", "of=/dev/null", "bs=4096", f"count={blocks}", "iflag=direct"]
    subprocess.run(command, check=True, capture_output=True)


class Capturing:
    """The command while it captures, in a process of its own."""

    def __init__(self, *arguments: str | Path) -> None:
        try:
            find_engine()
        except EngineError:
            missing("the engine's release build")
        command = [sys.executable, "-m", "testdrive", "capture", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        # The instance is there a moment before its events are switched on.
        while not self._is_on():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @property
    def engine(self) -> int | None:
        """The engine's process, once it is there."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return int(children) if children else None

    def _is_on(self) -> bool:
        """Whether the engine's own instance traces: others may capture at the same time."""
        try:
            return any(
                (instance / "tracing_on").read_text().strip() == "1"
                and (instance / "events/block/block_rq_complete/enable").read_text().strip() == "1"
                for instance in INSTANCES.glob(f"testdrive-{self.engine}-*")
            )
        except OSError:
            return False

    def stop(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


@pytest.mark.slow
def test_a_capture_until_ctrl_c_can_be_inspected_and_replayed(tmp_path: Path) -> None:
    captures_here()
    recording = tmp_path / "prod.rec"
    with loop_device(tmp_path / "loop.img", 16 << 20) as device:
        capturing = Capturing(device, "-o", recording)
        read_blocks(device, 211)
        status, out, err = capturing.stop()
    assert status == 0, err
    assert f"{device.name}: 211 I/Os" in out
    assert f"next: testdrive inspect {recording}" in out
    done = run_testdrive("inspect", recording, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["io_counts"]["by_opcode"]["read"]["ios"] == 211
    assert summary["workload"]["captured"]["clock"] == "clock_monotonic"
    assert summary["workload"]["captured"]["device"]
    done = run_testdrive("replay", recording, "--drive", "null:?size=16MiB", "-o", tmp_path / "a.rec")
    assert done.returncode == 0, done.stderr
    with Recording.open(tmp_path / "a.rec") as replayed:
        assert replayed.manifest.counts.ios == 211


@pytest.mark.slow
def test_lost_events_stand_in_the_report_of_the_capture_and_of_its_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captures_here()
    recording, run = tmp_path / "prod.rec", tmp_path / "a.rec"
    with loop_device(tmp_path / "loop.img", 64 << 20) as device:
        capturing = Capturing(device, "-o", recording, "--buffer", "64KiB")
        assert capturing.engine is not None
        # Nobody reads the buffer while it overflows.
        os.kill(capturing.engine, signal.SIGSTOP)
        read_blocks(device, 10_000)
        os.kill(capturing.engine, signal.SIGCONT)
        read_blocks(device, 10)
        status, out, err = capturing.stop()
    assert status == 0, err
    assert "events were lost" in out
    done = run_testdrive("replay", recording, "--drive", "null:?size=64MiB", "-o", run)
    assert done.returncode == 0, done.stderr
    for made in (recording, run):
        assert run_without_images("report", made) == 0
        page = (made / "report.html").read_text()
        assert "kernel lost" in page
        capsys.readouterr()
        assert main(["inspect", str(made)]) == 0
        said = capsys.readouterr().out
        assert "kernel lost" in " ".join(said.split()), said
