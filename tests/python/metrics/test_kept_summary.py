"""When the summary beside a recording is read, and when it is computed again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders import write_recording

from testdrive.durable_json import write_json
from testdrive.metrics import SUMMARY_NAME, kept_summary, summarize, summary_of, write_summary
from testdrive.recording import Recording

IOS = 1000
ROWS = {
    "submit_ns": np.arange(IOS) * 10**6,
    "intended_ns": np.arange(IOS) * 10**6,
    "latency_ns": np.arange(IOS) % 97 * 1000 + 1000,
    "offset_bytes": np.arange(IOS) * 4096,
    "length_bytes": 4096,
    "opcode": np.arange(IOS) % 4,
    "stream": 0,
}
#: What stands in the file of a test and in no computed summary, so that it shows which of them was returned.
MARK = "read from the file"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with its summary, which is marked and ten seconds newer than everything else."""
    path = write_recording(tmp_path / "a.rec", ROWS, segment_rows=400)
    (path / "telemetry.jsonl").touch()
    (path / "meters").mkdir()
    (path / "meters" / "live.jsonl").touch()
    with Recording.open(path) as opened:
        write_summary(opened)
    write_marked(path)
    return path


def write_marked(path: Path, **changes: object) -> None:
    """Write the summary anew with the mark and other changes."""
    summary = json.loads((path / SUMMARY_NAME).read_text())
    write_json(path / SUMMARY_NAME, {**summary, "mark": MARK, **changes})
    age(path / SUMMARY_NAME, newer_by_s=10)


def age(path: Path, *, newer_by_s: float) -> None:
    """Set when a file was modified, against the time at which the code was."""
    at_ns = kept_summary._code_ns() + 10**12 + int(newer_by_s * 1e9)
    os.utime(path, ns=(at_ns, at_ns))


@pytest.fixture(autouse=True)
def everything_else_is_older(recording: Path) -> None:
    for path in recording.rglob("*"):
        if path.name != SUMMARY_NAME:
            age(path, newer_by_s=0)


def is_read(path: Path) -> bool:
    with Recording.open(path) as opened:
        return summary_of(opened).get("mark") == MARK


def test_a_summary_that_is_newer_than_its_recording_is_read(recording: Path) -> None:
    assert is_read(recording)


def test_what_is_read_is_what_would_be_computed(recording: Path) -> None:
    with Recording.open(recording) as opened:
        computed = summarize(opened)
        assert {**summary_of(opened), "mark": None} == {**computed, "mark": None}


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "ios/00000.parquet",
        "ios/00002.parquet",
        "telemetry.jsonl",
        "meters/live.jsonl",
        "ios",
    ],
)
def test_whatever_is_as_new_as_the_summary_has_it_computed_again(recording: Path, name: str) -> None:
    age(recording / name, newer_by_s=9.9)
    assert is_read(recording)
    age(recording / name, newer_by_s=10)
    assert not is_read(recording)


def test_a_log_that_is_brought_in_has_it_computed_again(recording: Path) -> None:
    age(recording / SUMMARY_NAME, newer_by_s=10)
    (recording / "meters" / "second.jsonl").touch()
    age(recording / "meters", newer_by_s=11)
    age(recording / "meters" / "second.jsonl", newer_by_s=-5)
    assert not is_read(recording)


def test_pages_beside_the_summary_leave_it_current(recording: Path) -> None:
    (recording / "report.html").touch()
    age(recording / "report.html", newer_by_s=100)
    assert is_read(recording)


def test_code_that_is_newer_has_it_computed_again(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer_ns = (recording / SUMMARY_NAME).stat().st_mtime_ns
    monkeypatch.setattr(kept_summary, "_code_ns", lambda: newer_ns - 1)
    assert is_read(recording)
    monkeypatch.setattr(kept_summary, "_code_ns", lambda: newer_ns)
    assert not is_read(recording)


def renamed(path: Path) -> Path:
    return path.rename(path.with_name("b.rec"))


def written_by_another_version(path: Path) -> Path:
    write_marked(path, tool_version="0.0.0")
    return path


def with_other_keys(path: Path) -> Path:
    write_marked(path, version=0)
    return path


def of_a_run_that_went_on(path: Path) -> Path:
    write_marked(path, recording={"name": path.name, "status": "interrupted"})
    return path


def torn(path: Path) -> Path:
    (path / SUMMARY_NAME).write_text(f'{{"mark": "{MARK}"')
    age(path / SUMMARY_NAME, newer_by_s=10)
    return path


def no_summary(path: Path) -> Path:
    (path / SUMMARY_NAME).write_text("[]")
    age(path / SUMMARY_NAME, newer_by_s=10)
    return path


def none(path: Path) -> Path:
    (path / SUMMARY_NAME).unlink()
    return path


@pytest.mark.parametrize(
    "change",
    [renamed, written_by_another_version, with_other_keys, of_a_run_that_went_on, torn, no_summary, none],
)
def test_a_summary_of_something_else_is_computed_again(
    recording: Path, change: Callable[[Path], Path]
) -> None:
    path = change(recording)
    with Recording.open(path) as opened:
        assert summary_of(opened) == summarize(opened)
