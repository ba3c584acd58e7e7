"""The page of a standard test in a real browser: what is folded waits, and nines are where they belong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import builders
import numpy as np
import pytest

from testdrive.methods.page import write_method_page

MILLION = 1_000_000
DRAWN = "() => [...document.querySelectorAll('.plot')].map(plot => [plot.dataset.figure, Boolean(plot.data)])"


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes at depths 1 and 2, 10,000 I/Os each: of 10 us, but 99 of 1 ms and one of 10 ms."""
    path = tmp_path_factory.mktemp("methods") / "drive.rec"
    latency = np.r_[np.full(9_900, 10_000), np.full(99, MILLION), 10 * MILLION]
    latency = np.random.default_rng(1).permutation(latency)
    submit = np.r_[0, np.cumsum(latency)[:-1]]
    length = int(latency.sum())
    columns = {
        "submit_ns": np.r_[submit, submit + length],
        "latency_ns": np.r_[latency, latency],
        "offset_bytes": np.zeros(20_000),
        "length_bytes": np.full(20_000, 4096),
        "opcode": np.ones(20_000),
        "phase": np.repeat([0, 1], 10_000),
    }
    phases = [
        {
            **builders.phase(at, kind="synthetic", start_ns=at * length, end_ns=(at + 1) * length),
            "name": f"writes-depth-{at + 1}",
        }
        for at in range(2)
    ]
    plan = {"name": "percentiles", "title": "Latency percentiles", "question": "Who waits?"}
    plan = {**plan, "figures": ["distribution"], "parameters": {}}
    builders.write_recording(path, columns, phases=phases, plan=plan)
    return write_method_page([path], path.parent / "index.html").path


def drawn(page: Any) -> dict[str, bool]:
    """Which figures have been drawn."""
    return dict(page.evaluate(DRAWN))


def test_what_is_folded_is_drawn_once_it_is_opened(page_path: Path, open_page: Any) -> None:
    with open_page(page_path) as page:
        before = drawn(page)
        assert before["distribution-writes"]
        assert before["distribution-writes-1-time"]
        assert not any(done for name, done in before.items() if name.startswith("distribution-writes-2-"))
        page.click("summary:has-text('Random writes at queue depth 2')")
        for _ in range(2400):
            if all(drawn(page).values()):
                break
            page.wait_for_timeout(50)
        assert all(drawn(page).values())
        width = page.evaluate(
            "() => document.querySelector('[data-figure=distribution-writes-2-ios]')._fullLayout.width"
        )
        assert width > 300, "it was drawn for the room that it has"


def test_nines_stand_where_they_belong_and_the_slowest_are_faint(page_path: Path, open_page: Any) -> None:
    with open_page(page_path) as page:
        found = page.evaluate(
            """() => { const { data, layout } = document
                .querySelector('[data-figure=distribution-writes-1-ios]');
            return { ticks: layout.yaxis.ticktext, at: layout.yaxis.tickvals,
                     firm: [Array.from(data[0].x), Array.from(data[0].y), data[0].customdata],
                     faint: [Array.from(data[1].y), data[1].opacity] }; }"""
        )
    assert found["ticks"][:4] == ["0 %", "90 %", "99 %", "99.9 %"]
    assert found["at"][:4] == pytest.approx([0, 1, 2, 3])
    x, y, words = found["firm"]
    assert x[:2] == pytest.approx([10e-6, 10e-6], rel=1e-6)
    assert y[:2] == pytest.approx([0, 2], rel=1e-6), "99 % of the I/Os take 10 us"
    assert words[1] == "99.00 %"
    # 10,000 I/Os carry 99.97 %; the one of 10 ms stands half an I/O short of the whole.
    assert y[-1] == pytest.approx(-np.log10(-np.log(0.05) / 10_000), rel=1e-6)
    assert found["faint"][0][-1] == pytest.approx(-np.log10(0.5 / 10_000), rel=1e-6)
    assert found["faint"][1] < 1


def test_folded_figures_are_on_paper_too(page_path: Path, open_page: Any) -> None:
    with open_page(page_path) as page:
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert all(drawn(page).values())
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("() => document.querySelectorAll('details:not([open])').length") > 0
