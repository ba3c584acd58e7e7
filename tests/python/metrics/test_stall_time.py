"""Stall time against a sweep over every nanosecond."""

from __future__ import annotations

import numpy as np
import pytest
from builders import scan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import stall_share

from testdrive.metrics.scans.intervals import covered_before, union, union_length
from testdrive.metrics.stall_time import METRIC

THOUSAND = 1000
ios = st.lists(st.tuples(st.integers(0, 120), st.integers(1, 60)), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None)
@given(ios)
def test_stall_time_equals_the_sweep(pairs):
    # In steps of 100 ns the thresholds from 1 us on fall on whole steps of the sweep.
    submit, latency = (np.array(values) for values in zip(*pairs, strict=True))
    found = METRIC.values(scan_of({"submit_ns": submit * 100, "latency_ns": latency * 100}))
    assert found["stall_time_standard_error"] == {}
    for threshold in (1000, 5000):
        assert found["stall_time"][str(threshold)] == pytest.approx(
            stall_share(submit.tolist(), latency.tolist(), threshold // 100), abs=1e-12
        )


def test_at_queue_depth_one_it_is_the_share_of_time_above_the_threshold():
    latency = np.full(1_000_001, 5_000)
    latency[-1] = 10**9
    submit = np.concatenate(([0], np.cumsum(latency)[:-1]))
    found = METRIC.values(scan_of({"submit_ns": submit, "latency_ns": latency}))
    assert found["stall_time"]["5000"] == pytest.approx((10**9 - 5_000) / (6 * 10**9), rel=1e-12)
    assert found["stall_time"]["500000000"] == pytest.approx(1 / 12, rel=1e-9)
    assert found["stall_time"]["1000000000"] == 0


def test_ios_that_stall_together_count_once():
    # A thousand I/Os wait for the same second: F_L would say 1000 s, wall-clock time says one.
    submit = np.arange(1000)
    latency = 10**9 - submit
    submit, latency = np.append(submit, 2 * 10**9), np.append(latency, 1)
    found = METRIC.values(scan_of({"submit_ns": submit, "latency_ns": latency}))
    assert found["stall_time"]["1000000"] == pytest.approx((10**9 - 10**6) / (2 * 10**9 + 1), rel=1e-9)


@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(-5, 20)), max_size=15),
    st.lists(st.integers(-40, 60)),
)
def test_unions_equal_sets_of_points(pairs, points):
    start = np.array([a for a, _ in pairs], np.int64)
    end = start + np.array([b for _, b in pairs], np.int64)
    covered = {x for a, b in zip(start.tolist(), end.tolist(), strict=True) for x in range(a, b)}
    assert union_length(start, end) == len(covered)
    starts, ends = union(start, end)
    assert (starts[1:] > ends[:-1]).all()
    for point, before in zip(points, covered_before(starts, ends, np.array(points, np.int64)), strict=True):
        assert before == sum(x < point for x in covered)
