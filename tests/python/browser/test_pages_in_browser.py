"""The pages in a real browser: every plot drawn, every control clicked, and never a request or an error."""

from __future__ import annotations

from pathlib import Path

import pytest
import scenes
from waiting import until

from testdrive.compare import write_comparison
from testdrive.report import write_report

SIZE_MAX_BYTES = 5_000_000
TRACES_DRAWN = """element => ({
    kind: element.dataset.plot,
    traces: element.data.length,
    titles: Object.entries(element.layout)
        .filter(([key]) => /^[xy]axis\\d*$/.test(key)).map(([, axis]) => axis.title.text),
    image: element.querySelectorAll('.heatmaplayer image').length,
    lines: element.querySelectorAll('.scatterlayer .js-line').length,
    range: { x: element.layout.xaxis.range, y: element.layout.yaxis.range },
    width: element.getBoundingClientRect().width,
})"""

# The fullest cell of a latency plot, and where it is on the screen.
FULLEST_CELL = """element => {
    const { z, customdata, x, y } = element.data[0];
    let best = { count: 0 };
    customdata.forEach((counts, row) => counts.forEach((count, column) => {
        if (count > best.count) best = { count, row, column };
    }));
    const { xaxis, yaxis } = element._fullLayout;
    const box = element.querySelector('.plotly .bglayer, .main-svg').getBoundingClientRect();
    const middle = (edges, at) => (edges[at] + edges[at + 1]) / 2;
    return {
        count: best.count,
        x: box.left + xaxis._offset + xaxis.d2p(middle(x, best.column)),
        y: box.top + yaxis._offset + yaxis.d2p(middle(y, best.row)),
    };
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("pages")
    original, runs = scenes.write_scene(directory)
    return {
        "comparison": write_comparison(runs, directory / "compare").page,
        "report": write_report(runs[1]),
        "original": write_report(original),
    }


@pytest.fixture(scope="module")
def shared(pages, open_page):
    """The comparison, opened once: drawing it is most of the time that these tests take."""
    with open_page(pages["comparison"]) as page:
        yield page


@pytest.fixture
def comparison(shared):
    """The opened comparison; whatever a test makes it do must not be a fault."""
    yield shared
    assert not shared.faults, shared.faults


def drawn(page) -> list[dict]:
    return [element.evaluate(TRACES_DRAWN) for element in page.query_selector_all(".plot")]


def check_plots(page, recordings: int, lateness: int) -> None:
    plots = drawn(page)
    kinds = [plot["kind"] for plot in plots]
    assert kinds.count("latency") == kinds.count("offsets") == recordings
    assert kinds.count("io-weighted") == kinds.count("latency-weighted") == 1
    assert kinds.count("lateness") == lateness
    for plot in plots:
        assert all(plot["titles"]), plot
        if plot["kind"] in ("latency", "offsets"):
            assert plot["image"] >= 1, plot
        if plot["kind"] == "latency":
            assert len(plot["titles"]) == 4
        if plot["kind"] != "offsets":
            assert plot["lines"] >= 1, plot
    assert page.query_selector("#status") is None


def test_every_plot_of_a_comparison_is_drawn_with_titles_on_all_axes(comparison, pages):
    assert pages["comparison"].stat().st_size < SIZE_MAX_BYTES
    check_plots(comparison, recordings=4, lateness=1)


@pytest.mark.parametrize(("name", "lateness"), [("report", 1), ("original", 0)])
def test_every_plot_of_a_report_is_drawn_with_titles_on_all_axes(pages, open_page, name, lateness):
    assert pages[name].stat().st_size < SIZE_MAX_BYTES
    with open_page(pages[name]) as page:
        check_plots(page, 1, lateness)


def test_all_drives_have_the_same_scales(comparison):
    page = comparison
    for kind in ("latency", "offsets"):
        ranges = [plot["range"] for plot in drawn(page) if plot["kind"] == kind]
        assert len(ranges) == 4
        assert all(found == ranges[0] for found in ranges)


def test_a_raster_in_the_page_holds_every_io_and_hover_tells_its_count(pages, open_page):
    with open_page(pages["report"]) as page:
        total = page.evaluate(
            """() => document.querySelector('.plot.latency').data[0].customdata
            .reduce((sum, row) => sum + row.reduce((part, count) => part + count, 0), 0)"""
        )
        columns = scenes.workload()
        assert total == int((columns["opcode"] <= 1).sum())
        # Without the lines, which are hovered over first where they are near.
        page.check("fieldset[data-choice=density] input[value=reads]")
        until(page, "() => document.querySelector('.plot.latency').data.length === 3")
        plot = page.query_selector(".plot.latency")
        plot.scroll_into_view_if_needed()
        found = plot.evaluate(FULLEST_CELL)
        assert found["count"] > 1
        page.mouse.move(found["x"], found["y"])
        page.wait_for_selector(".plot.latency .hovertext")
        assert f"{found['count']} I/Os" in page.text_content(".plot.latency .hoverlayer")


def test_the_slowest_io_is_on_the_nines_axis_too(comparison):
    found = comparison.evaluate(
        """() => { const { data } = document.querySelector('[data-plot=io-weighted]');
        const calm = data.filter(trace => trace.name === 'calm' && trace.x.length > 0);
        const last = calm[calm.length - 1];
        return { x: last.x[last.x.length - 1], share: last.customdata[last.customdata.length - 1] }; }"""
    )
    assert found["share"] == "100 %"
    columns = scenes.workload()
    slowest = scenes.latencies_ns(scenes.SHAPES["calm"], columns["intended_ns"]).max()
    assert found["x"] == pytest.approx(slowest / 1e9, rel=1e-6)


def test_choices_redraw_their_plots_and_no_others(comparison):
    page = comparison
    page.check("fieldset[data-choice=density] input[value=trims]")
    until(page, "() => document.querySelectorAll('.plot.latency')[3].data.length === 3")
    page.check("fieldset[data-choice=density] input[value='reads and writes']")
    until(page, "() => document.querySelectorAll('.plot.latency')[3].data.length > 4")
    page.check("fieldset[data-choice=opcodes] input[value=trims]")
    until(
        page,
        "() => [...document.querySelectorAll('.plot.offsets')].every(plot => plot.data.filter(t => "
        "t.type === 'heatmap').length === 1)",
    )
    page.check("fieldset[data-choice=opcodes] input[value=all]")
    until(
        page,
        "() => [...document.querySelectorAll('.plot.offsets')].every(plot => plot.data.filter(t => "
        "t.type === 'heatmap').length === 3)",
    )
    page.check("fieldset[data-choice=axis] input[value='0 to 100 %']")
    until(page, "() => document.querySelector('[data-plot=io-weighted]').layout.yaxis.range[1] === 101")


def test_legends_details_and_links_answer_to_clicks(comparison):
    page = comparison
    page.locator("[data-plot=io-weighted] .legendtoggle").nth(1).click(force=True)
    until(
        page,
        "() => document.querySelector('[data-plot=io-weighted]').data.some(trace => trace.visible === "
        "'legendonly')",
    )
    for part in page.query_selector_all("details"):
        part.query_selector("summary").click()
        assert part.evaluate("element => element.open")
    assert page.is_visible("text=SN-calm")
    for link in page.query_selector_all("nav a"):
        target = link.get_attribute("href")
        link.click()
        assert page.query_selector(target) is not None
        assert page.url.endswith(target)


def test_a_zoom_in_time_on_one_drive_is_made_on_all(comparison):
    page = comparison
    page.evaluate(
        "() => Plotly.relayout(document.querySelector('.plot.latency'), "
        "{ 'xaxis.range[0]': 20, 'xaxis.range[1]': 40 })"
    )
    until(
        page,
        """() => [...document.querySelectorAll('.plot.latency, .plot.offsets')]
        .every(plot => plot.layout.xaxis.range[0] === 20 && plot.layout.xaxis.range[1] === 40)""",
    )


def test_plots_follow_a_change_to_dark(pages, open_page):
    with open_page(pages["report"]) as page:
        light = page.evaluate("() => document.querySelector('.plot').layout.font.color")
        page.emulate_media(color_scheme="dark")
        until(page, "before => document.querySelector('.plot').layout.font.color !== before", arg=light)
        background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(20, 23, 27)"


@pytest.mark.parametrize(("name", "width"), [("comparison", 400), ("report", 400), ("report", 800)])
def test_nothing_is_wider_than_a_narrow_screen(pages, open_page, name, width):
    with open_page(pages[name], width=width) as page:
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        for plot in drawn(page):
            assert plot["width"] <= width
            assert all(plot["titles"])


def test_printing_draws_light_plots_within_the_sheet_and_unfolds_everything(pages, open_page):
    with open_page(pages["comparison"], scheme="dark") as page:
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("() => [...document.querySelectorAll('details')].every(part => part.open)")
        assert page.evaluate("() => document.querySelector('.plot').layout.font.color") == "#000000"
        assert (
            page.evaluate(
                "() => Math.max(...[...document.querySelectorAll('.plot')].map(plot => plot.layout.width))"
            )
            <= 700
        )
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert not page.evaluate("() => [...document.querySelectorAll('details')].some(part => part.open)")
        assert len(page.pdf()) > 50_000


def test_a_hostile_name_stays_text_in_plots_too(tmp_path, open_page):
    columns = scenes.workload(span_s=3, rate_per_s=200)
    original = scenes.write_original(tmp_path / "prod.rec", columns, scenes.ORIGINAL)
    name = "<a href='https:example.org'>x<b>"
    runs = [scenes.write_run(tmp_path / f"{name}.rec", columns, scenes.SHAPES["calm"], original)]
    with open_page(write_comparison(runs, tmp_path / "out").page) as page:
        assert page.query_selector(".plot a[href^='https']") is None
        legends = [element.text_content() for element in page.query_selector_all(".legendtext")]
        assert name in legends


def test_a_browser_that_cannot_unpack_says_so_and_keeps_the_tables(pages, browser):
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(pages["report"].as_uri())
    page.wait_for_selector("#status.failure")
    assert "The tables are complete" in page.text_content("#status")
    assert page.is_visible("#decision table")
    context.close()
