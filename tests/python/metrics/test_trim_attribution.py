"""Trim attribution on series in which the truth was put."""

from __future__ import annotations

import numpy as np
import pytest
from builders import scan_of

from testdrive.metrics.scans.cells import CELL_NS as AFTER_NS
from testdrive.metrics.trim_attribution import METRIC, correlation

SECOND_NS = 1_000_000_000
KEY = "trim_attribution."


def workload(seconds=60, rate_per_s=500, slow_s=(), trims_s=(), trim_latency_ns=50_000_000, stream=3):
    """1 ms reads, 20 ms in the seconds ``slow_s``, and a trim of 1 GiB at each of ``trims_s``."""
    submit = (np.arange(seconds * rate_per_s) * (SECOND_NS / rate_per_s)).astype(np.int64)
    latency = np.where(np.isin(submit // SECOND_NS, slow_s), 20_000_000, 1_000_000)
    trims = (np.array(trims_s) * SECOND_NS).astype(np.int64)
    return {
        "submit_ns": np.concatenate((submit, trims)),
        "latency_ns": np.concatenate((latency, np.full(len(trims), trim_latency_ns))),
        "length_bytes": np.concatenate((np.full(len(submit), 4096), np.full(len(trims), 1 << 30))),
        "offset_bytes": 0,
        "opcode": np.concatenate((np.zeros(len(submit)), np.full(len(trims), 2))),
        "stream": np.concatenate((submit % 4, np.full(len(trims), stream))),
    }


def found_in(columns):
    return METRIC.values(scan_of(columns, in_completion_order=True))


def test_a_burst_under_an_outstanding_trim_belongs_to_it():
    found = found_in(workload(slow_s=range(20, 25), trims_s=[19.99], trim_latency_ns=6 * SECOND_NS))
    assert found[KEY + "excess_share"] == 1
    assert found[KEY + "cause_claimed"] is False


def test_a_burst_far_from_any_trim_does_not():
    found = found_in(workload(slow_s=range(20, 25), trims_s=[40.0, 50.0]))
    assert found[KEY + "excess_share"] == 0
    assert found[KEY + "near_trims_time_share"] == pytest.approx(0.3 / 60, rel=0.01)


def test_the_share_is_that_of_the_excess_of_the_ios_near_a_trim():
    # A trim covers the first 2 s of a burst of 4 s and one more window; all I/Os have the same excess.
    found = found_in(workload(slow_s=range(20, 24), trims_s=[20.0], trim_latency_ns=2 * SECOND_NS))
    (burst,) = found[KEY + "bursts"]
    assert burst["ios"] == 1950
    assert burst["ios_near_trims"] == 1050
    assert found[KEY + "excess_share"] == pytest.approx(1050 / 1950, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_ios_near_trims_equal_those_found_one_by_one(seed):
    rng = np.random.default_rng(seed)
    columns = workload(slow_s=range(10, 50), trims_s=np.sort(rng.uniform(5, 55, 60)))
    trims = columns["opcode"] == 2
    columns["latency_ns"][trims] = rng.integers(0, 400_000_000, 60)
    columns["latency_ns"][~trims] += rng.integers(0, 300_000_000, (~trims).sum()) * (
        columns["latency_ns"][~trims] > 10**7
    )
    found = found_in(columns)
    start, end = columns["submit_ns"][trims], (columns["submit_ns"] + columns["latency_ns"])[trims]
    for burst in found[KEY + "bursts"]:
        begins = columns["submit_ns"][~trims]
        ends = begins + columns["latency_ns"][~trims]
        near = ((begins[:, None] < end + AFTER_NS) & (ends[:, None] > start)).any(axis=1)
        limit = burst["onset_ns"] + burst["ios"] / 500 * SECOND_NS
        inside = (begins >= burst["onset_ns"]) & (begins < limit)
        assert inside.sum() == pytest.approx(burst["ios"], abs=1)
        assert (inside & near).sum() == pytest.approx(burst["ios_near_trims"], abs=1)
        assert burst["ios"] > 1000


def test_latency_that_follows_trims_after_two_seconds_correlates_at_that_lag():
    rng = np.random.default_rng(8)
    trims = np.zeros(1800)
    trims[rng.choice(1700, 20, replace=False)] = 1 << 30
    latency = np.log(1e6) + rng.normal(0, 0.05, 1800) + np.roll(trims > 0, 20) * 2
    found = correlation(trims, latency)[KEY + "correlation"]
    assert found["lag_ns"] == 2 * SECOND_NS
    assert found["r"] > 0.9
    assert found["p_value"] == 0.001


def test_latency_that_has_nothing_to_do_with_trims_is_rarely_significant():
    significant = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        trims = np.zeros(1800)
        trims[rng.choice(1800, 20, replace=False)] = 1 << 30
        significant += correlation(trims, rng.normal(14, 0.3, 1800))[KEY + "correlation"]["p_value"] < 0.05
    # Of 40, two are expected by chance; eight or more would happen in one of 3000 tries.
    assert significant < 8


def test_trims_from_a_single_stream_are_said_to_be():
    found = found_in(workload(trims_s=[10.0, 20.0], stream=7))
    assert found[KEY + "streams"] == [{"stream": 7, "ios": 2, "bytes": 2 << 30}]
    assert found[KEY + "single_stream"] is True
    columns = workload(trims_s=[10.0, 20.0])
    columns["stream"][-1] = 9
    assert found_in(columns)[KEY + "single_stream"] is False


def test_what_cannot_be_told_has_a_code():
    assert found_in(workload())[KEY + "code"] == "no_trims"
    assert found_in(workload(trims_s=[10.0]))[KEY + "excess_share_code"] == "no_burst"
    assert found_in(workload(seconds=20, trims_s=[10.0]))[KEY + "correlation_code"] == "too_short"
    columns = workload(trims_s=[10.0])
    del columns["stream"]
    found = found_in(columns)
    assert found[KEY + "streams_code"] == "not_recorded"
    assert found[KEY + "streams"] is None
