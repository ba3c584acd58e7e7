"""Series with known answers, brought as CSV through the command that anyone would use."""

from __future__ import annotations

import json
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metrics.reference_drives import DRIVES, Drive, series
from support import require, run_testdrive

US = 1_000


def inspected(csv: Path, columns: str) -> dict[str, Any]:
    """What `inspect --json` says of an imported file."""
    recording = csv.with_suffix(".rec")
    done = run_testdrive("import", csv, "--format", "csv", "--columns", columns, "-o", recording)
    assert done.returncode == 0, done.stderr
    done = run_testdrive("inspect", recording, "--json")
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_a_million_ios_of_5_us_and_one_of_a_second(tmp_path: Path) -> None:
    csv = tmp_path / "million.csv"
    with csv.open("w", encoding="ascii") as file:
        file.write("submit_us,latency_us,op,offset_bytes,length_bytes\n")
        file.writelines(f"{5 * at},5,R,{4096 * (at % 1000)},4096\n" for at in range(1_000_000))
        file.write("5000000,1000000,R,0,4096\n")
    columns = ",".join(f"{name}={name}" for name in ("submit_us", "latency_us", "op", "offset_bytes"))
    summary = inspected(csv, columns + ",length_bytes=length_bytes")
    assert summary["io_counts"]["ios"] == 1_000_001
    # Nearly all I/Os are fast, and yet a sixth of the time was spent in one.
    assert summary["latency_weighted_share_at_ns"]["5000"] == pytest.approx(5 / 6, abs=1e-12)
    assert summary["percentiles_ns"]["io_weighted"]["p99_999"] == 5 * US
    assert summary["percentiles_ns"]["latency_weighted"]["p50"] == 5 * US
    assert summary["percentiles_ns"]["latency_weighted"]["p90"] == 1_000_000 * US
    assert summary["stall_time"]["10000000"] == pytest.approx(0.99 / 6)
    assert summary["workload"]["iops_mean"] == pytest.approx(1_000_001 / 6)
    assert summary["baseline_latency_ns"] == 5 * US
    assert (summary["peak_latency_ns"], summary["peak_time_ns"]) == (1_000_000 * US, 5_000_000 * US)
    assert summary["recovery_code"] == "no_burst"
    assert summary["recording"]["absent_columns"] == ["intended_ns", "flags", "stream", "status"]


def _rows() -> list[Any]:
    """One row of each kind; two that differ most are enough for the fast tests."""
    marks = {"D": [pytest.mark.slow], "F": [], "G": [pytest.mark.slow], "I": []}
    return [pytest.param(one, marks=marks[one.name], id=one.name) for one in DRIVES if one.name in marks]


@pytest.mark.parametrize("drive", _rows())
def test_rows_of_the_reference_table(drive: Drive, tmp_path: Path) -> None:
    made = series(drive, seed=1)
    csv = tmp_path / "drive.csv"
    # Columns by index, times as fractions of a microsecond.
    times = ("intended_ns", "submit_ns", "latency_ns")
    table = [
        *(made[name] / US for name in times),
        np.where(made["opcode"] == 0, "read", "write"),
        made["offset_bytes"],
        made["length_bytes"],
        made["stream"],
    ]
    with csv.open("w", encoding="ascii") as file:
        file.write("intended,submit,latency,op,offset,length,stream\n")
        file.writelines(
            f"{a:.3f},{b:.3f},{c:.3f},{d},{e},{f},{g}\n" for a, b, c, d, e, f, g in zip(*table, strict=True)
        )
    columns = "intended_us=0,submit_us=1,latency_us=2,op=3,offset_bytes=4,length_bytes=5,stream=6"
    summary = inspected(csv, columns)
    assert summary["recording"]["absent_columns"] == ["flags", "status"]
    assert summary["recovery_code"] == drive.code
    assert summary["peak_latency_ns"] == drive.peak_us * US
    if drive.code == "never_recovered":
        assert summary["baseline_latency_ns"] is None
        assert summary["level_before_burst_ns"] == pytest.approx(drive.baseline_us * US, rel=0.05)
    else:
        assert summary["baseline_latency_ns"] == pytest.approx(drive.baseline_us * US, rel=0.05)
    if drive.code is None:
        assert drive.recovery_s is not None
        assert summary["recovery_ns"] == pytest.approx(drive.recovery_s * 1e9, abs=0.3e9)
    assert len(summary["bursts"]) == len(drive.bursts_s)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("submit_us=nope,op=op", "there is no column 'nope' for submit_us"),
        ("submit_us=9,op=op", "there is no column '9' for submit_us"),
        ("submit=when,op=op", "'submit' is no key of --columns"),
        ("submit_us=when,op=lat", "line 2: op (column 'lat') is '5.5'"),
        ("submit_us=when,submit_ns=lat,op=op", "for the same thing"),
    ],
)
def test_columns_that_are_wrong_are_named_with_what_there_is(
    columns: str, message: str, tmp_path: Path
) -> None:
    csv = tmp_path / "x.csv"
    csv.write_text("when,lat,op\n0,5.5,R\n10,7,W\n")
    done = run_testdrive("import", csv, "--format", "csv", "--columns", columns, "-o", tmp_path / "x.rec")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "x.rec").exists()


def test_each_volume_becomes_a_recording_that_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("0,8,4096,r,0.5\n1,8,512,W,1.5\n0,16,4096,R,2.5\n", encoding="ascii")
    done = run_testdrive("import", trace, "-o", tmp_path / "t.rec", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["recording"], result["counts"]["ios"], result["counts"]["span_ns"]) == (None, 3, 2 * 10**9)
    made = [(one["volume"], one["counts"]["ios"], Path(one["recording"])) for one in result["recordings"]]
    assert made == [("0", 2, tmp_path / "t.0.rec"), ("1", 1, tmp_path / "t.1.rec")]
    assert all((path / "manifest.json").is_file() for _, _, path in made)
    shown = run_testdrive("import", trace, "-o", tmp_path / "u.rec")
    assert f"{tmp_path}/u.0.rec" in shown.stdout
    assert f"next: testdrive inspect {tmp_path}/u.0.rec" in shown.stdout
    chosen = run_testdrive("import", trace, "-o", tmp_path / "v.rec", "--volume", "1")
    assert f"recording: {tmp_path}/v.rec" in chosen.stdout
    refused = run_testdrive("import", trace, "-o", tmp_path / "w.rec", "--volume", "7")
    assert refused.returncode == 2
    assert "no I/O of volume '7'" in refused.stderr


def test_the_list_of_formats_fits_a_terminal() -> None:
    from rich.console import Console

    from testdrive.cli.tables import formats_table
    from testdrive.engine import list_formats

    console = Console(width=80, record=True, file=StringIO())
    formats = list_formats()
    console.print(formats_table(formats))
    text = console.export_text()
    assert all(len(line) <= 80 for line in text.splitlines())
    # No word of a column that programs are given is folded away.
    for each in formats:
        assert f" {each['name']} " in text
        assert f" {each['found_by']} " in text


def test_what_fio_logged_is_what_fio_counted(tmp_path: Path) -> None:
    fio = require("fio")
    log = tmp_path / "log.iolog"
    files = [tmp_path / "one", tmp_path / "two"]
    job = [
        "--name=job",
        f"--filename={files[0]}:{files[1]}",
        "--size=8m",
        "--rw=randrw",
        "--bsrange=4k-64k",
        "--ioengine=psync",
        "--number_ios=503",
        "--fsync=7",
        f"--write_iolog={log}",
        "--output-format=json",
    ]
    done = subprocess.run([fio, *job], capture_output=True, text=True, check=True, cwd=tmp_path)
    counted = json.loads(done.stdout)["jobs"][0]
    imported = run_testdrive("import", log, "-o", tmp_path / "log.rec", "--json")
    assert imported.returncode == 0, imported.stderr
    result = json.loads(imported.stdout)
    by_opcode = result["counts"]["by_opcode"]
    for opcode in ("read", "write"):
        assert by_opcode[opcode]["ios"] == counted[opcode]["total_ios"]
        assert by_opcode[opcode]["bytes"] == counted[opcode]["io_bytes"]
    assert by_opcode["flush"]["ios"] == counted["sync"]["total_ios"] > 0
    assert {one["volume"] for one in result["recordings"]} == set(map(str, files))
    assert {Path(one["recording"]).parent for one in result["recordings"]} == {tmp_path}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("db/sda.blktrace.0", "sda.blktrace.0"),
        (".", "prod"),
        ("..", "traces"),
        ("./", "prod"),
        ("/", "trace"),
    ],
)
def test_a_trace_is_called_by_its_file_or_folder(
    given: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from testdrive.cli.naming import trace_name

    folder = tmp_path / "traces" / "prod"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert trace_name(Path(given)) == name
