"""The modelled drive as a user meets it, with the real engine: faults on demand, and saved states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import run_testdrive
from workloads import write_source

from testdrive.recording import Recording

S = 1_000_000_000
SPAN_BYTES = 1 << 28


@pytest.fixture
def reads(tmp_path: Path) -> Path:
    """A read of 4 KiB every millisecond for four seconds, one place after the other over 16 MiB."""
    columns = {
        "submit_ns": np.arange(4_000) * 1_000_000,
        "latency_ns": np.full(4_000, 100_000),
        "offset_bytes": np.arange(4_000) * 4096,
        "length_bytes": np.full(4_000, 4096),
        "opcode": np.zeros(4_000, int),
    }
    return write_source(tmp_path / "reads.rec", columns)


def uri(**settings: Any) -> str:
    options = "&".join(f"{key}={value}" for key, value in {"capacity": "256MiB", **settings}.items())
    return f"sim:enterprise-read?{options}"


def rows_of(path: Path) -> dict[str, Any]:
    with Recording.open(path) as recording:
        return recording.rows_in_file_order(recording.table().order_by("submit_ns"))


def events_of(path: Path, kind: str) -> list[dict[str, Any]]:
    """What the drive logged of one kind."""
    events = [json.loads(line) for line in (path / "drive_events.jsonl").read_text().splitlines()]
    return [event for event in events if event["kind"] == kind]


def test_a_drive_that_disappears_ends_the_run_as_one_that_was_pulled(reads: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.rec"
    drive = uri(fault_gone_at="1.5s")
    ran = run_testdrive("replay", reads, "--drive", drive, "-o", output, "--on-error", "continue")
    assert ran.returncode == 4
    assert "the drive is gone" in ran.stderr
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "the drive is gone" in manifest["status_reason"]
    rows = rows_of(output)
    # What came before is kept; the first I/O that met nobody ended the run.
    assert 1_500 <= len(rows["status"]) <= 1_502
    assert set(rows["status"][:1_500]) == {0}
    assert set(rows["status"][1_500:]) == {19}


def test_read_errors_end_a_run_or_are_recorded_where_they_were_asked_for(reads: Path, tmp_path: Path) -> None:
    where = {"fault_read_error_offset_bytes": 1 << 20, "fault_read_error_length": "64KiB"}
    drive = uri(fault_read_error_rate="100%", **where)
    stopped = run_testdrive("replay", reads, "--drive", drive, "-o", tmp_path / "stopped.rec")
    assert stopped.returncode == 4
    assert "read of 4096 bytes at offset 1048576: Input/output error" in stopped.stderr
    output = tmp_path / "all.rec"
    ran = run_testdrive("replay", reads, "--drive", drive, "-o", output, "--on-error", "continue")
    assert ran.returncode == 0, ran.stderr
    rows = rows_of(output)
    failed = rows["status"] != 0
    inside = (rows["offset_bytes"] >= 1 << 20) & (rows["offset_bytes"] < (1 << 20) + (64 << 10))
    np.testing.assert_array_equal(failed, inside)
    assert set(rows["status"][failed]) == {5}


def test_a_stall_that_is_longer_than_an_io_may_take_is_a_silent_drive(reads: Path, tmp_path: Path) -> None:
    drive = uri(fault_stall_at="2s", fault_stall="10s")
    output = tmp_path / "out.rec"
    ran = run_testdrive("replay", reads, "--drive", drive, "-o", output, "--io-timeout", "1s")
    assert ran.returncode == 4
    assert "the drive has not answered an I/O for 1.0 s" in ran.stderr
    rows = rows_of(output)
    assert (rows["status"] == 110).sum() >= 1_000
    assert [event["start_ns"] for event in events_of(output, "stall")] == [2 * S]


@pytest.mark.parametrize(
    ("settings", "flush_at_ns", "fua", "lost"),
    [
        # 31 units of 48 pages are programmed by then; what is gathered for the next is lost.
        ({}, None, False, 1_500 - 31 * 48),
        # What was flushed is kept, and what came afterwards is not.
        ({}, 1_489_500_000, False, 10),
        ({}, 1_496_500_000, False, 3),
        # A write that is forced through takes longer than until the next: two were not acknowledged yet.
        ({}, None, True, 2),
        ({"power_loss_protection": "true"}, None, False, 0),
    ],
)
def test_a_loss_of_power_takes_back_what_was_acknowledged_and_not_durable(
    tmp_path: Path, settings: dict[str, str], flush_at_ns: int | None, fua: bool, lost: int
) -> None:
    """A write of a page each millisecond; how many pages went back to an older version is in the log."""
    flushes = np.array([] if flush_at_ns is None else [flush_at_ns], np.int64)
    writes = np.arange(2_000) * 1_000_000
    count = len(writes) + len(flushes)
    columns = {
        "submit_ns": np.r_[writes, flushes],
        "latency_ns": np.full(count, 100_000),
        "offset_bytes": np.r_[np.arange(2_000) * 4096, flushes * 0],
        "length_bytes": np.r_[np.full(2_000, 4096), flushes * 0],
        "opcode": np.r_[np.ones(2_000, int), flushes * 0 + 3],
        "flags": np.r_[np.full(2_000, int(fua)), flushes * 0],
    }
    source = write_source(tmp_path / "writes.rec", columns)
    drive = uri(
        **{"power_loss_protection": "false", "initial_state": "empty"} | settings,
        fault_power_loss_at="1499500us",
        fault_power_loss="200ms",
    )
    output = tmp_path / "out.rec"
    ran = run_testdrive("replay", source, "--drive", drive, "-o", output, "--on-error", "continue")
    assert ran.returncode == 0, ran.stderr
    [event] = events_of(output, "power_loss")
    assert (event["start_ns"], event["amount"], event["unit"]) == (1_499_500_000, lost, "pages")
    rows = rows_of(output)
    # Only writes that wait for the NAND were in flight just then. What comes while the drive is off waits.
    failed = rows["submit_ns"][rows["status"] == 5].tolist()
    assert failed == ([1_498_000_000, 1_499_000_000] if fua else [])
    assert set(rows["status"]) <= {0, 5}
    off = (rows["submit_ns"] > 1_499_500_000) & (rows["submit_ns"] < 1_699_000_000)
    assert (rows["submit_ns"] + rows["latency_ns"])[off].min() >= 1_699_500_000


def test_a_loss_of_power_fails_what_is_in_flight(reads: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.rec"
    drive = uri(fault_power_loss_at="1500010us", fault_power_loss="100ms", nand_read="60us")
    ran = run_testdrive("replay", reads, "--drive", drive, "-o", output, "--on-error", "continue")
    assert ran.returncode == 0, ran.stderr
    rows = rows_of(output)
    failed = rows["status"] != 0
    assert rows["submit_ns"][failed].tolist() == [1_500_000_000]
    assert (rows["status"][failed].tolist(), rows["latency_ns"][failed].tolist()) == ([5], [10_000])


def test_outliers_are_found_in_the_percentiles_at_their_rate_and_size(reads: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.rec"
    drive = uri(fault_outlier_rate="1%", fault_outlier="50ms", nand_read_time="fixed")
    assert run_testdrive("replay", reads, "--drive", drive, "-o", output).returncode == 0
    latency_ns = rows_of(output)["latency_ns"]
    late = latency_ns > 50_000_000
    assert 20 <= late.sum() <= 60
    assert latency_ns[late].max() < 50_000_000 + 2 * latency_ns[~late].max()


def test_a_run_on_a_saved_drive_goes_on_where_it_was(reads: Path, tmp_path: Path) -> None:
    """Trims of everything, in the background: their work is still going on in the next run."""
    trims = 128
    columns = {
        "submit_ns": np.zeros(trims, np.int64),
        "latency_ns": np.full(trims, 100_000),
        "offset_bytes": np.arange(trims) << 20,
        "length_bytes": np.full(trims, 1 << 20),
        "opcode": np.full(trims, 2),
    }
    storm = write_source(tmp_path / "storm.rec", columns)
    slow = {
        "trim_mode": "background",
        "trim_per_range": "1us",
        "trim_per_page": "50us",
        "trim_share": "0.5",
        "initial_state": "written",
    }
    state = tmp_path / "a.state"
    first = run_testdrive(
        "replay", storm, "--drive", uri(**slow), "-o", tmp_path / "first.rec", "--save-state", state
    )
    assert first.returncode == 0, first.stderr
    assert f"state: {state}" in first.stdout
    output = tmp_path / "second.rec"
    second = run_testdrive("replay", reads, "--drive", uri(**slow, state=state), "-o", output)
    assert second.returncode == 0, second.stderr
    served = [event for path in (tmp_path / "first.rec", output) for event in events_of(path, "trim_service")]
    # What the first run had begun is in its log, and the rest in the second's: together all of the work.
    assert sum(event["busy_ns"] for event in served) == trims * (1_000 + 256 * 50_000)
    assert sum(event["amount"] for event in served) == trims * 256
    # Of what was trimmed nothing needs to be read.
    other = tmp_path / "fresh.rec"
    assert run_testdrive("replay", reads, "--drive", uri(**slow), "-o", other).returncode == 0
    latency_ns = rows_of(output)["latency_ns"][-500:]
    assert np.median(latency_ns) < np.median(rows_of(other)["latency_ns"][-500:]) / 2

    refused = run_testdrive(
        "replay", reads, "--drive", uri(**slow, seed=9, state=state), "-o", tmp_path / "x.rec"
    )
    assert refused.returncode == 2
    assert "it is of a drive with seed=1, not with seed=9" in refused.stderr


def test_a_state_is_of_one_drive_and_of_a_modelled_one(reads: Path, tmp_path: Path) -> None:
    state = tmp_path / "a.state"
    both = run_testdrive("replay", reads, "--drive", uri(), "--drive", "null:", "--save-state", state)
    assert both.returncode == 2
    assert "is of one drive" in both.stderr
    null = run_testdrive("replay", reads, "--drive", "null:", "-o", tmp_path / "n.rec", "--save-state", state)
    assert null.returncode == 2
    assert "only modelled drives" in null.stderr
