"""The judgement of a trial at a speed, on latencies with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import SECOND_NS, trial

from testdrive.headroom.verdict import Verdict, broken_intervals, judge, proved_after_ns
from testdrive.metrics import summarize
from testdrive.qos.rules import parse_rules
from testdrive.recording import Recording

#: A thousand I/Os in each of three seconds.
TIMES = np.arange(3_000) * 1_000_000
#: 1 us to 1,000 us: the nearest-rank percentile p is 10 p us.
RAMP = np.arange(1, 1_001, dtype=float)


def judged(path: Path, *arguments: Any, **options: Any) -> Verdict:
    with Recording.open(trial(path, *arguments, **options)) as recording:
        return judge(recording)


def near(values: list[Any], wanted: list[float]) -> bool:
    """Whether values are what is wanted, or at most 0.8 % above."""
    return all(each <= value <= each * 1.008 for value, each in zip(values, wanted, strict=True))


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("p99<991us", True),
        ("p99<990us", False),
        ("p99<=990us", True),
        ("mean<=500.5us", True),
        ("mean<500.5us", False),
        ("max<=1ms", True),
        ("max<1ms", False),
        ("above 991us <= 1%", True),
        ("above 991us < 1%", False),
    ],
)
@pytest.mark.parametrize("speed", [0.3, 1.0, 7.0])
def test_whether_a_rule_holds_is_exact_at_every_speed(
    tmp_path: Path, rule: str, holds: bool, speed: float
) -> None:
    found = judged(tmp_path / "a.rec", TIMES[:1_000], RAMP, rule, speed=speed)
    assert found.verdict == ("pass" if holds else "fail")
    assert found.bounds_ns == [(0, 999_000_001)]
    assert found.ios == [1_000]


def test_the_earliest_interval_that_does_not_hold_is_named(tmp_path: Path) -> None:
    took = np.r_[RAMP, RAMP * 2, RAMP * 4]
    found = judged(tmp_path / "a.rec", TIMES, took, "p99<1ms, max<3ms", speed=2.0)
    assert near(found.held[0].values, [990_000, 1_980_000, 3_960_000])
    assert found.breaks_first is not None
    assert found.breaks_first.text == "interval 0:01..0:02 p99 1.98 ms"
    assert found.reasons[0].startswith("p99 of the reads of interval 0:02..0:02.999 is 3.9")
    assert found.reasons[0].endswith("and it must be below 1ms")


def test_response_time_is_judged_and_service_time_stands_beside_it(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.rec", TIMES[:1_000], RAMP, "p50<=1ms", waited_us=600)
    assert near(found.held[0].values, [1_100_000])
    assert near(found.held[0].service, [500_000])
    assert found.verdict == "fail"


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    times=st.lists(st.integers(0, 10 * SECOND_NS), min_size=30, max_size=200, unique=True),
    speeds=st.lists(st.floats(0.01, 100), min_size=2, max_size=3),
    from_ns=st.integers(0, SECOND_NS),
)
def test_an_interval_has_the_same_ios_at_every_speed(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], speeds: list[float], from_ns: int
) -> None:
    # On whole microseconds, as traces have them: I/Os a nanosecond before a border may share its due time.
    source = np.unique(np.sort(np.array(times, np.int64)) // 1_000 * 1_000) + from_ns
    found = []
    for speed in speeds:
        path = tmp_path_factory.mktemp("trial") / "a.rec"
        options = {"speed": speed, "from_ns": from_ns, "interval_ns": SECOND_NS // 2}
        verdict = judged(path, source, 100.0, "max<1s", **options)
        found.append((verdict.bounds_ns, verdict.ios))
    assert all(each == found[0] for each in found)
    assert sum(found[0][1]) == len(source)
    places = (source - from_ns) // (SECOND_NS // 2)
    # Counted from the source; those intervals without any are joined with the next.
    assert found[0][1] == [int(count) for count in np.unique(places, return_counts=True)[1]]


def test_a_trial_that_fell_behind_judges_what_had_gone_and_names_where(tmp_path: Path) -> None:
    lag = {"stream": None, "at_ns": 1_250_000_000, "lag_ns": 100_000_000, "max_lag_ns": 100_000_000}
    found = judged(
        tmp_path / "a.rec",
        TIMES,
        np.r_[RAMP, RAMP, RAMP],
        "p99<1ms",
        speed=2.0,
        issued=2_300,
        status="failed",
        accounting={"cannot_keep_up": lag},
    )
    assert found.bounds_ns == [(0, SECOND_NS), (SECOND_NS, 2 * SECOND_NS)]
    assert found.reasons[0] == "the drive cannot keep up: 0.1 s behind after 1.2 s"
    assert found.verdict == "fail"
    # Due at 1.15 s of the trial, which is 2.3 s of the workload.
    assert found.breaks_first is not None
    assert found.breaks_first.text == "interval 0:02..0:02.999 falls 0.1 s behind"


def broken(path: Path, *arguments: Any, **options: Any) -> list[str]:
    """Why a trial cannot pass, of the first two of its intervals of a second."""
    with Recording.open(trial(path, *arguments, **options)) as recording:
        return broken_intervals(recording, [(0, 1), (1, 2)])


def test_a_trial_that_goes_on_is_judged_by_its_whole_intervals_as_the_finished_one(tmp_path: Path) -> None:
    slow = np.r_[RAMP, RAMP * 2, RAMP * 4]
    options = {"speed": 2.0, "issued": 2_300, "status": "running"}
    (reason,) = broken(tmp_path / "a.rec", TIMES, slow, "p99<1ms", **options)
    assert reason.startswith("p99 of the reads of interval 0:01..0:02 is 1.98")
    # The third is not over, and what is not yet there claims nothing.
    assert broken(tmp_path / "b.rec", TIMES, slow, "p99<2ms", **options) == []
    assert broken(tmp_path / "c.rec", TIMES, slow, "p99<1ms", **{**options, "issued": 1_100}) == []


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1 << 20),
    rule=st.sampled_from(["p99<5ms", "p50<3ms", "mean<3ms", "max<9ms", "above 5ms < 20%"]),
    speed=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_what_is_not_recorded_yet_never_ends_a_trial_that_would_pass(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rule: str, speed: float
) -> None:
    random = np.random.default_rng(seed)
    took_us = random.exponential(2_500.0, len(TIMES))
    # Those that are missing took longer than what is proved by, and longer than each limit.
    late = random.random(len(TIMES)) < 0.02
    took_us[late] = proved_after_ns(parse_rules(rule)) / 1_000 + 20_000.0
    folder = tmp_path_factory.mktemp("trial")
    early = broken(folder / "early.rec", TIMES[~late], took_us[~late], rule, speed=speed)
    whole = judged(folder / "whole.rec", TIMES, took_us, rule, speed=speed)
    assert not early or whole.verdict == "fail"


def test_means_and_shares_are_proved_by_what_took_longer_than_they_allow() -> None:
    assert proved_after_ns(parse_rules("mean<5s, above 3s < 1%, p99<9s, max<20s")) == 9 * SECOND_NS
    assert proved_after_ns(parse_rules("mean<5s, max<20s")) == 5 * SECOND_NS
    assert proved_after_ns(parse_rules("max<9s")) == 0


def test_a_drive_that_answers_with_errors_does_not_pass(tmp_path: Path) -> None:
    counts = {"ios": 1_000, "bytes": 0, "errors": 3, "no_completion": 0, "span_ns": 0, "end_max_bytes": 0}
    found = judged(tmp_path / "a.rec", TIMES[:1_000], RAMP, "max<1s", counts={**counts, "by_opcode": {}})
    assert found.reasons == ["3 I/Os failed or were never answered"]


def test_the_summary_has_the_verdict_and_other_recordings_have_none(tmp_path: Path) -> None:
    with Recording.open(trial(tmp_path / "a.rec", TIMES, RAMP.repeat(3), "p99<1s")) as recording:
        found = summarize(recording)["headroom"]
    assert (found["verdict"], found["speed"], found["code"]) == ("pass", 1.0, None)
    assert found["intervals"]["ios"] == [1_000, 1_000, 1_000]
    assert len(found["rules"][0]["values"]) == len(found["rules"][0]["service_values"]) == 3
    assert found["breaks_first"] is None
