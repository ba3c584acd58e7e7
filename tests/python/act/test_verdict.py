"""The verdict: limits that a share must stay below, slices that must be whole, and runs that went wrong."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from runs import MS, SECOND_NS, act_run

from testdrive.act.counts import US_NS, count
from testdrive.act.verdict import LIMITS, Verdict, judge, together
from testdrive.cli import tables
from testdrive.methods.looking import method_tables
from testdrive.metrics import summarize
from testdrive.plans.judgement import Outcome
from testdrive.recording import Recording

FAST = [0.5] * 1000


def judged(path: Path, *arguments: Any, **options: Any) -> Verdict:
    with Recording.open(act_run(path, *arguments, **options)) as recording:
        return judge(recording)


def slow(share: float, took_ms: float) -> list[float]:
    """A thousand reads of which so many take so long."""
    many = round(share * 1000)
    return [took_ms] * many + [0.5] * (1000 - many)


def test_the_limits_are_those_of_certification() -> None:
    assert [(limit.threshold_ms, limit.share) for limit in LIMITS] == [(1, 0.05), (8, 0.01), (64, 0.001)]


@pytest.mark.parametrize(
    ("share", "took_ms", "verdict"),
    [
        (0.049, 1.0, "pass"),
        (0.05, 1.0, "fail"),
        (0.05, 0.999999, "pass"),
        (0.009, 8.0, "pass"),
        (0.01, 8.0, "fail"),
        (0.01, 7.999999, "pass"),
        (0.0, 64.0, "pass"),
        (0.001, 64.0, "fail"),
        (0.001, 63.999999, "pass"),
    ],
)
def test_a_share_must_be_below_its_limit_and_a_threshold_counts_as_above(
    tmp_path: Path, share: float, took_ms: float, verdict: str
) -> None:
    found = judged(tmp_path / "a.rec", [slow(share, took_ms)])
    assert (found.verdict, bool(found.reasons)) == (verdict, verdict == "fail")


def test_every_slice_must_hold_not_only_their_average(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [FAST, slow(0.06, 2.0), FAST])
    assert found.verdict == "fail"
    assert found.reasons == ["6.00 % of the reads of slice 2 took 1 ms or more, and it must be less than 5 %"]
    assert found.average[0] == pytest.approx(0.02)
    told = found.to_json_object()
    assert (told["above_1ms_share_max"], told["above_8ms_share_max"]) == (0.06, 0.0)


def test_only_small_reads_are_judged(tmp_path: Path) -> None:
    path = act_run(tmp_path / "a.rec", [FAST])
    with Recording.open(path) as recording:
        slices = judge(recording).slices
        assert (slices[0].reads, len(slices)) == (1000, 1)


def test_device_time_is_judged_and_response_time_stands_beside_it(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [FAST], lateness_ms=9.0)
    assert found.verdict == "pass"
    told = found.to_json_object()
    assert (told["above_8ms_share_max"], told["response_above_8ms_share_max"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"planned_s": 2.0, "ended_s": 1.9}, "1 of 2 slices are whole"),
        ({"status": "interrupted", "status_reason": "stopped by SIGINT"}, "not complete: stopped by SIGINT"),
        (
            {"accounting": {"cannot_keep_up": {"stream": "reads", "at_ns": 4 * 10**9, "lag_ns": 10**10}}},
            r"the drive cannot keep up \(reads\): 10.0 s behind after 4.0 s",
        ),
    ],
)
def test_what_was_cut_short_cannot_pass(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    status = options.pop("status", "complete")
    path = act_run(tmp_path / "a.rec", [FAST], **options)
    if status != "complete":
        manifest = path / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"status": "complete"', f'"status": "{status}"'))
    with Recording.open(path) as recording:
        found = judge(recording)
    assert found.verdict == "fail"
    assert any(__import__("re").search(reason, each) for each in found.reasons), found.reasons


def test_a_failed_write_cannot_pass(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [FAST], status=[0] * 1000 + [5])
    assert (found.verdict, found.reasons) == ("fail", ["1 I/Os failed or were never answered"])
    assert found.slices[0].failed == 1


def test_a_slice_without_reads_cannot_pass(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [FAST, []])
    assert found.reasons == ["1 of 2 slices have no reads"]


def test_a_stress_run_has_only_to_keep_up(tmp_path: Path) -> None:
    assert judged(tmp_path / "a.rec", [slow(0.5, 100.0)], parameters={"stress": True}).verdict == "pass"
    behind = {"cannot_keep_up": {"stream": None, "at_ns": 1, "lag_ns": 1}}
    assert (
        judged(tmp_path / "b.rec", [FAST], parameters={"stress": True}, accounting=behind).verdict == "fail"
    )


@pytest.mark.parametrize("stress", [False, True])
def test_a_load_that_was_not_delivered_cannot_pass_and_who_held_it_back_is_said(
    tmp_path: Path, stress: bool
) -> None:
    parameters = {"stress": stress}
    found = judged(
        tmp_path / "model.rec", [FAST], parameters=parameters, accounting={"arrivals_not_issued": 500}
    )
    assert (found.verdict, found.limited_by) == ("fail", "drive")
    assert found.reasons[0].startswith("the load was not delivered: 500 I/Os that were due did not go")
    real = tmp_path / "real.rec"
    act_run(real, [FAST], parameters=parameters, accounting={"arrivals_not_issued": 500})
    manifest = real / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"modelled": true', '"modelled": false'))
    with Recording.open(real) as recording:
        idle = judge(recording)
    assert (idle.verdict, idle.limited_by) == ("fail", "host")
    assert "this host held it back" in idle.reasons[0]
    manifest.write_text(re.sub('"no_completion": 0', '"no_completion": 5', manifest.read_text()))
    with Recording.open(real) as recording:
        assert judge(recording).limited_by == "drive", "what was never answered was outstanding"
    # Half a per mille may be missing.
    assert judged(tmp_path / "c.rec", [FAST] * 2, accounting={"arrivals_not_issued": 1}).verdict == "pass"


@pytest.mark.parametrize(("threads", "limit"), [(1, "drive"), (40, "host")])
def test_a_drive_is_full_where_each_thread_that_waits_has_an_io(
    tmp_path: Path, threads: int, limit: str
) -> None:
    # A thousand reads of half a millisecond keep one thread half of the time, by device time.
    path = act_run(
        tmp_path / "real.rec",
        [FAST],
        reads={"process": "act", "rate_iops": 2_000.0},
        small={"threads": threads},
        accounting={"arrivals_not_issued": 1_000},
    )
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"modelled": true', '"modelled": false'))
    with Recording.open(path) as recording:
        assert judge(recording).limited_by == limit


@pytest.mark.parametrize(("lag_ns", "limit"), [(900_000, "drive"), (12 * 10**9, "host")])
def test_a_thread_that_waited_for_one_io_of_its_own_was_held_up_by_the_drive(
    tmp_path: Path, lag_ns: int, limit: str
) -> None:
    behind = {"stream": "reads", "at_ns": 10**9, "lag_ns": lag_ns, "max_lag_ns": lag_ns}
    path = act_run(
        tmp_path / "real.rec",
        [FAST],
        reads={"process": "act", "rate_iops": 2_000.0},
        small={"threads": 200},
        accounting={"arrivals_not_issued": 1_000, "cannot_keep_up": behind},
    )
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"modelled": true', '"modelled": false'))
    with Recording.open(path) as recording:
        assert judge(recording).limited_by == limit


def test_reads_that_threads_draw_among_their_ios_vary(tmp_path: Path) -> None:
    small = {"name": "reads-and-writes", "read_share": 0.5, "threads": 10}
    asked = {"process": "act", "rate_iops": 2_000.0}
    found = judged(
        tmp_path / "a.rec", [FAST * 2], reads=asked, small=small, parameters={"commit-to-device": 1}
    )
    assert (found.verdict, found.missing, found.slices[0].reads) == ("pass", None, 1_000)
    fewer = judged(tmp_path / "b.rec", [[0.5] * 800], reads=asked, small=small)
    # No more than the threads may be outstanding, and 400 are far from the mean of 1,000.
    assert fewer.missing is not None
    assert "400 of 1,000 reads/s in slice 1" in fewer.reasons[0]


def test_a_slice_with_fewer_reads_than_were_asked_for_cannot_pass(tmp_path: Path) -> None:
    asked = {"process": "constant", "rate_iops": 4_000.0}
    found = judged(tmp_path / "a.rec", [FAST * 4, FAST * 2, FAST * 4], reads=asked)
    assert found.missing is not None
    assert (found.verdict, found.missing.slice) == ("fail", 2)
    assert "2,000 of 4,000 reads/s in slice 2" in found.reasons[0]
    # As many as may be outstanding at the end of a slice complete in the next.
    assert judged(tmp_path / "b.rec", [[0.5] * 3_000, FAST * 4], reads=asked).verdict == "pass"


def test_what_completes_after_the_end_counts_in_the_last_slice(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [FAST, [*FAST[1:], 5_000.0]])
    assert (found.slices[1].reads, found.slices[1].above[2]) == (1000, 1)
    assert found.verdict == "fail"


def test_a_remainder_beyond_the_last_whole_slice_is_judged_by_none(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [FAST, FAST, slow(0.5, 100.0)], planned_s=2.5)
    assert (found.verdict, len(found.slices), found.slices_planned) == ("pass", 2, 2)


def test_several_drives_together_are_as_one(tmp_path: Path) -> None:
    one = judged(tmp_path / "a.rec", [FAST, slow(0.06, 1.0)])
    other = judged(tmp_path / "b.rec", [FAST])
    (both,) = together([one, other])
    assert (both.reads, both.above) == (2000, (0, 0, 0))
    (again,) = together([judged(tmp_path / "c.rec", [slow(0.06, 1.0)]), other])
    assert (again.reads, again.above[0], again.holds(0)) == (2000, 60, True)
    assert together([]) == []


def test_the_summary_has_the_verdict_and_other_recordings_say_that_they_are_none(tmp_path: Path) -> None:
    with Recording.open(act_run(tmp_path / "a.rec", [FAST])) as recording:
        found = summarize(recording)["act"]
    assert (found["verdict"], found["code"], found["slices"]) == ("pass", None, 1)
    path = act_run(tmp_path / "b.rec", [FAST])
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"figures": ["act"]', '"figures": []'))
    with Recording.open(path) as recording:
        assert summarize(recording)["act"] == dict.fromkeys(found) | {"code": "not_act"}


def test_buckets_are_powers_of_two_to_the_nanosecond(tmp_path: Path) -> None:
    edges_ns = [1, 999_999, MS, 2 * MS - 1, 2 * MS, 4 * MS, 8 * MS - 1, 64 * MS, 1_000 * SECOND_NS]
    path = act_run(tmp_path / "a.rec", [[each / MS for each in edges_ns]])
    with Recording.open(path) as recording:
        (phase,) = recording.manifest.phases
        by_ms = count(recording, phase, SECOND_NS, 1)["reads"].service[0]
        by_us = count(recording, phase, SECOND_NS, 1, US_NS)["reads"].service[0]
    assert {at: int(by_ms[at]) for at in np.flatnonzero(by_ms)} == {0: 2, 1: 2, 2: 1, 3: 2, 7: 1, 20: 1}
    # 999 us is in the bucket of 512 to 1024 us, 64 ms in that of 32.768 to 65.536 ms.
    assert (by_us[0], by_us[10], by_us[16]) == (1, 2, 1)


def test_the_tables_have_whole_heads_on_eighty_columns_and_say_why(tmp_path: Path) -> None:
    paths = [act_run(tmp_path / f"{name}.rec", [slow(0.06, 2.0)]) for name in ("one", "two")]
    with Recording.open(paths[0]) as recording:
        summary = summarize(recording)
    console = Console(width=80, file=io.StringIO(), record=True)
    for found in method_tables(paths):
        console.print(tables.method_table(found))
    console.print(tables.outcome_line(Outcome("act.verdict", False, "equals pass", "fail", None), summary))
    lines = console.export_text().splitlines()
    assert any(line.split()[:4] == ["drive", "rating", "verdict", "reads/s"] for line in lines)
    assert any(line.split() == ["drive", "slices", "late", "≥", "1", "ms"] for line in lines)
    assert any(line.startswith("fail  6.00 % of the reads of slice 1 took 1 ms or more") for line in lines)
