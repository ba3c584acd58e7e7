"""Groups of phases in rounds, by known answers: window, fit, bounds, and the values of tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import SECOND_NS, open_recording, phase

from testdrive.manifest import LeftOut, PlanRun
from testdrive.methods import pts_iops, pts_latency
from testdrive.methods.matrix import cells_of, mix_name
from testdrive.methods.rounds import (
    cell_of,
    convergence,
    group_of,
    notes_of,
    steadiness_rows,
)
from testdrive.methods.runs import Run
from testdrive.report.subject import subject

WRITES, MIXED = "reads-0.0-block-4096", "reads-0.65-block-65536"
NAMES = {(WRITES, "iops"): "4 KiB, writes", (MIXED, "throughput"): "64 KiB, 65/35"}
#: I/Os of each round, in phases of two seconds: of the writes, and of the mix.
IOS = ([400, 300, 190, 206, 196, 192, 216], [20, 20, 20, 22, 24, 26, 28])
#: Of the writes, each I/O's latency in a round; one of them takes a millisecond longer.
LATENCY_NS = [10_000, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]
#: (95, 103, 98, 96, 108) a second: mean 100, slope 1.9, by the textbook's sums.
FIT = {"mean": 100.0, "min": 95.0, "max": 108.0, "slope_per_round": 1.9, "intercept": 96.2}


def made(folder: Path, rounds: int = 7, *, cut: bool = False) -> Run:
    """A run of so many rounds of two phases; ``cut`` ends it within the round that follows."""
    phases: list[dict[str, Any]] = []
    columns: dict[str, list[np.ndarray]] = {
        key: [] for key in ("submit_ns", "latency_ns", "length_bytes", "opcode", "phase")
    }
    for at in range(rounds + cut):
        for member, (name, size, share) in enumerate(((WRITES, 4096, 0.0), (MIXED, 65536, 0.65))):
            if at == rounds and member == 1:
                continue
            index = len(phases)
            start_ns = index * 2 * SECOND_NS
            settings = {"rounds": "matrix", "round": at, "read_share": share, "block_bytes": size}
            accounting = {"rounds": found(at + 1)} if member == 1 else {}
            phases.append(
                {
                    **phase(
                        index,
                        kind="synthetic",
                        start_ns=start_ns,
                        end_ns=start_ns + 2 * SECOND_NS,
                        settings=settings,
                        accounting=accounting,
                    ),
                    "name": name,
                }
            )
            count = IOS[member][at % 7]
            latency = np.full(count, LATENCY_NS[at % 7])
            latency[0] += 1_000_000
            columns["submit_ns"].append(start_ns + np.arange(count) * (2 * SECOND_NS // count))
            columns["latency_ns"].append(latency)
            columns["length_bytes"].append(np.full(count, size))
            columns["opcode"].append(np.full(count, 1))
            columns["phase"].append(np.full(count, index))
    joined = {key: np.concatenate(parts) for key, parts in columns.items()}
    opened = open_recording(folder / "a.rec", joined, kind="run", phases=phases)
    return Run(subject("a", "drive", 0, opened, {}))


def found(done: int) -> dict[str, Any]:
    """What the engine would keep after so many rounds."""
    whole = done >= 5
    return {
        "name": "matrix",
        "achieved": False,
        "done": done,
        "rounds_max": 25,
        "window": 5,
        "range_share": 0.2,
        "slope_share": 0.1,
        "window_first_round": max(done - 5, 0),
        "window_start_ns": max(done - 5, 0) * 4 * SECOND_NS,
        "tracked": [
            {
                "phase": WRITES,
                "measure": "iops",
                "achieved": whole,
                "values": [ios / 2 for ios in IOS[0][:done]],
                "fit": {**FIT, "range_share": 0.13, "slope_share": 0.076} if whole else None,
            },
            {
                "phase": MIXED,
                "measure": "throughput",
                "achieved": False,
                "values": [ios / 2 * 65536 for ios in IOS[1][:done]],
                "fit": None,
            },
        ],
    }


def test_the_window_is_the_last_rounds_that_were_judged(tmp_path: Path) -> None:
    run = made(tmp_path, cut=True)
    group = group_of(run, "matrix")
    assert group is not None
    assert (group.done, group.window_first, group.whole, group.achieved) == (7, 2, True, False)
    # The round that was cut off is none of them.
    assert [one.index for one in group.window(WRITES)] == [4, 6, 8, 10, 12]
    assert [len(phases) for phases in group.phases.values()] == [7, 7]
    assert group_of(run, "other") is None


def test_a_cell_is_the_mean_of_the_rounds_and_the_longest_of_all(tmp_path: Path) -> None:
    run = made(tmp_path)
    group = group_of(run, "matrix")
    assert group is not None
    cells = cells_of(run, group)
    assert set(cells) == {(0.0, 4096), (0.65, 65536)}
    writes = cells[0.0, 4096]
    assert writes.rounds == 5
    assert writes.iops == pytest.approx(100.0)
    assert writes.bytes_per_s == pytest.approx(100.0 * 4096)
    means = [latency + 1e6 / ios for latency, ios in zip(LATENCY_NS[2:], IOS[0][2:], strict=True)]
    assert writes.mean_ns == pytest.approx(sum(means) / 5)
    assert writes.max_ns == 1_060_000
    assert cells[0.65, 65536].iops == pytest.approx(12.0)


def test_no_rounds_and_no_ios_have_no_values(tmp_path: Path) -> None:
    run = made(tmp_path)
    nothing = cell_of(run, [])
    assert nothing.rounds == 0
    assert all(math.isnan(value) for value in (nothing.iops, nothing.mean_ns, nothing.max_ns))
    empty = run.phases[0].model_copy(update={"index": 99})
    cell = cell_of(run, [empty])
    assert (cell.rounds, cell.iops) == (1, 0.0)
    assert math.isnan(cell.mean_ns)


def test_the_convergence_has_every_round_the_best_line_and_the_bounds(tmp_path: Path) -> None:
    run = made(tmp_path)
    group = group_of(run, "matrix")
    assert group is not None
    figure = convergence("key", "title", [(run, group)], NAMES)
    assert figure.headings == ("4 KiB, writes", "64 KiB, 65/35")
    assert [axis.title for axis in figure.y] == ["IOPS", "MB/s"]
    assert (figure.x.low, figure.x.high) == (0.5, 7.5)
    values, best, low, high = (series for series in figure.series if series.panel == 0)
    np.testing.assert_allclose(values.x, np.arange(1, 8))
    np.testing.assert_allclose(values.y, np.array(IOS[0]) / 2)
    # The window's first round is the third: there the line has its intercept, four rounds on 4 slopes more.
    assert (best.x[0], best.x[-1]) == (3.0, 7.0)
    assert (best.y[0], best.y[-1]) == (pytest.approx(96.2), pytest.approx(96.2 + 4 * 1.9))
    assert set(np.round(low.y, 9)) == {90.0}
    assert set(np.round(high.y, 9)) == {110.0}
    (mixed,) = (series for series in figure.series if series.panel == 1)
    np.testing.assert_allclose(mixed.y, np.array(IOS[1]) / 2 * 65536 / 1e6)
    assert {axis.low for axis in figure.y} == {0.0}
    assert figure.y[0].high == 200.0


def test_the_table_says_what_was_judged_beside_its_bounds(tmp_path: Path) -> None:
    run = made(tmp_path)
    group = group_of(run, "matrix")
    assert group is not None
    table = steadiness_rows([(run, group)], NAMES)
    assert table.rows == [
        [
            "a, 4 KiB, writes",
            "reached",
            "7 of at most 25",
            "3 to 7",
            "100 IOPS",
            "+7.6 % (10 %)",
            "13.0 % (20 %)",
        ],
        ["a, 64 KiB, 65/35", "not reached", "7 of at most 25", *["no whole window"] * 4],
    ]


def test_the_notes_say_what_a_reader_must_know(tmp_path: Path) -> None:
    run = made(tmp_path)
    group = group_of(run, "matrix")
    (note,) = notes_of(run, group, "")
    assert note.startswith("a did not reach a steady state in 7 rounds")
    (note,) = notes_of(run, None, " of 1 MiB")
    assert note == "a ended before the first round of 1 MiB was over."
    short = made(tmp_path / "short", 3, cut=True)
    (note,) = notes_of(short, group_of(short, "matrix"), "")
    assert note == "a ended after 3 rounds, fewer than a window has."


def test_the_matrices_show_what_there_is_and_say_what_was_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path)
    monkeypatch.setattr(pts_iops, "GROUP", "matrix")
    findings = pts_iops.look([run])
    matrix = findings.tables[1]
    assert matrix.head == ["block size", "100/0", "95/5", "65/35", "50/50", "35/65", "5/95", "0/100"]
    assert matrix.rows == [
        ["4 KiB", *["not reached"] * 6, "100"],
        ["64 KiB", "not reached", "not reached", "12.0", *["not reached"] * 4],
    ]
    curves = next(figure for figure in findings.figures if figure.key == "pts-iops-matrix")
    # Four doublings from 4 KiB to 64 KiB, of which only the ends have names.
    assert curves.x.labels == ("4 KiB", "", "", "", "64 KiB")
    drawn = {series.name: series.y for series in curves.series}
    np.testing.assert_allclose(drawn["0/100 reads/writes"], [100.0, math.nan])
    assert curves.headings == ("a",)
    assert [figure.key for figure in findings.figures] == ["pts-iops-rounds", "pts-iops-matrix"]

    monkeypatch.setattr(pts_latency, "GROUP", "matrix")
    rows = pts_latency.look([run]).tables[0].rows
    assert rows[2] == ["a, 4 KiB, 0/100", "45.0 µs", "1.06 ms", "100"]
    assert rows[0] == ["a, 4 KiB, 100/0", *["not reached"] * 3]


def test_what_a_drive_does_not_support_is_said_and_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path)
    reason = "not supported: 512 B on 4,096 B blocks"
    left_out = [
        LeftOut(
            name=f"reads-{share}-block-512", reason=reason, settings={"read_share": share, "block_bytes": 512}
        )
        for share in pts_iops.MIXES
    ]
    run.recording.manifest.plan = PlanRun(name="pts-iops", left_out=left_out)
    monkeypatch.setattr(pts_iops, "GROUP", "matrix")
    findings = pts_iops.look([run])
    assert findings.tables[1].rows[0] == ["512 B", *["not supported"] * 7]
    assert findings.notes[-1] == f"a was not measured with 512 B: {reason}."
    curves = next(figure for figure in findings.figures if figure.key == "pts-iops-matrix")
    assert curves.x.labels[0] == "512 B"
    assert all(np.isnan(series.y[0]) for series in curves.series)


def test_a_run_without_a_round_has_a_note_and_no_figures(tmp_path: Path) -> None:
    run = made(tmp_path)
    for method in (pts_iops, pts_latency):
        findings = method.look([run])
        assert (findings.figures, findings.tables) == ([], [])
        assert findings.notes == ["a ended before the first round was over."]


def test_mixes_are_named_by_reads_and_writes() -> None:
    assert [mix_name(share) for share in (1.0, 0.95, 0.65, 0.05, 0.0)] == [
        "100/0",
        "95/5",
        "65/35",
        "5/95",
        "0/100",
    ]
