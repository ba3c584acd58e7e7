"""Opening recordings: sound, foreign, damaged, newer, crashed and in progress."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import fill_columns, open_recording, phase, this_process, write_recording, write_segment

from testdrive.errors import RecordingError
from testdrive.recording import COLUMNS, Recording

SOME = {
    "intended_ns": [0, 10, 20],
    "submit_ns": [1, 12, 20],
    "latency_ns": [5, -1, 7],
    "offset_bytes": [0, 4096, 8192],
    "length_bytes": [4096, 4096, 0],
    "opcode": [0, 1, 3],
    "stream": [0, 1, 0],
    "status": [0, 5, 0],
}


def edit_manifest(path: Path, **changes: object) -> None:
    file = path / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_recording_is_read_back_as_it_was_written(tmp_path):
    with open_recording(tmp_path / "a.rec", SOME, segment_rows=2) as recording:
        assert [segment.rows for segment in recording.segments] == [2, 1]
        rows = recording.rows_in_file_order(recording.table())
        for name, values in SOME.items():
            assert rows[name].tolist() == values
        assert recording.manifest.counts.ios == 3
        assert recording.manifest.counts.errors == 1
        assert not recording.recovered


def test_sums_beyond_the_precision_of_floats_arrive_exactly(tmp_path):
    big = 2**53 + 1
    with open_recording(tmp_path / "a.rec", {"submit_ns": [0, 0], "latency_ns": [big, 2]}) as recording:
        rows = recording.table()
        assert recording.execute(rows.aggregate(total=rows.latency_ns.sum()))["total"][0] == big + 2


def test_a_recording_without_segments_gives_an_empty_table_with_every_column(tmp_path):
    with open_recording(tmp_path / "a.rec") as recording:
        rows = recording.execute(recording.table())
        assert {name: len(values) for name, values in rows.items()} == dict.fromkeys(COLUMNS, 0)


def test_only_measured_phases_are_in_the_table_and_their_times_begin_at_zero(tmp_path):
    columns = {"submit_ns": [5, 1_005, 1_010], "latency_ns": 1, "phase": [0, 1, 1]}
    phases = [
        phase(0, kind="prepare", measured=False, start_ns=0, end_ns=900),
        phase(1, kind="replay", start_ns=1_000, end_ns=2_000),
    ]
    with open_recording(tmp_path / "a.rec", columns, phases=phases) as recording:
        rows = recording.rows_in_file_order(recording.table())
        assert rows["submit_ns"].tolist() == [5, 10]
        assert rows["intended_ns"].tolist() == [5, 10]
        assert len(recording.execute(recording.all_rows())["phase"]) == 3


def test_several_measured_phases_are_laid_end_to_end(tmp_path):
    columns = {"submit_ns": [110, 520], "latency_ns": 1, "phase": [1, 2]}
    phases = [
        phase(0, kind="prepare", measured=False, end_ns=100),
        phase(1, kind="synthetic", start_ns=100, end_ns=150),
        phase(2, kind="synthetic", start_ns=500, end_ns=600),
    ]
    with open_recording(tmp_path / "a.rec", columns, phases=phases) as recording:
        assert recording.rows_in_file_order(recording.table())["submit_ns"].tolist() == [10, 70]


def test_keys_that_this_version_does_not_know_are_kept(tmp_path):
    path = write_recording(tmp_path / "a.rec", SOME, status="running", future={"a": 1})
    Recording.open(path).close()
    assert json.loads((path / "manifest.json").read_text())["future"] == {"a": 1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_text("x"), "not a directory"),
        (lambda path: path.mkdir(), "manifest.json: is missing"),
    ],
)
def test_what_is_not_a_recording_is_refused_by_name(tmp_path, make, message):
    make(tmp_path / "a.rec")
    with pytest.raises(RecordingError, match=message):
        Recording.open(tmp_path / "a.rec")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a recording's manifest"),
        ('{"format": "other"}', "format is 'other'"),
        ('{"format": "testdrive-recording"}', "no valid version"),
        ('{"format": "testdrive-recording", "version": 2}', "version 2, newer than the 1"),
        ('{"format": "testdrive-recording", "version": 1}', "is damaged: kind"),
        ("\udcff", "is not text"),
    ],
)
def test_a_bad_manifest_is_refused_with_the_reason(tmp_path, text, message):
    path = write_recording(tmp_path / "a.rec", SOME)
    (path / "manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RecordingError, match=message):
        Recording.open(path)


def test_a_truncated_segment_is_refused_by_name(tmp_path):
    path = write_recording(tmp_path / "a.rec", SOME, segment_rows=2)
    segment = path / "ios" / "00001.parquet"
    segment.write_bytes(segment.read_bytes()[:-20])
    with pytest.raises(RecordingError, match=r"00001\.parquet: is damaged: it is not a whole Parquet"):
        Recording.open(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: [field for field in fields if field.name != "stream"], "stream is missing"),
        (lambda fields: [*fields, pa.field("op", pa.int32(), nullable=False)], "column op does not belong"),
        (lambda fields: [field.with_nullable(True) for field in fields], "intended_ns is OPTIONAL"),
        (
            lambda fields: [field.with_type(pa.int32()) for field in fields],
            "intended_ns is INT32, expected INT64",
        ),
    ],
)
def test_a_segment_with_another_schema_is_refused_with_the_difference(tmp_path, change, message):
    path = write_recording(tmp_path / "a.rec", SOME)
    segment = path / "ios" / "00000.parquet"
    schema = pa.schema(change(list(pq.read_schema(segment))))
    arrays = [pa.array(np.zeros(3, np.int64)).cast(field.type) for field in schema]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), segment)
    with pytest.raises(RecordingError, match=message):
        Recording.open(path)


def crashed(path: Path, writer: object) -> Path:
    write_recording(path, SOME, status="running", writer=writer, counts={"ios": 0})
    (path / "ios" / "00001.parquet.open").write_bytes(b"PAR1 half a segment")
    (path / "reserve").write_bytes(bytes(1024))
    return path


@pytest.mark.parametrize(
    "writer",
    [
        None,
        {**this_process(), "start_ticks": 1},
        {**this_process(), "boot_id": "another-boot"},
        {**this_process(), "pid": 2**22 + 1},
    ],
)
def test_a_crashed_recording_is_marked_interrupted_and_carries_on(tmp_path, writer):
    path = crashed(tmp_path / "a.rec", writer)
    with Recording.open(path) as recording:
        assert recording.recovered
        assert recording.manifest.status == "interrupted"
        assert len(recording.execute(recording.table())["submit_ns"]) == 3
    on_disk = json.loads((path / "manifest.json").read_text())
    assert on_disk["status"] == "interrupted"
    assert on_disk["counts"]["ios"] == 3
    assert on_disk["counts"]["errors"] == 1
    assert on_disk["counts"]["no_completion"] == 1
    assert on_disk["counts"]["span_ns"] == 27
    assert on_disk["counts"]["by_opcode"]["write"] == {
        "ios": 1,
        "bytes": 4096,
        "errors": 1,
        "length_max_bytes": 4096,
    }
    assert sorted(file.name for file in (path / "ios").iterdir()) == ["00000.parquet"]
    assert not (path / "reserve").exists()
    with Recording.open(path) as recording:
        assert not recording.recovered


def test_a_crash_before_the_first_segment_leaves_an_empty_interrupted_recording(tmp_path):
    path = write_recording(tmp_path / "a.rec", status="running")
    with Recording.open(path) as recording:
        assert recording.manifest.status == "interrupted"
        assert recording.manifest.counts.ios == 0


def test_a_recording_whose_writer_is_alive_is_left_alone(tmp_path):
    path = crashed(tmp_path / "a.rec", this_process())
    before = (path / "manifest.json").read_bytes()
    with Recording.open(path) as recording:
        assert recording.manifest.status == "running"
        assert len(recording.execute(recording.table())["submit_ns"]) == 3
    assert (path / "manifest.json").read_bytes() == before
    assert (path / "ios" / "00001.parquet.open").exists()


@pytest.mark.parametrize("held", [True, False])
def test_the_lock_of_the_writer_decides_whatever_process_the_manifest_names(tmp_path, held):
    # Another host's process may have any number, this one's own included.
    path = crashed(tmp_path / "a.rec", None if held else this_process())
    with (path / "writer.lock").open("wb") as lock:
        if held:
            fcntl.flock(lock, fcntl.LOCK_EX)
        with Recording.open(path) as recording:
            assert recording.manifest.status == ("running" if held else "interrupted")
    assert (path / "writer.lock").exists() is held
    assert (path / "ios" / "00001.parquet.open").exists() is held


def test_a_segment_that_was_closed_but_not_yet_renamed_is_kept(tmp_path):
    path = write_recording(tmp_path / "a.rec", SOME, status="running", segment_rows=2)
    last = path / "ios" / "00001.parquet"
    last.rename(last.with_suffix(".parquet.open"))
    with Recording.open(path) as recording:
        assert [segment.rows for segment in recording.segments] == [2, 1]
        assert recording.manifest.counts.ios == 3
    assert last.exists()


def test_a_crashed_recording_that_cannot_be_written_is_recovered_in_memory(tmp_path, monkeypatch):
    path = crashed(tmp_path / "a.rec", None)

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "unlink", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with Recording.open(path) as recording:
        assert recording.manifest.status == "interrupted"
        assert recording.manifest.counts.ios == 3
    assert json.loads((path / "manifest.json").read_text())["status"] == "running"


def test_a_segment_damaged_inside_is_reported_when_it_is_read(tmp_path):
    path = tmp_path / "a.rec"
    rng = np.random.default_rng(1)
    write_recording(path, {"submit_ns": np.arange(50_000), "latency_ns": rng.integers(1, 10**9, 50_000)})
    segment = path / "ios" / "00000.parquet"
    content = bytearray(segment.read_bytes())
    content[4:260] = b"\xff" * 256  # the header of the first page of the first column
    segment.write_bytes(bytes(content))
    with (
        Recording.open(path) as recording,
        pytest.raises(RecordingError, match=r"00000\.parquet: is damaged"),
    ):
        recording.execute(recording.table().aggregate(total=recording.table().intended_ns.sum()))


def test_segments_are_given_in_order(tmp_path):
    with open_recording(tmp_path / "a.rec", {"submit_ns": np.arange(10)}, segment_rows=4) as recording:
        firsts = [int(recording.execute(rows)["submit_ns"].min()) for _, rows in recording.iter_segments()]
        assert firsts == [0, 4, 8]


def test_the_temporary_directory_goes_with_the_recording(tmp_path):
    recording = open_recording(tmp_path / "a.rec", SOME)
    setting = "SELECT current_setting('temp_directory')"
    scratch = Path(recording.connect().raw_sql(setting).fetchone()[0])
    assert scratch.exists()
    recording.close()
    recording.close()
    assert not scratch.exists()


def test_a_segment_written_by_the_builder_passes_for_every_type(tmp_path):
    columns, absent = fill_columns({"intended_ns": [1]})
    assert absent == ["submit_ns", "latency_ns", "offset_bytes", "length_bytes", "stream"]
    (tmp_path / "ios").mkdir()
    write_segment(tmp_path / "ios" / "00000.parquet", columns)
    assert pq.read_schema(tmp_path / "ios" / "00000.parquet").names == list(COLUMNS)
