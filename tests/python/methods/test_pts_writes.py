"""Write saturation and host idle recovery, PTS-style: every value of their tables by known answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import SECOND_NS, open_recording, phase

from testdrive.methods import pts_idle, pts_saturation
from testdrive.methods.runs import Run
from testdrive.report.subject import subject


def made(folder: Path, phases: Sequence[tuple[str, Sequence[int], dict[str, Any]]], **manifest: Any) -> Run:
    """A run of phases with so many 4 KiB writes in each second, evenly spread, each of 10 µs."""
    entries, submit, numbers = [], [], []
    start_ns = 0
    for index, (name, counts, more) in enumerate(phases):
        end_ns = start_ns + len(counts) * SECOND_NS
        made_phase = phase(index, kind="synthetic", start_ns=start_ns, end_ns=end_ns, **more)
        entries.append({**made_phase, "name": name})
        for second, count in enumerate(counts):
            first = start_ns + second * SECOND_NS
            submit.append(first + np.arange(count) * (SECOND_NS // max(count, 1)))
            numbers.append(np.full(count, index))
        start_ns = end_ns
    columns = {
        "submit_ns": np.concatenate(submit),
        "latency_ns": 10_000,
        "length_bytes": 4096,
        "opcode": 1,
        "phase": np.concatenate(numbers),
    }
    opened = open_recording(folder / "a.rec", columns, kind="run", phases=entries, **manifest)
    return Run(subject("a", "drive", 0, opened, {}))


def test_saturation_judges_the_last_five_rounds_and_tells_where_it_fell(tmp_path: Path) -> None:
    # 20 s at 400, then 80 s near 100; the last five rounds of 4 s are at 95, 103, 98, 96 and 108.
    counts = [400] * 20 + [100] * 60 + [95] * 4 + [103] * 4 + [98] * 4 + [96] * 4 + [108] * 4
    capacity_bytes = sum(counts) * 4096 // 2
    counters = {"host_written_bytes": 0, "nand_written_bytes": 0}
    after = {"host_written_bytes": sum(counts) * 4096, "nand_written_bytes": sum(counts) * 4096 * 3}
    run = made(tmp_path, [("writes", counts, {})], drive={"capacity_bytes": capacity_bytes})
    run.phases[0].drive_counters = (
        type(run.phases[0])
        .model_validate({"index": 0, "drive_counters": {"before": counters, "after": after}})
        .drive_counters
    )
    findings = pts_saturation.look([run])
    (row,) = findings.tables[0].rows
    assert row == [
        "a",
        "400",
        "20 s",
        "2.00",
        "4 s",
        "100",
        "10.0 µs",
        "yes",
        "+7.6 % (10 %)",
        "13.0 % (20 %)",
        "3.00",
    ]
    over_time, over_fills = findings.figures
    iops, latency = over_time.series
    np.testing.assert_allclose(iops.x, np.arange(1, 101))
    np.testing.assert_allclose(iops.y, counts)
    np.testing.assert_allclose(latency.y, 10e-6)
    np.testing.assert_allclose(over_fills.series[0].x, np.cumsum(counts) / sum(counts) * 2)


def test_a_day_of_saturation_is_drawn_by_the_minute(tmp_path: Path) -> None:
    run = made(tmp_path, [("writes", [3] * 60 + [1] * (3_600 + 30), {})])
    findings = pts_saturation.look([run])
    iops = findings.figures[0].series[0]
    assert (len(iops.x), iops.y[0], iops.y[1]) == (61, 3.0, 1.0)
    assert findings.tables[0].rows[0][4] == "60 s"
    assert "capacity not known" in findings.tables[0].rows[0]


def test_a_run_without_writes_has_a_note(tmp_path: Path) -> None:
    findings = pts_saturation.look([made(tmp_path, [("other", [5], {})])])
    assert findings.figures == []
    assert findings.notes == ["a ended before a second of writing was over."]


STEADY = {
    "settings": {"steady_state": {"measure": "iops", "round_ns": SECOND_NS}},
    "accounting": {
        "steady_state": {
            "measure": "iops",
            "achieved": True,
            "rounds": [{"iops": 100.0}] * 5,
            "window_first_round": 0,
            "window_start_ns": 0,
            "fit": {
                "mean": 100.0,
                "slope_per_round": 0.0,
                "intercept": 100.0,
                "range_share": 0.0,
                "slope_share": 0.0,
            },
        }
    },
}


def burst(rest_s: int) -> dict[str, Any]:
    return {"settings": {"on_ns": 2 * SECOND_NS, "off_ns": rest_s * SECOND_NS}}


def test_a_burst_is_what_completed_until_the_next_over_the_time_of_writing(tmp_path: Path) -> None:
    five = [(100, 100), (150, 120), (200, 180), (200, 200), (210, 190)]
    counts = [each for one, other in five for each in (one, other, 6, 0, 0, 0, 0)]
    back = [300] * 12 + [105] * 8 + [100] * 20
    ten = [120, 100, *[0] * 10]
    run = made(
        tmp_path,
        [
            ("writes", [100] * 5, STEADY),
            ("idle-1", counts, burst(5)),
            ("return-1", back, {}),
            ("idle-2", ten, burst(10)),
            ("return-2", [300] * 15, {}),
        ],
    )
    findings = pts_idle.look([run])
    table = findings.tables[0]
    # The last fifth of five bursts is the last: 210 + 190, and 6 that completed in the rest, in 2 s.
    # A mean of 10 s is above 110 until the window that begins with the twelfth second at 300 ends.
    assert table.rows == [
        ["a, 5 s", "5", "103", "203", "100", "2.03", "21 s"],
        ["a, 10 s", "1", "110", "110", "100", "1.10", "not within 15 s"],
    ]
    assert findings.notes == ["a ended after 2 of 5 lengths of rest."]
    gains = next(figure for figure in findings.figures if figure.key == "pts-idle-gain")
    np.testing.assert_allclose(gains.series[1].y[:2], [2.03, 1.10])
    assert np.isnan(gains.series[1].y[2:]).all()
    bursts = next(figure for figure in findings.figures if figure.key == "pts-idle-bursts")
    np.testing.assert_allclose(bursts.series[0].y, [(sum(pair) + 6) / 2 for pair in five])
    returns = next(figure for figure in findings.figures if figure.key == "pts-idle-return")
    np.testing.assert_allclose(returns.series[0].y, back)
    assert {axis.high for axis in bursts.y} == {300.0}


@pytest.mark.parametrize(
    ("after", "back_s"),
    [
        ([100] * 20, 0),
        ([100] * 9, None),
        ([200] * 20, None),
        ([200] * 10 + [100] * 30, 18),
        # 110 % itself is back already.
        ([110] * 20, 0),
    ],
)
def test_a_drive_is_back_once_no_ten_seconds_are_above_the_steady_state(
    after: list[int], back_s: int | None
) -> None:
    rests = pts_idle._Rests(1, 5 * SECOND_NS, np.zeros(0), np.array(after, np.float64))
    assert rests.back_s(100.0) == back_s


def test_a_run_that_ended_before_the_rests_is_shown_as_far_as_it_got(tmp_path: Path) -> None:
    findings = pts_idle.look([made(tmp_path, [("writes", [100] * 5, STEADY)])])
    assert findings.figures == []
    assert [table.key for table in findings.tables] == ["steady-state"]
    assert findings.notes == ["a ended before it had any rest."]
