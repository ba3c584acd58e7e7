"""What the figures are drawn from, against brute force over the same rows."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from typing import Any

import builders
import numpy as np
import pytest
import recordings
from hypothesis import given, settings
from hypothesis import strategies as st

from testdrive.metrics.scans.intervals import union
from testdrive.report.pack import pack
from testdrive.statement import places as places_module
from testdrive.statement import spreads
from testdrive.statement.addresses import Addresses, Segment, addresses, stretches
from testdrive.statement.latencies import bounds_ns, latencies, shared_axis
from testdrive.statement.places import Places, places
from testdrive.statement.rates import rates
from testdrive.statement.timeline import WINDOWS_MAX, Timeline, timeline, timelines
from testdrive.statement.trims import trim_streams

SECOND_NS = 1_000_000_000
GIB = 1 << 30


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    return recordings.mixed()


@pytest.fixture(scope="module")
def scan(columns):
    return builders.scan_of(columns, absent_columns=[])


@pytest.fixture(scope="module")
def time(columns) -> Timeline:
    return timeline(int((columns["submit_ns"] + columns["latency_ns"]).max()))


@pytest.mark.parametrize("end_ns", [0, 1, 999, 10**6, 90 * 10**9, 3600 * 10**9, 7 * 86_400 * 10**9, 10**18])
def test_windows_are_few_and_hold_everything_from_an_instant_to_years(end_ns):
    found = timeline(end_ns)
    assert 1 <= found.windows <= WINDOWS_MAX
    assert found.end_ns > end_ns
    assert (found.windows - 1) * found.width_ns <= end_ns
    length, name = found.unit
    assert 0.9 <= found.end_ns / length <= 1e7, name


def test_recordings_share_an_axis_of_time_unless_one_would_be_nothing_on_it():
    day, minute = 86_400 * SECOND_NS, 60 * SECOND_NS
    assert timelines([day, day // 2]) == [timeline(day)] * 2
    assert timelines([day, minute]) == [timeline(day), timeline(minute)]


def test_the_last_window_lasts_as_long_as_it_did_unless_that_is_next_to_nothing():
    time = Timeline(100, 3)
    assert time.lengths_s(275).tolist() == [1e-7, 1e-7, 0.75e-7]
    assert time.lengths_s(210).tolist() == [1e-7, 1e-7, 1e-7]


def test_rates_are_the_arrivals_of_each_window(scan, columns, time):
    found = rates(scan, time)
    assert found is not None
    assert found.busiest_ios is None
    window = columns["intended_ns"] // time.width_ns
    for code, name in enumerate(("read", "write", "trim", "flush")):
        mine = columns["opcode"] == code
        assert found.ios[name].tolist() == np.bincount(window[mine], minlength=time.windows).tolist()
        size = np.bincount(window[mine], columns["length_bytes"][mine], time.windows)
        assert found.bytes[name].tolist() == size.tolist()
    assert (found.total("ios") * found.lengths_s).sum() == pytest.approx(len(window))


def test_the_busiest_second_of_each_window_is_the_greatest_of_its_seconds(scan, columns):
    time = Timeline(7 * SECOND_NS, 13)
    found = rates(scan, time)
    assert found is not None
    assert found.busiest_ios is not None
    first = int(columns["intended_ns"].min()) // 100_000_000 * 100_000_000
    second = (columns["intended_ns"] - first) // SECOND_NS
    counts = np.bincount(second)
    for window in range(13):
        begins = first + np.arange(len(counts)) * SECOND_NS
        inside = counts[begins // time.width_ns == window]
        assert found.busiest_ios[window] == inside.max(initial=0)


extents = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 60)), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(extents, extents)
def test_an_axis_with_gaps_holds_every_address_in_order(a, b):
    found = [union(*np.array([(low, low + length) for low, length in each], np.int64).T) for each in (a, b)]
    axis = addresses(found)
    touched = sorted({point for low, length in [*a, *b] for point in range(low, low + length)})
    positions = []
    for address in touched:
        inside = [each for each in axis.segments if each.low_bytes <= address < each.high_bytes]
        assert len(inside) == 1, address
        positions.append(inside[0].at_bytes + address - inside[0].low_bytes)
    assert positions == sorted(set(positions))
    assert positions[-1] == axis.length_bytes - 1
    assert [axis.address_at(position) for position in positions] == touched


def test_only_great_gaps_are_left_out_and_only_where_it_makes_room():
    far = addresses([(np.array([0, 170 * GIB]), np.array([2 * GIB, 171 * GIB]))])
    assert far.segments == (Segment(0, 2 * GIB, 0), Segment(170 * GIB, 171 * GIB, 2 * GIB))
    assert far.cut
    near = addresses([(np.array([0, 3 * GIB]), np.array([2 * GIB, 4 * GIB]))])
    assert near.segments == (Segment(0, 4 * GIB, 0),)
    late = addresses([(np.array([500 * GIB]), np.array([501 * GIB]))])
    assert late.segments == (Segment(500 * GIB, 501 * GIB, 0),)
    assert addresses([(np.zeros(0, np.int64), np.zeros(0, np.int64))]).length_bytes == 1


def test_stretches_cover_everything_that_is_touched(scan, columns):
    start, end = stretches(scan)
    sized = columns["length_bytes"] > 0
    offset = columns["offset_bytes"][sized]
    place = np.searchsorted(start, offset, side="right") - 1
    assert (place >= 0).all()
    assert (offset + columns["length_bytes"][sized] <= end[place]).all()


def brute_force(columns: dict[str, Any], found: Places, code: int) -> np.ndarray:
    """The I/Os that touch each cell, one by one."""
    expected = np.zeros((1 << found.row_bits, 1 << found.column_bits), np.int64)
    width_ns = found.time.high / (1 << found.column_bits)
    height = found.addresses.length_bytes / (1 << found.row_bits)
    rows = zip(
        *(columns[name] for name in ("intended_ns", "offset_bytes", "length_bytes", "opcode")), strict=True
    )
    for at_ns, offset, length, opcode in rows:
        if opcode == code and length:
            [segment] = [
                each for each in found.addresses.segments if each.low_bytes <= offset < each.high_bytes
            ]
            place = offset - segment.low_bytes + segment.at_bytes
            low, high = int(place / height), int((place + length - 1) / height)
            expected[low : high + 1, int(at_ns / width_ns)] += 1
    return expected


@pytest.mark.parametrize("cells_max", [600, 20_000])
def test_each_io_is_in_every_cell_that_it_touches(scan, columns, time, monkeypatch, cells_max):
    monkeypatch.setattr(places_module, "COLUMN_BITS", 6)
    monkeypatch.setattr(places_module, "ROW_BITS", 5)
    monkeypatch.setattr(places_module, "BITS_MAX", 8)
    found = places(scan, time, cells_max, addresses([stretches(scan)]))
    assert found is not None
    assert len(found) <= cells_max
    assert (found.column_bits == 8) == (cells_max == 20_000)
    for code in (0, 1, 2):
        whole = found.raster(code, 1 << found.column_bits, 1 << found.row_bits)
        assert whole.tolist() == brute_force(columns, found, code).tolist()


def test_a_coarser_grid_is_what_counting_on_it_gives(scan, columns, time, monkeypatch):
    monkeypatch.setattr(places_module, "BITS_MAX", 7)
    axis = addresses([stretches(scan)])
    fine = places(scan, time, 100_000, axis)
    monkeypatch.setattr(places_module, "BITS_MAX", 5)
    coarse = places(scan, time, 100_000, axis)
    assert fine is not None
    assert coarse is not None
    again = fine.coarser().coarser()
    assert (again.column_bits, again.row_bits, again.time) == (5, 5, coarse.time)
    for name, values in coarse.cells.items():
        assert again.cells[name].tolist() == values.tolist(), name
    for code in (0, 1, 2):
        assert fine.raster(code, 32, 32).tolist() == coarse.raster(code, 32, 32).tolist()


def test_many_ios_at_few_places_get_the_finest_grid_all_the_same(monkeypatch):
    n = 50_000
    monkeypatch.setattr(places_module, "COLUMN_BITS", 4)
    monkeypatch.setattr(places_module, "ROW_BITS", 4)
    columns = {"submit_ns": np.arange(n) // 50 * 1000, "offset_bytes": np.arange(n) % 4 * 4096, "opcode": 0}
    scan = builders.scan_of({**columns, "length_bytes": 4096})
    found = places(scan, timeline(1_000_000), 20_000, addresses([stretches(scan)]))
    assert found is not None
    assert found.column_bits > 8
    assert int(found.cells["ios"].sum()) == n


def test_cells_survive_the_packing_of_a_page(scan, time):
    found = places(scan, time, 5_000, addresses([stretches(scan)]))
    assert found is not None
    text = pack(found.payload())
    data = gzip.decompress(base64.b64decode(text))
    length = struct.unpack("<I", data[:4])[0]
    head, body = json.loads(data[4 : 4 + length]), data[4 + length :]
    kinds = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32}
    for code in found.opcodes:
        packed = head["opcodes"][("read", "write", "trim", "flush")[code]]
        in_column, step, more, ios = (
            np.frombuffer(body, kinds[kind], size, start).astype(np.int64)
            for start, size, kind, _ in (
                packed[name]["array"] for name in ("in_column", "step", "more", "ios")
            )
        )
        column = np.repeat(np.arange(len(in_column)), in_column)
        ends = np.cumsum(in_column)
        first = np.concatenate([np.cumsum(part) for part in np.split(step, ends[:-1])])
        mine = found.cells["code"] == code
        assert column.tolist() == found.cells["column"][mine].tolist()
        assert first.tolist() == found.cells["first"][mine].tolist()
        assert (first + more).tolist() == found.cells["last"][mine].tolist()
        assert ios.tolist() == found.cells["ios"][mine].tolist()


def test_latency_against_time_has_every_io_and_the_mean_and_maximum_of_each_window(scan, columns, time):
    bounds = bounds_ns(scan)
    assert bounds == (columns["latency_ns"].min(), columns["latency_ns"].max())
    found = latencies(scan, time, shared_axis([bounds]))
    assert found is not None
    assert sum(int(raster.sum()) for raster in found.rasters.values()) == len(columns["submit_ns"])
    both = columns["opcode"] <= 1
    window = (columns["submit_ns"] // time.width_ns)[both]
    for at in (0, 57, time.windows // 2, int(window.max())):
        values = columns["latency_ns"][both][window == at]
        if len(values):
            assert found.mean_ns[at] == pytest.approx(values.mean())
            assert found.max_ns[at] == values.max()
        else:
            assert np.isnan(found.mean_ns[at])


def test_a_curve_is_exact_at_each_of_its_points(scan, columns, time):
    found = latencies(scan, time, shared_axis([(1000, 10**9)]))
    assert found is not None
    values = np.sort(columns["latency_ns"][columns["opcode"] == 1])
    curve = found.curves["write"]
    assert curve.ios == len(values)
    assert curve.value_ns[-1] == values[-1]
    assert curve.io_share[-1] == 1
    for value, share, weighted in zip(curve.value_ns, curve.io_share, curve.time_share, strict=True):
        assert share == pytest.approx((values <= value).mean())
        assert weighted == pytest.approx(values[values <= value].sum() / values.sum())


def test_sizes_are_counted_by_their_power_of_two():
    columns = {"submit_ns": np.arange(5), "opcode": [0, 0, 1, 1, 3], "length_bytes": [1, 512, 513, 4096, 0]}
    found = spreads.sizes(builders.scan_of(columns))
    assert found is not None
    assert found.edges_bytes == [1 << bit for bit in range(13)]
    assert found.ios["read"] == [1, *[0] * 8, 1, 0, 0, 0]
    assert found.bytes["write"] == [0] * 10 + [513, 0, 4096]
    assert "flush" not in found.ios


def test_intervals_are_those_between_neighbours(scan, columns):
    found = spreads.arrivals(scan)
    assert found is not None
    gaps = np.sort(np.diff(np.sort(columns["intended_ns"])))
    assert found.curve.ios == len(gaps)
    assert found.mean_ns == pytest.approx(gaps.mean())
    for value, share in zip(found.curve.value_ns, found.curve.io_share, strict=True):
        assert share == pytest.approx((gaps <= value).mean())


def test_the_time_with_so_many_in_flight_adds_up_to_all_of_it():
    # Two at once for 10 of 40 ns, one for 20, none for 10.
    columns = {"submit_ns": [0, 5, 30], "latency_ns": [15, 15, 10], "opcode": 0}
    found = spreads.in_flight(builders.scan_of(columns))
    assert found is not None
    assert found.labels == ["0", "1", "2"]
    assert found.time_share == [0.25, 0.5, 0.25]
    many = spreads.in_flight(builders.scan_of({"submit_ns": np.zeros(7), "latency_ns": 10, "opcode": 0}))
    assert many is not None
    assert many.labels == ["0", "1", "2", "≤4", "≤8"]
    assert many.time_share == [0, 0, 0, 0, 1]


def test_hot_regions_rise_from_the_hottest_to_all(scan, columns):
    found = spreads.hot(scan)
    assert list(found) == ["reads and writes", "reads", "writes"]
    for curve in found.values():
        assert (np.diff(curve.part) > 0).all()
        assert (np.diff(curve.share) >= 0).all()
        assert (curve.part[-1], curve.share[-1]) == (1, 1)
        assert (curve.share >= curve.part - 1e-12).all()
    only = builders.scan_of({**columns, "opcode": 0}, absent_columns=[])
    assert list(spreads.hot(only)) == ["reads"]


def test_trims_are_told_by_stream_and_the_busiest_have_a_row(columns, time, monkeypatch):
    from testdrive.statement import trims

    stream = np.where(columns["opcode"] == 2, np.arange(len(columns["opcode"])) % 5, columns["stream"])
    stream = np.where((columns["opcode"] == 2) & (stream == 4), 1, stream)
    scan = builders.scan_of({**columns, "stream": stream}, absent_columns=[])
    mine = columns["opcode"] == 2
    found = trim_streams(scan, time)
    assert found is not None
    assert found.streams == ["0", "1", "2", "3"]
    for row, number in enumerate(range(4)):
        chosen = mine & (stream == number)
        window = columns["intended_ns"][chosen] // time.width_ns
        expected = np.bincount(window, columns["length_bytes"][chosen], time.windows)
        assert found.trimmed_bytes[row].tolist() == expected.tolist()
    monkeypatch.setattr(trims, "STREAMS_MAX", 1)
    few = trim_streams(scan, time)
    assert few is not None
    assert few.streams == ["1", "others"]
    assert few.trimmed_bytes.sum() == found.trimmed_bytes.sum()


def test_an_axis_of_one_segment_leaves_addresses_where_they_are():
    axis = Addresses((Segment(0, 4096, 0),))
    assert not axis.cut
    assert axis.address_at(17) == 17
