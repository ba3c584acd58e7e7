"""Percentiles both ways and cumulative shares, against their definition and known answers."""

from __future__ import annotations

import numpy as np
import pytest
from builders import open_recording, scan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import quantile, weighted_quantile

from testdrive.metrics.percentiles import METRIC, SAMPLES_MIN
from testdrive.metrics.response_time import METRIC as RESPONSE
from testdrive.metrics.scans import QUANTILES, Scan
from testdrive.metrics.scans.distribution import distributions, rank

latencies = st.lists(
    st.one_of(
        st.integers(0, 50), st.integers(0, 100_000), st.integers(10**9, 10**9 + 5), st.integers(0, 4 * 10**12)
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=40, deadline=None)
@given(latencies, st.data())
def test_every_quantile_and_share_equals_its_definition(values, data):
    codes = data.draw(st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values)))
    thresholds = [0, 49, 1_000, 10**9 + 2]
    scan = scan_of({"submit_ns": np.zeros(len(values)), "latency_ns": values, "opcode": codes})
    found = distributions(scan.recording, scan.rows, "latency_ns", thresholds=thresholds)
    groups = [(found.whole, values)]
    groups += [
        (found.of(code), [v for v, c in zip(values, codes, strict=True) if c == code]) for code in set(codes)
    ]
    for distribution, mine in groups:
        assert distribution.n == len(mine)
        assert distribution.sum == sum(mine)
        assert distribution.max == max(mine)
        for millionths in QUANTILES.values():
            assert distribution.quantile(millionths) == quantile(mine, millionths)
            if sum(mine):
                assert distribution.weighted_quantile(millionths) == weighted_quantile(mine, millionths)
        for x in thresholds:
            assert distribution.share_at(x) == sum(v <= x for v in mine) / len(mine)
            if sum(mine):
                assert distribution.weighted_share_at(x) == sum(v for v in mine if v <= x) / sum(mine)
    both = [v for v, c in zip(values, codes, strict=True) if c in (0, 1)]
    if both:
        assert found.of(0, 1).quantile(999_900) == quantile(both, 999_900)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-(10**10), 10**10), min_size=1, max_size=60))
def test_quantiles_of_values_of_any_sign_equal_their_definition(values):
    scan = scan_of({"submit_ns": values, "latency_ns": 1})
    found = distributions(scan.recording, scan.rows, "submit_ns", weighted=False).whole
    for millionths in QUANTILES.values():
        assert found.quantile(millionths) == quantile(values, millionths)


def test_a_quantile_does_not_interpolate():
    values = METRIC.values(scan_of({"submit_ns": np.arange(4), "latency_ns": [10, 20, 30, 40]}))
    assert values["percentiles_ns"]["io_weighted"]["p50"] == 20
    assert values["percentiles_ns"]["io_weighted"]["p90"] == 40


@pytest.mark.parametrize(
    ("millionths", "n", "expected"),
    [
        (999_000, 1000, 999),
        (990_000, 100, 99),
        (999_999, 1_000_001, 1_000_000),
        (500_000, 1, 1),
        (500_000, 3, 2),
    ],
)
def test_ranks_are_exact(millionths, n, expected):
    assert rank(millionths, n) == expected


def test_one_second_among_a_million_ios_of_five_microseconds():
    latency = np.full(1_000_001, 5_000)
    latency[400_000] = 10**9
    submit = np.concatenate(([0], np.cumsum(latency)[:-1]))
    scan = scan_of({"submit_ns": submit, "latency_ns": latency, "opcode": 0, "length_bytes": 4096})
    found = METRIC.values(scan)
    assert found["latency_weighted_share_at_ns"]["5000"] == 5 / 6
    assert found["io_weighted_share_at_ns"]["5000"] == pytest.approx(0.999999000001, abs=1e-15)
    assert found["latency_weighted_share_at_ns"]["1000"] == 0
    assert found["latency_weighted_share_at_ns"]["1000000000"] == 1
    whole = scan.latency.whole
    assert whole.quantile(QUANTILES["p99_9999"]) == 5_000
    values = found["percentiles_ns"]
    assert values["io_weighted"]["p99_999"] == 5_000
    assert values["io_weighted"]["max"] == 10**9
    assert values["latency_weighted"]["p50"] == 5_000
    assert values["latency_weighted"]["p90"] == 10**9
    assert values["io_weighted"]["p99_9999"] is None
    assert found["percentile_codes"]["io_weighted"] == {"p99_9999": "too_few_samples"}
    assert scan.extent.ios / scan.extent.span_ns * 1e9 == pytest.approx(166_667, abs=0.5)


@pytest.mark.parametrize("name", SAMPLES_MIN)
def test_the_fewest_samples_of_a_percentile_bound_it_with_95_percent(name):
    p, n = QUANTILES[name] / 1e6, SAMPLES_MIN[name]
    assert 1 - p**n >= 0.95 > 1 - p ** (n - 1)


@pytest.mark.parametrize(("n", "present"), [(298, False), (299, True)])
def test_p99_is_published_from_299_ios_on(n, present):
    found = METRIC.values(scan_of({"submit_ns": np.arange(n), "latency_ns": np.arange(n) + 1}))
    for weighting in ("io_weighted", "latency_weighted"):
        assert (found["percentiles_ns"][weighting]["p99"] is not None) == present
        assert ("p99" not in found["percentile_codes"][weighting]) == present


def test_failed_ios_and_those_without_a_completion_are_left_out():
    columns = {"submit_ns": np.arange(5), "latency_ns": [1, 2, 3, 10**9, -1], "status": [0, 0, 0, 5, 0]}
    found = METRIC.values(scan_of(columns))
    assert found["latency_samples"] == 3
    assert found["percentiles_ns"]["io_weighted"]["max"] == 3


def test_latencies_of_nothing_but_zero_have_no_weighted_shares():
    found = METRIC.values(scan_of({"submit_ns": np.arange(5), "latency_ns": 0}))
    assert found["percentiles_ns"]["io_weighted"]["p50"] == 0
    assert found["percentiles_ns"]["latency_weighted"]["p50"] is None
    assert found["percentile_codes"]["latency_weighted"]["p50"] == "no_latency"
    assert found["latency_weighted_share_at_ns"] is None
    assert found["latency_weighted_code"] == "no_latency"


def test_percentiles_of_segments_merged_equal_those_of_the_whole(tmp_path):
    rng = np.random.default_rng(5)
    columns = {
        "submit_ns": np.arange(20_000) * 1000,
        "latency_ns": rng.lognormal(11, 1, 20_000).astype(np.int64),
        "opcode": rng.integers(0, 3, 20_000),
    }
    with (
        open_recording(tmp_path / "one.rec", columns) as one,
        open_recording(tmp_path / "many.rec", columns, segment_rows=777) as many,
    ):
        assert METRIC.values(Scan(one)) == METRIC.values(Scan(many))


def test_response_time_counts_from_the_intention():
    columns = {"intended_ns": np.arange(10), "submit_ns": np.arange(10) + 100, "latency_ns": 7}
    found = RESPONSE.values(scan_of(columns))
    assert found["response_percentiles_ns"]["io_weighted"]["p50"] == 107
    assert found["response_mean_ns"] == 107
    assert found["response_code"] is None


def test_a_closed_loop_has_no_response_time_of_its_own():
    columns = {"intended_ns": np.arange(10), "submit_ns": np.arange(10), "latency_ns": 7}
    assert RESPONSE.values(scan_of(columns))["response_code"] == "closed_loop"
    timed = [{"index": 0, "kind": "replay", "settings": {"pace": "timed"}}]
    found = RESPONSE.values(scan_of(columns, phases=timed))
    assert found["response_percentiles_ns"]["io_weighted"]["p50"] == 7


def test_an_open_loop_has_a_response_time_also_where_it_was_never_late():
    columns = {"intended_ns": np.arange(10), "submit_ns": np.arange(10), "latency_ns": 7}
    closed = [{"index": 0, "kind": "synthetic", "settings": {"arrivals": None}}]
    assert RESPONSE.values(scan_of(columns, phases=closed))["response_code"] == "closed_loop"
    arrivals = {"process": "poisson", "rate_iops": 5.0}
    opened = [{"index": 0, "kind": "synthetic", "settings": {"arrivals": arrivals}}]
    found = RESPONSE.values(scan_of(columns, phases=opened))
    assert found["response_percentiles_ns"]["io_weighted"]["p50"] == 7
