"""The intervals of a workload: how they are cut, joined and called."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testdrive.headroom.intervals import SECOND_NS, Window, called, joined

COUNTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=40)


def of_reads(*counts: int) -> np.ndarray:
    return np.array([[count] for count in counts], np.int64)


def test_intervals_with_too_few_ios_are_joined_with_those_that_follow() -> None:
    assert joined(of_reads(10, 10, 10), 10) == [(0, 1), (1, 2), (2, 3)]
    assert joined(of_reads(10, 3, 0, 7, 12), 10) == [(0, 1), (1, 4), (4, 5)]
    # What is left at the end has nothing that follows.
    assert joined(of_reads(10, 10, 9), 10) == [(0, 1), (1, 3)]
    assert joined(of_reads(10, 10, 9), 10, whole=False) == [(0, 1), (1, 2)]
    assert joined(of_reads(4, 5), 10) == []


def test_each_judged_operation_must_have_enough() -> None:
    assert joined(np.array([[20, 4], [0, 6], [10, 10]]), 10) == [(0, 2), (2, 3)]


@given(counts=COUNTS, needed=st.integers(1, 50))
def test_every_interval_has_enough_and_no_io_is_left_out(counts: list[tuple[int, int]], needed: int) -> None:
    table = np.array(counts, np.int64)
    found = joined(table, needed)
    if (table.sum(axis=0) < needed).any():
        assert found == []
        return
    assert [first for first, _ in found] == [0, *(after for _, after in found[:-1])]
    assert found[-1][1] == len(table)
    assert all((table[first:after].sum(axis=0) >= needed).all() for first, after in found)


@given(counts=COUNTS, needed=st.integers(1, 50), cut=st.integers(0, 40))
def test_what_a_trial_got_to_has_the_intervals_of_the_whole(
    counts: list[tuple[int, int]], needed: int, cut: int
) -> None:
    table = np.array(counts, np.int64)
    part = joined(table[:cut], needed, whole=False)
    assert part == joined(table, needed, whole=False)[: len(part)]


@pytest.mark.parametrize(
    ("start_s", "end_s", "name"),
    [
        (730, 740, "12:10..12:20"),
        (0, 1.5, "0:00..0:01.500"),
        (3_540, 3_600, "0:59:00..1:00:00"),
        (90_000, 90_060.25, "25:00:00..25:01:00.250"),
    ],
)
def test_an_interval_is_called_by_the_recordings_clock(start_s: float, end_s: float, name: str) -> None:
    assert called(round(start_s * SECOND_NS), round(end_s * SECOND_NS)) == name


def test_the_last_piece_is_what_is_left() -> None:
    window = Window(5 * SECOND_NS, 15 * SECOND_NS + 1, 4 * SECOND_NS)
    assert window.pieces == 3
    assert window.bounds_ns(2, 3) == (13 * SECOND_NS, 15 * SECOND_NS + 1)
    assert window.due_ns(2, 4.0) == 2 * SECOND_NS
