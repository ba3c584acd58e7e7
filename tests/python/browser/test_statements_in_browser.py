"""Statement pages in a real browser: every plot drawn, zoomed into, clicked, and never a request or an
error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "statement"))

import recordings
from waiting import until

from testdrive.statement import write_statement

DRAWN = """element => ({
    kind: element.dataset.plot,
    titles: Object.entries(element.layout)
        .filter(([key]) => /^[xy]axis\\d*$/.test(key)).map(([, axis]) => axis.title.text),
    marks: element.querySelectorAll(
        '.heatmaplayer image, .scatterlayer .js-line, .scatterlayer .js-fill, .bars .point').length,
    x: element.layout.xaxis.range, y: element.layout.yaxis.range,
    width: element.getBoundingClientRect().width,
})"""
SUM = """element => element.data.filter(trace => trace.type === 'heatmap' && trace.name === 'writes')
    .reduce((sum, trace) => sum + trace.customdata.flat().reduce((part, count) => part + count, 0), 0)"""
CELL = "() => document.querySelector('.cell-size').textContent"


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("statements")
    mixed = recordings.write_mixed(directory / "mixed.rec")
    reads = recordings.KINDS["only reads"](directory / "reads.rec")
    return {"one": write_statement([mixed]), "two": write_statement([mixed, reads], directory / "two")}


@pytest.fixture(scope="module")
def one(pages, open_page):
    with open_page(pages["one"]) as page:
        yield page


def drawn(page) -> list[dict]:
    return [element.evaluate(DRAWN) for element in page.query_selector_all(".plot")]


def check_plots(page) -> list[dict]:
    plots = drawn(page)
    for plot in plots:
        assert plot["titles"], plot
        assert all(plot["titles"]), plot
        assert plot["marks"] >= 1, plot
    assert page.query_selector("#status") is None
    return plots


def test_every_figure_is_drawn_with_titles_on_all_axes(one):
    assert sorted(plot["kind"] for plot in check_plots(one)) == sorted(recordings.PLOTS)


def test_two_recordings_have_every_figure_on_the_same_scales(pages, open_page):
    with open_page(pages["two"]) as page:
        plots = check_plots(page)
        for kind in ("rates", "mix", "places", "growth", "statement-latency"):
            first, second = (plot for plot in plots if plot["kind"] == kind)
            assert first["x"] == second["x"], kind
            assert first["y"] == second["y"], kind
        legends = [element.text_content() for element in page.query_selector_all(".legendtext")]
        assert "reads, A" in legends
        assert "reads, B" in legends


def zoom(page, ranges: dict[str, float]) -> None:
    page.evaluate("ranges => { Plotly.relayout(document.querySelector('.plot.places'), ranges); }", ranges)


def test_a_zoom_into_places_draws_finer_cells_and_a_double_click_all_of_it_again(pages, open_page):
    with open_page(pages["one"]) as page:
        columns = recordings.mixed()
        plot = page.query_selector(".plot.places")
        writes = int((columns["opcode"] == 1).sum())
        # A write over the border of two cells is in both.
        whole, all_of_it, coarse = plot.evaluate(DRAWN), plot.evaluate(SUM), page.evaluate(CELL)
        assert writes <= all_of_it <= 1.02 * writes
        zoom(page, {"xaxis.range[0]": 30, "xaxis.range[1]": 32})
        until(page, "before => document.querySelector('.cell-size').textContent !== before", coarse)
        inside = (columns["intended_ns"] >= 30e9) & (columns["intended_ns"] < 32e9) & (columns["opcode"] == 1)
        found = plot.evaluate(SUM)
        # Cells at both edges reach a little beyond what is in sight.
        assert inside.sum() <= found <= inside.sum() + 4
        finer = plot.evaluate("element => element.data[0].x[1] - element.data[0].x[0]")
        assert finer < 2 / 200
        # Another plot with the same axis of time went along.
        assert page.evaluate("() => document.querySelector('.plot.rates').layout.xaxis.range") == [30, 32]
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        until(page, "before => document.querySelector('.cell-size').textContent === before", coarse)
        assert plot.evaluate(SUM) == all_of_it
        assert plot.evaluate(DRAWN)["x"] == whole["x"]


def test_a_zoom_on_another_plot_is_made_on_places_too(pages, open_page):
    with open_page(pages["one"]) as page:
        before = page.evaluate(CELL)
        page.evaluate(
            "() => { Plotly.relayout(document.querySelector('.plot.rates'),"
            " { 'xaxis.range[0]': 50, 'xaxis.range[1]': 52 }); }"
        )
        until(page, "before => document.querySelector('.cell-size').textContent !== before", before)
        until(page, "() => document.querySelector('.plot.mix').layout.xaxis.range[0] === 50")


def test_choices_redraw_their_figures(one):
    page = one
    page.check("fieldset[data-choice=places] input[value=trims]")
    until(
        page,
        "() => document.querySelector('.plot.places').data.filter(t => t.type === 'heatmap').length === 1",
    )
    page.check("fieldset[data-choice=places] input[value=all]")
    page.check("fieldset[data-choice=sizes] input[value='share of bytes']")
    until(page, "() => document.querySelector('[data-plot=sizes]').layout.yaxis.title.text.includes('bytes')")
    page.check("fieldset[data-choice=arrivals] input[value=nines]")
    until(page, "() => document.querySelector('[data-plot=arrivals]').layout.yaxis.range[1] < 20")
    page.check("fieldset[data-choice=density] input[value=trims]")
    until(page, "() => document.querySelector('.plot.statement-latency').data.length === 1")
    page.check("fieldset[data-choice=opcodeaxis] input[value='0 to 100 %']")
    until(page, "() => document.querySelector('[data-plot=opcode-latency]').layout.yaxis.range[1] === 101")
    assert not page.faults, page.faults


def test_rates_in_the_page_are_those_of_the_recording(one):
    traces = one.evaluate(
        """() => document.querySelector('.plot.rates').data.filter(trace => trace.stackgroup === 'ios')
        .map(trace => [trace.name, trace.y.slice(0, -1).reduce((sum, value) => sum + value, 0)])"""
    )
    columns = recordings.mixed()
    # Windows of 200 ms; the last one was cut short, so that its rate is over less.
    for name, total in traces:
        code = ["reads", "writes", "trims", "flushes"].index(name)
        assert total * 0.2 == pytest.approx((columns["opcode"] == code).sum(), rel=0.01)


@pytest.mark.parametrize(("name", "width"), [("one", 400), ("two", 400), ("one", 800)])
def test_nothing_is_wider_than_a_narrow_screen(pages, open_page, name, width):
    with open_page(pages[name], width=width) as page:
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert all(plot["width"] <= width for plot in drawn(page))


def test_printing_draws_light_plots_within_the_sheet(pages, open_page):
    with open_page(pages["two"], scheme="dark") as page:
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("() => document.querySelector('.plot').layout.font.color") == "#000000"
        widths = page.evaluate("() => [...document.querySelectorAll('.plot')].map(plot => plot.layout.width)")
        assert max(widths) <= 700
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert len(page.pdf()) > 50_000


@pytest.mark.parametrize(
    "kind",
    [kind for kind in recordings.KINDS if kind not in ("mixed", "lost events", "only reads")],
)
def test_pages_of_every_kind_of_recording_do_no_wrong(kind, tmp_path, open_page):
    with open_page(write_statement([recordings.KINDS[kind](tmp_path / "a.rec")])) as page:
        for plot in drawn(page):
            assert all(plot["titles"]), plot


def test_a_hostile_name_stays_text_in_plots_too(tmp_path, open_page):
    name = "<a href='https:example.org'>x<b>"
    paths = [recordings.write_mixed(tmp_path / f"{number}{name}.rec") for number in range(2)]
    with open_page(write_statement(paths, tmp_path / "out")) as page:
        assert page.query_selector(".plot a[href^='https']") is None
        legends = [element.text_content() for element in page.query_selector_all(".legendtext")]
        assert f"B: 1{name}" in legends
