"""Real traces through the command: each I/O against what Python reads, counts against the traces' notes."""

from __future__ import annotations

import json
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import real_traces
from real_traces import READ, TRIM, WRITE, Io
from support import run_testdrive

from testdrive.recording import Recording

S = 10**9


def imported(trace: Path, output: Path, *options: str) -> dict[str, Any]:
    """What `import --json` says was made."""
    done = run_testdrive("import", trace, "-o", output, "--json", *options)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def recorded(result: dict[str, Any]) -> tuple[list[Io], list[Recording]]:
    """Every row of what was made, with its time on the trace's own clock."""
    ios, opened = [], []
    for one in result["recordings"]:
        recording = Recording.open(one["recording"])
        opened.append(recording)
        shift_ns = recording.manifest.clock.shift_ns
        rows = recording.execute(recording.all_rows())
        names = ("submit_ns", "latency_ns", "opcode", "offset_bytes", "length_bytes")
        for time_ns, *rest in zip(*(rows[name].tolist() for name in names), strict=True):
            ios.append(Io(time_ns + shift_ns, *rest, one["volume"]))
    return ios, opened


def check(result: dict[str, Any], expected: list[Io]) -> list[Recording]:
    """The same I/Os to the nanosecond and the byte, each as often as it is there; one time zero for all."""
    ios, opened = recorded(result)
    assert len(ios) == len(expected)
    assert Counter(ios) == Counter(expected)
    zero_ns = min(io.time_ns for io in expected) // S * S
    assert {recording.manifest.clock.shift_ns for recording in opened} == {zero_ns}
    by_opcode = Counter(io.opcode for io in expected)
    counts = result["counts"]["by_opcode"]
    names = {READ: "read", WRITE: "write", TRIM: "trim"}
    assert {name: found["ios"] for name, found in counts.items()} == {
        names[opcode]: count for opcode, count in by_opcode.items()
    }
    return opened


def absent(opened: list[Recording]) -> set[str]:
    return {column for recording in opened for column in recording.manifest.absent_columns}


PLAIN = {"submit_ns", "latency_ns", "flags", "stream", "status"}


def test_msr_cambridge(tmp_path: Path) -> None:
    trace = real_traces.folder("msr-cambridge-hm0-head") / "hm_0.first118.csv"
    result = imported(trace, tmp_path / "a.rec")
    opened = check(result, real_traces.msr(trace))
    assert result["counts"]["ios"] == 118
    assert (result["recording"], result["recordings"][0]["volume"]) == (str(tmp_path / "a.rec"), "hm_0")
    assert absent(opened) == {"intended_ns", "flags", "stream", "status"}


def test_spc(tmp_path: Path) -> None:
    trace = real_traces.folder("ssdsim-ascii") / "financial1-first10k.DERIVED.spc"
    opened = check(imported(trace, tmp_path / "a.rec"), real_traces.spc(trace))
    assert (len(opened), absent(opened)) == (22, PLAIN)


def test_disksim_whose_fractions_tell_it(tmp_path: Path) -> None:
    trace = real_traces.folder("disksim-ascii") / "ssd-iozone-aligned2-100K.trace.gz"
    result = imported(trace, tmp_path / "a.rec")
    check(result, real_traces.simulator(trace, "ms"))
    # 100,000 writes from 5.27 s to 941.7 s.
    assert result["counts"]["by_opcode"]["write"]["ios"] == 100_000
    assert result["counts"]["span_ns"] == 941_714_422_000 - 5_265_313_000


@pytest.mark.parametrize(
    ("name", "format_name", "reads", "writes"),
    [
        ("ssdsim-ascii/example.ascii", "ssdsim", 4_077, 5_923),
        ("mqsim/tpcc-small.trace", "mqsim", 4_381, 2_618),
        ("mqsim/wsrch-small.trace", "mqsim", 24_779, 4),
    ],
)
def test_simulators_that_look_alike_ask(
    name: str, format_name: str, reads: int, writes: int, tmp_path: Path
) -> None:
    trace = real_traces.folder(name.partition("/")[0]) / name.partition("/")[2]
    asked = run_testdrive("import", trace, "-o", tmp_path / "a.rec")
    assert asked.returncode == 2
    assert "so say which it is with --format NAME" in asked.stderr
    for format_that_fits in ("disksim", "ssdsim", "mqsim"):
        assert f"  {format_that_fits}: times in " in asked.stderr
    assert not list(tmp_path.iterdir())
    result = imported(trace, tmp_path / "a.rec", "--format", format_name)
    opened = check(result, real_traces.simulator(trace, "ns"))
    counts = result["counts"]["by_opcode"]
    assert (counts["read"]["ios"], counts["write"]["ios"], absent(opened)) == (reads, writes, PLAIN)


def test_one_volume_of_several_is_chosen(tmp_path: Path) -> None:
    trace = real_traces.folder("mqsim") / "tpcc-small.trace"
    options = ("--format", "mqsim", "--volume", "13")
    ios, opened = recorded(imported(trace, tmp_path / "a.rec", *options))
    expected = real_traces.simulator(trace, "ns")
    assert Counter(ios) == Counter(io for io in expected if io.volume == "13")
    assert opened[0].manifest.clock.shift_ns == 0


@pytest.mark.parametrize(
    ("name", "ios", "writes"), [("linux-mysql", 80_794, 73_607), ("windows-shared-server", 1_371, 1_371)]
)
def test_blkreplay(name: str, ios: int, writes: int, tmp_path: Path) -> None:
    trace = real_traces.folder("blkreplay-natural") / f"{name}.load.gz"
    result = imported(trace, tmp_path / "a.rec")
    opened = check(result, real_traces.blkreplay(trace))
    assert (result["counts"]["ios"], result["counts"]["by_opcode"]["write"]["ios"]) == (ios, writes)
    assert absent(opened) == PLAIN - {"flags"}
    assert not opened[0].manifest.warnings


def test_fio_iolog(tmp_path: Path) -> None:
    trace = real_traces.folder("fio-iolog") / "t0038.iolog"
    result = imported(trace, tmp_path / "a.rec")
    check(result, real_traces.fio(trace))
    counts = result["counts"]["by_opcode"]
    assert (counts["trim"]["ios"], counts["write"]["ios"]) == (10, 10)


@pytest.mark.parametrize(("name", "ios"), [("small-tpch.csv", 780), ("sample_raw.trace", 770)])
def test_hfplayer(name: str, ios: int, tmp_path: Path) -> None:
    trace = real_traces.folder("hfplayer-lsi-latency") / name
    result = imported(trace, tmp_path / "a.rec")
    opened = check(result, real_traces.hfplayer(trace))
    assert result["counts"]["ios"] == ios
    # Of the raw trace's 1,424 events 654 are ends, of which one is of an I/O that is not there.
    dropped = sum(part["count"] for part in result["dropped"])
    assert dropped == sum(part.count for part in opened[0].manifest.dropped)
    no_completion = result["counts"]["no_completion"]
    assert (no_completion, dropped) == ((0, 0) if ios == 780 else (770 - 653, 1))


def test_vscsi(tmp_path: Path) -> None:
    trace = real_traces.folder("libcachesim-cloudphysics") / "cloudPhysicsIO.vscsi"
    result = imported(trace, tmp_path / "a.rec")
    check(result, real_traces.vscsi(trace))
    counts = result["counts"]["by_opcode"]
    assert (counts["write"]["ios"], counts["read"]["ios"]) == (66_898, 46_974)
    assert result["counts"]["span_ns"] // 10**7 == 720_008


@pytest.mark.parametrize("object_bytes", [None, 512])
def test_oracle_general(object_bytes: int | None, tmp_path: Path) -> None:
    trace = real_traces.folder("libcachesim-cloudphysics") / "cloudPhysicsIO.oracleGeneral.bin"
    options = ("--object-bytes", str(object_bytes)) if object_bytes else ()
    result = imported(trace, tmp_path / "a.rec", *options)
    opened = check(result, real_traces.oracle_general(trace, object_bytes))
    assert result["counts"]["ios"] == 113_872
    places = set() if object_bytes else {"offset_bytes"}
    assert absent(opened) == PLAIN | {"opcode"} | places


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        (
            "msr-cambridge-hm0-head/hm_0.first118.csv",
            {
                "workload.footprint_code": None,
                "workload.queue_depth_code": None,
                "response_code": "not_recorded",
            },
        ),
        (
            "libcachesim-cloudphysics/cloudPhysicsIO.vscsi",
            {
                "workload.footprint_code": None,
                "workload.interarrival_code": None,
                "workload.queue_depth_code": "not_recorded",
                "baseline_code": "not_recorded",
                "response_code": "not_recorded",
            },
        ),
        (
            "libcachesim-cloudphysics/cloudPhysicsIO.oracleGeneral.bin",
            {"workload.footprint_code": "not_recorded", "workload.overwrite_distance_code": "not_recorded"},
        ),
    ],
)
def test_metrics_say_what_a_trace_does_not_have(
    name: str, codes: dict[str, str | None], tmp_path: Path
) -> None:
    trace = real_traces.folder(name.partition("/")[0]) / name.partition("/")[2]
    result = imported(trace, tmp_path / "a.rec")
    done = run_testdrive("inspect", result["recording"], "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    found = {key: reduce(lambda part, name: part[name], key.split("."), summary) for key in codes}
    assert found == codes
