"""The certificate of a replay: faithful, and every reason not to be."""

from __future__ import annotations

import numpy as np
import pytest
from builders import accounting_of, fill_columns, phase, scan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import order_inversions

from testdrive.metrics.fidelity import METRIC

N = 10_000


def columns(lateness_ns: object = 0) -> dict[str, np.ndarray]:
    intended = np.arange(N) * 100_000
    return fill_columns(
        {
            "intended_ns": intended,
            "submit_ns": intended + lateness_ns,
            "latency_ns": 1000,
            "offset_bytes": 0,
            "length_bytes": 4096,
            "opcode": np.arange(N) % 3,
            "stream": 0,
        }
    )[0]


def certificate(rows, *, pace="timed", status="complete", settings=None, **changes):
    accounting = accounting_of(rows, **changes)
    phases = [phase(kind="replay", settings={"pace": pace, **(settings or {})}, accounting=accounting)]
    return METRIC.values(scan_of(rows, absent_columns=[], kind="run", status=status, phases=phases))


def reasons(found):
    return [reason["code"] for reason in found["fidelity.reasons"]]


def test_a_replay_on_time_is_faithful():
    found = certificate(columns(500))
    assert found["fidelity.verdict"] == "faithful"
    assert found["fidelity.reasons"] == []
    for name in ("p50", "p99", "p99_9", "max"):
        assert found[f"fidelity.lateness_{name}_ns"] == 500
    assert found["fidelity.drift"] == 0
    assert found["fidelity.late_share_over_1ms"] == 0
    assert found["fidelity.order_inversions"] == 0
    assert found["fidelity.accounting"]["issued"]["trim"]["ios"] == N // 3


def test_a_replay_in_virtual_time_that_is_never_late_has_a_lateness_of_zero():
    found = certificate(columns(0))
    assert found["fidelity.verdict"] == "faithful"
    assert found["fidelity.lateness_max_ns"] == 0
    assert found["fidelity.lateness_code"] is None


def test_lateness_is_given_by_nearest_rank():
    late = np.zeros(N, np.int64)
    late[5000:5011] = 3_000_000
    found = certificate(columns(late))
    assert found["fidelity.lateness_p99_9_ns"] == 3_000_000
    assert found["fidelity.lateness_p99_ns"] == 0
    assert found["fidelity.late_share_over_1ms"] == pytest.approx(0.0011)
    assert reasons(found) == ["late"]


def test_one_in_a_thousand_late_by_more_than_a_millisecond_is_still_faithful():
    late = np.zeros(N, np.int64)
    late[5000:5010] = 1_000_001
    late[6000:6010] = 1_000_000
    assert certificate(columns(late))["fidelity.late_share_over_1ms"] == pytest.approx(0.001)
    assert reasons(certificate(columns(late))) == []


@pytest.mark.parametrize(("stretch", "faithful"), [(1.0009, True), (1.0011, False), (0.9989, False)])
def test_a_replay_that_takes_longer_or_shorter_is_not_faithful(stretch, faithful):
    rows = columns()
    rows["submit_ns"] = np.round(rows["intended_ns"] * stretch).astype(np.int64)
    # Its I/Os are shifted so that lateness says nothing here.
    rows["submit_ns"] -= int((rows["submit_ns"] - rows["intended_ns"]).max())
    found = certificate(rows)
    assert found["fidelity.drift"] == pytest.approx(stretch - 1, rel=1e-3)
    assert reasons(found) == ([] if faithful else ["drift"])


def test_a_replay_that_is_always_a_little_late_smooths_bursts():
    assert reasons(certificate(columns(60_000))) == ["late_median"]
    assert reasons(certificate(columns(50_000))) == []


def counted(ios, size=0):
    return {"read": {"ios": ios, "bytes": size}}


def test_an_io_that_is_not_accounted_for_is_a_reason():
    rows = columns()
    source = accounting_of(rows)["source"]
    more = {**source, "read": {"ios": source["read"]["ios"] + 1, "bytes": source["read"]["bytes"]}}
    assert reasons(certificate(rows, source=more)) == ["counts_differ"]


@pytest.mark.parametrize("fate", ["filtered", "skipped", "not_reached"])
def test_an_io_that_is_accounted_for_is_none(fate):
    rows = columns()
    source = accounting_of(rows)["source"]
    more = {**source, "read": {"ios": source["read"]["ios"] + 2, "bytes": source["read"]["bytes"] + 9}}
    assert reasons(certificate(rows, source=more, **{fate: counted(2, 9)})) == []


def test_bytes_may_differ_only_where_ios_were_clipped_or_widened():
    rows = columns()
    source = accounting_of(rows)["source"]
    more = {**source, "read": {"ios": source["read"]["ios"], "bytes": source["read"]["bytes"] + 512}}
    assert reasons(certificate(rows, source=more)) == ["counts_differ"]
    assert reasons(certificate(rows, source=more, clipped=counted(1, 512))) == []


def test_an_opcode_that_only_the_drive_saw_is_not_accounted_for():
    rows = columns()
    issued = accounting_of(rows)["issued"]
    extra = {**issued, "verify": {"ios": 1, "bytes": 0}}
    assert "counts_differ" in reasons(certificate(rows, source=issued, issued=extra))


def test_ios_that_the_drive_path_cannot_issue_are_a_reason():
    rows = columns()
    source = accounting_of(rows)["source"]
    more = {**source, "read": {"ios": source["read"]["ios"] + 2, "bytes": source["read"]["bytes"]}}
    assert reasons(certificate(rows, source=more, unsupported=counted(2))) == ["unsupported"]


def test_ios_that_were_issued_and_not_recorded_are_a_reason():
    rows = columns()
    fewer = {name: values[1:] for name, values in rows.items()}
    phases = [phase(kind="replay", settings={"pace": "timed"}, accounting=accounting_of(rows))]
    found = METRIC.values(scan_of(fewer, absent_columns=[], kind="run", phases=phases))
    assert reasons(found) == ["rows_differ"]


def test_a_replay_that_was_stopped_is_not_faithful():
    assert reasons(certificate(columns(), status="interrupted")) == ["not_complete"]


def test_without_an_accounting_nothing_is_certified():
    phases = [phase(kind="replay", settings={"pace": "timed"})]
    found = METRIC.values(scan_of(columns(), absent_columns=[], kind="run", phases=phases))
    assert reasons(found) == ["no_accounting"]
    assert found["fidelity.verdict"] == "not_faithful"


def test_order_inversions_are_a_reason_except_a_few_between_streams():
    assert reasons(certificate(columns(), order_inversions=1)) == ["order_inversions"]
    assert reasons(certificate(columns(), settings={"streams": "source"}, order_inversions=10)) == []
    apart = certificate(columns(), settings={"streams": "source"}, order_inversions=11)
    assert reasons(apart) == ["order_inversions"]


@pytest.mark.parametrize("pace", ["asap", "depth"])
def test_a_pace_without_a_schedule_is_not_judged_by_lateness(pace):
    rows = columns(5_000_000)
    found = certificate(rows, pace=pace)
    assert reasons(found) == []
    assert found["fidelity.pace"] == pace


def test_a_depth_that_differs_from_the_trace_is_a_reason_at_pace_depth_alone():
    depths = {"source_depth": {"mean": 8.0, "max": 9}, "replay_depth": {"mean": 7.0, "max": 8}}
    assert reasons(certificate(columns(), pace="depth", **depths)) == ["depth_differs"]
    assert reasons(certificate(columns(), pace="timed", **depths)) == []
    assert reasons(certificate(columns(), pace="depth", source_depth=None, replay_depth=None)) == []


def test_an_import_has_figures_and_no_verdict():
    found = METRIC.values(scan_of(columns(700), absent_columns=[]))
    assert found["fidelity.verdict"] is None
    assert found["fidelity.verdict_code"] == "not_a_replay"
    assert found["fidelity.lateness_p50_ns"] == 700


def test_an_import_without_intentions_has_no_lateness():
    found = METRIC.values(scan_of({"submit_ns": [0, 1], "latency_ns": 1}))
    assert found["fidelity.lateness_code"] == "not_recorded"
    assert found["fidelity.lateness_p50_ns"] is None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_inversions_counted_from_the_rows_equal_their_definition(submit):
    found = METRIC.values(scan_of({"intended_ns": np.arange(len(submit)), "submit_ns": submit}))
    assert found["fidelity.order_inversions"] == order_inversions(submit)
