"""Recordings too long to be taken whole: estimates from samples against the exact values, and said to be
estimates."""

from __future__ import annotations

import numpy as np
import pytest
from builders import scan_of

from testdrive.metrics import (
    fidelity,
    response_time,
    stall_time,
    workload_depth,
    workload_footprint,
    workload_interarrival,
    workload_overwrites,
    workload_sequentiality,
)
from testdrive.metrics.scans import extents, sample, scan

METRICS = {
    "depth": workload_depth.METRIC,
    "footprint": workload_footprint.METRIC,
    "interarrival": workload_interarrival.METRIC,
    "overwrites": workload_overwrites.METRIC,
    "sequentiality": workload_sequentiality.METRIC,
    "stall": stall_time.METRIC,
}


def columns(n: int = 200_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    submit = np.cumsum(rng.exponential(10_000, n)).astype(np.int64)
    jump = rng.random(n) < 0.5
    offset = np.where(jump, rng.integers(0, 20_000, n) * 65_536, 0)
    # The others go on where the I/O before them ended.
    offset[~jump] = offset[np.maximum.accumulate(np.where(jump, np.arange(n), 0))][~jump] + 4096
    length = np.full(n, 4096)
    length[rng.random(n) < 0.001] = 8 << 20
    return {
        "submit_ns": submit,
        "latency_ns": rng.lognormal(np.log(80_000), 0.7, n).astype(np.int64),
        "offset_bytes": offset,
        "length_bytes": length,
        "opcode": (rng.random(n) < 0.5).astype(int),
        "stream": rng.integers(0, 2, n),
    }


@pytest.fixture(scope="module")
def exact() -> dict[str, object]:
    scan = scan_of(columns(), in_completion_order=True)
    return merged(scan)


@pytest.fixture
def sampled(monkeypatch) -> dict[str, object]:
    monkeypatch.setattr(sample, "SAMPLE_IOS_MAX", 20_000)
    monkeypatch.setattr(stall_time, "EXACT_IOS_MAX", 20_000)
    monkeypatch.setattr(extents, "EXTENTS_MAX", 20_000)
    monkeypatch.setattr(workload_overwrites, "_FOLLOWED_IOS", 20_000)
    scan = scan_of(columns(), in_completion_order=True)
    assert not scan.sample.whole
    assert scan.sample.sampled_ios == pytest.approx(20_000, rel=0.1)
    return merged(scan)


def merged(scan) -> dict[str, object]:
    values: dict[str, object] = {}
    for metric in METRICS.values():
        values |= metric.values(scan)
    return values


def test_values_from_a_sample_say_so_and_are_near_the_exact_ones(exact, sampled):
    for key in ("workload.queue_depth", "workload.interarrival", "workload.overwrite_distance"):
        assert exact[key]["sampled_ios"] is None
        assert 5_000 < sampled[key]["sampled_ios"] < 100_000
    assert sampled["workload.sequential_sampled_ios"] == pytest.approx(20_000, rel=0.1)
    assert sampled["workload.sequential_share"] == pytest.approx(exact["workload.sequential_share"], rel=0.1)
    depth, exact_depth = sampled["workload.queue_depth"], exact["workload.queue_depth"]
    assert depth["mean"] == exact_depth["mean"]
    assert depth["p50"] == pytest.approx(exact_depth["p50"], abs=1)
    assert depth["p99"] == pytest.approx(exact_depth["p99"], rel=0.15)
    assert depth["max"] <= exact_depth["max"]
    arrival, exact_arrival = sampled["workload.interarrival"], exact["workload.interarrival"]
    assert arrival["mean_ns"] == exact_arrival["mean_ns"]
    assert arrival["cv"] == pytest.approx(exact_arrival["cv"], rel=0.1)
    assert arrival["p99_ns"] == pytest.approx(exact_arrival["p99_ns"], rel=0.1)


def test_stall_time_above_many_ios_is_estimated_within_its_error_and_exact_above_few(exact, sampled):
    errors = sampled["stall_time_standard_error"]
    assert "1000" in errors
    assert "10000000" not in errors
    for x, share in exact["stall_time"].items():
        if x in errors:
            assert sampled["stall_time"][x] == pytest.approx(share, abs=4 * errors[x] + 1e-12)
        else:
            assert sampled["stall_time"][x] == share


def test_the_footprint_of_many_extents_is_estimated_within_its_error(exact, sampled):
    whole, estimate = exact["workload.footprint_bytes"], sampled["workload.footprint_bytes"]
    assert whole["sampled_one_in"] is None
    assert estimate["sampled_one_in"] == 10
    error = estimate["relative_standard_error"]
    assert 0 < error < 0.1
    assert estimate["total"] == pytest.approx(whole["total"], rel=4 * error)
    for opcode, size in whole["by_opcode"].items():
        assert estimate["by_opcode"][opcode] == pytest.approx(size, rel=6 * error)


def test_the_footprint_of_many_ios_at_few_places_is_exact(monkeypatch):
    monkeypatch.setattr(extents, "EXTENTS_MAX", 5_000)
    n = 50_000
    offset = np.arange(n) % 1000 * 4096
    found = workload_footprint.METRIC.values(
        scan_of({"submit_ns": np.arange(n), "offset_bytes": offset, "length_bytes": 4096})
    )
    assert found["workload.footprint_bytes"]["sampled_one_in"] is None
    assert found["workload.footprint_bytes"]["total"] == 1000 * 4096


def test_overwrite_distances_of_followed_blocks_are_within_their_resolution(exact, sampled):
    whole, estimate = exact["workload.overwrite_distance"], sampled["workload.overwrite_distance"]
    assert estimate["share"] == pytest.approx(whole["share"], rel=0.1)
    for name in ("p50_bytes", "p90_bytes"):
        assert estimate[name] == pytest.approx(whole[name], rel=0.1, abs=estimate["resolution_bytes"])


@pytest.mark.parametrize("stride", [1, 2, 7, 64, 1000, 4096, 1 << 16])
def test_a_fair_share_of_places_is_followed_at_any_distance(stride):
    places = np.arange(200_000, dtype=np.int64) * stride
    for one_in in (7, 50, 64):
        taken = extents.followed(places, one_in).sum()
        assert taken == pytest.approx(len(places) / one_in, rel=0.1)


def test_an_io_that_reaches_into_a_slice_is_seen_there(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE_IOS_MAX", 1_000)
    n = 10_000
    submit, latency = np.arange(n) * 1000, np.full(n, 500)
    # One I/O is outstanding over most of the recording.
    latency[500] = 9_000_000
    found = workload_depth.METRIC.values(scan_of({"submit_ns": submit, "latency_ns": latency}))
    assert found["workload.queue_depth"]["max"] == 2
    assert found["workload.queue_depth"]["p50"] == 1


def test_percentiles_of_lateness_and_response_of_long_recordings_are_within_their_error(monkeypatch):
    rng = np.random.default_rng(4)
    n = 20_000
    intended = np.arange(n) * 100_000
    rows = {
        "intended_ns": intended,
        "submit_ns": intended + rng.lognormal(11, 2, n).astype(np.int64),
        "latency_ns": rng.lognormal(12, 1, n).astype(np.int64),
    }
    exact_response, exact_late = (
        metric.values(scan_of(rows)) for metric in (response_time.METRIC, fidelity.METRIC)
    )
    monkeypatch.setattr(scan, "EXACT_IOS_MAX", n - 1)
    response, late = (metric.values(scan_of(rows)) for metric in (response_time.METRIC, fidelity.METRIC))
    error = response["response_relative_error_max"]
    assert error == late["fidelity.lateness_relative_error_max"] == pytest.approx(1 / 128, rel=0.01)
    assert exact_response["response_relative_error_max"] is None
    for name, value in exact_response["response_percentiles_ns"]["io_weighted"].items():
        found = response["response_percentiles_ns"]["io_weighted"][name]
        assert found is value is None or value <= found <= value * (1 + error)
    for name in ("p50", "p99", "p99_9", "max"):
        value, found = (values[f"fidelity.lateness_{name}_ns"] for values in (exact_late, late))
        assert value <= found <= value * (1 + error)
    assert late["fidelity.late_share_over_1ms"] == exact_late["fidelity.late_share_over_1ms"]
