"""Damage done to recordings: it is told, with the file and what to do, or it changes nothing that is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from builders import phase, write_recording
from support import run_testdrive

from testdrive.engine import find_engine
from testdrive.errors import RecordingError
from testdrive.power.files import lines_of
from testdrive.recording import Recording
from testdrive.search.history import HISTORY_NAME, read_history


@pytest.fixture
def recorded(tmp_path) -> Callable[..., Path]:
    """Makes a recording with the engine, so that its segments are as they are written."""

    def record(name: str = "a.rec", **job: Any) -> Path:
        path = tmp_path / name
        job = {
            "version": 1,
            "drive": {"uri": "sim:sata?capacity=16GiB"},
            "output": str(path),
            "phases": [{"kind": "synthetic", "ios": 90, "depth": 4, "read_share": 0.5}],
            **job,
        }
        run = subprocess.run(
            [find_engine(), "run"], input=json.dumps(job), text=True, capture_output=True, check=False
        )
        assert run.returncode == 0, run.stdout
        return path

    return record


def everything(path: Path) -> dict[str, list[int]]:
    with Recording.open(path, threads=1) as recording:
        tables = [recording.all_rows(), recording.slowest_rows(), recording.intervals()]
        read = [recording.execute(table) for table in tables]
        recording.telemetry()
    return {f"{number} {key}": rows[key].tolist() for number, rows in enumerate(read) for key in rows}


def changed(file: Path, at: int, change: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= change
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("keep", "name"), [("rows", "ios"), ("slowest", "slowest"), ("slowest", "intervals")]
)
def test_a_changed_byte_of_a_segment_is_told_by_name_or_means_nothing(recorded, keep, name):
    path = recorded(keep=keep)
    file = path / name / "00000.parquet"
    sound, whole = file.read_bytes(), everything(path)
    random = np.random.default_rng(3)
    told = 0
    places = random.choice(len(sound), 12, replace=False)
    for at in places:
        changed(file, int(at), int(random.choice([0x01, 0x10, 0x80, 0xFF])))
        try:
            assert everything(path) == whole, f"byte {at} was believed"
        except RecordingError as error:
            told += 1
            message = str(error)
            assert message.startswith(f"{file}: ")
            assert f"rename it to {file.name}.damaged" in message
            assert message.isprintable()
        file.write_bytes(sound)
    assert told > len(places) / 2


@pytest.mark.parametrize("change", [0x04, 0x10])
def test_a_page_that_says_that_it_has_fewer_values_is_told(recorded, change):
    # No checksum of Parquet's covers what a page's header says, and DuckDB believes it.
    path = recorded()
    file = path / "ios" / "00000.parquet"
    # Of the first page of data: 90 values, in the encoding of times.
    at = file.read_bytes().index(b"\x1c\x15\xb4\x01\x15\x0a") + 2
    changed(file, at, change)
    with pytest.raises(
        RecordingError, match=r"ios/00000\.parquet: is damaged: a page of it is not as it was"
    ):
        everything(path)


def test_other_readers_find_a_changed_byte_too(recorded):
    file = recorded() / "ios" / "00000.parquet"
    assert pq.ParquetFile(file, page_checksum_verification=True).read().num_rows == 90
    # The last byte of the first page: the frame's own checksum.
    first = pq.ParquetFile(file).metadata.row_group(0).column(0)
    changed(file, first.data_page_offset + first.total_compressed_size - 1, 0x01)
    with pytest.raises(duckdb.Error, match="Decompression"):
        duckdb.sql(f"SELECT sum(intended_ns) FROM '{file}'").fetchall()
    with pytest.raises(OSError, match="ZSTD"):
        pq.ParquetFile(file).read()
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(file, page_checksum_verification=True).read()


def no_file(path: Path, what: str) -> None:
    path.unlink(missing_ok=True)
    match what:
        case "empty":
            path.touch()
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)


@pytest.mark.parametrize("what", ["empty", "directory", "pipe"])
@pytest.mark.parametrize("name", ["manifest.json", "telemetry.jsonl", "ios/00000.parquet"])
def test_what_is_no_file_of_a_recording_is_told_and_never_waited_for(recorded, name, what):
    path = recorded()
    no_file(path / name, what)
    with pytest.raises(RecordingError) as refused:
        everything(path)
    assert str(refused.value).startswith(f"{path / name}: ")


def test_a_pipe_among_the_files_of_meters_is_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "live.jsonl")
    with pytest.raises(RecordingError, match="it is not a regular file"):
        list(lines_of(tmp_path / "live.jsonl"))


def test_a_segment_that_is_gone_is_told_until_somebody_decides_to_do_without(tmp_path):
    rows = {"submit_ns": np.arange(30), "latency_ns": 5}
    path = write_recording(tmp_path / "a.rec", rows, segment_rows=10)
    (path / "ios" / "00001.parquet").unlink()
    with pytest.raises(RecordingError) as refused:
        everything(path)
    assert str(refused.value) == (
        f"{path}: is damaged: its segments hold 20 I/Os, and its manifest counts 30; ios/00001.parquet is"
        " missing: restore it from a copy, or make an empty file ios/00001.parquet.damaged to do without its"
        " I/Os"
    )
    (path / "ios" / "00001.parquet.damaged").touch()
    assert everything(path)["0 submit_ns"] == [*range(10), *range(20, 30)]
    with Recording.open(path) as recording:
        (warning,) = [each for each in recording.manifest.warnings if each.code == "segments_left_out"]
    assert "ios/00001.parquet.damaged is left out" in warning.message


def test_histograms_that_are_gone_are_told(recorded):
    path = recorded(keep="slowest")
    (path / "intervals" / "00000.parquet").unlink()
    with pytest.raises(RecordingError, match=r"hold 0 I/Os.*counts 90; intervals/00000\.parquet is missing"):
        everything(path)


@pytest.mark.parametrize("command", ["inspect", "export", "replay"])
def test_every_command_tells_damage_in_one_message_with_status_2(recorded, tmp_path, command):
    path = recorded()
    file = path / "ios" / "00000.parquet"
    (path / "summary.json").unlink(missing_ok=True)
    changed(file, 100, 0x10)
    more = {
        "export": ["--format", "csv", "-o", tmp_path / "a.csv"],
        "replay": ["--drive", "null:", "-o", tmp_path / "b.rec"],
    }
    ended = run_testdrive(command, path, *more.get(command, []))
    assert ended.returncode == 2, ended.stderr
    told = "".join((ended.stdout + ended.stderr).split())
    assert all(part in told for part in (str(file), "isdamaged", "00000.parquet.damaged")), ended.stderr
    assert not any(part in told for part in ("Traceback", "panicked")), ended.stderr


def test_a_full_disk_under_the_output_is_told_with_status_4():
    command = [sys.executable, "-m", "testdrive", "plans"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "error: No space left on device; free some space on that disk, or give a place on another\n"
    assert (ended.returncode, ended.stderr) == (4, told)


def test_a_damaged_search_is_told(tmp_path):
    (tmp_path / HISTORY_NAME).write_text("{")
    with pytest.raises(RecordingError, match=r"is damaged: .*; restore it from a copy, or remove it"):
        read_history(tmp_path)


def test_the_phase_that_a_crash_cut_off_ends_with_its_last_io(tmp_path):
    rows = {"submit_ns": [1_000, 2_000], "latency_ns": 70}
    phases = [phase(0, kind="synthetic", start_ns=900, end_ns=900)]
    path = write_recording(tmp_path / "a.rec", rows, status="running", phases=phases)
    with Recording.open(path) as recording:
        assert recording.manifest.phases[0].end_ns == 2_070
