"""The steady state as pages tell it: fits with known answers, and what a recording says of its rounds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from testdrive.manifest import Phase
from testdrive.methods.steadiness import fit_of, steadiness_of, steadiness_table


def test_a_straight_line_is_found_exactly() -> None:
    fit = fit_of([96.0, 98.0, 100.0, 102.0, 104.0])
    assert fit is not None
    assert (fit.mean, fit.slope_per_round, fit.intercept) == (100.0, 2.0, 96.0)
    assert (fit.range_share, fit.slope_share) == (0.08, 0.08)
    assert fit.steady()
    assert not fit.steady(slope_limit=0.07)
    assert not fit.steady(range_limit=0.07)


def test_the_least_squares_line_is_the_textbooks() -> None:
    # Places -2..2, deviations from 100: the slope is (-2 * -5 - 1 * 3 + 1 * -4 + 2 * 8) / 10 = 1.9.
    fit = fit_of([95.0, 103.0, 98.0, 96.0, 108.0])
    assert fit is not None
    assert fit.slope_per_round == pytest.approx(1.9)
    assert fit.intercept == pytest.approx(96.2)
    assert (fit.slope_share, fit.range_share) == (pytest.approx(0.076), pytest.approx(0.13))


def test_the_limits_themselves_are_still_steady() -> None:
    fit = fit_of([90.0, 110.0, 100.0, 110.0, 90.0])
    assert fit is not None
    assert (fit.slope_per_round, fit.range_share) == (0.0, 0.2)
    assert fit.steady()


@pytest.mark.parametrize("values", [[], [1.0], [0.0] * 5, [1.0, math.nan]])
def test_nothing_done_is_never_steady(values: list[float]) -> None:
    assert fit_of(values) is None


def settling(achieved: bool, rounds: list[float | None], **found: Any) -> Phase:
    fit = {"mean": 100.0, "slope_per_round": -1.0, "intercept": 102.0, "range_share": 0.05}
    accounting = {
        "measure": "iops",
        "achieved": achieved,
        "rounds": [{"iops": value} for value in rounds],
        "window_first_round": 1,
        "fit": {**fit, "slope_share": 0.04},
        **found,
    }
    asked = {"measure": "iops", "round_ns": 30_000_000_000, "range_share": 0.3, "slope_share": 0.1}
    return Phase(index=0, settings={"steady_state": asked}, accounting={"steady_state": accounting})


def test_a_phase_tells_its_rounds_its_window_and_its_bounds() -> None:
    found = steadiness_of(settling(True, [150.0, 102.0, 101.0, 100.0, 99.0, 98.0]))
    assert found is not None
    assert (found.reached, found.round_s, found.window_first) == (True, 30.0, 1)
    assert (found.range_limit, found.slope_limit) == (0.3, 0.1)
    table = steadiness_table("key", [("a", found), ("b", None)])
    assert table.rows[0] == [
        "a",
        "reached",
        "6 of 30 s",
        "2 to 6",
        "100 IOPS",
        "-4.0 % (10 %)",
        "5.0 % (30 %)",
    ]
    assert table.rows[1] == ["b", *["not recorded"] * 6]


def test_a_phase_that_ended_before_a_whole_window_says_so() -> None:
    found = steadiness_of(settling(False, [100.0, None], window_first_round=None, fit=None))
    assert found is not None
    assert math.isnan(found.rounds[1])
    (row,) = steadiness_table("key", [("a", found)]).rows
    assert row == ["a", "not reached", "2 of 30 s", *["no whole window"] * 4]


def test_a_phase_without_a_steady_state_has_none() -> None:
    assert steadiness_of(None) is None
    assert steadiness_of(Phase(index=0, accounting={})) is None
