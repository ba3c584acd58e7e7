"""I/Os that the drive never answered: which they are, and that the worst case knows of them."""

from __future__ import annotations

import errno
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from builders import phase, scan_of
from support import run_testdrive

from testdrive.metrics.lost_ios import METRIC
from testdrive.metrics.scans import QUANTILES
from testdrive.metrics.scans import scan_of as scan_of_recording
from testdrive.recording import Recording

ABORT_REQUESTED = 65_536 + 0x4000 + 0x007
OUT_OF_RANGE = 65_536 + 0x4000 + 0x080
DRIVE = {"uri": "x", "modelled": False}


def lost(statuses, latencies=1_000, submits=None, *, path="io_uring", phases=None):
    ios = len(statuses)
    submits = np.arange(ios) * 1_000 if submits is None else submits
    columns = {"submit_ns": submits, "latency_ns": latencies, "status": statuses}
    phases = phases or [phase(kind="synthetic", end_ns=10**9)]
    scan = scan_of(columns, kind="run", drive={**DRIVE, "path": path}, phases=phases, absent_columns=[])
    return METRIC.values(scan)["lost_ios"]


@pytest.mark.parametrize(
    ("status", "path", "kind"),
    [
        (errno.ETIMEDOUT, "io_uring", "timed_out"),
        (errno.ETIMEDOUT, "userspace", "timed_out"),
        (errno.ECANCELED, "nvme_passthrough", "cancelled"),
        (errno.ENOLINK, "io_uring", "cancelled"),
        (errno.EIO, "userspace", "cancelled"),
        (errno.EIO, "io_uring", None),
        (ABORT_REQUESTED, "userspace", "aborted"),
        (65_536 + 0x371, "nvme_passthrough", "aborted"),
        (OUT_OF_RANGE, "userspace", None),
        (errno.ENODEV, "userspace", "drive_gone"),
        (errno.ENXIO, "io_uring", "drive_gone"),
        (errno.EINVAL, "io_uring", None),
    ],
)
def test_what_the_drive_did_not_answer_is_lost_and_what_it_refused_is_not(status, path, kind):
    found = lost([0, status, 0], path=path)
    kinds = {name: found[name] for name in ("timed_out", "aborted", "cancelled", "drive_gone")}
    assert {name: count for name, count in kinds.items() if count} == ({kind: 1} if kind else {})
    assert found["ios"] == (kind is not None)
    assert found["statuses"] == ({str(status): 1} if kind else {})


def test_the_worst_case_is_at_least_what_was_waited_for():
    rng = np.random.default_rng(5)
    latencies = rng.integers(50_000, 30_000_000, 40_000)
    statuses = np.zeros(40_000, np.int64)
    statuses[::5_000], latencies[::5_000] = errno.ETIMEDOUT, 2_000_000_000 + np.arange(8)
    found = lost(statuses, latencies)
    at_least = found["percentiles_at_least_ns"]
    assert (found["ios"], at_least["max"]) == (8, 2_000_000_007)
    for name in ("p50", "p99", "p99_9", "p99_99"):
        rank = -(-QUANTILES[name] * len(latencies) // 1_000_000)
        assert at_least[name] == np.sort(latencies)[rank - 1], name
    # Eight of 40,000 are more than one in ten thousand.
    assert at_least["p99_99"] >= 2_000_000_000
    assert at_least["p99_999"] is None
    assert (found["first_ns"], found["last_ns"]) == (0, 35_000_000 + 2_000_000_007)


def test_what_no_answer_came_for_was_waited_for_to_the_end_of_its_phase():
    phases = [
        phase(0, kind="prepare", measured=False, start_ns=0, end_ns=50),
        phase(1, kind="synthetic", start_ns=100, end_ns=1_100),
    ]
    columns = {
        "submit_ns": [10, 150, 300],
        "latency_ns": [-1, 5, -1],
        "status": [errno.ETIMEDOUT, 0, errno.ETIMEDOUT],
        "phase": [0, 1, 1],
    }
    scan = scan_of(columns, kind="run", drive=DRIVE, phases=phases, absent_columns=[])
    found = METRIC.values(scan)["lost_ios"]
    assert (found["ios"], found["waited_max_ns"], found["first_ns"], found["last_ns"]) == (1, 800, 200, 1_000)
    assert found["percentiles_at_least_ns"]["p50"] == 5
    assert found["percentiles_at_least_ns"]["max"] == 800


def test_nothing_is_lost_where_all_was_answered_and_of_a_trace_nothing_is_known():
    found = lost([0, errno.EINVAL, 0])
    assert (found["ios"], found["waited_max_ns"], found["percentiles_at_least_ns"]) == (0, None, None)
    scan = scan_of({"submit_ns": [1], "latency_ns": [1], "status": [errno.ETIMEDOUT]}, absent_columns=[])
    assert METRIC.values(scan) == {"lost_ios": None, "lost_ios_code": "not_a_run"}


def test_a_recording_that_keeps_histograms_knows_how_many_were_lost_and_the_longest_wait(tmp_path):
    plan, path = tmp_path / "p.toml", tmp_path / "a.rec"
    plan.write_text(
        'version = 1\nname = "p"\ntitle = "t"\nquestion = "q"\n'
        '[[phases]]\nkind = "prepare"\nmethod = "purge"\n'
        '[[phases]]\nkind = "synthetic"\nios = 2000\ndepth = 4\n'
    )
    ran = run_testdrive("run", plan, "--drive", "sim:sata?capacity=4GiB", "-o", path, "--keep", "slowest")
    assert ran.returncode == 0, ran.stderr
    manifest = json.loads((path / "manifest.json").read_text())
    begin_ns = manifest["phases"][1]["start_ns"]
    manifest["counts"]["ios"] += 1
    (path / "manifest.json").write_text(json.dumps(manifest))
    of_phase = pc.field("phase") == 1
    # One I/O more, which was lost after three seconds, in the place of the measured phase's first.
    (slowest,), (intervals,) = ([*(path / name).glob("*.parquet")] for name in ("slowest", "intervals"))
    rows = pq.read_table(slowest, filters=of_phase).sort_by("submit_ns").slice(0, 1)
    change(rows, slowest, status=errno.ETIMEDOUT, latency_ns=3 * 10**9)
    entries = pq.read_table(intervals)
    entry = pq.read_table(intervals, filters=of_phase).slice(0, 1)
    failed = {"latency_ceiling_ns": -1, "count": 1, "sum_ns": 3 * 10**9, "max_ns": 3 * 10**9}
    change(entry, intervals, before=entries, **failed)
    with Recording.open(path) as recording:
        found = METRIC.values(scan_of_recording(recording))["lost_ios"]
    first_ns = rows["submit_ns"][0].as_py() - begin_ns
    assert (found["timed_out"], found["first_ns"], found["last_ns"]) == (1, first_ns, first_ns + 3 * 10**9)
    assert found["percentiles_at_least_ns"] == {**dict.fromkeys(QUANTILES), "max": 3 * 10**9}


def change(rows, path, before=None, **values):
    """Write rows with other values to a file, behind those of `before`."""
    for name, value in values.items():
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        rows = rows.set_column(at, field, pa.array([value] * len(rows), field.type))
    table = rows if before is None else pa.concat_tables([before, rows])
    pq.write_table(table, path)


def test_all_may_be_lost():
    found = lost([errno.ENODEV] * 3, 7)
    assert (found["drive_gone"], found["percentiles_at_least_ns"]["p50"]) == (3, 7)
