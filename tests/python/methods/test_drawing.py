"""Figures with a second vertical axis, as the page's script and as the PNG writer read them."""

from __future__ import annotations

import numpy as np
import pytest

from testdrive.methods.drawing import Axis, Figure, Series, Side
from testdrive.methods.images import draw
from testdrive.methods.scales import headroom
from testdrive.report import palette

RATE, TIME = palette.drive(0), palette.drive(1)
X = np.array([1.0, 2.0])


def series(name: str, side: Side = "left", panel: int = 0) -> Series:
    """Two points of a quantity at one side."""
    ink, y = (RATE, [10.0, 5.0]) if side == "left" else (TIME, [1e-3, 1e-2])
    return Series(name, ink, X, np.array(y), "points", panel, side)


def two_axes() -> Figure:
    """Two panels, each with IOPS at the left and latency at the right."""
    return Figure(
        "both",
        "Both <at> once",
        "A caption.",
        Axis("time (s)"),
        (Axis("IOPS", low=0.0, high=12.0, si_unit="IOPS", ink=RATE),) * 2,
        [series("IOPS"), series("latency", "right"), series("IOPS", panel=1)],
        right=(Axis("latency (log)", "log", low=1e-4, high=1e-1, si_unit="s", ink=TIME),) * 2,
        headings=("one", "other"),
    )


def test_the_page_gets_the_right_axes_and_which_series_are_theirs() -> None:
    payload = two_axes().payload()
    assert [axis["title"] for axis in payload["right"]] == ["latency (log)"] * 2
    assert payload["right"][0]["ink"] == TIME.payload()
    assert [one["side"] for one in payload["series"]] == ["left", "right", "left"]
    assert payload["headings"] == ["one", "other"]


def test_an_image_has_both_axes_in_the_colours_of_their_series() -> None:
    canvas = draw(two_axes())
    first, second, first_right, _ = canvas.axes
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("one", "other")
    assert first.yaxis.label.get_color() == RATE.light
    assert first_right.yaxis.label.get_color() == TIME.light
    assert (first.get_ylim(), first_right.get_ylim()) == ((0.0, 12.0), (1e-4, 1e-1))
    assert (first.get_yscale(), first_right.get_yscale()) == ("linear", "log")
    np.testing.assert_array_equal(first_right.lines[0].get_ydata(), [1e-3, 1e-2])
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["IOPS", "latency"]


def test_a_rule_has_no_markers() -> None:
    rule = Series("bound", palette.ORIGINAL, X, X, "rule")
    line = Series("line", palette.ORIGINAL, X, X, "line")
    canvas = draw(Figure("k", "t", "c", Axis("x"), (Axis("y"),), [rule, line]))
    assert [str(drawn.get_marker()) for drawn in canvas.axes[0].lines] == ["None", "o"]


def test_a_figure_has_a_right_axis_for_each_panel_or_none() -> None:
    axis = Axis("y")
    with pytest.raises(AssertionError, match="one for each panel"):
        Figure("k", "t", "c", Axis("x"), (axis, axis), right=(axis,))
    with pytest.raises(AssertionError, match="no right axis"):
        Figure("k", "t", "c", Axis("x"), (axis,), [series("latency", "right")])


def test_headroom_leaves_a_twentieth_above() -> None:
    assert (headroom(100.0), headroom(0.0)) == (105.0, 1.0)
