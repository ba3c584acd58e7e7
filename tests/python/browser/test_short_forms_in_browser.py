"""The short form of every built-in plan, as a user tries it first: it ends well, and its page draws.

What it says nothing about is left to the tests of each plan, and what else some must show is in
`short_forms.py`. This one holds for plans that are to come, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from short_forms import SHOWN
from support import loop_device, run_testdrive
from workloads import write_workload

from testdrive.cli import main
from testdrive.plans import built_in_names, load
from testdrive.quantities import duration_ns

pytestmark = pytest.mark.slow

#: Each measurement by so much shorter than the short form has it: a page has something to draw all the same.
BRIEFER = 5
#: What is not a matter of one length `for`. Each thread's buffers are made anew in each phase, of which there
#: are up to 282.
OTHERWISE = {
    "pts-iops": {"for": "20ms", "threads": "1"},
    "pts-idle": {"threads": "1", "round": "200ms", "on": "100ms", "return": "200ms"}
    | {f"rest-{at}": f"{length}ms" for at, length in enumerate((20, 40, 60, 100, 200), start=1)},
}
#: They take a load that the drive is rated for, or search it by many runs: other tests run them.
RATED = {"act", "act-rating", "qos", "headroom"}
FILE_BYTES, LOOP_BYTES = 128 << 20, 512 << 20


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What plans replay that take a recording."""
    return write_workload(tmp_path_factory.mktemp("workload") / "own.rec")


@contextmanager
def drive_for(name: str, folder: Path) -> Iterator[tuple[str | Path, ...]]:
    """The options that name a drive which may be written."""
    image = folder / "drive.img"
    if name in SHOWN:
        with loop_device(image, LOOP_BYTES) as device:
            yield "--drive", device, "--erase", device
    else:
        # Without holes, since reads of those are no reads.
        image.write_bytes(bytes(FILE_BYTES))
        yield "--drive", f"file:{image}", "--erase", image


@pytest.mark.parametrize("name", [name for name in built_in_names() if name not in RATED])
def test_the_short_form_ends_well_and_its_page_draws(
    name: str, workload: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    recording = tmp_path / "short.rec"
    plan = load(name)
    settings = {key: str(workload) for key, one in plan.parameters.items() if one.required}
    if "for" in plan.short:
        settings["for"] = f"{duration_ns(plan.short['for']) // BRIEFER // 1_000_000}ms"
    settings |= OTHERWISE.get(name, {})
    chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    with drive_for(name, tmp_path) as drive:
        done = run_testdrive("run", name, "--short", *drive, *chosen, "-o", recording, timeout_s=600)
    assert done.returncode == 0, done.stderr
    if name in SHOWN:
        # In a process of its own, which draws the images too.
        done = run_testdrive("report", recording)
        assert done.returncode == 0, done.stderr
        SHOWN[name](recording, name)
    else:
        assert main(["report", str(recording)]) == 0
    # Asked for last: where there is no browser, everything else was tested all the same.
    with request.getfixturevalue("open_page")(recording / "report.html") as page:
        assert page.query_selector(".js-plotly-plot") is not None
        assert "says nothing about the drive" in page.inner_text("body")
