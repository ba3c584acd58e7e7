"""What a workload asks of a drive: sizes, hot places, growth, trims and writes a day, against plain
definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import scan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import quantile, unique_bytes

from testdrive.metrics import (
    bursts,
    workload_flags,
    workload_footprint,
    workload_hot_regions,
    workload_rates,
    workload_sizes,
    workload_sizing,
    workload_trim_pattern,
)
from testdrive.metrics.scans import cells, extents, regions
from testdrive.metrics.scans.intervals import first_covered
from testdrive.metrics.scans.seconds import seconds_of_rows

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 9)), max_size=30))
def test_the_first_time_that_each_point_is_covered(intervals):
    start, length, when = (np.array([each[at] for each in intervals], np.int64) for at in range(3))
    first: dict[int, int] = {}
    for begin, size, time in zip(start.tolist(), length.tolist(), when.tolist(), strict=True):
        for point in range(begin, begin + size):
            first[point] = min(first.get(point, time), time)
    lengths, times = first_covered(start, start + length, when)
    assert lengths.sum() == len(first)
    for time in range(10):
        assert lengths[times == time].sum() == sum(1 for each in first.values() if each == time)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 9), st.integers(0, 300)), min_size=1
    )
)
def test_the_footprint_grows_as_the_set_of_bytes_does(ios):
    opcode, offset, length, at = (np.array(column, np.int64) for column in zip(*ios, strict=True))
    columns = {"submit_ns": at * 10**9, "opcode": opcode, "offset_bytes": offset, "length_bytes": length}
    growth = workload_footprint.METRIC.values(scan_of(columns))["workload.footprint_growth"]
    assert len(growth["total"]) == extents.INTERVALS
    ends = (np.arange(extents.INTERVALS) + 1) * growth["interval_ns"]
    for number in (0, 1, 7, 60, 119):
        mine = columns["submit_ns"] < ends[number]
        assert growth["total"][number] == unique_bytes(offset[mine], length[mine])
        writes = mine & (opcode == 1)
        grown = growth["by_opcode"].get("write")
        assert (grown[number] if grown else 0) == unique_bytes(offset[writes], length[writes])


def test_places_that_are_used_in_every_minute_are_counted_exactly_though_minutes_are_sampled(monkeypatch):
    monkeypatch.setattr(extents, "EXTENTS_MAX", 5_000)
    n, places = 100_000, 2_000
    rng = np.random.default_rng(3)
    offset = rng.integers(0, places, n) * 65_536
    columns = {"submit_ns": np.arange(n) * 60_000_000, "offset_bytes": offset, "length_bytes": 4096}
    found = workload_footprint.METRIC.values(scan_of(columns))
    assert found["workload.footprint_bytes"]["total"] == len(np.unique(offset)) * 4096
    assert found["workload.footprint_bytes"]["sampled_one_in"] is None
    assert found["workload.footprint_growth"]["total"][-1] == len(np.unique(offset)) * 4096
    working_set = found["workload.working_set_bytes"]
    assert working_set["minutes"] == 100
    assert working_set["sampled_one_in"] > 1
    minute = np.arange(n) * 60_000_000 // MINUTE_NS
    exact = [len(np.unique(offset[minute == number])) * 4096 for number in range(100)]
    assert working_set["p50"] == pytest.approx(quantile(exact, 500_000), rel=0.25)


def test_the_working_set_names_its_greatest_minute():
    # Ten blocks in the first minute, thirty in the third, the same block over and over in the fourth.
    minute = np.concatenate((np.zeros(10, int), np.full(30, 2), np.full(50, 3)))
    block = np.concatenate((np.arange(10), np.arange(30), np.zeros(50, int)))
    columns = {"submit_ns": minute * MINUTE_NS, "offset_bytes": block * 4096, "length_bytes": 4096}
    found = workload_footprint.METRIC.values(scan_of(columns))
    assert found["workload.working_set_per_minute_bytes"] == [40_960, 0, 122_880, 4096]
    working_set = found["workload.working_set_bytes"]
    assert (working_set["p50"], working_set["max"], working_set["max_minute"]) == (4096, 122_880, 2)


def test_more_than_a_week_of_minutes_is_told_by_its_greatest_alone():
    columns = {"submit_ns": [0, 8 * 24 * 60 * MINUTE_NS], "offset_bytes": [0, 0], "length_bytes": [512, 1024]}
    found = workload_footprint.METRIC.values(scan_of(columns))
    assert found["workload.working_set_per_minute_bytes"] is None
    assert found["workload.working_set_code"] == "too_long"
    assert found["workload.working_set_bytes"]["max"] == 1024


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), min_size=1, max_size=80))
def test_hot_regions_equal_their_definition(ios):
    opcode, place = (np.array(column) for column in zip(*ios, strict=True))
    columns = {"submit_ns": 0, "opcode": opcode, "offset_bytes": place * 4096 + 512, "length_bytes": 512}
    found = workload_hot_regions.METRIC.values(scan_of(columns))["workload.hot_regions"]
    counts = sorted(np.unique(place, return_counts=True)[1].tolist(), reverse=True)
    assert found["region_bytes"] == 4096
    assert found["regions_touched"] == len(counts)
    assert found["ios_per_region"] == len(ios) / len(counts)
    for part in (0.01, 0.1, 0.2, 0.5):
        hottest = counts[: math.ceil(round(part * len(counts), 9))]
        assert found["share_of_ios"][f"{part:g}"] == sum(hottest) / len(ios)


def test_regions_are_never_more_than_their_limit_and_trims_are_none_of_them(monkeypatch):
    monkeypatch.setattr(regions, "REGIONS_MAX", 16)
    columns = {
        "submit_ns": np.arange(65),
        "opcode": np.append(np.zeros(64, int), 2),
        "offset_bytes": np.append(np.arange(64) * 4096, 0),
        "length_bytes": 4096,
    }
    found = workload_hot_regions.METRIC.values(scan_of(columns))["workload.hot_regions"]
    assert (found["region_bytes"], found["regions_touched"], found["ios_per_region"]) == (16_384, 16, 4.0)
    only_trims = scan_of({**columns, "opcode": 2})
    assert workload_hot_regions.METRIC.values(only_trims)["workload.hot_regions_code"] == "no_ios"


def test_sizes_of_each_opcode_and_of_transfers():
    columns = {
        "submit_ns": np.arange(8),
        "opcode": [0, 0, 0, 1, 1, 2, 2, 3],
        "offset_bytes": 0,
        "length_bytes": [4096, 4096, 8192, 512, 1024, 1 << 20, 1 << 30, 0],
    }
    found = workload_sizes.METRIC.values(scan_of(columns))
    assert found["workload.sizes_by_opcode"]["read"] == {
        "mean_bytes": pytest.approx(16_384 / 3),
        "p50_bytes": 4096,
        "p99_bytes": 8192,
        "max_bytes": 8192,
        "most_frequent_bytes": 4096,
        "most_frequent_share": pytest.approx(2 / 3),
    }
    assert "flush" not in found["workload.sizes_by_opcode"]
    frequent = found["workload.transfer_sizes_most_frequent"]
    assert [one["length_bytes"] for one in frequent] == [4096, 512, 1024, 8192]
    assert frequent[0]["share"] == 2 / 5


def test_trim_bursts_with_their_interval_and_streams():
    # Three bursts of forty trims within 400 ms, 30 s apart, and a read every 10 ms throughout.
    begin = np.repeat([10, 40, 70], 40) * SECOND_NS
    trims = begin + np.tile(np.arange(40), 3) * 10_000_000
    reads = np.arange(10_000) * 10_000_000
    columns = {
        "submit_ns": np.concatenate((trims, reads)),
        "opcode": np.concatenate((np.full(120, 2), np.zeros(10_000))),
        "offset_bytes": 0,
        "length_bytes": np.concatenate((np.full(120, 1 << 20), np.full(10_000, 4096))),
        "stream": np.concatenate((np.where(np.arange(120) % 4, 7, 5), np.zeros(10_000))),
    }
    found = workload_trim_pattern.METRIC.values(scan_of(columns))
    assert found["workload.trim_bursts"] == {
        "bursts": 3,
        "time_share": pytest.approx(3 * 0.4 / 100),
        "trims_p50": 40,
        "bytes_p50": 40 << 20,
        "length_ns_p50": 400_000_000,
        "interval_ns_p50": 30 * SECOND_NS,
        "interval_ns_min": 30 * SECOND_NS,
        "interval_ns_max": 30 * SECOND_NS,
        "interval_cv": 0.0,
        "first_ns": 10 * SECOND_NS,
    }
    assert found["workload.trim_streams"] == [
        {"stream": 7, "ios": 90, "bytes": 90 << 20},
        {"stream": 5, "ios": 30, "bytes": 30 << 20},
    ]


@pytest.mark.parametrize(("gap_ms", "number"), [(900, 1), (1100, 2)])
def test_trims_less_than_a_second_apart_are_one_burst(gap_ms, number):
    columns = {"submit_ns": [0, (gap_ms + 100) * 1_000_000], "opcode": 2, "length_bytes": 4096}
    found = workload_trim_pattern.METRIC.values(scan_of(columns))
    assert found["workload.trim_bursts"]["bursts"] == number
    assert (found["workload.trim_bursts"]["interval_ns_p50"] is None) == (number == 1)


def test_without_trims_or_streams_the_pattern_says_so():
    found = workload_trim_pattern.METRIC.values(scan_of({"submit_ns": [0, 1], "opcode": 1}))
    assert found["workload.trim_bursts_code"] == "no_trims"
    found = workload_trim_pattern.METRIC.values(scan_of({"submit_ns": [0], "opcode": 2}))
    assert (found["workload.trim_streams"], found["workload.trim_streams_code"]) == (None, "not_recorded")


def test_flags_are_counted_bit_by_bit():
    found = workload_flags.METRIC.values(scan_of({"submit_ns": np.arange(5), "flags": [0, 1, 3, 4, 16]}))
    assert found["workload.flags"] == {"fua": 2, "preflush": 1, "sync": 1, "metadata": 0, "read_ahead": 1}


def test_writes_a_day_are_extrapolated_from_the_span_and_related_to_the_capacity():
    # Two minutes from the first arrival to the last completion: a day has 720 of them.
    columns = {
        "submit_ns": [0, 1, 2, 2 * MINUTE_NS - 10],
        "latency_ns": 10,
        "opcode": [1, 1, 0, 2],
        "length_bytes": [1000, 2000, 500, 10_000],
    }
    drive = {"capacity_bytes": 720_000, "model": "x"}
    sizing = workload_sizing.METRIC.values(scan_of(columns, drive=drive))["workload.sizing"]
    assert sizing["written_bytes_per_day"] == 720 * 3000
    assert sizing["read_bytes_per_day"] == 720 * 500
    assert sizing["trimmed_bytes_per_day"] == 720 * 10_000
    assert sizing["extrapolated_from_ns"] == 2 * MINUTE_NS
    assert sizing["drive_writes_per_day"] == 3.0
    unknown = workload_sizing.METRIC.values(scan_of(columns))["workload.sizing"]
    assert unknown["drive_writes_per_day"] is None


def test_less_than_a_minute_says_nothing_of_a_day():
    columns = {"submit_ns": [0, MINUTE_NS - 1], "length_bytes": 4096, "opcode": 1}
    assert workload_sizing.METRIC.values(scan_of(columns))["workload.sizing_code"] == "too_short"


def test_rates_of_each_opcode_and_the_busiest_minute():
    # A read a second for two minutes, and ten writes in each second of the second minute.
    reads = np.arange(121) * SECOND_NS
    writes = MINUTE_NS + np.repeat(np.arange(60), 10) * SECOND_NS
    columns = {
        "submit_ns": np.concatenate((reads, writes)),
        "opcode": np.concatenate((np.zeros(121), np.ones(600))),
        "length_bytes": np.concatenate((np.full(121, 512), np.full(600, 4096))),
    }
    found = workload_rates.METRIC.values(scan_of(columns))
    assert found["workload.rates_by_opcode"]["read"]["iops_peak_1s"] == 1
    assert found["workload.rates_by_opcode"]["write"] == {
        "iops_mean": 600 / 120,
        "iops_peak_1s": 10,
        "throughput_bytes_per_s_mean": 600 * 4096 / 120,
        "throughput_bytes_per_s_peak_1s": 40_960,
    }
    assert found["workload.iops_peak_1s"] == 11
    assert found["workload.iops_peak_time_ns"] == MINUTE_NS
    assert found["workload.busiest_minute"] == {
        "start_ns": MINUTE_NS,
        "ios": 660,
        "iops": 11.0,
        "transfer_throughput_bytes_per_s": 10 * 4096 + 512,
        "read_share": 60 / 660,
    }


def test_what_is_shorter_than_a_second_has_no_peak_of_one():
    found = workload_rates.METRIC.values(scan_of({"submit_ns": [0, SECOND_NS // 2], "length_bytes": 512}))
    assert found["workload.iops_peak_1s"] is None
    assert found["workload.peak_code"] == "too_short"
    assert found["workload.iops_mean"] == 4
    assert found["workload.rates_by_opcode"]["read"]["throughput_bytes_per_s_peak_1s"] is None


def test_a_source_without_times_has_no_rates_and_the_rest_of_its_figures():
    columns = {"offset_bytes": np.arange(500) * 4096, "length_bytes": 4096, "opcode": 1, "submit_ns": 0}
    scan = scan_of(columns, absent_columns=["intended_ns", "submit_ns", "latency_ns", "stream"])
    assert workload_rates.METRIC.values(scan)["workload.rates_code"] == "not_recorded"
    assert workload_trim_pattern.METRIC.values(scan)["workload.trim_bursts_code"] == "not_recorded"
    assert workload_sizing.METRIC.values(scan)["workload.sizing_code"] == "not_recorded"
    footprint = workload_footprint.METRIC.values(scan)
    assert footprint["workload.footprint_bytes"]["total"] == 500 * 4096
    assert footprint["workload.growth_code"] == footprint["workload.working_set_code"] == "not_recorded"


def test_a_rise_too_short_for_a_burst_is_told_all_the_same():
    submit = np.arange(10_000) * 2_000_000
    slow = (submit >= 12 * SECOND_NS) & (submit < 12_700_000_000)
    columns = {"submit_ns": submit, "latency_ns": np.where(slow, 10_000_000, 1_000_000), "opcode": 0}
    found = bursts.METRIC.values(scan_of(columns))
    assert found["recovery_code"] == "no_burst"
    assert (found["longest_rise_ns"], found["longest_rise_time_ns"]) == (700_000_000, 12 * SECOND_NS)
    # Above the calm level but never above that of bursts: nothing rose.
    columns["latency_ns"] = np.where(slow, 2_500_000, 1_000_000)
    assert bursts.METRIC.values(scan_of(columns))["longest_rise_ns"] is None


def long_columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(9)
    n = 20_000
    return {
        "submit_ns": np.sort(rng.integers(0, 400 * SECOND_NS, n)),
        "latency_ns": rng.integers(1000, 2_000_000, n),
        "opcode": rng.integers(0, 3, n),
        "length_bytes": rng.integers(1, 100, n) * 512,
    }


def test_seconds_counted_in_the_query_engine_are_those_of_the_cells():
    scan = scan_of(long_columns())
    extent = scan.extent
    first_ns = scan.cells.time_ns(0)
    found = seconds_of_rows(scan.recording, scan.rows, first_ns, extent.complete_last_ns)
    expected = scan.seconds
    # The last second begun: cells count it as whole if its last cell is begun, the rows do not.
    assert found.whole in (expected.whole, expected.whole - 1)
    assert found.mean == pytest.approx(expected.mean, rel=0.01)
    assert found.variance == pytest.approx(expected.variance, rel=0.02)
    for name in ("busiest", "transfers", "trims", "by_opcode", "busiest_ns", "peak_whole"):
        assert getattr(found, name) == getattr(expected, name), name


def test_long_recordings_have_wider_cells_and_the_same_rates(monkeypatch):
    expected = workload_rates.METRIC.values(scan_of(long_columns()))
    for cells_max, width_s in ((1000, 1), (100, 10)):
        monkeypatch.setattr(cells, "CELLS_MAX", cells_max)
        scan = scan_of(long_columns())
        assert scan.cells.width_ns == width_s * SECOND_NS
        found = workload_rates.METRIC.values(scan)
        for key in ("workload.iops_peak_1s", "workload.rates_by_opcode", "workload.span_ns"):
            assert found[key] == expected[key], key
        burstiness = found["workload.burstiness"]
        for key, value in expected["workload.burstiness"].items():
            assert burstiness[key] == pytest.approx(value, rel=0.02), key


def test_a_burst_in_wide_cells_is_found_in_whole_ones(monkeypatch):
    monkeypatch.setattr(cells, "CELLS_MAX", 100)
    submit = np.arange(60_000) * 10_000_000
    slow = (submit >= 200 * SECOND_NS) & (submit < 260 * SECOND_NS)
    columns = {"submit_ns": submit, "latency_ns": np.where(slow, 10_000_000, 1_000_000), "opcode": 0}
    scan = scan_of(columns)
    assert scan.cells.width_ns == 10 * SECOND_NS
    (burst,) = bursts.METRIC.values(scan)["bursts"]
    assert (burst["onset_ns"], burst["recovery_ns"]) == (200 * SECOND_NS, 60 * SECOND_NS)
