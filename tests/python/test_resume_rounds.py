"""Going on with a run that was interrupted within rounds: they begin anew, and only the new ones count."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cutting import cut_before_its_end
from support import run_without_images

from testdrive.methods.matrix import cells_of
from testdrive.methods.rounds import group_of
from testdrive.methods.runs import Run
from testdrive.metrics import summarize
from testdrive.recording import Recording
from testdrive.report.subject import subject

ROUNDS_MAX = 5


def phases_of(recording: Path) -> list[dict[str, Any]]:
    """The phases of the manifest, also while the run goes on."""
    manifest = recording / "manifest.json"
    found: list[dict[str, Any]] = json.loads(manifest.read_text())["phases"] if manifest.exists() else []
    return found


def cut_in_round(recording: Path, arguments: list[str], number: int) -> None:
    """Run the command until a phase other than the first of this round has begun, then interrupt it."""
    command = [os.fspath(Path(sys.executable).parent / "testdrive"), *arguments, "-o", os.fspath(recording)]

    def attempt() -> tuple[int, str]:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline_s = time.monotonic() + 120
        while sum(each["settings"].get("round") == number for each in phases_of(recording)) < 2:
            if run.poll() is not None:
                break
            assert time.monotonic() < deadline_s, f"round {number} did not begin"
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=300)
        return run.returncode, said

    cut_before_its_end(recording, attempt, signal.SIGINT)


@pytest.mark.slow
def test_rounds_that_were_cut_are_run_again_from_the_first_and_only_those_are_judged(tmp_path: Path) -> None:
    recording, image = tmp_path / "a.rec", tmp_path / "disk.img"
    image.write_bytes(bytes(64 << 20))
    settings = ["--set", "for=100ms", "--set", f"rounds-max={ROUNDS_MAX}", "--set", "span=1"]
    arguments = ["run", "pts-latency", "--drive", f"file:{image}", "--erase", str(image), *settings]
    cut_in_round(recording, arguments, 1)
    before = phases_of(recording)
    assert run_without_images(*arguments, "--resume", recording) == 0

    with Recording.open(recording) as opened:
        manifest = opened.manifest
        (gap,) = manifest.gaps
        # The preparation stands right before the rounds, which write: it is run again with them.
        assert gap.set_aside == [phase["index"] for phase in before]
        run = Run(subject("a", "drive", 0, opened, summarize(opened)))
        group = group_of(run, "latency")
        assert group is not None
        members = len(group.phases)
        assert members > 1
        names = {phase.name for phase in run.phases if "round" in (phase.settings or {})}
        assert set(group.phases) == names
        assert not any("partial" in name or "superseded" in name for name in names)
        rounds = [(phase.settings or {})["round"] for phase in run.phases if phase.name in names]
        assert rounds == [number for number in range(group.done) for _ in range(members)]
        assert group.done == ROUNDS_MAX or group.achieved
        # What is tracked is what the new rounds' own I/Os come to, by another way than the engine's.
        (tracked,) = group.tracked
        own = [run.totals(phase) for phase in group.phases[tracked.phase]]
        means_ns = [each.sum_ns / each.ios if each.ios else math.nan for each in own]
        assert tracked.values == pytest.approx(means_ns, rel=1e-6)
        cells = cells_of(run, group)
        assert len(cells) == members
        assert all(cell.rounds == group.done - group.window_first for cell in cells.values())
        measured = [phase for phase in manifest.phases if phase.measured]
        assert all(phase.start_ns >= gap.resumed_ns for phase in measured)

    assert run_without_images("report", recording) == 0
    page = (recording / "report.html").read_text()
    tables = [path.read_text() for path in (recording / "tables").glob("*.csv")]
    assert tables
    assert not any("-superseded" in table or "-partial" in table for table in tables)
    assert "was resumed" in page
    assert "pts-latency-rounds" in page


@pytest.mark.slow
def test_rounds_that_were_cut_twice_before_one_was_over_have_no_result(tmp_path: Path) -> None:
    recording, image = tmp_path / "a.rec", tmp_path / "disk.img"
    image.write_bytes(bytes(64 << 20))
    settings = ["--set", "for=100ms", "--set", f"rounds-max={ROUNDS_MAX}", "--set", "span=1"]
    arguments = ["run", "pts-latency", "--drive", f"file:{image}", "--erase", str(image), *settings]
    cut_in_round(recording, arguments, 1)
    with Recording.open(recording) as opened:
        found = group_of(Run(subject("a", "drive", 0, opened, {})), "latency")
        assert found is not None
        # More than one if the host stood still before it sent the signal.
        assert 1 <= found.done < ROUNDS_MAX
    # As if it had been resumed, and interrupted before anything was run again.
    content = json.loads((recording / "manifest.json").read_text())
    end_ns = max(phase["end_ns"] for phase in content["phases"])
    aside = [phase["index"] for phase in content["phases"]]
    content["gaps"] = [{"after_ns": end_ns, "resumed_ns": end_ns + 2_000_000_000, "set_aside": aside}]
    (recording / "manifest.json").write_text(json.dumps(content))
    with Recording.open(recording) as opened:
        assert group_of(Run(subject("a", "drive", 0, opened, {})), "latency") is None
