"""The percentiles plan on modelled drives: its phases, known answers of its curves, its table from rows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support import run_testdrive

from testdrive.methods.drawing import Axis, Figure, Findings, Series, nines
from testdrive.methods.images import draw
from testdrive.methods.latency_curves import BINS_PER_DECADE, cumulated, spectrum
from testdrive.methods.method import all_methods
from testdrive.methods.runs import Run
from testdrive.metrics.scans import Distribution
from testdrive.plans import bind, load
from testdrive.recording import Arrays, Recording
from testdrive.report.palette import Ink
from testdrive.report.subject import subject

DEPTHS = [1, 2, 4, 8, 16, 32]
KINDS = ["spectrum", "ios", "time", "time-nines"]
SHORT = ["--set", "for=1s", "--set", "round=200ms"]
#: Of QLC: room is made for its writes in view of the host, some milliseconds at a time.
SHELVED = "sim:consumer-qlc?capacity=1GiB"
LEVEL = "sim:sata?capacity=1GiB&superblocks=500"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two modelled drives under the plan for a second each time, with histograms."""
    folder = tmp_path_factory.mktemp("percentiles") / "runs"
    drives = ["--drive", SHELVED, "--drive", LEVEL]
    chosen = [*drives, *SHORT, "--set", "span=256MiB", "--no-compare"]
    done = run_testdrive("run", "percentiles", *chosen, "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def with_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on the first drive, with every row: a model does the same again."""
    path = tmp_path_factory.mktemp("percentiles") / "rows.rec"
    chosen = ["--drive", SHELVED, *SHORT, "--set", "span=256MiB", "--keep", "rows"]
    done = run_testdrive("run", "percentiles", *chosen, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def looked_at(*paths: Path) -> Findings:
    """What the method makes of these recordings."""
    opened = [Recording.open(path) for path in paths]
    try:
        found = [Run(subject(f"d{at}", "drive", at, one, {})) for at, one in enumerate(opened)]
        return all_methods()["distribution"].look(found)
    finally:
        for one in opened:
            one.close()


def rows_of(path: Path, name: str) -> Arrays:
    """The rows of a phase."""
    with Recording.open(path) as opened:
        (phase,) = [phase for phase in opened.manifest.phases if phase.name == name]
        rows = opened.all_rows()
        found = opened.execute(rows.filter(rows.phase == phase.index))
        assert phase.end_ns is not None
        return {**found, "phase_ns": np.array([phase.start_ns, phase.end_ns])}


def figure(findings: Findings, key: str) -> Figure:
    """The figure of this key."""
    (found,) = [one for one in findings.figures if one.key == f"distribution-{key}"]
    return found


def known() -> Distribution:
    """A million I/Os of 5 us and one of a second, the example that defines both weightings."""
    value, count = np.array([5_000, 1_000_000_000]), np.array([1_000_000, 1])
    return Distribution(value, count, value * count)


def test_both_weightings_of_the_known_example() -> None:
    value, by_ios = cumulated(known(), weighted=False)
    assert value.tolist() == [5_000.0, 1e9]
    assert by_ios == pytest.approx([100 * 1_000_000 / 1_000_001, 100.0], rel=1e-12)
    _, by_time = cumulated(known(), weighted=True)
    assert by_time == pytest.approx([100 * 5 / 6, 100.0], rel=1e-12)


def test_latencies_close_to_each_other_are_one_point_which_is_exact() -> None:
    value = np.array([10_000, 10_001, 10_002, 20_000])
    value_ns, percent = cumulated(Distribution(value, np.array([1, 1, 1, 1]), value), weighted=False)
    assert value_ns.tolist() == [10_002.0, 20_000.0]
    assert percent.tolist() == [75.0, 100.0]


def test_the_spectrum_counts_each_io_once_in_the_bin_of_its_latency() -> None:
    edges, counts = spectrum(known())
    assert counts.sum() == 1_000_001
    held = np.flatnonzero(counts)
    assert counts[held].tolist() == [1_000_000, 1]
    for bin_, latency_ns in zip(held, (5_000, 1_000_000_000), strict=True):
        assert edges[bin_] <= latency_ns * (1 + 1e-12)
        assert latency_ns < edges[bin_ + 1]
    assert edges[1] / edges[0] == pytest.approx(10 ** (1 / BINS_PER_DECADE))
    assert len(edges) == len(counts)


def test_nines_are_evenly_spaced_and_the_whole_is_at_infinity() -> None:
    assert nines(np.array([0.0, 90.0, 99.0, 99.9, 99.9999])) == pytest.approx([0, 1, 2, 3, 6])
    assert math.isinf(nines(100.0))
    axis = Axis("share (%)", "nines", 0.0, 99.995)
    assert [text for _, text in axis.ticks] == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert axis.payload()["high"] == pytest.approx(-math.log10(5e-5))


def test_page_and_image_draw_an_axis_of_nines_at_the_same_places() -> None:
    series = Series("d", Ink("#000000", "#ffffff"), np.array([1.0, 2.0, 3.0]), np.array([90.0, 99.0, 100.0]))
    drawn = Figure("k", "t", "c", Axis("x"), (Axis("share (%)", "nines", 0.0, 99.9),), [series])
    (payload,) = drawn.payload()["series"]
    assert payload["y"] == pytest.approx([1.0, 2.0])
    (panel,) = draw(drawn).axes
    assert panel.lines[0].get_ydata() == pytest.approx([1.0, 2.0])
    assert panel.get_ylim() == pytest.approx((0.0, 3.0))
    assert [text.get_text() for text in panel.get_yticklabels()] == ["0 %", "90 %", "99 %", "99.9 %"]


def test_what_rests_on_too_few_ios_is_faint_on_page_and_image() -> None:
    steps = np.arange(4.0)
    series = Series("d", Ink("#000000", "#ffffff"), steps, steps, style="steps", faint_from=2)
    drawn = Figure("k", "t", "c", Axis("x"), (Axis("y"),), [series])
    assert drawn.payload()["series"][0]["faint_from"] == 2
    firm, faint = draw(drawn).axes[0].lines
    assert (firm.get_xdata().tolist(), faint.get_xdata().tolist()) == ([0, 1], [1, 2, 3])
    assert faint.get_alpha() < 1


def test_each_depth_is_steady_before_it_is_measured_and_reads_come_last() -> None:
    phases = bind(load("percentiles"), {}).phases
    writes = [name for depth in DEPTHS for name in (f"steady-depth-{depth}", f"writes-depth-{depth}")]
    reads = [f"reads-depth-{depth}" for depth in DEPTHS]
    assert [phase.name for phase in phases] == ["purge", "fill", "settle", *writes, *reads]
    for phase in phases[3:]:
        assert phase.span_bytes == 8_000_000_000
        assert phase.depth == int(phase.name.rpartition("-")[2])
        assert phase.duration_ns == (None if phase.name.startswith("steady") else 100_000_000_000)
        assert phase.read_share == (1.0 if phase.name.startswith("reads") else 0.0)
        assert phase.on_ns is None
    assert phases[1].span_bytes is None


def test_writes_and_reads_of_each_depth_have_their_four_figures_for_all_drives(runs: Path) -> None:
    findings = looked_at(runs / "consumer-qlc.rec", runs / "sata.rec")
    expected = []
    for operation in ("writes", "reads"):
        expected.append(f"distribution-{operation}")
        expected += [f"distribution-{operation}-{depth}-{kind}" for depth in DEPTHS for kind in KINDS]
    assert [one.key for one in findings.figures] == expected
    for one in findings.figures:
        assert {series.name for series in one.series} == {"d0 (modelled)", "d1 (modelled)"}
    for operation in ("writes", "reads"):
        for kind in KINDS:
            figures = [figure(findings, f"{operation}-{depth}-{kind}") for depth in DEPTHS]
            assert len({(one.x, one.y) for one in figures}) == 1, "depths have the same scales"
            opened = [one.part.open for one in figures if one.part]
            assert opened == [True, False, False, False, False, True]
            for series in (series for one in figures for series in one.series):
                assert series.x.max() <= figures[0].x.high
                assert series.y.max() <= figures[0].y[0].high


def test_the_table_and_the_curves_are_of_the_rows(with_rows: Path) -> None:
    findings = looked_at(with_rows)
    for operation, table in zip(("writes", "reads"), findings.tables, strict=True):
        assert [row[1] for row in table.rows] == [f"{depth}" for depth in DEPTHS]
        for depth, cells in zip(DEPTHS, table.rows, strict=True):
            rows = rows_of(with_rows, f"{operation}-depth-{depth}")
            latency = np.sort(rows["latency_ns"])
            row = dict(zip(table.head, cells, strict=True))
            assert row["IOPS"] == f"{len(latency):,}", "for a second"
            waiting = latency[latency > 1_000_000].sum() / latency.sum()
            assert float(row["I/O time above 1 ms"].split()[0]) == pytest.approx(
                100 * waiting, rel=0.05, abs=1e-3
            )
            assert nanoseconds(row["max"]) == pytest.approx(latency[-1], rel=0.005)
            for key, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
                exact = latency[math.ceil(round(share * len(latency), 6)) - 1]
                assert nanoseconds(row[key]) == pytest.approx(exact, rel=0.005)
            (by_ios,) = figure(findings, f"{operation}-{depth}-ios").series
            (by_time,) = figure(findings, f"{operation}-{depth}-time").series
            for x, percent in zip(by_ios.x[1:-1] * 1e9, by_ios.y[1:-1], strict=True):
                at = 100 * np.searchsorted(latency, round(x), side="right") / len(latency)
                assert percent <= at * (1 + 1e-9), (
                    "a point that was put in for the faint part lies on the rise"
                )
            for x, percent in zip(by_time.x[1:] * 1e9, by_time.y[1:], strict=True):
                held = latency[: np.searchsorted(latency, round(x), side="right")]
                assert percent == pytest.approx(100 * held.sum() / latency.sum(), rel=1e-9)


def nanoseconds(cell: str) -> float:
    """What a cell such as ``1.23 ms`` says."""
    number, unit = cell.split()
    return float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


def test_histograms_give_the_same_as_rows_to_the_width_of_a_bucket(runs: Path, with_rows: Path) -> None:
    coarse, exact = looked_at(runs / "consumer-qlc.rec"), looked_at(with_rows)
    for mine, other in zip(coarse.tables, exact.tables, strict=True):
        for cells, expected in zip(mine.rows, other.rows, strict=True):
            row, wanted = (dict(zip(mine.head, each, strict=True)) for each in (cells, expected))
            assert (row["IOPS"], row["max"]) == (wanted["IOPS"], wanted["max"])
            for key in ("p50", "p99", "p99.9"):
                # The buckets are 1/128 wide, and cells have three digits.
                assert nanoseconds(wanted[key]) * 0.994 <= nanoseconds(row[key])
                assert nanoseconds(row[key]) <= nanoseconds(wanted[key]) * (1 + 1 / 128) * 1.006
    for depth in DEPTHS:
        mine, other = (figure(each, f"writes-{depth}-time").series[0] for each in (coarse, exact))
        for x, percent in zip(mine.x[1:], mine.y[1:], strict=True):
            at = other.y[np.searchsorted(other.x, x * (1 + 1e-9), side="right") - 1]
            # A point of the histogram is exact; the rows' curve has the point before it within 1/64.
            assert percent >= at - 1e-6


def shelf(series: Series) -> tuple[float, float]:
    """The widest level stretch of an IO-weighted curve above its median: its height in percent, and by what
    factor of latency the I/Os above it are longer.

    Level is what gains less than a third of what is left to the whole.
    """
    best = (0.0, 1.0)
    for at in np.flatnonzero((series.y >= 50) & (series.y < 99.999)):
        missing = 100 - series.y[at]
        end = int(np.searchsorted(series.y, series.y[at] + missing / 3, side="right"))
        if end < len(series.x) and series.x[end] / series.x[at] > best[1]:
            best = (float(series.y[at]), float(series.x[end] / series.x[at]))
    return best


def test_the_shelf_of_ios_that_wait_for_room_is_in_the_figures(runs: Path) -> None:
    findings = looked_at(runs / "consumer-qlc.rec", runs / "sata.rec")
    for depth in (1, 2):
        shelved, level = figure(findings, f"writes-{depth}-ios").series
        height, factor = shelf(shelved)
        assert 90 < height < 99.9, "a few per cent of the writes wait"
        assert factor > 10, "and wait many times as long as the others take"
        assert shelf(level)[1] < 2, "the other drive has none"
        by_time = figure(findings, f"writes-{depth}-time").series[0]
        shelf_ends_s = shelved.x[np.searchsorted(shelved.y, height)] * factor
        below = by_time.y[np.searchsorted(by_time.x, shelf_ends_s * 0.99) - 1]
        assert below < 50, "these few are most of the time"


def test_pauses_are_not_counted_into_the_rate(tmp_path: Path) -> None:
    path = tmp_path / "paced.rec"
    paced = ["--set", "span=256MiB", "--set", "on=200ms", "--set", "off=300ms", "--keep", "rows"]
    done = run_testdrive("run", "percentiles", "--drive", LEVEL, *SHORT, *paced, "-o", path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(path, "writes-depth-1")
    at_ns = rows["submit_ns"] - rows["phase_ns"][0]
    assert ((at_ns % 500_000_000) < 200_000_000).all()
    findings = looked_at(path)
    row = dict(zip(findings.tables[0].head, findings.tables[0].rows[0], strict=True))
    assert row["IOPS"] == f"{len(at_ns) / 0.4:,.0f}"
    assert "200 ms on and 300 ms off" in findings.tables[0].title
    assert all("200 ms on" in one.full_title for one in findings.figures)


def test_runs_of_different_pace_or_reach_are_compared_with_a_note(runs: Path) -> None:
    with Recording.open(runs / "sata.rec") as whole, Recording.open(runs / "consumer-qlc.rec") as cut:
        cut.manifest.phases = cut.manifest.phases[:9]
        for phase in cut.manifest.phases[3:]:
            phase.settings = {**(phase.settings or {}), "on_ns": 1_000_000, "off_ns": 1_000_000}
        both = [Run(subject(f"d{at}", "drive", at, one, {})) for at, one in enumerate((whole, cut))]
        findings = all_methods()["distribution"].look(both)
    assert findings.notes == [
        "These runs were paced differently: their drives had different times to tidy up.",
        "d1 (modelled) has 3 of 12 depths of writes and reads.",
    ]
    assert len(figure(findings, "writes-32-ios").series) == 1
    assert " on and " not in findings.tables[0].title
    assert " on and " not in figure(findings, "writes-1-ios").full_title


@pytest.mark.slow
def test_at_full_length_each_depth_is_measured_for_a_hundred_seconds(tmp_path: Path) -> None:
    path = tmp_path / "sata.rec"
    # The shelf is one of writes, which are those of the model; it reads slowly, so that reads are fewer.
    drive = "sim:sata?capacity=16GiB&firmware_read=400us"
    done = run_testdrive("run", "percentiles", "--drive", drive, "-o", path, timeout_s=900)
    assert done.returncode == 0, done.stderr
    findings = looked_at(path)
    writes = findings.tables[0]
    assert [row[-1] for row in writes.rows] == ["after 5 rounds"] * 6
    assert findings.notes == []
    height, factor = shelf(figure(findings, "writes-4-ios").series[0])
    assert 99 < height < 99.99
    assert factor > 3
    with Recording.open(path) as opened:
        lengths = [
            phase.end_ns - phase.start_ns
            for phase in opened.manifest.phases
            if phase.name.startswith(("writes", "reads"))
        ]
    assert min(lengths) >= 100_000_000_000
