"""The benchmarks at their smallest size: they run, what they say makes sense, and they leave nothing behind.

No figure is compared with a limit: a machine that runs tests is no machine to measure on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import missing, require

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from benchmarks import (  # noqa: E402
    act_original,
    act_peer,
    blktrace_trace,
    child,
    documents,
    engine,
    msr_trace,
    places,
    schedules,
)
from benchmarks.__main__ import BENCHMARKS  # noqa: E402
from benchmarks.errors import BenchmarkError  # noqa: E402
from benchmarks.section import Section, Table, Target  # noqa: E402
from benchmarks.spread import Spread, alternate  # noqa: E402


def command(letter: str, tmp_path: Path) -> list[str]:
    places_of_output = ["--scratch", str(tmp_path), "--output", str(tmp_path / "out")]
    return [sys.executable, "-m", "benchmarks", "--smallest", "--only", letter, *places_of_output]


def require_both() -> None:
    """Skip where fio or the engine is not there."""
    require("fio")
    try:
        engine.find()
    except BenchmarkError:
        missing("the engine's release build")


def run_smallest(letter: str, tmp_path: Path) -> tuple[dict[str, Any], str]:
    require_both()
    done = subprocess.run(
        command(letter, tmp_path), cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    report = json.loads((tmp_path / "out" / "benchmarks.json").read_text())
    assert report["machine"]["fio_version"].startswith("fio-")
    assert report["machine"]["kernel"] in done.stdout
    section: dict[str, Any] = report["sections"][letter]
    for target in section["targets"]:
        assert f"| {target['what']}" in done.stdout
    return section, done.stdout


@pytest.mark.slow
def test_iops_are_measured_beside_fio_with_ratios_of_the_same_rounds(tmp_path: Path) -> None:
    section, _ = run_smallest("a", tmp_path)
    figures = section["figures"]["null"]
    recorded = figures["iops"]["testdrive, every I/O recorded"]["values"]
    plain = figures["iops"]["testdrive, not recording"]["values"]
    assert all(value > 0 for spread in figures["iops"].values() for value in spread["values"])
    assert all(value > 0 for spread in figures["cpu_us_per_io"].values() for value in spread["values"])
    ratios = figures["iops_ratios"]["recording / not recording"]["values"]
    assert ratios == pytest.approx([one / other for one, other in zip(recorded, plain, strict=True)])
    assert ("loop" in section["figures"]) == places.can_make_loop_devices()


@pytest.mark.slow
def test_the_load_of_act_is_measured_by_stream(tmp_path: Path) -> None:
    section, said = run_smallest("act", tmp_path)
    figures = section["figures"]
    assert figures["asked"]["reads"] == 200_000
    assert figures["rates"].keys() == figures["asked"].keys()
    # However late a busy host is, no I/O goes before its time.
    assert figures["lateness_ns"]["p50"]["min"] >= 0
    assert "lateness p99" in said


@pytest.mark.slow
def test_the_load_of_a_configuration_is_measured_beside_fio_with_its_histograms(tmp_path: Path) -> None:
    if not places.can_make_loop_devices():
        missing("the right to set up a loop device")
    section, said = run_smallest("act-peer", tmp_path)
    figures = section["figures"]
    assert figures["asked"] == {"reads": 8_500, "large-block-reads": 100, "large-block-writes": 100}
    assert len(figures["rates"]) == len(figures["buckets"]) >= 3
    for who, rates in figures["rates"].items():
        for stream, wanted in figures["asked"].items():
            # However busy the host, nobody does more than was asked, but for an I/O of each thread's.
            assert all(0 < rate <= wanted + 10 for rate in rates[stream]["values"]), (who, stream)
            for rate, counts in zip(rates[stream]["values"], figures["buckets"][who][stream], strict=True):
                assert sum(counts) == round(rate * figures["seconds"])
    peer = "act_storage" if "act_storage" in figures["rates"] else "fio, pread/pwrite"
    assert f"| {peer} and its round before |" in said
    assert ("act_storage itself was not found" in said) == ("act_storage" not in figures["rates"])


LOG = """\
ACT version 6.5

after 1 sec:
reads (3 total)
 (00: 0000000001) (03: 0000000002)
after 2 sec:
reads (9 total)
 (00: 0000000002) (03: 0000000003) (04: 0000000001) (07: 0000000001)
 (40: 0000000002)
/dev/loop0-reads (9 total)
 (00: 0000000009)
large-block-reads (0 total)

"""


def test_the_last_report_of_act_storage_is_read_bucket_by_bucket() -> None:
    found = act_original.last_report(LOG, 36)
    assert {name: int(each.sum()) for name, each in found.items()} == {
        "reads": 9,
        "/dev/loop0-reads": 9,
        "large-block-reads": 0,
    }
    assert {at: int(found["reads"][at]) for at in np.flatnonzero(found["reads"])} == {
        0: 2,
        3: 3,
        4: 1,
        7: 1,
        35: 2,
    }
    with pytest.raises(BenchmarkError, match="has 8 reads, and 9 in buckets"):
        act_original.last_report(LOG.replace("reads (9 total)", "reads (8 total)", 1), 36)
    with pytest.raises(BenchmarkError, match="has no report"):
        act_original.last_report("ACT version 6.5\n", 36)


def test_act_storage_is_found_by_its_variable_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(act_original.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert act_original.find() is None
    program = tmp_path / "act_storage"
    program.write_text(f"#!/bin/sh\nexec /bin/cat <<'END'\n{LOG}END\n")
    program.chmod(0o755)
    assert act_original.find() == program
    assert act_original.version(program) == "ACT version 6.5"
    assert act_original.run(program, tmp_path / "act_storage.conf", 60) == LOG
    program.write_text('#!/bin/sh\necho "ERROR: drive(s) can\'t keep up"\n')
    with pytest.raises(BenchmarkError, match=r"ended with 0: ERROR: drive\(s\)"):
        act_original.run(program, tmp_path / "act_storage.conf", 60)
    monkeypatch.setenv(act_original.VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(BenchmarkError, match="which is no program"):
        act_original.find()


def test_latencies_are_counted_in_act_storages_buckets() -> None:
    edges_ns = np.array([0, 999, 1_000, 1_999, 2_000, 3_999, 4_000, 7_999, 8_000, 1 << 60])
    counted = act_peer._counted(edges_ns, np.ones(len(edges_ns), np.int64))
    assert {at: int(counted[at]) for at in np.flatnonzero(counted)} == {0: 2, 1: 2, 2: 2, 3: 2, 4: 1, 35: 1}


def test_histograms_are_as_far_apart_as_their_cumulated_shares() -> None:
    some, others = np.array([5, 5, 0]), np.array([0, 5, 5])
    assert act_peer.distance(some, others) == 0.5
    assert act_peer.distance(some, 3 * some) == 0
    assert act_peer.distance(np.array([9, 0, 0]), np.array([0, 0, 1])) == 1


@pytest.mark.slow
def test_seven_schedules_are_replayed_on_two_paths_by_both_tools(tmp_path: Path) -> None:
    section, _ = run_smallest("b", tmp_path)
    assert len(schedules.NAMES) == 7
    assert len(section["figures"]) == 14
    for name, figures in section["figures"].items():
        # A replay that did not keep time at all, by either tool, would be over at once.
        assert figures["drift"]["min"] > -0.5, name
        assert figures["fio_drift"]["min"] > -0.5, name
        for late_us in figures["lateness_us"]:
            assert 0 <= late_us["p50"] <= late_us["p99"] <= late_us["max"], name


@pytest.mark.slow
def test_bytes_are_those_of_disk_and_memory(tmp_path: Path) -> None:
    section, _ = run_smallest("c", tmp_path)
    assert all(1 < taken < 100 for taken in section["figures"]["disk_bytes_per_io"].values())
    for name, columns in section["figures"]["column_bytes_per_io"].items():
        # The rest is footers, the manifest and the ends of blocks.
        assert 0 < sum(columns.values()) < section["figures"]["disk_bytes_per_io"][name], name
    memory = section["figures"]["memory"]
    # fio keeps its logs in memory: three entries of some dozen bytes for each I/O.
    assert 30 < memory["fio_bytes_per_io"] < 500
    assert 20 < memory["fio_log_bytes_per_io"] < 200


@pytest.mark.slow
def test_inspect_is_measured_beside_one_pass_over_the_same_rows(tmp_path: Path) -> None:
    section, said = run_smallest("d", tmp_path)
    (figures,) = section["figures"].values()
    # With one round of each, which took longer is also the host's business.
    assert figures["inspect_s"]["min"] > 0
    assert figures["one_pass_s"]["min"] > 0
    assert figures["rss_peak_bytes"]["min"] > 10 << 20
    assert "| 20,000 |" in said


@pytest.mark.slow
def test_importing_is_measured_beside_blkparse_on_the_same_files(tmp_path: Path) -> None:
    require("blkparse")
    section, said = run_smallest("import", tmp_path)
    figures = section["figures"]
    assert figures["made up, all events"]["events"] == 15_000
    assert figures["made up, issue and completion only"]["events"] == 6_000
    assert figures["msr"]["rows"] == 50_000
    assert figures["msr"]["million_rows_per_cpu_s"]["min"] > 0
    assert "| a pipe of 50,000 rows |" in said
    for name, found in figures.items():
        if name.startswith("msr"):
            continue
        assert f"| {name}, " in said
        rates = found["million_events_per_s"]
        assert all(spread["min"] > 0 for spread in rates.values())
        ratio = rates["testdrive import"]["values"][0] / rates["blkparse"]["values"][0]
        assert found["import_per"]["blkparse"]["values"] == pytest.approx([ratio])


def test_a_made_up_csv_has_every_row_in_the_order_of_time(tmp_path: Path) -> None:
    count = msr_trace.BLOCK_ROWS + 1_000
    taken_bytes = msr_trace.write(tmp_path / "t.csv", count)
    lines = (tmp_path / "t.csv").read_text(encoding="ascii").splitlines()
    assert (len(lines), sum(map(len, lines)) + len(lines)) == (count, taken_bytes)
    rows = [line.split(",") for line in lines[:: count // 5_000]]
    assert all(len(row) == 7 and row[1:3] == ["hm", "0"] and row[3] in ("Read", "Write") for row in rows)
    assert all(cell == str(int(cell)) for row in rows for cell in (row[0], *row[4:])), "no zeros before"
    times = [int(row[0]) for row in rows]
    assert times == sorted(times)
    assert 0.6 < sum(row[3] == "Read" for row in rows) / len(rows) < 0.73


def test_a_made_up_trace_has_every_event_once_and_each_cpu_in_order(tmp_path: Path) -> None:
    for kind in (blktrace_trace.ALL, blktrace_trace.FEWEST):
        events = blktrace_trace.write(tmp_path, kind, 700_000)
        assert events == 700_000 * len(kind.events)
        counted = 0
        for cpu in range(blktrace_trace.CPUS):
            path = tmp_path / f"{blktrace_trace.NAME}.blktrace.{cpu}"
            # Names of processes stand before the first record.
            names_bytes = path.stat().st_size % blktrace_trace.RECORD.itemsize
            assert names_bytes == (0 if cpu else 9 * 16 % blktrace_trace.RECORD.itemsize)
            offset = 0 if cpu else 9 * (blktrace_trace.RECORD.itemsize + 16)
            records = np.fromfile(path, dtype=blktrace_trace.RECORD, offset=offset)
            assert (np.diff(records["time_ns"].astype(np.int64)) >= 0).all()
            assert (records["sequence"] == np.arange(1, len(records) + 1)).all()
            assert (records["cpu"] == cpu).all()
            counted += len(records)
        assert counted == events


def test_a_trace_is_repeated_with_times_and_sequences_going_on(tmp_path: Path) -> None:
    blktrace_trace.write(tmp_path, blktrace_trace.FEWEST, 100)
    repeated = tmp_path / "repeated"
    repeated.mkdir()
    files = sorted(tmp_path.glob("*.blktrace.*"))
    assert blktrace_trace.repeat(files, repeated, 500) == 600
    for path in files[1:]:
        once = np.fromfile(path, dtype=blktrace_trace.RECORD)
        thrice = np.fromfile(repeated / path.name, dtype=blktrace_trace.RECORD)
        assert (thrice["sequence"] == np.arange(1, 3 * len(once) + 1)).all()
        assert (np.diff(thrice["time_ns"].astype(np.int64)) >= 0).all()
        assert (thrice["sector"] == np.tile(once["sector"], 3)).all()


@pytest.mark.slow
def test_capture_is_measured_on_and_off_in_turns_and_sees_every_io(tmp_path: Path) -> None:
    if not (places.can_make_loop_devices() and Path("/sys/kernel/tracing/instances").is_dir()):
        missing("the right to capture a loop device (root, and tracefs)")
    section, said = run_smallest("capture", tmp_path)
    figures = section["figures"]
    off = figures["iops"]["capture off"]["values"]
    for name in ("capture on", "capture on, no queue events"):
        on, cost = figures["iops"][name]["values"], figures["costs"][name]
        ratios = [1 - one / other for one, other in zip(on, off, strict=True)]
        assert cost["iops_cost"]["values"] == pytest.approx(ratios)
        assert f"IOPS lost at the highest rate, {name}" in said
    # A busy host may let one of them, which stand back, begin its work only after fio's.
    assert max(cost["cpu_us_per_io"]["max"] for cost in figures["costs"].values()) > 0


@pytest.mark.slow
def test_the_modelled_drive_is_measured_with_every_page_really_written(tmp_path: Path) -> None:
    section, said = run_smallest("sim", tmp_path)
    figures = section["figures"]
    for kept in ("histograms only", "every I/O recorded"):
        for spare in ("7%", "28%"):
            assert figures[f"{kept}, {spare} spare"]["writes_per_cpu_s"]["min"] > 0
    memory = figures["memory"]
    pages = memory["capacity_bytes"] // 4096
    # In order once, in whole blocks, and a tenth of it at random: what is moved comes on top.
    assert memory["host_written_bytes"] >= (pages + pages // 10) * 4096
    assert memory["nand_written_bytes"] > memory["host_written_bytes"]
    assert memory["rss_peak_bytes"] > 8 * pages
    assert figures["length"]["modelled_s"] == 1.0
    assert figures["length"]["ios"] > 10_000
    assert "**A consistency run**" in said


@pytest.mark.slow
def test_a_benchmark_that_is_ended_removes_what_it_made(tmp_path: Path) -> None:
    require_both()
    process = subprocess.Popen(command("b", tmp_path), cwd=CHECKOUT, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("testdrive-bench-*/replay.img")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.terminate()
    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def backing_file(name: str) -> str | None:
    path = Path("/sys/block", name, "loop", "backing_file")
    return path.read_text().strip() if path.exists() else None


def test_a_loop_device_goes_with_its_block_even_when_that_fails(tmp_path: Path) -> None:
    if not places.can_make_loop_devices():
        pytest.skip("making loop devices needs root")
    file = places.filled_file(tmp_path / "image", 1 << 20)
    used: list[str] = []

    def use_and_fail() -> None:
        with places.loop_device(file) as device:
            used.append(device.name)
            assert backing_file(device.name) == str(file)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use_and_fail()
    assert backing_file(used[0]) != str(file)


def test_what_a_killed_benchmark_left_is_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    left = tmp_path / f"testdrive-bench-{ended.stdout.strip()}"
    left.mkdir()
    with places.scratch(tmp_path, 0) as scratch:
        assert scratch.is_dir()
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_second_benchmark_at_the_same_time_is_refused(tmp_path: Path) -> None:
    alive = tmp_path / f"testdrive-bench-{os.getppid()}"
    alive.mkdir()
    with pytest.raises(BenchmarkError, match="measure each other"), places.scratch(tmp_path, 0):
        pass
    assert list(tmp_path.iterdir()) == [alive]


def test_too_little_room_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="--scratch"), places.scratch(tmp_path, 1 << 60):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_debug_build_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "engine"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        "if '--version' in sys.argv: sys.exit(print('engine 1'))\n"
        "output = pathlib.Path(json.load(sys.stdin)['output'])\n"
        "output.mkdir()\n"
        "(output / 'manifest.json').write_text(json.dumps({'tool': {'build': 'debug'}}))\n"
        "print(json.dumps({'event': 'progress', 'elapsed_ns': 1}))\n"
        "print(json.dumps({'event': 'finished', 'counts': {'ios': 1}}))\n"
    )
    program.chmod(0o755)
    require("fio")
    environment = os.environ | {"TESTDRIVE_ENGINE": str(program)}
    done = subprocess.run(
        command("a", tmp_path), cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "debug build" in done.stderr
    assert "make install" in done.stderr


def test_a_child_is_measured_and_its_failure_told() -> None:
    program = "block = bytearray(300 << 20); block[::4096] = b'x' * (len(block) // 4096); print('ok')"
    ended = child.run([sys.executable, "-c", program], timeout_s=60)
    assert ended.output == "ok\n"
    assert 300 << 20 < ended.rss_peak_bytes < 400 << 20
    assert 0 < ended.cpu_s < 60
    with pytest.raises(BenchmarkError, match="ended with status 1: no luck"):
        child.run([sys.executable, "-c", "import sys; sys.exit('no luck')"], timeout_s=60)
    with pytest.raises(BenchmarkError, match="was killed after"):
        child.run(["sleep", "60"], timeout_s=0.1)


def test_ratios_are_taken_round_by_round() -> None:
    ratio = Spread([2.0, 8.0, 30.0]) / Spread([1.0, 2.0, 10.0])
    assert (ratio.min, ratio.median, ratio.max) == (2.0, 3.0, 4.0)
    assert ratio.text(1) == "3.0 (2.0..4.0)"
    assert Spread([1.5]).text(2, " s") == "1.50 s"
    assert Spread([-0.00001, 12_345.0, -1.0]).text(3) == "0.000 (-1.000..12,345.000)"


def test_contenders_run_in_turns_forwards_and_backwards() -> None:
    order: list[str] = []
    contenders = {name: lambda name=name: order.append(name) for name in "abc"}
    samples = alternate(contenders, 2)
    assert order == list("abccba")
    assert all(len(runs) == 2 for runs in samples.values())


@pytest.mark.parametrize("name", schedules.NAMES)
def test_a_schedule_has_the_times_that_its_name_says(name: str) -> None:
    rows = list(schedules.rows(name, 0.1))
    times_ns = [row[0] for row in rows]
    assert times_ns == sorted(times_ns)
    assert times_ns[-1] - times_ns[0] < 100_000_000
    expected = {
        "every 1 ms": 100,
        "every 100 us": 1_000,
        "every 10 us": 10_000,
        "every 5 us": 20_000,
        "32 at once, every 1 ms": 3_200,
    }
    assert len(rows) == expected.get(name, len(rows))
    if name.startswith("Poisson"):
        assert 9_500 < len(rows) < 10_500
    if name == schedules.SAMPLE_NAME:
        assert {"write", "trim"} <= {row[1] for row in schedules.rows(name, 1.0)}


def test_the_document_keeps_its_words_and_gets_the_tables(tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text("before\n<!-- measured: a -->\nold\n<!-- end: a -->\nafter\n")
    section = Section("a", "t", ["How."], [Table("T", ["x"], [["1"]])], [Target("w", "1", "2", False)])
    documents.write({"a": section.lines()}, document)
    text = document.read_text()
    assert text.startswith("before\n<!-- measured: a -->\n\nHow.\n\n**T**\n")
    assert text.endswith("\n\n<!-- end: a -->\nafter\n")
    assert "| w      | 1      | 2        | **no**  |" in text
    assert "old" not in text
    with pytest.raises(BenchmarkError, match="measured: b"):
        documents.write({"b": []}, document)


def test_the_document_has_a_place_for_every_benchmark(tmp_path: Path) -> None:
    copy = tmp_path / "benchmarks.md"
    copy.write_text(documents.DOCUMENT.read_text())
    documents.write({name: ["found"] for name in BENCHMARKS}, copy)
    assert copy.read_text().count("found") >= 4
