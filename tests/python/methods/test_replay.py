"""The replay comparison on modelled drives: the page's words, table and scales, beside the original."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path

import numpy as np
import pytest
from support import run_testdrive
from workloads import write_workload

from testdrive.compare.lineup import line_up
from testdrive.plans import bind, load
from testdrive.recording import Recording
from testdrive.report.view import Views, look

NAMES = ["consumer-mlc", "sata", "enterprise-mixed"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload of a 1-GiB drive, replayed on three models of eight times the size, and compared."""
    folder = tmp_path_factory.mktemp("replay")
    source = write_workload(folder / "workload.rec")
    drives = [part for name in NAMES for part in ("--drive", f"sim:{name}?capacity=8GiB")]
    done = run_testdrive("run", "replay", "--set", f"recording={source}", *drives, "-o", folder / "runs")
    assert done.returncode == 0, done.stderr
    return folder / "runs"


@pytest.fixture(scope="module")
def text(runs: Path) -> str:
    """The words of the comparison's page."""
    page = (runs / "comparison" / "index.html").read_text(encoding="utf-8")
    body = page[page.index("<body>") : page.index('<script type="application')]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def views_of(*paths: Path) -> Views:
    """What the page of these recordings draws."""
    with line_up(list(paths), None) as lineup:
        return look(lineup.subjects)


def test_the_workload_is_as_long_as_it_was_without_the_writing_before_it(runs: Path, text: str) -> None:
    with Recording.open(runs / "sata.rec") as recording:
        replayed = recording.manifest.phases[-1]
        assert recording.manifest.counts.span_ns > 2 * (replayed.end_ns - replayed.start_ns)
    assert "workload (2,040 I/Os over 4.00 s) was replayed" in text
    assert "all addresses scaled to each drive's capacity" in text


def test_the_table_has_baseline_peak_and_recovery_of_each_drive_beside_the_original(runs: Path) -> None:
    with (runs / "comparison" / "tables" / "drives.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["original", *NAMES]
    paths = [runs.parent / "workload.rec", *(runs / f"{name}.rec" for name in NAMES)]
    for row, path in zip(rows, paths, strict=True):
        with Recording.open(path) as recording:
            table = recording.table()
            table = table.filter(table.opcode < 2)
            latency = recording.execute(table.select("latency_ns"))["latency_ns"]
        assert int(float(row["peak_latency_ns"])) == latency.max()
        # Nothing bursts on these drives, so that nearly all I/Os are of calm windows.
        assert float(row["baseline_latency_ns"]) == pytest.approx(latency.mean(), rel=0.2)
        assert row["recovery_code"] == "no_burst"
        assert row["fidelity_verdict"] == ("" if row["name"] == "original" else "faithful")


def test_drives_have_one_scale_of_addresses_where_the_original_is_much_smaller(runs: Path, text: str) -> None:
    views = views_of(*(runs / f"{name}.rec" for name in NAMES))
    original, *drives = [view.offset_axis.high for view in views.views]
    assert views.scales.offsets_shared == "drives"
    assert len(set(drives)) == 1
    assert original < drives[0] / 4
    assert (
        "All drives have the same scales; the original, with a footprint of another size, has its own."
        in text
    )


def test_every_io_of_a_drive_is_in_its_picture_of_addresses(runs: Path) -> None:
    views = views_of(*(runs / f"{name}.rec" for name in NAMES))
    for view in views.views:
        # A trim of a drive eight times the size covers several cells; reads and writes are in one or two.
        for name in ("read", "write"):
            assert view.offsets[name].sum() >= view.latency[name].sum()
        assert np.count_nonzero(view.offsets["trim"]) > 0


def test_the_short_form_replays_ten_seconds_on_the_drive_as_it_is(tmp_path: Path) -> None:
    source = write_workload(tmp_path / "workload.rec")
    (replay,) = bind(load("replay"), {"recording": source}, short=True).phases
    assert (replay.kind, replay.to_ns) == ("replay", 10_000_000_000)
