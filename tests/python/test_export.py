"""Recordings as traces for other tools, through the installed command: they read the same I/Os."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from builders import phase, write_recording
from support import loop_device, missing, require, run_testdrive

import testdrive
from testdrive.engine import find_engine
from testdrive.errors import EngineError

SAMPLE = Path(testdrive.__file__).parent / "samples" / "pgbench-trim.rec"
READ, WRITE, TRIM, FLUSH, WRITE_ZEROES = range(5)
BLOCK = 4096
#: I/Os of each kind, each a prime number.
KINDS = {READ: 211, WRITE: 307, TRIM: 53, FLUSH: 29}


def mixed(spacing_ns: int = 200_000) -> dict[str, Any]:
    """Rows of every kind that fio knows, spread over 16 MiB."""
    opcode = np.repeat(list(KINDS), list(KINDS.values()))
    np.random.default_rng(1).shuffle(opcode)
    ios = len(opcode)
    flush = opcode == FLUSH
    at = np.arange(ios)
    return {
        "intended_ns": 300_000_000 + at * spacing_ns,
        "submit_ns": 300_000_000 + at * spacing_ns + 1000,
        "latency_ns": np.full(ios, 80_000),
        "offset_bytes": np.where(flush, 0, at * 5 % 4096 * BLOCK),
        "length_bytes": np.where(flush, 0, BLOCK * (1 + at % 3)),
        "opcode": opcode,
        "flags": np.where(opcode == WRITE, 1, 0),
        "stream": at % 4,
        "status": np.zeros(ios, int),
    }


def recorded(
    path: Path, rows: dict[str, Any], *, kind: str = "import", phases: list[dict[str, Any]] | None = None
) -> Path:
    """A recording whose manifest has everything that the engine asks of one."""
    host = {"hostname": "h", "kernel": "6", "cpu_model": "c", "cpus": 1, "memory_bytes": 1 << 30}
    writer = {"pid": 1, "start_ticks": 1, "boot_id": ""}
    phases = phases or [phase(end_ns=0, accounting={})]
    return write_recording(path, rows, kind=kind, host=host, writer=writer, source={}, phases=phases)


def exported(recording: Path, output: Path | str, *options: str) -> subprocess.CompletedProcess[str]:
    done = run_testdrive("export", recording, "-o", output, *options)
    assert done.returncode == 0, done.stderr
    return done


def rows_of(recording: Path) -> dict[str, Any]:
    table = pq.read_table(recording / "ios")
    return {name: table[name].to_numpy() for name in table.column_names}


def replayed_by_fio(iolog: Path, target: Path | str, *options: str) -> dict[str, Any]:
    """What fio counts of a replay, by its own report.

    Some versions, 3.33 for one, read trims and then refuse each with a message: those count as read.
    """
    fio = require("fio")
    command = [
        fio,
        "--name=replay",
        f"--read_iolog={iolog}",
        f"--replay_redirect={target}",
        "--ioengine=psync",
    ]
    done = subprocess.run(
        [*command, "--output-format=json", *options], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bad iolog" not in done.stderr + done.stdout
    # What follows the report, or stands before it, is messages.
    report, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    job: dict[str, Any] = report["jobs"][0]
    assert job["error"] == 0
    job["trims_refused"] = (done.stdout + done.stderr).count(f"bad ddir: {TRIM}")
    return job


def test_a_recording_comes_back_from_csv_row_by_row(tmp_path: Path) -> None:
    csv = tmp_path / "sample.csv"
    done = exported(SAMPLE, csv, "--format", "csv")
    assert "not in the trace" not in done.stderr
    # No option says what the file is or which column is what.
    again = tmp_path / "again.rec"
    assert run_testdrive("import", csv, "-o", again).returncode == 0
    before, after = rows_of(SAMPLE), rows_of(again)
    for rows in (before, after):
        # Row groups overlap a little in time: the order of issue is what a reader makes of them.
        order = np.argsort(rows["intended_ns"], kind="stable")
        rows.update({name: values[order] for name, values in rows.items()})
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name], err_msg=name)
    manifests = [json.loads((path / "manifest.json").read_text()) for path in (SAMPLE, again)]
    assert manifests[0]["counts"] == manifests[1]["counts"]
    assert manifests[0]["absent_columns"] == manifests[1]["absent_columns"]


def test_a_recording_comes_back_from_blkparse_text(tmp_path: Path) -> None:
    text, again = tmp_path / "sample.txt", tmp_path / "again.rec"
    exported(SAMPLE, text, "--format", "blkparse")
    assert run_testdrive("import", text, "-o", again).returncode == 0
    before, after = rows_of(SAMPLE), rows_of(again)
    # Within one time the order is the text's own. Flushes may change places: events of two that are under way
    # at once have nothing to tell them apart by.
    keys = ("intended_ns", "offset_bytes", "length_bytes", "opcode", "flags", "stream")
    for name in keys:
        assert sorted(before[name].tolist()) == sorted(after[name].tolist()), name
    orders = [np.lexsort([rows[name] for name in reversed(keys)]) for rows in (before, after)]
    for name in keys:
        np.testing.assert_array_equal(before[name][orders[0]], after[name][orders[1]], err_msg=name)
    data = [rows["opcode"][order] != FLUSH for rows, order in zip((before, after), orders, strict=True)]
    for name in ("submit_ns", "latency_ns", "status"):
        same = before[name][orders[0]][data[0]] == after[name][orders[1]][data[1]]
        assert same.mean() > 0.999, name


def test_the_tools_of_blktrace_find_the_text_in_order(tmp_path: Path) -> None:
    verify = require("verify_blkparse")
    text = tmp_path / "sample.txt"
    exported(SAMPLE, text, "--format", "blkparse")
    done = subprocess.run([verify, text], capture_output=True, text=True, check=False)
    events = Counter(line.split()[5] for line in text.open())
    # One queue and one issue event for each I/O; a flush has two ends.
    flushes = json.loads((SAMPLE / "manifest.json").read_text())["counts"]["by_opcode"]["flush"]["ios"]
    assert events["Q"] == events["D"] == 316_381
    assert events["C"] <= 316_381 + flushes
    assert f"Events {events.total()}: 0 unordered" in done.stdout


def test_fio_replays_on_a_device_what_was_recorded(tmp_path: Path) -> None:
    require("fio")
    rows = mixed()
    recording, iolog = recorded(tmp_path / "mixed.rec", rows), tmp_path / "mixed.iolog"
    done = exported(recording, iolog, "--format", "fio-iolog", "--json")
    said = json.loads(done.stdout)
    with loop_device(tmp_path / "image", 32 << 20) as device:
        job = replayed_by_fio(iolog, device, "--replay_no_stall=1", "--direct=1")
    for name, code in (("read", READ), ("write", WRITE), ("trim", TRIM)):
        of = rows["opcode"] == code
        assert KINDS[code] == said["counts"]["by_opcode"][name]["ios"]
        if code == TRIM and job["trims_refused"]:
            assert job["trims_refused"] == KINDS[TRIM]
            continue
        assert job[name]["total_ios"] == KINDS[code]
        assert job[name]["io_bytes"] == rows["length_bytes"][of].sum()
    assert job["sync"]["total_ios"] == KINDS[FLUSH]


def test_fio_replays_at_the_times_that_were_recorded(tmp_path: Path) -> None:
    rows = mixed(spacing_ns=2_000_000)
    data = rows["opcode"] <= WRITE
    rows = {name: values[data] for name, values in rows.items()}
    recording, iolog = recorded(tmp_path / "timed.rec", rows), tmp_path / "timed.iolog"
    exported(recording, iolog, "--format", "fio-iolog")
    target = tmp_path / "file"
    with target.open("wb") as file:
        file.truncate(32 << 20)
    begun = time.monotonic()
    job = replayed_by_fio(iolog, target)
    took_s = time.monotonic() - begun
    span_s = (rows["intended_ns"][-1] - rows["intended_ns"][0]) / 1e9
    assert job["read"]["total_ios"] + job["write"]["total_ios"] == len(rows["opcode"])
    # Earlier it cannot be; how much later is the machine's business.
    assert took_s >= span_s > 1
    assert job["job_runtime"] / 1e3 >= span_s * 0.99


def test_fio_reads_its_own_name_for_what_it_replays(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "mixed.rec", mixed())
    iolog = tmp_path / "mixed.iolog"
    exported(recording, iolog, "--format", "fio-iolog", "--target", "/dev/null")
    assert iolog.read_text().splitlines()[1].endswith(" /dev/null add")


def test_only_measured_phases_are_exported_unless_others_are_asked_for(tmp_path: Path) -> None:
    rows = mixed()
    ios = len(rows["opcode"])
    rows["phase"] = np.where(np.arange(ios) < 100, 0, 1)
    phases = [
        phase(kind="prepare", measured=False, end_ns=0, accounting={}),
        phase(1, kind="replay", end_ns=0, accounting={}),
    ]
    recording = recorded(tmp_path / "run.rec", rows, kind="run", phases=phases)
    for chosen, expected in (("measured", ios - 100), ("all", ios), ("prepare", 100)):
        done = exported(
            recording, tmp_path / f"{chosen}.csv", "--format", "csv", "--phases", chosen, "--json"
        )
        assert json.loads(done.stdout)["counts"]["ios"] == expected
        assert len((tmp_path / f"{chosen}.csv").read_text().splitlines()) == expected + 1


def test_what_a_format_cannot_say_is_said(tmp_path: Path) -> None:
    rows = mixed()
    rows["opcode"] = np.where(rows["opcode"] == TRIM, WRITE_ZEROES, rows["opcode"])
    recording = recorded(tmp_path / "mixed.rec", rows)
    done = exported(recording, tmp_path / "a.iolog", "--format", "fio-iolog")
    assert f"left out: {KINDS[TRIM]} write_zeroes, for which an iolog has no word" in done.stderr
    kept = sum(KINDS.values()) - KINDS[TRIM]
    assert f"not in the trace: latency_ns of {kept} I/Os" in done.stderr
    assert f"not in the trace: flags of {KINDS[WRITE]} I/Os" in done.stderr
    assert f"{kept} I/Os" in done.stdout
    assert "--replay_redirect" in done.stdout
    said = json.loads(exported(recording, tmp_path / "b.iolog", "--format", "fio-iolog", "--json").stdout)
    assert [dropped["count"] for dropped in said["dropped"]] == [KINDS[TRIM]]
    lost = {lost["column"]: lost["ios"] for lost in said["not_carried"]}
    assert lost == {"latency_ns": kept, "submit_ns": kept, "flags": KINDS[WRITE], "stream": kept}


def test_a_file_is_named_after_the_recording_and_none_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recording = recorded(tmp_path / "mixed.rec", mixed())
    for name in ("mixed.blkparse", "mixed-2.blkparse"):
        done = run_testdrive("export", recording, "--format", "blkparse")
        assert f"trace: {name}" in done.stdout
        assert (tmp_path / name).is_file()
    done = run_testdrive("export", recording, "--format", "csv", "-o", "mixed.blkparse")
    assert done.returncode == 2
    assert "overwrites nothing" in done.stderr


def test_the_trace_goes_to_standard_output_alone(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "mixed.rec", mixed())
    exported(recording, tmp_path / "mixed.csv", "--format", "csv")
    assert exported(recording, "-", "--format", "csv").stdout == (tmp_path / "mixed.csv").read_text()
    done = run_testdrive("export", recording, "--format", "csv", "-o", "-", "--json")
    assert done.returncode == 2
    assert "choose a file" in done.stderr


def test_a_reader_that_has_enough_ends_the_export_without_a_word() -> None:
    try:
        find_engine()
    except EngineError:
        missing("the engine's release build")
    command = [os.fspath(Path(sys.executable).parent / "testdrive"), "export", os.fspath(SAMPLE)]
    with subprocess.Popen(
        [*command, "--format", "blkparse", "-o", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert " Q " in process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert "error" not in said
    assert "left out" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "pcap"], "'pcap' is not one of"),
        (["--format", "csv", "--times", "submit"], "--times does not fit csv"),
        (["--format", "csv", "--phases", "warm-up"], "no phase 'warm-up'"),
        (["--format", "blkparse", "--device", "sda"], "'sda'"),
        (["--format", "fio-iolog", "--target", "my disk"], "white space"),
    ],
)
def test_what_cannot_be_exported_is_one_message(options: list[str], message: str, tmp_path: Path) -> None:
    recording = recorded(tmp_path / "mixed.rec", mixed())
    done = run_testdrive("export", recording, "-o", tmp_path / "out", *options)
    assert (done.returncode, done.stderr.count("error:")) == (2, 1), done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
