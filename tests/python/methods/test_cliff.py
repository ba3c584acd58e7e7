"""The write cliff on series whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from testdrive.methods.cliff import SECONDS_MIN, Levels, levels_of


def series(*parts: tuple[int, float]) -> NDArray[np.float64]:
    """So many seconds at each level, one after the other."""
    return np.concatenate([np.full(seconds, level) for seconds, level in parts])


def test_a_sudden_fall_is_where_it_is() -> None:
    found = levels_of(series((100, 1000.0), (400, 250.0)))
    assert found == Levels(1000.0, 250.0, True, cliff_s=100, halfway_s=100)


def test_the_edge_of_a_slope_is_where_a_tenth_is_lost_and_halfway_is_on_a_logarithmic_scale() -> None:
    # Falls by 1 a second from second 100 on, to 250: the geometric mean of 1000 and 250 is 500.
    slope = np.arange(1000.0, 250.0, -1.0)
    found = levels_of(np.concatenate([series((100, 1000.0)), slope, series((1000, 250.0))]))
    assert (found.settled, found.end_iops) == (True, 250.0)
    # slope[100] is 900, which is nine tenths, and slope[501] the first below 500.
    assert (found.cliff_s, found.halfway_s) == (100 + 100 + 1, 100 + 501)


def test_of_two_falls_the_greater_one_is_the_cliff() -> None:
    cache_first = levels_of(series((50, 8000.0), (250, 1000.0), (700, 500.0)))
    assert cache_first.cliff_s == 50
    # The first fall is by a tenth at most, and T is the square root of 8000 * 500 = 2000.
    late = levels_of(series((50, 8000.0), (250, 7300.0), (700, 500.0)))
    assert late.cliff_s == 300


def test_no_fall_is_no_cliff() -> None:
    assert levels_of(series((500, 1000.0))) == Levels(1000.0, 1000.0, True)
    # Two thirds are the least fall that counts.
    assert levels_of(series((100, 900.0), (400, 601.0))).cliff_s is None
    assert levels_of(series((100, 900.0), (400, 600.0))).cliff_s == 100
    assert levels_of(series((100, 500.0), (400, 1000.0))).cliff_s is None


def test_a_bad_minute_before_is_not_taken_for_the_cliff() -> None:
    found = levels_of(series((500, 1000.0), (60, 10.0), (2500, 1000.0), (6940, 200.0)))
    assert found.cliff_s == 500 + 60 + 2500
    assert levels_of(series((500, 1000.0), (60, 10.0), (9440, 1000.0))).cliff_s is None


def test_slow_first_seconds_are_not_the_cliff() -> None:
    found = levels_of(series((4, 10.0), (96, 1000.0), (400, 250.0)))
    assert (found.start_iops, found.cliff_s) == (1000.0, 100)


def test_a_drive_that_swings_between_two_speeds_afterwards_has_fallen_too() -> None:
    swinging = np.tile([1000.0, 0.0], 200)
    found = levels_of(np.concatenate([series((100, 1000.0)), swinging]))
    assert found.end_iops == 500.0
    # The last second at nine tenths before the swing reached below is the first of the swing itself.
    assert (found.cliff_s, found.halfway_s) == (101, 101)


def test_a_run_that_ends_just_after_the_cliff_has_one_but_has_not_settled() -> None:
    found = levels_of(series((450, 1000.0), (50, 250.0)))
    assert not found.settled
    assert found.end_iops == 625.0
    assert found.cliff_s == 450


def test_a_run_that_ends_before_the_cliff_has_none() -> None:
    assert levels_of(series((100, 1000.0))).cliff_s is None


def test_a_drive_that_stops_altogether_has_a_cliff() -> None:
    found = levels_of(series((100, 1000.0), (400, 0.0)))
    # A mean of zero is never steady.
    assert (found.end_iops, found.settled, found.cliff_s) == (0.0, False, 100)


def test_a_drive_that_never_did_anything_has_no_cliff() -> None:
    assert levels_of(np.zeros(100)) == Levels(0.0, 0.0)


@pytest.mark.parametrize("seconds", [1, 9, SECONDS_MIN - 1])
def test_a_short_run_has_a_start_only(seconds: int) -> None:
    assert levels_of(series((seconds, 700.0))) == Levels(700.0)


def test_the_shortest_run_that_can_be_judged_is() -> None:
    found = levels_of(series((10, 1000.0), (SECONDS_MIN - 10, 100.0)))
    assert found == Levels(1000.0, 100.0, True, cliff_s=10, halfway_s=10)


def test_nothing_recorded_has_no_levels() -> None:
    assert levels_of(np.zeros(0)) == Levels(None)


@pytest.mark.parametrize("seed", range(5))
def test_noise_moves_the_cliff_by_seconds_at_most(seed: int) -> None:
    noise = np.random.default_rng(seed).lognormal(sigma=0.03, size=3000)
    found = levels_of(series((1000, 50_000.0), (2000, 5_000.0)) * noise)
    assert found.settled
    assert found.halfway_s == 1000
    assert found.cliff_s is not None
    assert 990 <= found.cliff_s <= 1000
