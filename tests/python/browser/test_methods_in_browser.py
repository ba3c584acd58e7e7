"""The pages of standard tests in a real browser: panels with two vertical axes, wide, narrow and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_testdrive

AXES = """element => Object.fromEntries(Object.entries(element._fullLayout)
    .filter(([key]) => /^yaxis\\d*$/.test(key))
    .map(([key, axis]) => [key, {
        side: axis.side, title: axis.title.text, over: axis.overlaying, type: axis.type,
        colour: axis.title.font.color, domain: axis.domain,
    }]))"""
TRACES = """element => element.data.map((trace) => ({
    name: trace.name, axis: trace.yaxis, colour: (trace.marker || {}).color, drawn: trace.y.length,
}))"""


@pytest.fixture(scope="module")
def page_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write saturation of two modelled drives, each part of which is forty times as slow."""
    folder = tmp_path_factory.mktemp("saturation") / "runs"
    slow = "capacity=64MiB&superblocks=100&firmware_write=500us&program=84ms&erase=400ms"
    drives = [f"sim:{name}?{slow}" for name in ("sata", "sata-compressing")]
    chosen = [part for drive in drives for part in ("--drive", drive)]
    done = run_testdrive("run", "saturation", *chosen, "--set", "for=60s", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder / "comparison" / "index.html"


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (420, "dark")])
def test_two_axes_stand_on_both_sides_of_each_panel(page_of_two, open_page, width, scheme) -> None:
    with open_page(page_of_two, width=width, scheme=scheme) as page:
        element = page.query_selector("[data-figure=saturation-time]")
        axes, traces = element.evaluate(AXES), element.evaluate(TRACES)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not page.faults, page.faults
    assert {key: (axis["side"], axis["over"]) for key, axis in axes.items()} == {
        "yaxis": ("left", False),
        "yaxis2": ("left", False),
        "yaxis3": ("right", "y"),
        "yaxis4": ("right", "y2"),
    }
    assert [axes[key]["type"] for key in ("yaxis", "yaxis3")] == ["linear", "log"]
    assert axes["yaxis3"]["domain"] == axes["yaxis"]["domain"]
    points = [trace for trace in traces if trace["name"] != "cliff"]
    assert [(trace["name"], trace["axis"]) for trace in points] == [
        ("IOPS", "y"),
        ("mean latency", "y3"),
        ("IOPS", "y2"),
        ("mean latency", "y4"),
    ]
    for trace in points:
        assert trace["drawn"] == 60
        assert trace["colour"] == axes[trace["axis"].replace("y", "yaxis")]["colour"]
