"""The short form of every built-in plan, as a user tries it first: it ends well, and its page draws.

What it says nothing about is left to the tests of each plan. This one holds for plans that are to come, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import run_testdrive
from workloads import write_workload

from testdrive.plans import built_in_names, load
from testdrive.quantities import duration_ns

pytestmark = pytest.mark.slow

#: Each measurement by so much shorter than the short form has it: a page has something to draw all the same.
BRIEFER = 5
#: They take a load that the drive is rated for, or search it by many runs: tests of theirs run them.
RATED = {"act", "act-rating", "qos", "headroom"}
#: These take half a minute on a device, on which tests of theirs run them: here they are run in virtual time.
MODELLED = {"pts-iops", "pts-idle"}
#: One die, so slow that its time holds few I/Os.
SLOW = "sim:sata?capacity=1GiB&channels=1&dies_per_channel=1&superblocks=500&program=16ms&write_buffer=4MiB"
DRIVE_BYTES = 128 << 20


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What plans replay that take a recording."""
    return write_workload(tmp_path_factory.mktemp("workload") / "own.rec")


@pytest.mark.parametrize("name", [name for name in built_in_names() if name not in RATED])
def test_the_short_form_ends_well_and_its_page_draws(
    name: str, workload: Path, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    image, recording = tmp_path / "drive.img", tmp_path / "short.rec"
    # Without holes, since reads of those are no reads.
    image.write_bytes(bytes(DRIVE_BYTES))
    plan = load(name)
    settings = {key: str(workload) for key, one in plan.parameters.items() if one.required}
    if "for" in plan.short:
        settings["for"] = f"{duration_ns(plan.short['for']) // BRIEFER // 1_000_000}ms"
    chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    drive = ("--drive", SLOW) if name in MODELLED else ("--drive", f"file:{image}", "--erase", image)
    done = run_testdrive("run", name, "--short", *drive, *chosen, "-o", recording, timeout_s=300)
    assert done.returncode == 0, done.stderr
    done = run_testdrive("report", recording)
    assert done.returncode == 0, done.stderr
    with open_page(recording / "report.html") as page:
        assert page.query_selector(".js-plotly-plot") is not None
        assert "says nothing about the drive" in page.inner_text("body")
