"""The summary as a whole: its keys, its edge cases and how a metric is added."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from builders import accounting_of, fill_columns, open_recording, phase, scan_of, write_recording

from testdrive.manifest import OPCODES
from testdrive.metrics import all_metrics, summarize, write_summary
from testdrive.metrics.metric import Metric, is_code
from testdrive.recording import COLUMNS, Recording

ONE = {
    "submit_ns": [5],
    "intended_ns": [4],
    "latency_ns": [1000],
    "offset_bytes": [0],
    "length_bytes": [4096],
    "stream": [0],
}
MANY = {
    "submit_ns": np.arange(50) * 10**8,
    "intended_ns": np.arange(50) * 10**8,
    "latency_ns": 1000,
    "offset_bytes": 0,
    "length_bytes": 4096,
    "opcode": np.arange(50) % 5,
    "stream": 0,
}


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, f"{path}[]")
    else:
        yield path, value


def test_the_keys_that_other_programs_rely_on_are_there(tmp_path):
    rows = fill_columns(MANY)[0]
    phases = [phase(kind="replay", settings={"pace": "timed"}, accounting=accounting_of(rows))]
    with open_recording(tmp_path / "a.rec", rows, kind="run", phases=phases) as recording:
        summary = write_summary(recording)
    assert json.loads((tmp_path / "a.rec" / "summary.json").read_text()) == summary
    for key in (
        "io_counts",
        "baseline_latency_ns",
        "baseline_code",
        "peak_latency_ns",
        "peak_time_ns",
        "recovery_ns",
        "recovery_code",
        "bursts",
        "latency_weighted_share_at_ns",
        "stall_time",
    ):
        assert key in summary
    for weighting in ("io_weighted", "latency_weighted"):
        for name in ("p50", "p90", "p99", "p99_9", "p99_99", "p99_999"):
            assert name in summary["percentiles_ns"][weighting]
    for name in ("verdict", "reasons", "lateness_p50_ns", "lateness_p99_ns", "lateness_max_ns", "drift"):
        assert name in summary["fidelity"]
    assert summary["fidelity"]["order_inversions"] == 0
    assert summary["fidelity"]["verdict"] == "faithful"
    assert summary["workload"]["footprint_bytes"]["total"] == 4096


@pytest.mark.parametrize("columns", [None, ONE, {**MANY, "status": 5}, {**MANY, "latency_ns": -1}, MANY])
def test_no_value_is_nan_whatever_the_rows(columns):
    for metric in all_metrics():
        values = metric.values(scan_of(columns, absent_columns=[]))
        for path, value in leaves(values):
            assert value is None or isinstance(value, (str, bool, int, float)), path
            assert not isinstance(value, float) or math.isfinite(value), path
        json.dumps(values, allow_nan=False)


def of(columns):
    values = {}
    for metric in all_metrics():
        values |= metric.values(scan_of(columns, absent_columns=[]))
    return values


def test_no_ios():
    values = of(None)
    assert values["io_counts"]["ios"] == 0
    assert values["bursts"] == []
    assert values["fidelity.verdict_code"] == "not_a_replay"
    assert values["workload.footprint_bytes"]["total"] == 0
    for key in (
        "baseline_code",
        "recovery_code",
        "latency_weighted_code",
        "stall_time_code",
        "response_code",
    ):
        assert values[key] == "no_completions", key
    for key in (
        "consistency.iops_code",
        "workload.rates_code",
        "workload.sequential_code",
        "workload.sizes_code",
    ):
        assert values[key] == "no_ios", key
    assert values["workload.queue_depth_code"] == "no_completions"
    assert values["workload.interarrival_code"] == "too_few_samples"
    assert values["workload.overwrite_distance_code"] == "no_ios"
    assert values["percentiles_ns"]["io_weighted"]["p50"] is None


def test_one_io():
    values = of(ONE)
    assert values["percentiles_ns"]["io_weighted"]["p50"] == 1000
    assert values["percentiles_ns"]["latency_weighted"]["p90"] == 1000
    assert values["baseline_latency_ns"] == 1000
    assert (values["peak_latency_ns"], values["peak_time_ns"]) == (1000, 5)
    assert values["recovery_code"] == "too_short"
    assert values["stall_time"]["1000"] == 0
    assert values["workload.queue_depth"]["max"] == 1
    assert values["workload.sequential_share"] == 0
    assert values["workload.interarrival"] is None
    assert values["consistency.iops_code"] == "too_short"
    assert values["fidelity.lateness_max_ns"] == 1
    assert values["fidelity.drift"] is None
    assert values["trim_attribution.code"] == "no_trims"


@pytest.mark.parametrize("failure", [{"status": 5}, {"latency_ns": -1}])
def test_ios_that_all_failed_have_no_latency_and_are_a_workload_all_the_same(failure):
    values = of({**MANY, **failure})
    for key in (
        "baseline_code",
        "recovery_code",
        "latency_weighted_code",
        "stall_time_code",
        "trim_attribution.code",
    ):
        assert values[key] == "no_completions", key
    assert values["peak_latency_ns"] is None
    assert values["latency_samples"] == 0
    assert values["consistency.iops_mean"] == 0
    assert values["consistency.iops_cv"] is None
    assert values["io_counts"]["ios"] == 50
    assert values["workload.footprint_bytes"]["total"] == 4096
    assert values["workload.iops_mean"] > 0


@pytest.mark.parametrize("column", COLUMNS)
def test_a_metric_without_a_column_that_it_needs_says_not_recorded(column):
    scan = scan_of(MANY, absent_columns=[column])
    for metric in all_metrics():
        values = metric.values(scan)
        if column in metric.columns:
            for key, value in values.items():
                assert value == ("not_recorded" if is_code(key) else None), key


def test_every_metric_that_needs_a_column_has_a_code_to_say_so():
    for metric in all_metrics():
        if metric.columns:
            assert any(is_code(key) for key in metric.keys), metric.name


def test_a_metric_is_found_by_being_a_file():
    names = {metric.name for metric in all_metrics()}
    assert {"stall time", "replay fidelity", "footprint"} <= names
    assert all(isinstance(metric, Metric) for metric in all_metrics())


def test_only_measured_phases_are_in_the_summary(tmp_path):
    columns = {**MANY, "phase": np.arange(50) % 2}
    phases = [phase(0, kind="prepare", measured=False), phase(1, kind="synthetic", end_ns=5 * 10**9)]
    with open_recording(tmp_path / "a.rec", columns, kind="run", phases=phases) as recording:
        assert summarize(recording)["io_counts"]["ios"] == 25


def test_rows_in_many_segments_and_in_any_order_give_the_same_summary(tmp_path):
    rng = np.random.default_rng(2)
    n = 3_000
    columns = {
        "intended_ns": np.arange(n) * 10**6,
        "submit_ns": np.arange(n) * 10**6 + rng.integers(0, 1000, n),
        "latency_ns": rng.lognormal(11, 1, n).astype(np.int64),
        "offset_bytes": rng.integers(0, 1000, n) * 4096,
        "length_bytes": 4096,
        "opcode": rng.integers(0, 3, n),
        "stream": rng.integers(0, 3, n),
    }
    summaries = []
    for name, rows in (("a", n), ("b", 500)):
        path = write_recording(
            tmp_path / name / "same.rec", columns, segment_rows=rows, in_completion_order=name == "b"
        )
        with Recording.open(path) as recording:
            summaries.append(summarize(recording))
    assert summaries[0] == summaries[1]


def test_where_ios_were_not_told_apart_nothing_is_counted_as_an_operation(tmp_path):
    columns = {**MANY, "opcode": 0}
    with open_recording(tmp_path / "a.rec", columns, absent_columns=["opcode"]) as recording:
        found = summarize(recording)
    words = {word for path, value in leaves(found) for word in (*path.split("."), str(value))}
    assert not words.intersection(OPCODES)
    counts, workload = found["io_counts"], found["workload"]
    assert counts["by_opcode"]["unknown"]["ios"] == counts["ios"] == 50
    assert counts["by_opcode_code"] == "not_recorded"
    for key in ("size_histogram", "sizes_by_opcode", "rates_by_opcode", "sequential_share_by_opcode"):
        assert list(workload[key]) == ["unknown"], key
    assert list(workload["mix_over_time"]["ios"]) == ["unknown"]
    assert (workload["trims"], workload["transfer_size_mean_bytes"]) == (None, None)
    assert workload["sizes_of_operations_code"] == workload["throughput_code"] == "not_recorded"
    assert workload["transfer_throughput_bytes_per_s_mean"] is None
    assert workload["rates_by_opcode"]["unknown"]["throughput_bytes_per_s_mean"] > 0
    assert (found["peak_opcode"], found["peak_opcode_code"]) == (None, "not_recorded")


@pytest.mark.parametrize(
    ("column", "name"),
    [("status", "errors"), ("length_bytes", "bytes"), ("latency_ns", "no_completion")],
)
def test_what_a_source_did_not_have_is_not_counted(column, name, tmp_path):
    with open_recording(tmp_path / "a.rec", MANY, absent_columns=[column]) as recording:
        counts = summarize(recording)["io_counts"]
    assert counts[name] is None
    assert counts["by_opcode"]["read"][name] is None
    assert {key: code for key, code in counts.items() if key.endswith("_code") and code} == {
        f"{name}_code": "not_recorded"
    }
