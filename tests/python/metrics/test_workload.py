"""Characteristics of workloads against their plainest definitions."""

from __future__ import annotations

import numpy as np
import pytest
from builders import scan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import depth_shares, overwrite_distances, sequential, unique_bytes

from testdrive.metrics import (
    consistency,
    io_counts,
    workload_depth,
    workload_footprint,
    workload_interarrival,
    workload_overwrites,
    workload_rates,
    workload_sequentiality,
    workload_sizes,
    workload_source,
)

SECOND_NS = 1_000_000_000
KIB = 1024


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40)), min_size=1, max_size=15))
def test_queue_depth_equals_the_sweep(pairs):
    submit, latency = zip(*pairs, strict=True)
    found = workload_depth.METRIC.values(scan_of({"submit_ns": submit, "latency_ns": latency}))
    depth = found["workload.queue_depth"]
    shares = depth_shares(submit, latency)
    assert depth["mean"] == pytest.approx((shares * np.arange(len(shares))).sum() / shares.sum())
    assert depth["max"] == len(shares) - 1
    for name, percent in (("p50", 50), ("p99", 99)):
        assert depth[name] == int(np.argmax(np.cumsum(shares) * 100 >= percent * shares.sum()))
    assert depth["sampled_ios"] is None


def test_an_io_that_completes_when_the_next_is_submitted_does_not_overlap_it():
    found = workload_depth.METRIC.values(scan_of({"submit_ns": [0, 10, 20], "latency_ns": 10}))
    assert found["workload.queue_depth"]["max"] == 1


ios_with_place = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 12), st.integers(1, 3)),
    min_size=1,
    max_size=120,
)


@settings(max_examples=25, deadline=None)
@given(ios_with_place)
def test_sequential_share_equals_its_definition(ios):
    stream, opcode, offset, length = (np.array(column) for column in zip(*ios, strict=True))
    columns = {
        "submit_ns": np.arange(len(ios)),
        "stream": stream,
        "opcode": opcode,
        "offset_bytes": offset,
        "length_bytes": length,
    }
    found = workload_sequentiality.METRIC.values(scan_of(columns))
    expected = sequential(stream.tolist(), opcode.tolist(), offset.tolist(), length.tolist())
    assert found["workload.sequential_share"] == pytest.approx(np.mean(expected))
    assert found["workload.sequential_by"] == "stream"


def test_an_io_is_sequential_to_the_thirty_second_before_it_and_no_further():
    for between, share in ((31, 1), (32, 0)):
        n = between + 2
        offset = np.arange(n) * 1_000_000
        offset[-1] = 4096
        columns = {"submit_ns": np.arange(n), "offset_bytes": offset, "length_bytes": 4096, "stream": 0}
        found = workload_sequentiality.METRIC.values(scan_of(columns))
        assert found["workload.sequential_share"] == pytest.approx(share / n)


def test_order_is_that_of_intention_not_of_completion():
    columns = {
        "intended_ns": [20, 0, 10],
        "submit_ns": [20, 0, 10],
        "offset_bytes": [8192, 0, 4096],
        "length_bytes": 4096,
        "stream": 0,
    }
    found = workload_sequentiality.METRIC.values(scan_of(columns))
    assert found["workload.sequential_share"] == pytest.approx(2 / 3)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 100), st.integers(0, 30)), min_size=1, max_size=30)
)
def test_footprint_equals_the_set_of_bytes(ios):
    opcode, offset, length = (np.array(column) for column in zip(*ios, strict=True))
    minute = np.arange(len(ios)) % 3
    columns = {
        "submit_ns": minute * 60 * SECOND_NS,
        "opcode": opcode,
        "offset_bytes": offset,
        "length_bytes": length,
    }
    found = workload_footprint.METRIC.values(scan_of(columns))
    assert found["workload.footprint_bytes"]["total"] == unique_bytes(offset, length)
    for code, name in enumerate(("read", "write", "trim")):
        mine = opcode == code
        unique = found["workload.footprint_bytes"]["by_opcode"].get(name, 0)
        assert unique == unique_bytes(offset[mine], length[mine])
    for number, working_set in enumerate(found["workload.working_set_per_minute_bytes"]):
        mine = (minute == number) & (opcode < 2)
        assert working_set == unique_bytes(offset[mine], length[mine])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 9_000)), min_size=1, max_size=40))
def test_overwrite_distance_equals_its_definition(ios):
    offset, length = zip(*ios, strict=True)
    columns = {"submit_ns": np.arange(len(ios)), "opcode": 1, "offset_bytes": offset, "length_bytes": length}
    found = workload_overwrites.METRIC.values(scan_of(columns))
    expected = overwrite_distances(offset, length)
    distance = found["workload.overwrite_distance"]
    assert distance["share"] == len(expected) / len(ios)
    for name, p in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        value = expected[int(np.ceil(round(p * len(expected), 9))) - 1] if expected else None
        assert distance[f"{name}_bytes"] == value


def test_reads_are_no_part_of_an_overwrite():
    columns = {
        "submit_ns": [0, 1, 2],
        "opcode": [1, 0, 1],
        "offset_bytes": 0,
        "length_bytes": [4096, 65536, 4096],
    }
    found = workload_overwrites.METRIC.values(scan_of(columns))
    assert found["workload.overwrite_distance"]["p50_bytes"] == 4096


def test_counts_by_opcode_with_errors_and_missing_completions():
    columns = {
        "submit_ns": np.arange(5),
        "opcode": [0, 0, 1, 2, 3],
        "length_bytes": [512, 1024, 4096, 8192, 0],
        "status": [0, 5, 0, 0, 0],
        "latency_ns": [1, 1, -1, 1, 1],
    }
    counts = io_counts.METRIC.values(scan_of(columns))["io_counts"]
    assert (counts["ios"], counts["bytes"], counts["errors"], counts["no_completion"]) == (5, 13_824, 1, 1)
    assert counts["by_opcode"]["read"] == {"ios": 2, "bytes": 1536, "errors": 1, "no_completion": 0}
    assert counts["by_opcode"]["write"] == {"ios": 1, "bytes": 4096, "errors": 0, "no_completion": 1}
    assert counts["by_opcode"]["write_zeroes"]["ios"] == 0


def test_sizes_alignment_and_trims():
    columns = {
        "submit_ns": np.arange(6),
        "opcode": [0, 0, 1, 1, 2, 3],
        "offset_bytes": [0, 512, 4096, 8192, 1 << 20, 0],
        "length_bytes": [4096, 512, 4097, 8192, 1 << 20, 0],
    }
    found = workload_sizes.METRIC.values(scan_of(columns))
    assert found["workload.size_histogram"] == {
        "read": {"512": 1, "4096": 1},
        "write": {"8192": 2},
        "trim": {str(1 << 20): 1},
    }
    assert found["workload.alignment_share"]["512"] == pytest.approx(4 / 5)
    assert found["workload.alignment_share"]["4096"] == pytest.approx(3 / 5)
    assert found["workload.alignment_share"]["8192"] == pytest.approx(2 / 5)
    assert found["workload.alignment_share"]["1048576"] == pytest.approx(1 / 5)
    assert found["workload.trims"]["ios"] == 1
    assert found["workload.trims"]["length_bytes"] == {"p50": 1 << 20, "p99": 1 << 20, "max": 1 << 20}
    assert found["workload.sizes_most_frequent"][0] == {"length_bytes": 512, "ios": 1, "share": 0.2}


def test_rates_burstiness_and_mix_of_a_workload_of_bursts():
    # 30 s of which every third second has 300 arrivals and the others none; 4 KiB reads, then 8 KiB writes.
    second = np.repeat(np.arange(0, 30, 3), 300)
    submit = second * SECOND_NS + np.tile(np.arange(300), 10) * 1_000_000
    opcode = (second >= 15).astype(int)
    submit = np.append(submit, 30 * SECOND_NS - 1)
    opcode = np.append(opcode, 1)
    columns = {"submit_ns": submit, "latency_ns": 0, "opcode": opcode, "length_bytes": 4096 * (opcode + 1)}
    found = workload_rates.METRIC.values(scan_of(columns))
    assert found["workload.iops_mean"] == pytest.approx(3001 / 30)
    assert found["workload.iops_peak_1s"] == 300
    assert found["workload.transfer_throughput_bytes_per_s_peak_1s"] == 300 * 8192
    counts = np.zeros(30)
    counts[::3], counts[29] = 300, 1
    burstiness = found["workload.burstiness"]
    assert burstiness["peak_to_mean_1s"] == pytest.approx(300 / counts.mean())
    assert burstiness["index_of_dispersion_1s"] == pytest.approx(counts.var(ddof=1) / counts.mean())
    tens = counts.reshape(3, 10).sum(axis=1)
    assert burstiness["index_of_dispersion_10s"] == pytest.approx(tens.var(ddof=1) / tens.mean())
    mix = found["workload.mix_over_time"]
    assert mix["interval_ns"] == SECOND_NS
    assert mix["ios"]["read"] == [300 * (s % 3 == 0 and s < 15) for s in range(30)]
    assert sum(mix["bytes"]["write"]) == 1501 * 8192


def test_the_busiest_second_may_be_the_one_that_the_recording_ends_in():
    submit = np.concatenate((np.arange(10) * 100_000_000, SECOND_NS + np.arange(50)))
    found = workload_rates.METRIC.values(scan_of({"submit_ns": submit, "length_bytes": 512}))
    assert found["workload.iops_peak_1s"] == 50
    assert found["workload.transfer_throughput_bytes_per_s_peak_1s"] == 50 * 512
    assert found["workload.burstiness_code"] == "too_short"


def test_transfers_and_trims_are_told_apart():
    # Ten seconds of a 4 KiB write every 100 ms, and a trim of 1 GiB in the sixth.
    submit = np.append(np.arange(101) * 100_000_000, 5 * SECOND_NS + 1)
    opcode = np.append(np.full(101, 1), 2)
    columns = {"submit_ns": submit, "opcode": opcode, "length_bytes": np.where(opcode == 2, 1 << 30, 4096)}
    columns |= {"offset_bytes": 0, "latency_ns": 0}
    scan = scan_of(columns)
    rates, sizes = workload_rates.METRIC.values(scan), workload_sizes.METRIC.values(scan)
    assert rates["workload.transfer_throughput_bytes_per_s_mean"] == pytest.approx(101 * 4096 / 10)
    assert rates["workload.transfer_throughput_bytes_per_s_peak_1s"] == 10 * 4096
    assert rates["workload.trim_throughput_bytes_per_s_mean"] == pytest.approx((1 << 30) / 10)
    assert rates["workload.trim_throughput_bytes_per_s_peak_1s"] == 1 << 30
    assert sizes["workload.transfer_size_mean_bytes"] == 4096
    assert sizes["workload.trim_size_mean_bytes"] == 1 << 30


def test_a_workload_without_trims_has_no_mean_size_of_them():
    scan = scan_of({"submit_ns": [0, SECOND_NS], "opcode": 0, "offset_bytes": 0, "length_bytes": 512})
    assert workload_sizes.METRIC.values(scan)["workload.trim_size_mean_bytes"] is None
    assert workload_rates.METRIC.values(scan)["workload.trim_throughput_bytes_per_s_mean"] == 0


def test_interarrival_times():
    gaps = np.tile([100, 300], 200)
    found = workload_interarrival.METRIC.values(scan_of({"intended_ns": np.cumsum(gaps)[::-1]}))
    interarrival = found["workload.interarrival"]
    assert interarrival["mean_ns"] == pytest.approx(gaps[1:].mean())
    assert interarrival["cv"] == pytest.approx(gaps[1:].std() / gaps[1:].mean())
    assert interarrival["p99_ns"] == 300


def test_consistency_counts_completions_in_whole_seconds():
    per_second = [100, 100, 20, 180]
    submit = np.concatenate([s * SECOND_NS + np.arange(n) * 1_000_000 for s, n in enumerate(per_second)])
    # The fifth second is only begun and must not count as a slow one.
    submit = np.append(submit, 4 * SECOND_NS)
    found = consistency.METRIC.values(scan_of({"submit_ns": submit, "latency_ns": 10}))
    assert found["consistency.seconds"] == 4
    assert found["consistency.iops_mean"] == 100
    assert (found["consistency.iops_min"], found["consistency.iops_max"]) == (20, 180)
    assert found["consistency.iops_cv"] == pytest.approx(np.std(per_second) / 100)
    assert found["consistency.seconds_below_half_mean_share"] == 0.25
    assert found["consistency.iops_p1"] == 20


def test_failed_ios_are_no_throughput():
    columns = {"submit_ns": np.arange(2000) * 1_000_000, "latency_ns": 10, "status": np.arange(2000) % 2}
    assert consistency.METRIC.values(scan_of(columns))["consistency.iops_mean"] == 500


def test_where_a_workload_comes_from_is_told():
    found = workload_source.METRIC.values(
        scan_of(
            {"submit_ns": [0]},
            source={"device": "259,0", "events": "queued"},
            host={"hostname": "db1"},
            dropped=[
                {"what": "events lost", "count": 7},
                {"what": "completions without an issue", "count": 2},
            ],
        )
    )
    assert found["workload.captured"]["device"] == "259,0"
    assert found["workload.captured"]["host"] == "db1"
    assert found["workload.captured"]["events"] == "queued"
    assert found["workload.events_dropped"] == 9
