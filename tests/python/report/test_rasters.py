"""Rasters, windows and curves against brute force over the same rows."""

from __future__ import annotations

import builders
import numpy as np
import pytest

from testdrive.report.axes import Axis, latency_axis, round_down, round_up
from testdrive.report.distribution import lateness_curve, service_curve
from testdrive.report.rasters import extent, latency_rasters, offset_rasters
from testdrive.report.subject import subject
from testdrive.report.view import look
from testdrive.report.windows import P99_IOS_MIN, latency_lines, trim_lines, window_ns

IOS = 5_000
SPAN_NS = 3_000_000_000
NAMES = ("read", "write", "trim", "flush", "write_zeroes")


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    opcode = rng.choice([0, 1, 2, 3], IOS, p=[0.5, 0.3, 0.15, 0.05])
    intended = np.sort(rng.integers(0, SPAN_NS, IOS))
    return {
        "intended_ns": intended,
        "submit_ns": intended + rng.integers(0, 20_000, IOS),
        "latency_ns": np.where(rng.random(IOS) < 0.01, -1, rng.lognormal(13, 1.5, IOS).astype(np.int64)),
        "offset_bytes": rng.integers(0, 1 << 20, IOS) * 4096,
        "length_bytes": np.where(opcode == 3, 0, rng.choice([4096, 1 << 20, 1 << 28], IOS)),
        "opcode": opcode,
        "status": (rng.random(IOS) < 0.02).astype(int) * 5,
        "stream": 0,
    }


@pytest.fixture(scope="module")
def recording(columns, tmp_path_factory):
    with builders.open_recording(tmp_path_factory.mktemp("rasters") / "a.rec", columns) as opened:
        yield opened


def done(columns: dict[str, np.ndarray]) -> np.ndarray:
    return (columns["status"] == 0) & (columns["latency_ns"] >= 0)


def test_every_io_with_a_latency_is_in_exactly_one_cell_of_its_opcode(recording, columns):
    rasters = latency_rasters(recording, Axis(0, SPAN_NS, 60), latency_axis(1000, 10**9, 40))
    for code, name in enumerate(NAMES):
        expected = int((done(columns) & (columns["opcode"] == code)).sum())
        assert (int(rasters[name].sum()) if name in rasters else 0) == expected
    assert sum(int(raster.sum()) for raster in rasters.values()) == int(done(columns).sum())


def test_latency_cells_are_those_of_a_numpy_histogram(recording, columns):
    time, latency = Axis(0, SPAN_NS, 37), Axis(1000, 10**9, 53, logarithmic=True)
    chosen = done(columns) & (columns["opcode"] == 0)
    inside = np.clip(columns["latency_ns"][chosen], latency.low, latency.high)
    expected, _, _ = np.histogram2d(
        inside, np.clip(columns["submit_ns"][chosen], 0, SPAN_NS), bins=(latency.edges(), time.edges())
    )
    assert np.array_equal(latency_rasters(recording, time, latency)["read"], expected.astype(np.int64))


def test_latencies_outside_the_axis_stay_in_its_first_and_last_cell(tmp_path):
    columns = {"intended_ns": [0, 1, 2], "latency_ns": [0, 5_000, 10**12]}
    with builders.open_recording(tmp_path / "a.rec", columns) as recording:
        raster = latency_rasters(recording, Axis(0, 10, 1), Axis(1000, 10**6, 3, logarithmic=True))["read"]
    assert raster[:, 0].tolist() == [2, 0, 1]


def test_an_io_counts_in_every_row_of_addresses_that_it_touches(recording, columns):
    time, offset = Axis(0, SPAN_NS, 20), Axis(0, (1 << 32) + (1 << 28), 64)
    rasters = offset_rasters(recording, time, offset)
    cell_bytes, cell_ns = offset.high / offset.cells, time.high / time.cells
    for code, name in enumerate(NAMES[:3]):
        expected = np.zeros((offset.cells, time.cells), np.int64)
        for at in np.flatnonzero((columns["opcode"] == code) & (columns["length_bytes"] > 0)):
            start = int(columns["offset_bytes"][at])
            end = start + int(columns["length_bytes"][at]) - 1
            column = min(int(columns["submit_ns"][at] / cell_ns), time.cells - 1)
            expected[int(start / cell_bytes) : int(end / cell_bytes) + 1, column] += 1
        assert np.array_equal(rasters[name], expected)
    assert "flush" not in rasters


def test_small_ios_that_touch_one_cell_each_sum_to_their_number(tmp_path):
    columns = {"intended_ns": np.arange(1000), "offset_bytes": np.arange(1000) * 4096, "length_bytes": 4096}
    with builders.open_recording(tmp_path / "a.rec", columns) as recording:
        raster = offset_rasters(recording, Axis(0, 1000, 10), Axis(0, 1000 * 4096, 100))["read"]
    assert raster.sum() == 1000
    assert (raster.sum(axis=1) == 10).all()


def test_extent_is_of_the_rows_that_each_bound_is_about(recording, columns):
    bounds = extent(recording)
    assert bounds["submit_max_ns"] == columns["submit_ns"].max()
    assert bounds["latency_max_ns"] == columns["latency_ns"][done(columns)].max()
    placed = columns["length_bytes"] > 0
    assert bounds["end_max_bytes"] == (columns["offset_bytes"] + columns["length_bytes"])[placed].max()


def test_lines_are_mean_p99_and_maximum_of_each_window(recording, columns):
    width, windows = 100_000_000, 31
    lines = latency_lines(recording, width, windows)
    chosen = done(columns) & (columns["opcode"] <= 1)
    for at in range(windows):
        held = np.sort(columns["latency_ns"][chosen & (columns["submit_ns"] // width == at)])
        if not len(held):
            assert np.isnan(lines.mean_ns[at])
            continue
        assert lines.mean_ns[at] == pytest.approx(held.mean())
        assert lines.max_ns[at] == held[-1]
        if len(held) < P99_IOS_MIN:
            assert np.isnan(lines.p99_ns[at])
        else:
            exact = held[-(-99 * len(held) // 100) - 1]
            assert exact <= lines.p99_ns[at] <= exact * (1 + 1 / 128)
    assert np.isfinite(lines.p99_ns).any()


def test_trims_outstanding_is_the_most_at_once_in_each_window_and_carries_over(recording, columns):
    width, windows = 100_000_000, 31
    lines = trim_lines(recording, width, windows)
    assert lines is not None
    trims = columns["opcode"] == 2
    start, latency = columns["submit_ns"][trims], columns["latency_ns"][trims]
    known = latency >= 0
    for at in range(windows):
        assert lines.trimmed_bytes[at] == columns["length_bytes"][trims][start // width == at].sum()
    # Just after each start is where the number outstanding can be greatest; so is a window's beginning.
    ends = np.where(known, start + latency, np.iinfo(np.int64).max)
    for at in range(windows):
        inside = start[(start // width == at)]
        points = np.concatenate([[at * width], inside])
        most = max(int(((start <= point) & (ends > point)).sum()) for point in points)
        last = at == windows - 1
        assert lines.outstanding_max[at] == most or last


def test_a_long_trim_is_outstanding_in_windows_without_events(tmp_path):
    columns = {
        "intended_ns": [50_000_000],
        "latency_ns": [300_000_000],
        "opcode": [2],
        "length_bytes": [4096],
    }
    with builders.open_recording(tmp_path / "a.rec", columns) as recording:
        lines = trim_lines(recording, 100_000_000, 6)
    assert lines is not None
    assert lines.outstanding_max.tolist() == [1, 1, 1, 1, 0, 0]


def test_without_trims_there_are_no_trim_lines(tmp_path):
    with builders.open_recording(tmp_path / "a.rec", {"intended_ns": [1], "latency_ns": [5]}) as recording:
        assert trim_lines(recording, 100_000_000, 1) is None


def test_a_million_fast_ios_and_one_slow_one_differ_by_weighting(tmp_path):
    latency = np.full(1_000_001, 5_000)
    latency[-1] = 1_000_000_000
    columns = {"intended_ns": np.arange(1_000_001) * 6_000, "latency_ns": latency}
    with builders.open_recording(tmp_path / "a.rec", columns) as recording:
        curve = service_curve(recording)
    assert curve.value_ns.tolist() == [5_000, 1_000_000_000]
    assert curve.io_share[0] == pytest.approx(0.999999000001, abs=1e-12)
    assert curve.time_share[0] == pytest.approx(5 / 6, abs=1e-9)
    assert curve.supported_share == pytest.approx(1 - 3e-6, abs=1e-7)


def test_curve_is_exact_at_its_points(recording, columns):
    curve = service_curve(recording)
    values = columns["latency_ns"][done(columns)]
    for at in range(0, len(curve.value_ns), 17):
        below = values[values <= curve.value_ns[at]]
        assert curve.io_share[at] == pytest.approx(len(below) / len(values))
        assert curve.time_share[at] == pytest.approx(below.sum() / values.sum())
    assert (np.diff(curve.value_ns) > 0).all()
    late = lateness_curve(recording)
    assert late.ios == IOS
    assert late.value_ns[-1] == (columns["submit_ns"] - columns["intended_ns"]).max()


def test_windows_widen_only_when_there_would_be_too_many():
    assert window_ns(180e9) == 100_000_000
    assert window_ns(200e9) == 100_000_000
    assert window_ns(201e9) == 200_000_000
    assert window_ns(3600e9) == 2_000_000_000


@pytest.mark.parametrize("value", [1, 3, 10, 99, 0.02, 5e9, 1234.5])
def test_axes_end_at_round_steps_around_a_value(value):
    assert round_down(value) <= value * (1 + 1e-9)
    assert round_up(value) >= value * (1 - 1e-9)
    assert round_up(value) / round_down(value) <= 2.5 + 1e-9


def test_a_page_that_would_be_too_large_gets_coarser_rasters_that_hold_every_io(recording, columns):
    views = look([subject("a", "drive", 0, recording, {})])
    whole = len(views.packed())
    assert len(views.packed(limit_bytes=whole - 1)) < whole
    coarser = views.coarser()
    assert coarser.scales.time.cells * 2 == views.scales.time.cells
    for name, raster in views.views[0].latency.items():
        assert coarser.views[0].latency[name].sum() == raster.sum()
    assert np.array_equal(coarser.scales.time.edges(), views.scales.time.edges()[::2])
