"""Escaping, packing, units and words: the parts that every page is made of."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from testdrive.report import html, palette, units, words
from testdrive.report.pack import pack
from testdrive.report.page import frame
from testdrive.report.subject import names

HOSTILE = "<script>alert(1)</script>\"'&$x^2$"


def unpack(text: str) -> dict:
    """Read a packed document as the page's script does."""
    raw = gzip.decompress(base64.b64decode(text))
    (length,) = struct.unpack("<I", raw[:4])
    base = 4 + length
    assert base % 4 == 0

    def restore(value):
        if isinstance(value, list):
            return [restore(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "array" not in value:
            return {key: restore(item) for key, item in value.items()}
        start, count, kind, shape = value["array"]
        dtype = np.dtype({"u1": "u1", "u2": "<u2", "u4": "<u4", "f4": "<f4"}[kind])
        return np.frombuffer(raw, dtype, count, base + start).reshape(shape)

    return restore(json.loads(raw[4:base]))


def test_text_is_escaped_in_elements_and_attributes_and_markup_is_not_escaped_twice():
    made = html.tag("p", HOSTILE, html.tag("b", "a < b"), title=HOSTILE)
    assert "<script>" not in made
    assert made.count("&lt;script&gt;") == 2
    assert "<b>a &lt; b</b>" in made
    assert '"&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;$x^2$"' in made


def test_tables_escape_their_cells_and_caption():
    made = html.table([HOSTILE], [[HOSTILE, HOSTILE]], caption=HOSTILE)
    assert "<script>" not in made


def test_a_page_lists_its_sections_in_their_order_and_nothing_else():
    parts = [
        html.section("table", "Drives side by side", link="Table"),
        html.tag("p", html.section("inner", "Within another part")),
        None,
        html.section("power", "Power <W>", "by a meter"),
    ]
    made = frame("t", html.escape("l"), *parts)
    nav = made.partition("</nav>")[0].partition("<nav")[2]
    assert nav.endswith('<a href="#table">Table</a><a href="#power">Power &lt;W&gt;</a>')
    assert nav.count("<a") == 2
    assert made.index('<section id="table">') < made.index('<section id="power">')


def test_attributes_can_be_left_out_or_bare():
    assert html.tag("input", checked=True, disabled=False, name=None) == "<input checked>"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array([0, 70_000, 2**32 - 1]),
        np.array([300]),
        np.array([1.5, np.nan, 2.0]),
        np.zeros((0,), np.int64),
    ],
)
def test_packed_arrays_come_back_as_they_were(array):
    found = unpack(pack({"a": {"b": array}, "odd": "é"}))
    assert found["odd"] == "é"
    np.testing.assert_array_equal(found["a"]["b"], array.astype(found["a"]["b"].dtype))
    assert found["a"]["b"].shape == array.shape


def test_packing_is_compact_and_exact_for_a_whole_raster():
    raster = np.random.default_rng(1).poisson(0.1, (200, 600))
    text = pack({"raster": raster})
    assert np.array_equal(unpack(text)["raster"], raster)
    assert len(text) < 60_000


def test_packed_text_cannot_end_a_script_element():
    assert "<" not in pack({"name": "</script><script>alert(1)</script>"})


def test_infinite_numbers_become_null_outside_of_arrays():
    assert unpack(pack({"a": float("nan"), "b": [float("inf"), 1.0]})) == {"a": None, "b": [None, 1.0]}


@pytest.mark.parametrize(
    ("value_ns", "said"),
    [
        (None, units.ABSENT),
        (0, "0 ns"),
        (999, "999 ns"),
        (999.7, "1.00 µs"),
        (5_000, "5.00 µs"),
        (999_700, "1.00 ms"),
        (123_456_789, "123 ms"),
        (15_100_000_000, "15.1 s"),
        (1_234_000_000_000, "1,234 s"),
    ],
)
def test_times_are_scaled_to_three_digits(value_ns, said):
    assert units.time(value_ns) == said


def test_sizes_are_binary_and_capacities_decimal():
    assert units.size(4096) == "4.00 KiB"
    assert units.size(12) == "12 B"
    assert units.capacity(960_197_124_096) == "960 GB"
    assert units.rate(2.5e9) == "2.50 GB/s"
    assert units.percent(0.12345) == "12.3 %"


def test_recordings_of_the_same_name_keep_apart_by_their_directories(tmp_path: Path):
    assert names([tmp_path / "a.rec", tmp_path / "b.rec"]) == ["a", "b"]
    assert names([tmp_path / "x" / "a.rec", tmp_path / "y" / "a.rec"]) == ["x/a", "y/a"]
    assert names([tmp_path / "a.rec", tmp_path / "a.rec"]) == ["a #1", "a #2"]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_no_two_of_the_first_twelve_drives_share_colour_and_dash():
    inks = [palette.drive(index) for index in range(12)]
    assert len({(ink.light, ink.dash) for ink in inks}) == 12
    assert len({(ink.dark, ink.dash) for ink in inks}) == 12


def test_reads_and_writes_differ_in_lightness_and_all_inks_stand_out_from_the_page():
    for page, key in (("#ffffff", "light"), ("#14171b", "dark")):
        for ink in palette.OPCODES.values():
            bright, dim = sorted([luminance(getattr(ink, key)), luminance(page)], reverse=True)
            assert (bright + 0.05) / (dim + 0.05) > 2, (ink, key)
    reads, writes = palette.OPCODES["read"].light, palette.OPCODES["write"].light
    assert (luminance(writes) + 0.05) / (luminance(reads) + 0.05) > 1.5


def test_words_for_lists_and_codes():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.code("no_burst") == "no burst"
    assert words.code("something_new") == "something new"
    assert words.plural(1, "drive") == "1 drive"


def test_a_part_of_a_workload_is_told_from_all_of_it():
    second = 1_000_000_000
    whole = {"from_ns": 0, "to_ns": 90 * second, "duration_ns": 200 * second, "only": [], "without": []}
    assert words.part(whole, 90 * second) == ""
    assert words.part({}, 90 * second) == ""
    assert words.part({"from_ns": second, "to_ns": 10 * second}, 90 * second) == "from 1.00 s, up to 10.0 s"
    counterfactual = {"to_ns": None, "duration_ns": 30 * second, "without": ["trim", "write_zeroes"]}
    assert words.part(counterfactual, 90 * second) == "for 30.0 s, without trim and write zeroes"
