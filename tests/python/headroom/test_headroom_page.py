"""The page of headroom, of histories without an engine: what holds, what breaks, and what nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import SECOND_NS, trial

from testdrive.durable_json import write_json
from testdrive.headroom.verdict import judge
from testdrive.methods.drawing import Findings
from testdrive.methods.looking import looked_at
from testdrive.methods.page import write_method_page
from testdrive.recording import Recording
from testdrive.search.bisection import Found, Trial
from testdrive.search.history import HISTORY_NAME, read_history, write_history

TIMES = np.arange(4_000) * 1_000_000


def figures_of(path: Path, **changes: Any) -> dict[str, Any]:
    with Recording.open(path) as recording:
        verdict = judge(recording).to_json_object()
    kept = {key: verdict[key] for key in ("rules", "intervals", "breaks_first")}
    return {**kept, "host_late_ns": None, "left_out": {}, **changes}


def searched(folder: Path, name: str, *, confirmed: bool = True, **facts: Any) -> Path:
    """A search that took 2 and failed at 3 in the third second, of which the last run decided."""
    holds = trial(folder / f"{name}-hold.rec", TIMES, 500.0, "p99<1ms", speed=2.0)
    slow = np.where((TIMES >= 2 * SECOND_NS) & (TIMES < 3 * SECOND_NS), 1_400.0, 600.0)
    fails = trial(folder / f"{name}-fail.rec", TIMES, slow, "p99<1ms", speed=3.0)
    good, bad = figures_of(holds), figures_of(fails)
    failed = Trial(3.0, False, reasons=["too slow"], recording=fails.name, figures=bad)
    history = [Trial(2.0, True, recording=holds.name, figures=good), failed]
    if confirmed:
        history.append(Trial(2.0, True, confirming=True, recording=holds.name, figures=good))
    found = Found(2.0 if confirmed else None, history if confirmed else [failed], "bisection")
    decided = holds if confirmed else fails
    told = {
        "failing_speed": 3.0,
        "breaks_first": bad["breaks_first"],
        "host_limited": False,
        "rules": "p99<1ms",
        "opcodes": ["read"],
        "interval_ns": SECOND_NS,
        "intervals": 4,
        "interval_longest_ns": SECOND_NS,
        "from_ns": 0,
        "to_ns": 4 * SECOND_NS,
        "recorded_mean_iops": 1_000.0,
        "recorded_peak_iops": 1_000,
    }
    write_history(decided, found, {**told, **facts})
    return decided


def look(*recordings: Path) -> Findings:
    with looked_at(recordings) as (_, found):
        ((_, findings),) = found
        return findings


def test_the_interval_that_breaks_first_is_drawn_where_it_lies_in_the_workload(tmp_path: Path) -> None:
    findings = look(searched(tmp_path, "a"))
    figure = next(one for one in findings.figures if one.key == "headroom-intervals")
    drawn = {(one.name, one.panel): one.drawn(figure.x, figure.axis_of(one)) for one in figure.series}
    (holds,) = (one for (name, _), one in drawn.items() if name.endswith("2x holds"))
    (fails,) = (one for (name, _), one in drawn.items() if name.endswith("3x fails"))
    assert holds.x == pytest.approx([0.5, 1.5, 2.5, 3.5], abs=1e-3)
    assert holds.y == pytest.approx([0.5] * 4, rel=0.008)
    assert fails.x == pytest.approx([2.5])
    assert fails.y == pytest.approx([1.4], rel=0.008)
    assert drawn["as recorded", 1].y == pytest.approx([1_000] * 4, rel=2e-3)
    row = dict(zip(findings.tables[0].head, findings.tables[0].rows[0], strict=True))
    assert (row["takes"], row["fails at"], row["IOPS, mean"]) == ("2x", "3x", "2,000")
    assert row["breaks first"] == "0:02..0:03: p99 1.40 ms"
    assert "modelled" in row["drive"]


def test_several_drives_stand_on_one_page(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    page = write_method_page([searched(tmp_path, "a"), searched(tmp_path, "b")], folder / "index.html").path
    text = page.read_text()
    assert "Which part of the workload breaks first" in text
    assert (folder / "figures" / "headroom-intervals.png").is_file()
    assert len(list((folder / "tables").glob("headroom-history-*.csv"))) == 2


def test_what_no_speed_holds_or_only_the_host_fails_is_told(tmp_path: Path) -> None:
    findings = look(searched(tmp_path, "a", confirmed=False))
    assert findings.tables[0].rows[0][1:3] == ["none", "none"]
    lost = look(searched(tmp_path, "b", confirmed=False, host_limited=True))
    assert any("at every speed this host sent I/Os late itself" in note for note in lost.notes)
    limited = look(searched(tmp_path, "c", host_limited=True))
    assert any("above 2x this host sent I/Os late itself" in note for note in limited.notes)
    assert "the host, not the drive" in limited.tables[0].rows[0]


def test_a_page_says_how_long_joined_intervals_are(tmp_path: Path) -> None:
    assert not any("joined" in note for note in look(searched(tmp_path, "a")).notes)
    findings = look(searched(tmp_path, "b", interval_longest_ns=7 * SECOND_NS))
    assert any("the longest is 7 s of the recording, instead of 1 s" in note for note in findings.notes)


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({}, "4 of 1 s"),
        ({"interval_last_ns": 5 * SECOND_NS // 10}, "4 of 1 s, the last of 500 ms"),
        ({"interval_last_ns": SECOND_NS - 1_000_000}, "4 of 1 s"),
        ({"interval_longest_ns": 7 * SECOND_NS}, "4 of 1 s to 7 s"),
        ({"intervals": 1, "interval_longest_ns": SECOND_NS // 2}, "1 of 500 ms"),
    ],
)
def test_intervals_are_told_with_their_true_lengths(
    tmp_path: Path, facts: dict[str, int], wanted: str
) -> None:
    findings = look(searched(tmp_path, "a", **facts))
    row = dict(zip(findings.tables[0].head, findings.tables[0].rows[0], strict=True))
    assert row["intervals"] == wanted


def test_a_confirming_run_is_no_part_of_the_line_of_trials(tmp_path: Path) -> None:
    findings = look(searched(tmp_path, "a"))
    figure = next(one for one in findings.figures if one.key == "headroom-response")
    drawn = {one.name: (one.style, list(one.x)) for one in figure.series if one.style != "rule"}
    assert sorted(drawn.values()) == [("line", [2.0, 3.0]), ("points", [2.0])]
    assert next(name for name, (style, _) in drawn.items() if style == "points").endswith(", confirming")
    # Where nothing was confirmed there is no bar to draw.
    nothing = look(searched(tmp_path, "b", confirmed=False))
    assert "headroom-speeds" not in [one.key for one in nothing.figures]


def test_a_speed_that_was_not_confirmed_is_no_second_border(tmp_path: Path) -> None:
    path = searched(tmp_path, "a")
    history = read_history(path)
    assert history is not None
    assert look(path).notes == []
    failed = {**history["history"][2], "value": 2.5, "passes": False}
    held = {**history["history"][0], "value": 2.5}
    write_json(path / HISTORY_NAME, {**history, "history": [held, failed, *history["history"]]})
    (note,) = look(path).notes
    assert "2.5x held in its trial and not in the run that was to confirm it" in note


def test_a_confirming_run_that_repeats_its_trial_is_called_so(tmp_path: Path) -> None:
    (note,) = look(searched(tmp_path, "a", confirming_repeats=True)).notes
    assert "the confirming run is its trial again, and confirms nothing" in note


def test_a_trial_of_no_search_says_so(tmp_path: Path) -> None:
    findings = look(trial(tmp_path / "a.rec", TIMES, 500.0, "p99<1ms"))
    assert not findings.figures
    assert findings.notes
