"""Which values a search tries, on drives that are functions: the threshold is found within its resolution."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testdrive.search.bisection import TRIALS_MAX, Scale, Trial, bisect, step_down

RATINGS = Scale(lowest=1, highest=1000, resolution=1, whole=True)
RATES = Scale(lowest=100, highest=1e7, resolution=1.02, whole=False)


def drive(threshold: float) -> Callable[[float, bool], Trial]:
    """Passes up to a threshold."""
    return lambda value, confirming: Trial(value, value <= threshold, confirming)


@given(threshold=st.integers(1, 1000), start=st.integers(1, 1000), resolution=st.integers(1, 16))
def test_the_threshold_is_found_within_the_resolution(threshold: int, start: int, resolution: int) -> None:
    found = bisect(drive(threshold), Scale(1, 1000, resolution, whole=True), start)
    assert found.value is not None
    assert threshold - resolution < found.value <= threshold
    assert found.history[-1].confirming
    assert found.is_monotone
    assert len(found.history) < 30


@given(threshold=st.floats(100, 1e7), start=st.floats(100, 1e7))
def test_rates_are_found_within_a_ratio(threshold: float, start: float) -> None:
    found = bisect(drive(threshold), RATES, start)
    assert found.value is not None
    assert threshold / 1.0201 < found.value <= threshold


def test_what_no_value_passes_has_no_result_and_what_all_pass_has_the_highest() -> None:
    nothing = bisect(drive(0), RATINGS, 32)
    assert nothing.value is None
    assert [trial.value for trial in nothing.history] == [32, 16, 8, 4, 2, 1]
    everything = bisect(drive(2000), RATINGS, 600)
    assert everything.value == 1000
    assert [(trial.value, trial.confirming) for trial in everything.history] == [
        (600, False),
        (1000, False),
        (1000, True),
    ]


def test_what_does_not_pass_again_is_searched_below() -> None:
    def worn(value: float, confirming: bool) -> Trial:
        # In the search a drive passes 50; settled and confirmed, it passes 40 alone.
        return Trial(value, value <= (40 if confirming else 50), confirming)

    found = bisect(worn, RATINGS, 32)
    confirmed = [trial.value for trial in found.history if trial.confirming]
    assert (confirmed, found.value) == ([50, 49, 47, 43, 35, 39, 41, 40], 40)
    assert found.deciding is found.history[-1]
    # Confirming runs say 39; the last of them is one above it, which failed.
    found = bisect(lambda value, again: Trial(value, value <= (39 if again else 50), again), RATINGS, 32)
    assert (found.value, found.history[-1].value, found.history[-1].passes) == (39, 40, False)
    assert (found.deciding.value, found.deciding.confirming, found.deciding.passes) == (39, True, True)
    assert found.not_confirmed == 50
    assert bisect(drive(50), RATINGS, 32).not_confirmed is None


@given(trials=st.floats(100, 1e7), share=st.floats(0.01, 1))
def test_however_far_below_its_trials_a_drive_is_confirmed_that_takes_few_runs(
    trials: float, share: float
) -> None:
    confirmed = max(trials * share, 100)

    def worn(value: float, confirming: bool) -> Trial:
        return Trial(value, value <= (confirmed if confirming else trials), confirming)

    found = bisect(worn, RATES, 1e4)
    assert found.value is not None
    assert confirmed / 1.0201 < found.value <= confirmed
    assert sum(trial.confirming for trial in found.history) <= 20


def test_a_drive_that_never_confirms_ends_without_a_result() -> None:
    found = bisect(lambda value, confirming: Trial(value, not confirming, confirming), RATINGS, 32)
    assert found.value is None
    assert len(found.history) <= TRIALS_MAX


def test_where_passing_is_not_monotone_nothing_above_a_failure_is_tried() -> None:
    def holes(value: float, confirming: bool) -> Trial:
        return Trial(value, value <= 20 or 60 <= value <= 70, confirming)

    found = bisect(holes, RATINGS, 64)
    assert found.value == 70
    assert found.is_monotone, "no trial fell into the hole"
    low = bisect(holes, RATINGS, 40)
    assert low.value == 20
    assert low.is_monotone
    stepped = step_down(lambda value, confirming: Trial(value, value == 60 and confirming), RATINGS, 65, 5)
    assert stepped.value is None


def test_steps_down_take_the_first_that_passes_and_confirm_it() -> None:
    found = step_down(drive(47), RATINGS, 150, 10)
    assert (found.value, found.method) == (40, "step-down")
    assert [trial.value for trial in found.history] == [*range(150, 30, -10), 40]
    last = step_down(drive(3), RATINGS, 25, 10)
    assert [trial.value for trial in last.history] == [25, 15, 5, 1, 1]
    assert last.value == 1
    assert step_down(drive(0), RATINGS, 25, 10).value is None


@pytest.mark.parametrize(("low", "high"), [(4, 5), (99, 100)])
def test_neighbours_are_close_enough(low: int, high: int) -> None:
    assert RATINGS.middle(low, high) is None
