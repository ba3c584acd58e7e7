"""The judgement of intervals, on latencies with known answers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from trials_of_qos import qos_trial

from testdrive.metrics import summarize
from testdrive.qos.verdict import Verdict, judge
from testdrive.recording import Recording

#: A thousand I/Os of 1 us to 1,000 us: the nearest-rank percentile p is 10 p us.
RAMP = [float(at) for at in range(1, 1001)]


def judged(path: Path, *arguments: Any, **options: Any) -> Verdict:
    with Recording.open(qos_trial(path, *arguments, **options)) as recording:
        return judge(recording)


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("p50<=500us", 500_000, True),
        ("p50<500us", 500_000, False),
        ("p99<991us", 990_000, True),
        ("p99<990us", 990_000, False),
        ("p98.95<=990us", 990_000, True),
        ("mean<=500.5us", 500_500, True),
        ("mean<500.5us", 500_500, False),
        ("max<=1ms", 1_000_000, True),
        ("max<1ms", 1_000_000, False),
        ("above 991us <= 1%", Fraction(10, 1000), True),
        ("above 991us < 1%", Fraction(10, 1000), False),
    ],
)
def test_a_rule_is_held_to_its_exact_value(tmp_path: Path, rule: str, value: Any, holds: bool) -> None:
    found = judged(tmp_path / "a.rec", [RAMP], rule)
    assert found.held[0].values == [value]
    assert found.verdict == ("pass" if holds else "fail")
    assert bool(found.reasons) is not holds


def test_every_interval_must_hold_and_the_worst_is_named(tmp_path: Path) -> None:
    slow = [each * 3 for each in RAMP]
    found = judged(tmp_path / "a.rec", [RAMP, slow, RAMP], "p99<2ms")
    assert found.held[0].values == [990_000, 2_970_000, 990_000]
    assert found.reasons == ["p99 of the reads of interval 2 is 2.97 ms, and it must be below 2ms"]


def test_response_time_is_judged_and_service_time_stands_beside_it(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [RAMP], "p50<=1ms", waited_us=600)
    assert (found.held[0].values, found.held[0].service) == ([1_100_000], [500_000])
    assert found.verdict == "fail"


def test_a_percentile_with_too_few_ios_is_not_claimed(tmp_path: Path) -> None:
    few = judged(tmp_path / "few.rec", [[1.0] * 299, [1.0] * 298], "p99<1ms")
    assert few.held[0].values == [1_000, None]
    assert few.reasons == [
        "p99 cannot be claimed: interval 2 has 298 reads, and it needs 299; give a longer interval"
    ]
    none = judged(tmp_path / "none.rec", [[1.0], []], "mean<1ms")
    assert "interval 2 has 0 reads" in none.reasons[0]


def test_ios_that_did_not_go_count_as_longer_than_any_limit(tmp_path: Path) -> None:
    rules = "p99<1s, above 1s < 1%, p50<1s"
    found = judged(tmp_path / "a.rec", [RAMP, RAMP], rules, accounting={"arrivals_not_issued": 20})
    p99, above, p50 = found.held
    assert p99.values == [990_000, float("inf")]
    assert above.values == [0, Fraction(20, 1020)]
    assert p50.values == [500_000, 510_000]
    assert found.reasons[0] == (
        "p99 of the reads of interval 2 is more than the 1 ms of those that went, and it must be below 1s"
    )
    assert (p99.worst, p50.worst) == ((1_000_000, True), (510_000, False))


def test_what_completes_after_the_end_counts_in_the_last_interval(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [[1.0] * 10, [1.0] * 9 + [5_000_000.0]], "max<1s")
    assert found.held[0].values == [1_000, 5_000_000_000]
    assert found.verdict == "fail"


def test_each_judged_opcode_must_hold_by_itself(tmp_path: Path) -> None:
    writes = judged(tmp_path / "w.rec", [RAMP], "max<1s", opcodes=["write"], opcode=1)
    assert writes.verdict == "pass"
    both = judged(tmp_path / "b.rec", [RAMP], "max<1s", opcodes=["read", "write"], opcode=1)
    assert both.reasons == [
        "max cannot be claimed: interval 1 has 0 reads, and it needs 1; give a longer interval"
    ]


def test_a_trial_that_was_cut_short_or_fell_behind_does_not_pass(tmp_path: Path) -> None:
    cut = judged(tmp_path / "cut.rec", [RAMP], "max<1s", planned=2, ended_s=1.5, status="interrupted")
    assert cut.verdict == "fail"
    assert "1 of 2 intervals are whole" in cut.reasons
    lag = {"stream": None, "at_ns": 1_500_000_000, "lag_ns": 10_000_000_000, "max_lag_ns": 10_000_000_000}
    behind = judged(
        tmp_path / "lag.rec",
        [RAMP],
        "max<1s",
        planned=2,
        ended_s=1.5,
        status="failed",
        accounting={"cannot_keep_up": lag},
    )
    assert behind.reasons[0] == "the drive cannot keep up: 10.0 s behind after 1.5 s"


#: Due 50 ms before it went, and served in 100 us.
LATE: dict[str, Any] = {"waited_us": 50_000.0, "modelled": False}
LAG = {"stream": None, "at_ns": 1_500_000_000, "lag_ns": 10_000_000_000, "max_lag_ns": 10_000_000_000}


def test_a_late_host_is_not_taken_for_a_slow_drive(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", [[100.0] * 1_000], "p99<1ms", **LATE)
    assert (found.verdict, found.limited_by) == ("fail", "host")
    assert found.reasons == [
        "this host sent I/Os late itself, which says nothing about the drive (see testdrive doctor)",
        "p99 of the reads of interval 1 is 50.1 ms, and it must be below 1ms",
    ]
    passed = judged(tmp_path / "b.rec", [[100.0] * 1_000], "p99<100ms", **LATE)
    assert (passed.verdict, passed.limited_by, passed.reasons) == ("pass", None, [])


@pytest.mark.parametrize(
    ("took_us", "rules", "change"),
    [
        (100.0, "p99<1ms", {"modelled": True}),
        (100.0, "p99<1ms, max<90us", {}),
        # 1,000 a second that take 10 ms each are ten at a time, of twenty that may be.
        (10_000.0, "p99<20ms", {"in_flight": 20}),
    ],
)
def test_a_drive_that_is_modelled_slow_or_full_is_not_excused_by_lateness(
    tmp_path: Path, took_us: float, rules: str, change: dict[str, Any]
) -> None:
    found = judged(tmp_path / "a.rec", [[took_us] * 1_000], rules, **{**LATE, **change})
    assert (found.verdict, found.limited_by) == ("fail", "drive")
    assert "host" not in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("took_us", "who", "said"),
    [
        (100.0, "host", "this host cannot keep up, which says nothing about the drive"),
        (2_500_000.0, "drive", "the drive cannot keep up"),
    ],
)
def test_who_fell_behind_is_told_by_what_was_outstanding(
    tmp_path: Path, took_us: float, who: str, said: str
) -> None:
    # 1,000 I/Os of 2.5 s are 2,500 at a time in the second in which they end; 4,096 may be.
    options = {"planned": 3, "ended_s": 1.5, "status": "failed", "modelled": False}
    accounting = {"cannot_keep_up": LAG}
    found = judged(tmp_path / "a.rec", [[took_us] * 1_000], "max<1m", accounting=accounting, **options)
    assert (found.limited_by, found.reasons[0]) == (who, f"{said}: 10.0 s behind after 1.5 s")


def test_a_drive_that_never_answered_is_not_excused(tmp_path: Path) -> None:
    counts = {"ios": 1_000, "bytes": 0, "errors": 0, "no_completion": 5, "span_ns": 0, "end_max_bytes": 0}
    options = {**LATE, "counts": {**counts, "by_opcode": {}}}
    assert judged(tmp_path / "a.rec", [[100.0] * 1_000], "p99<1ms", **options).limited_by == "drive"


def test_the_summary_has_the_verdict_and_other_recordings_have_none(tmp_path: Path) -> None:
    with Recording.open(qos_trial(tmp_path / "a.rec", [RAMP], "p99<1ms")) as recording:
        qos = summarize(recording)["qos"]
    assert (qos["verdict"], qos["intervals"], qos["code"]) == ("pass", 1, None)
    assert qos["rules"][0] == {
        "rule": "p99<1ms",
        "opcode": "read",
        "unit": "ns",
        "limit": 1e6,
        "holds": True,
        "worst": 990_000,
        "more": False,
        "worst_service": 990_000,
        "samples_min": 1000,
    }
