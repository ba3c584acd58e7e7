"""Energy by integration: known answers, the ends of a stretch, gaps, and counters that are set back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testdrive.power.integral import GAP_INTERVALS, Kind, Pieces

S = 1_000_000_000


def pieces(
    times_s: list[float], values: list[float], kind: Kind = "instant", interval_s: float = 1
) -> Pieces:
    times = np.array([round(time * S) for time in times_s], np.int64)
    return Pieces(times, np.array(values, np.float64) * 1e6, kind, round(interval_s * S))


def test_power_at_moments_is_integrated_by_trapezoids() -> None:
    found = pieces([0, 1, 2], [1, 3, 3]).over(0, 2 * S)
    assert found.energy_uj == pytest.approx((2 + 3) * 1e6)
    assert found.mean_w == pytest.approx(2.5)
    assert (found.covered_share, found.readings) == (1.0, 3)


def test_a_stretch_within_one_piece_has_its_part_of_the_straight_line() -> None:
    # From 1 W to 3 W in 2 s: between 0.5 s and 1 s it rises from 1.5 W to 2 W.
    found = pieces([0, 2], [1, 3]).over(S // 2, S)
    assert found.energy_uj == pytest.approx(0.5 * 1.75e6)
    assert found.covered_share == 1.0


def test_means_since_the_reading_before_are_held_until_they_were_told() -> None:
    assert pieces([0, 1, 2], [9, 1, 3], "mean").over(0, 2 * S).energy_uj == pytest.approx(4e6)


def test_a_counter_of_energy_is_what_it_grew_by() -> None:
    found = pieces([0, 1, 2, 3], [7, 8, 12, 12.5], "counter")
    assert found.over(0, 3 * S).energy_uj == pytest.approx(5.5e6)
    assert found.over(S // 2, 3 * S // 2).energy_uj == pytest.approx(0.5e6 + 2e6)


def test_what_nobody_saw_is_neither_zero_nor_filled() -> None:
    # Readings each second, then none for one interval too many.
    long = GAP_INTERVALS + 1
    found = pieces([0, 1, 2, 2 + long, 3 + long], [4] * 5).over(0, (3 + long) * S)
    assert found.covered_ns == 3 * S
    assert found.mean_w == pytest.approx(4)
    assert pieces([0, GAP_INTERVALS], [4, 4]).over(0, S).covered_share == 1.0
    assert pieces([0, GAP_INTERVALS + 0.001], [4, 4]).over(0, S).covered_share == 0.0


def test_before_the_first_and_after_the_last_reading_nothing_was_measured() -> None:
    found = pieces([1, 2, 3], [2, 2, 2]).over(0, 6 * S)
    assert (found.covered_ns, found.energy_uj) == (2 * S, pytest.approx(4e6))
    assert pieces([1, 2], [2, 2]).over(5 * S, 6 * S).mean_w is None
    assert pieces([], []).over(0, S).covered_share == 0.0
    assert pieces([1], [2]).over(0, S).covered_share == 0.0


def test_a_counter_counts_through_a_gap_within_the_stretch_but_not_over_its_end() -> None:
    found = pieces([0, 1, 11, 12], [0, 1, 31, 32], "counter")
    assert found.over(0, 12 * S).energy_uj == pytest.approx(32e6)
    assert found.over(0, 12 * S).covered_share == 1.0
    # Nobody knows how much of the 30 J was drawn before 5 s.
    assert found.over(0, 5 * S).covered_ns == S
    assert found.over(4 * S, 5 * S).covered_ns == 0


def test_a_counter_that_was_set_back_is_not_measured_over_that_piece() -> None:
    found = pieces([0, 1, 2, 3], [5, 6, 0, 1], "counter").over(0, 3 * S)
    assert (found.covered_ns, found.energy_uj) == (2 * S, pytest.approx(2e6))


def test_readings_that_are_missing_or_stand_still_in_time_are_passed_over() -> None:
    found = pieces([0, 1, 1, 0.5, 2], [1, 1, 99, 99, 1])
    assert found.over(0, 2 * S).energy_uj == pytest.approx(2e6)
    assert pieces([0, 1, 2], [1, np.nan, 1]).over(0, 2 * S).energy_uj == pytest.approx(2e6)


def test_a_stretch_without_length_has_nothing() -> None:
    found = pieces([0, 1], [1, 1]).over(S, S)
    assert (found.energy_uj, found.covered_share, found.mean_w) == (0.0, 0.0, None)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.floats(0, 100)), min_size=2, max_size=30),
    st.sampled_from(["instant", "mean", "counter"]),
    st.data(),
)
def test_a_stretch_is_the_sum_of_its_parts(
    steps: list[tuple[int, float]], kind: Kind, data: st.DataObject
) -> None:
    times = np.cumsum([step for step, _ in steps]) * S
    values = np.array([value for _, value in steps]) * 1e6
    if kind == "counter":
        values = np.cumsum(values)
    made = Pieces(times, values, kind, 2 * S)
    low, middle, high = sorted(
        data.draw(st.integers(int(times[0]) - S, int(times[-1]) + S)) for _ in range(3)
    )
    whole, first, second = made.over(low, high), made.over(low, middle), made.over(middle, high)
    assert whole.energy_uj == pytest.approx(first.energy_uj + second.energy_uj, abs=1e-3)
    assert whole.covered_ns == first.covered_ns + second.covered_ns
