"""What the tool says of a drive against what was put into it: modelled drives of known latencies.

The drive answers each read after exactly 100,001 ns (a pipeline that any number of reads are in at a time,
and a nanosecond on the link), unless it was told to stall, to serve trims or to be late. So the baseline,
the peak, the recovery and the stall time of a replay on it are numbers that can be written down beforehand,
to the nanosecond or to the window of the metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import missing
from workloads import write_source

from testdrive.engine import find_engine, run_job
from testdrive.errors import EngineError
from testdrive.explanation import explanation_of
from testdrive.job import DriveRequest, Job, ReplayPhase, SyntheticPhase
from testdrive.metrics import summarize
from testdrive.metrics.scans import Scan
from testdrive.metrics.write_amplification import METRIC as WRITE_AMPLIFICATION
from testdrive.progress import LineDisplay
from testdrive.recording import Recording

MS, S = 1_000_000, 1_000_000_000
#: The window of the burst metric.
WINDOW_NS = 100 * MS
LATENCY_NS = 100_001
GAP_NS = MS
#: Nothing of the drive takes time but what a test gives it.
NOTHING = dict.fromkeys(
    (
        "firmware_read_ns",
        "firmware_read_page_ns",
        "firmware_write_ns",
        "firmware_write_page_ns",
        "firmware_metadata_ns",
        "acknowledge_ns",
        "nand_read_spread_ns",
        "trim_per_range_ns",
        "trim_per_page_ns",
    ),
    0,
)
KNOWN = {
    **NOTHING,
    "capacity": "64GiB",
    "host_link": "1000000GB/s",
    "channel": "1000000GB/s",
    "read_pipeline": "100us",
    # Reads of what holds nothing need no NAND, for which they would queue after a stall.
    "initial_state": "empty",
    "nand_read_time": "fixed",
    "programs_per_host_page": 1,
    "programs_per_moved_page": 1,
}


@pytest.fixture(scope="module", autouse=True)
def _engine() -> None:
    """Skip where the engine was not built."""
    try:
        find_engine()
    except EngineError:
        missing("the engine's release build")


def quiet() -> LineDisplay:
    from rich.console import Console

    return LineDisplay(Console(quiet=True), "")


def uri(**settings: Any) -> str:
    given = {key: value for key, value in (KNOWN | settings).items() if value is not None}
    return "sim:enterprise-mixed?" + "&".join(f"{key}={value}" for key, value in given.items())


def reads(seconds: int) -> dict[str, Any]:
    """A read each millisecond, all over the drive."""
    count = seconds * S // GAP_NS
    return {
        "submit_ns": np.arange(count) * GAP_NS,
        "latency_ns": np.full(count, LATENCY_NS),
        "offset_bytes": np.arange(count) % 60_000 * (1 << 20),
        "length_bytes": np.full(count, 4096),
        "opcode": np.zeros(count, int),
    }


def with_trims(columns: Mapping[str, Any], at_ns: int, trims: int, pages: int) -> dict[str, Any]:
    """The same with so many trims at one moment, of places that are not read."""
    added = {
        "submit_ns": np.full(trims, at_ns),
        "latency_ns": np.full(trims, LATENCY_NS),
        "offset_bytes": (60 << 30) + np.arange(trims) * (pages * 4096),
        "length_bytes": np.full(trims, pages * 4096),
        "opcode": np.full(trims, 2),
    }
    return {name: np.r_[values, added[name]] for name, values in columns.items()}


def replayed(folder: Path, columns: Mapping[str, Any], drive: str) -> tuple[dict[str, Any], Recording]:
    """What the tool says of a replay of these I/Os on a drive."""
    source = write_source(folder / "source.rec", columns)
    output = folder / "out.rec"
    phase = ReplayPhase(kind="replay", recording=source)
    run_job(Job(drive=DriveRequest(uri=drive), output=output, phases=[phase]), quiet())
    recording = Recording.open(output)
    return summarize(recording), recording


def assert_bursts(summary: Mapping[str, Any], expected: list[tuple[int, int]]) -> None:
    """Bursts from these times, of which the last I/Os that were held come in windows up to these times.

    One ends where ten windows begin of which nine are calm: with the last window that is not.
    """
    found = [(burst["onset_ns"], burst["end_ns"]) for burst in summary["bursts"]]
    assert found == [(onset_ns, last_window_end_ns - WINDOW_NS) for onset_ns, last_window_end_ns in expected]


def test_a_drive_without_a_fault_is_told_with_its_latency_and_nothing_else(tmp_path: Path) -> None:
    summary, recording = replayed(tmp_path, reads(20), uri())
    with recording:
        assert set(recording.execute(recording.table())["latency_ns"]) == {LATENCY_NS}
    assert summary["baseline_latency_ns"] == summary["peak_latency_ns"] == LATENCY_NS
    assert summary["recovery_code"] == "no_burst"
    assert summary["fidelity"]["verdict"] == "faithful"
    assert set(summary["percentiles_ns"]["io_weighted"].values()) <= {LATENCY_NS, None}


def test_stalls_of_known_period_and_length_are_found_with_their_baseline_peak_and_recovery(
    tmp_path: Path,
) -> None:
    length_ns, first_ns, every_ns = 2 * S, 10 * S, 15 * S
    stalls = {"fault_stall_at_ns": first_ns, "fault_stall_ns": length_ns, "fault_stall_every_ns": every_ns}
    summary, recording = replayed(tmp_path, reads(60), uri(**stalls))
    onsets = [first_ns + index * every_ns for index in range(4)]
    assert_bursts(summary, [(onset_ns, onset_ns + length_ns) for onset_ns in onsets])
    # Reads that a stall held leave together, and pass the link a nanosecond after each other. The read that
    # comes just then is behind all of them, and it is one of the calm ones.
    held, calm = 4 * length_ns // GAP_NS, (60 * S - 4 * length_ns) // GAP_NS
    assert summary["baseline_latency_ns"] == pytest.approx(LATENCY_NS + held / calm, rel=1e-12)
    # The read that came just as a stall began waited for all of it.
    assert summary["peak_latency_ns"] == length_ns + LATENCY_NS
    assert summary["peak_time_ns"] == first_ns
    assert [burst["peak_latency_ns"] for burst in summary["bursts"]] == [length_ns + LATENCY_NS] * 4
    assert summary["recovery_ns"] == length_ns - WINDOW_NS
    # The oldest outstanding I/O is older than x from x after a stall's beginning to its end.
    span_s = (60 * S - GAP_NS + LATENCY_NS) / S
    for threshold_ns in (10 * MS, 100 * MS, S):
        expected = 4 * (length_ns - threshold_ns) / S / span_s
        assert summary["stall_time"][str(threshold_ns)] == pytest.approx(expected, rel=1e-3)
    with recording:
        explanation = explanation_of(recording, summary)
    assert explanation is not None
    assert [burst.activities[0].kind for burst in explanation.bursts] == ["stall"] * 4
    [told] = explanation.run
    assert (told.kind, told.busy_ns, told.events) == ("stall", 4 * length_ns, 4)


def test_a_stall_under_a_second_is_a_spike_and_no_burst_and_its_stall_time_is_known(tmp_path: Path) -> None:
    length_ns = 300 * MS
    summary, recording = replayed(
        tmp_path, reads(30), uri(fault_stall_at_ns=12 * S, fault_stall_ns=length_ns)
    )
    recording.close()
    assert summary["recovery_code"] == "no_burst"
    assert summary["peak_latency_ns"] == length_ns + LATENCY_NS
    # As above: one calm read has the 300 that were held before it on the link.
    held = length_ns // GAP_NS
    calm = 30 * S // GAP_NS - held
    assert summary["baseline_latency_ns"] == pytest.approx(LATENCY_NS + held / calm, rel=1e-12)
    share = (length_ns - 100 * MS) / S / 30
    assert summary["stall_time"]["100000000"] == pytest.approx(share, rel=1e-3)


def test_trims_in_the_firmware_stall_for_their_count_times_their_cost(tmp_path: Path) -> None:
    trims, pages, per_range_ns, per_page_ns = 2_000, 512, 20_000, 2_000
    work_ns = trims * (per_range_ns + pages * per_page_ns)
    cost = {"trim_mode": "firmware", "trim_per_range_ns": per_range_ns, "trim_per_page_ns": per_page_ns}
    columns = with_trims(reads(40), 20 * S, trims, pages)
    summary, recording = replayed(tmp_path, columns, uri(**cost))
    assert work_ns == 2_088 * MS
    # The work ends within the 21st window.
    assert_bursts(summary, [(20 * S, 20 * S + 2_100 * MS)])
    assert summary["baseline_latency_ns"] == LATENCY_NS
    # The read of the same millisecond stands before the trims; the next comes a millisecond later.
    assert summary["peak_latency_ns"] == work_ns - GAP_NS + LATENCY_NS
    assert summary["trim_attribution"]["excess_share"] == pytest.approx(1.0, abs=1e-6)
    with recording:
        explanation = explanation_of(recording, summary)
    assert explanation is not None
    assert [(each.kind, each.busy_ns, each.amount) for each in explanation.run] == [
        ("trim_service", work_ns, trims * pages)
    ]


def test_trims_in_the_background_raise_latency_for_their_work_over_their_share(tmp_path: Path) -> None:
    trims, pages, per_page_ns, share, slice_ns = 1_000, 512, 4_000, 0.5, 20 * MS
    length_ns = round(trims * pages * per_page_ns / share)
    cost = {"trim_mode": "background", "trim_per_page_ns": per_page_ns, "trim_share": share}
    columns = with_trims(reads(40), 20 * S, trims, pages)
    summary, recording = replayed(tmp_path, columns, uri(**cost, trim_slice_ns=slice_ns))
    recording.close()
    [burst] = summary["bursts"]
    # The work ends within a window, the last that is not calm.
    assert length_ns == 4_096 * MS
    assert_bursts(summary, [(20 * S, 20 * S + 4_100 * MS)])
    # A read meets a slice with the share's probability, and then waits for half of one on average: to half of
    # the time between reads, since that is how finely they tell where in a slice they came.
    expected_ns = LATENCY_NS + share * slice_ns / 2
    assert burst["mean_latency_ns"] == pytest.approx(expected_ns, abs=share * GAP_NS / 2)
    assert summary["baseline_latency_ns"] == LATENCY_NS
    assert summary["peak_latency_ns"] <= slice_ns + LATENCY_NS + MS


def test_trims_that_outlast_the_run_leave_a_drive_that_never_recovered(tmp_path: Path) -> None:
    cost = {
        "trim_mode": "background",
        "trim_per_page_ns": 400_000,
        "trim_share": 0.5,
        "trim_slice_ns": 20 * MS,
    }
    summary, recording = replayed(tmp_path, with_trims(reads(40), 25 * S, 1_000, 512), uri(**cost))
    recording.close()
    assert summary["recovery_code"] == "never_recovered"
    assert summary["recovery_more_than_ns"] == 15 * S
    assert summary["level_before_burst_ns"] == LATENCY_NS
    assert summary["baseline_latency_ns"] is None


def test_outliers_are_spikes_with_their_size_as_the_peak_and_leave_the_baseline_alone(tmp_path: Path) -> None:
    late_ns = 40 * MS
    summary, recording = replayed(
        tmp_path, reads(60), uri(fault_outlier_rate=0.001, fault_outlier_ns=late_ns)
    )
    with recording:
        latency_ns = recording.execute(recording.table())["latency_ns"]
    assert set(latency_ns) == {LATENCY_NS, LATENCY_NS + late_ns}
    late = int((latency_ns != LATENCY_NS).sum())
    assert 30 <= late <= 90
    assert summary["peak_latency_ns"] == LATENCY_NS + late_ns
    assert summary["baseline_latency_ns"] == LATENCY_NS
    assert summary["recovery_code"] == "no_burst"


def test_housekeeping_of_known_period_and_length_is_found(tmp_path: Path) -> None:
    """Every 20 s all dies are busy for 1.5 s: the model's own background work, and no fault."""
    keeping = {"housekeeping_period_ns": 20 * S, "housekeeping_ns": 1_500 * MS}
    held = {"initial_state": "written", "read_pipeline": "0ns", "nand_read": "99999ns"}
    summary, recording = replayed(tmp_path, reads(70), uri(**keeping, **held))
    with recording:
        assert recording.manifest.drive is not None
        settings = recording.manifest.drive.settings
    planes = settings["channels"] * settings["dies_per_channel"] * settings["planes_per_die"]
    # What was held is read one after the other from each plane: the window after it is not calm either.
    assert_bursts(summary, [(at * S, at * S + 1_600 * MS) for at in (20, 40, 60)])
    assert summary["baseline_latency_ns"] == LATENCY_NS
    # The read that came just then waited for all of it, and on the link for one of each plane at most.
    behind_ns = summary["peak_latency_ns"] - (1_500 * MS + LATENCY_NS)
    assert 0 <= behind_ns < planes


def closed_form(spare: float) -> float:
    """Write amplification a / (a + W(-a e^-a)) of uniform random writes, large blocks and greedy choice."""
    ratio = 1 + spare
    low, high = 1.0, 2 + 2 / spare
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - 1 / middle < np.exp(-ratio / middle) else (low, middle)
    return low


@pytest.mark.parametrize(("spare", "published"), [(0.07, 7.82), (0.125, 4.68), (0.28, 2.48)])
def test_write_amplification_from_the_drives_counters_is_that_of_the_closed_form(
    tmp_path: Path, spare: float, published: float
) -> None:
    # 400 superblocks of 48 units of 48 pages, whatever the spare.
    pages = round(400 * 48 * 48 / (1 + spare))
    shape = {"capacity_bytes": pages * 4096, "superblocks": 400, "initial_state": "steady"}
    drive = uri(**{"capacity": None, **shape}, op=spare)
    output = tmp_path / "out.rec"
    writes = {"kind": "synthetic", "read_share": 0.0, "block_bytes": 4096, "depth": 32}
    # A drive's worth of writes to settle, and another to measure.
    phases = [
        SyntheticPhase(**writes, ios=pages, seed=1, measured=False),
        SyntheticPhase(**writes, ios=pages, seed=2),
    ]
    run_job(Job(drive=DriveRequest(uri=drive), output=output, phases=phases), quiet())
    with Recording.open(output) as recording:
        found = WRITE_AMPLIFICATION.values(Scan(recording))
    assert closed_form(spare) == pytest.approx(published, abs=0.005)
    assert found["write_amplification"] == pytest.approx(closed_form(spare), rel=0.015)
    counters = found["drive_counters"]
    assert counters["host_written_bytes"] == pages * 4096
    by_pages = 1 + counters["moved_pages"] * 4096 / counters["host_written_bytes"]
    assert found["write_amplification"] == pytest.approx(by_pages, rel=1e-4)
