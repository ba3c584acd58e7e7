"""The short forms of plans whose load a drive is rated for: they end well, and their pages draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import run_testdrive

pytestmark = pytest.mark.slow

#: In virtual time, a second for each trial.
SETTINGS = {
    "act": ("for=2s", "slice=1s"),
    "act-rating": ("for=1s", "slice=1s", "from=4", "highest=8", "resolution=4"),
    "qos": ("p99<1ms", "for=1s", "interval=1s", "settle=0s", "from=4000", "lowest=2000", "highest=8000"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_short_form_of_a_rated_load_ends_well_and_its_page_draws(
    name: str, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    chosen = [part for each in (*SETTINGS[name], "prepare=none") for part in ("--set", each)]
    made = tmp_path / "made"
    drive = ("--drive", "sim:enterprise-mixed?capacity=64MiB")
    done = run_testdrive("run", name, "--short", *drive, *chosen, "-o", made)
    assert done.returncode == 0, done.stderr
    page_path = made / "index.html"
    if name == "act":
        assert run_testdrive("report", made).returncode == 0
        page_path = made / "report.html"
    with open_page(page_path) as page:
        assert page.query_selector(".js-plotly-plot") is not None
        text = page.inner_text("body")
        assert "says nothing about the drive" in text
        assert "modelled" in text
