"""The demo, and the main job from end to end with the real engine."""

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
from support import missing
from workloads import write_workload

from testdrive.cli import main
from testdrive.demo import SAMPLE, claim, run_demo
from testdrive.engine import find_engine
from testdrive.errors import EngineError, UsageError
from testdrive.metrics import summarize
from testdrive.progress import LineDisplay
from testdrive.recording import Recording


@pytest.fixture
def _engine() -> None:
    """Skip where the engine was not built."""
    try:
        find_engine()
    except EngineError:
        missing("the engine's release build")


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return write_workload(tmp_path / "prod.rec")


def quiet(title: str) -> LineDisplay:
    from rich.console import Console

    return LineDisplay(Console(quiet=True), title)


def test_a_directory_that_no_demo_made_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="something that no demo made"):
        claim(tmp_path)
    with pytest.raises(UsageError, match="not a directory"):
        claim(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_earlier_demo_is_made_anew_but_what_stands_beside_it_stays(tmp_path: Path) -> None:
    output = tmp_path / "demo"
    claim(output)
    (output / "recordings" / "a.rec").mkdir(parents=True)
    (output / "index.html").write_text("old")
    (output / "notes.txt").write_text("mine")
    claim(output)
    assert {path.name for path in output.iterdir()} == {"notes.txt", ".testdrive-demo"}


def test_a_missing_sample_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"sample workload .* is missing"):
        run_demo(tmp_path / "out", quiet, sample=tmp_path / "none.rec")


@pytest.mark.slow
@pytest.mark.usefixtures("_engine")
def test_the_demo_ends_with_a_page_and_a_row_for_every_drive(tmp_path: Path, workload: Path) -> None:
    models = ("enterprise-mixed", "consumer-dramless")
    outcome = run_demo(tmp_path / "out", quiet, sample=workload, models=models, window=("1s", "2s"))
    assert [result.error for result in outcome.results] == [None, None, None]
    assert outcome.page == tmp_path / "out" / "index.html"
    assert outcome.page.is_file()
    assert [row["name"] for row in outcome.rows] == ["original", *models, "file"]
    assert all(row["peak_latency_ns"] > 0 for row in outcome.rows)
    assert not (tmp_path / "out" / "drive.img").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("_engine")
def test_the_shipped_sample_and_every_model_of_the_demo_are_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from testdrive.demo import MODELS

    if not SAMPLE.is_dir():
        missing("the sample workload")
    # Not through `inspect`, which would leave its summary in the package.
    with Recording.open(SAMPLE) as recording:
        summary = summarize(recording)
    assert summary["io_counts"]["by_opcode"]["trim"]["ios"] > 0
    assert summary["baseline_latency_ns"] > 0
    assert main(["drives", "--models", "--json"]) == 0
    assert set(MODELS) <= {model["name"] for model in json.loads(capsys.readouterr().out)}


@pytest.mark.usefixtures("_engine")
def test_a_replay_on_a_model_is_the_same_workload_and_repeatable(
    tmp_path: Path, workload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results: list[dict[str, Any]] = []
    for name in ("a.rec", "b.rec"):
        arguments = ["replay", str(workload), "--drive", "sim:enterprise-mixed", "--lba", "scale", "--json"]
        assert main([*arguments, "-o", str(tmp_path / name)]) == 0
        results += json.loads(capsys.readouterr().out)["results"]
    metrics = [result["metrics"] for result in results]
    assert metrics[0] == metrics[1]
    assert metrics[0]["fidelity.verdict"] == "faithful"


@pytest.mark.usefixtures("_engine")
def test_ctrl_c_ends_a_run_with_status_5_and_a_readable_recording(tmp_path: Path, workload: Path) -> None:
    output = tmp_path / "a.rec"
    image = tmp_path / "drive.img"
    target = f"file:{image}?size=64MiB"
    arguments = [
        "replay",
        str(workload),
        "--drive",
        target,
        "--lba",
        "scale",
        "--loop",
        "100",
        "-o",
        str(output),
    ]
    command = [sys.executable, "-m", "testdrive", *arguments]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stderr is not None
        for line in run.stderr:
            if "begins" in line:
                break
        # From then on only the replay writes it; what is in flight at the signal is waited for.
        made_ns = image.stat().st_mtime_ns
        deadline_s = time.monotonic() + 120
        while image.stat().st_mtime_ns == made_ns:
            assert run.poll() is None, run.stderr.read()
            assert time.monotonic() < deadline_s, "nothing was written"
            time.sleep(0.02)
        os.kill(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=300)
    finally:
        run.kill()
    assert run.returncode == 5
    assert "error: interrupted" in err
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    assert manifest["counts"]["ios"] > 0
