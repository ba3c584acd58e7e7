"""Whole pages, read as text: what they say, what stands beside them, and what must not get into them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import builders
import numpy as np
import pytest
import scenes

from testdrive.compare import comparison_rows, write_comparison
from testdrive.errors import RecordingError, UsageError
from testdrive.report import write_report

HOSTILE = "<img src=x onerror=\"alert(1)\"> $\\frac{a}{b}$ & 'co'"
SIZE_MAX_BYTES = 5_000_000


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> tuple[Path, list[Path]]:
    return scenes.write_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def comparison(scene, tmp_path_factory) -> Path:
    return write_comparison(scene[1], tmp_path_factory.mktemp("compare")).page


@pytest.fixture(scope="module")
def text(comparison) -> str:
    return visible(comparison)


def visible(page: Path) -> str:
    """The page's HTML without its packed data and scripts, which are not markup."""
    return re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_page_is_one_file_that_refers_to_nothing_outside(comparison):
    page = comparison.read_text(encoding="utf-8")
    assert len(page) < SIZE_MAX_BYTES
    markup = visible(comparison)
    references = re.findall(r"""\s(?:src|href)=["']?([^"'\s>]*)""", markup)
    assert len(references) >= 7
    assert all(reference.startswith(("#", "data:")) for reference in references), references
    assert "url(" not in markup
    assert "@import" not in markup
    assert "default-src 'none'" in markup


def test_rows_have_the_original_first_and_the_figures_that_the_shapes_were_made_to_give(scene):
    original, calm, slow, never = comparison_rows(scene[1])
    assert (original["name"], original["role"]) == ("original", "original")
    assert [row["name"] for row in (calm, slow, never)] == list(scenes.SHAPES)
    assert calm["recovery_code"] == "no_burst"
    assert calm["baseline_latency_ns"] == pytest.approx(400_000 * np.exp(0.3**2 / 2), rel=0.03)
    assert slow["recovery_ns"] == pytest.approx(15e9, rel=0.05)
    assert slow["baseline_latency_ns"] == pytest.approx(900_000 * np.exp(0.3**2 / 2), rel=0.1)
    assert never["recovery_code"] == "never_recovered"
    assert never["recovery_ns"] is None
    assert never["recovery_more_than_ns"] == pytest.approx(49e9, rel=0.02)
    assert (never["errors"], calm["errors"]) == (3, 0)
    assert [row["fidelity_verdict"] for row in (calm, slow, never)] == ["faithful"] * 3
    assert all(row["service_p99_9_ns"] < row["service_p99_99_ns"] for row in (original, calm, slow, never))
    json.dumps([original, calm, slow, never])


def test_verdict_says_which_drives_handle_the_workload(text):
    assert "calm handles this workload without a burst" in text
    assert "slow-recovery has bursts of raised latency" in text
    assert "never-recovers does not handle it." in text
    assert "never recovered<small>&gt; 49" in text
    assert "which is no proof of a cause" in text


def test_every_naming_of_a_modelled_drive_in_tables_and_headings_is_marked(text):
    named = re.findall(r"<(?:th scope=\"row\"|h3|summary|strong)>never-recovers(.{0,40})", text)
    assert len(named) >= 8
    for after in named:
        # The warnings name it too, and say in words that it is modelled.
        assert 'class="badge"' in after or after.startswith(":"), after
    assert 'aria-label="Service time against time, never-recovers (modelled)"' in text
    assert "calm (modelled)" not in text


def test_warnings_are_in_sight_with_their_remedies(text):
    box = text[text.index('class="warnings"') :]
    box = box[: box.index("</section>")]
    assert "debug build" in box
    assert "Build the engine in release mode" in box
    assert "modelled drive in virtual time" in box


def test_no_code_shows_through_the_text(text, scene):
    for markup in (text, visible(write_report(scene[1][1]))):
        said = re.sub(r"<style>.*?</style>|<[^>]*>", " ", markup, flags=re.DOTALL)
        assert not re.search(r"[{}]|\bNone\b|\bnan\b|_ns\b|units\.|said\(", said)


@pytest.mark.usefixtures("without_images")
def test_a_drive_without_bursts_that_failed_ios_is_not_simply_recommended(tmp_path):
    columns = scenes.workload(span_s=10)
    original = scenes.write_original(tmp_path / "prod.rec", columns, scenes.ORIGINAL)
    run = scenes.write_run(tmp_path / "a.rec", columns, scenes.Shape(400, errors=2), original)
    text = visible(write_comparison([run], tmp_path / "out").page)
    assert "a shows no burst, but with reservations." in text
    assert "2 I/Os failed." in text
    assert "handles it" not in text


@pytest.mark.usefixtures("without_images")
def test_a_drive_that_was_given_a_part_of_the_workload_is_not_simply_recommended(tmp_path):
    columns = scenes.workload(span_s=10)
    original = scenes.write_original(tmp_path / "prod.rec", columns, scenes.ORIGINAL)
    run = scenes.write_run(tmp_path / "a.rec", columns, scenes.Shape(400), original)
    manifest = json.loads((run / "manifest.json").read_text())
    issued = len(columns["intended_ns"])
    for whole, recommended in ((issued, True), (issued + 7, False)):
        manifest["source"]["ios"] = whole
        (run / "manifest.json").write_text(json.dumps(manifest))
        text = visible(write_comparison([run], tmp_path / f"out-{whole}").page)
        assert ("handles it" in text) is recommended
        assert ("a shows no burst, but with reservations." in text) is not recommended
        assert ("The replay left out 7 I/Os of the workload" in text) is not recommended


def test_figures_and_tables_stand_beside_the_page(comparison, scene):
    figures = sorted(path.name for path in (comparison.parent / "figures").iterdir())
    assert figures == ["latency.png", "lateness.png", "offsets.png", "percentiles.png"]
    for name in figures:
        assert (comparison.parent / "figures" / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    tables = comparison.parent / "tables"
    assert [row["name"] for row in rows_of(tables / "drives.csv")] == ["original", *scenes.SHAPES]
    windows = rows_of(tables / "windows.csv")
    assert len(windows) == 4 * len({row["window_start_ns"] for row in windows})
    trimmed = sum(int(row["trimmed_bytes"]) for row in windows if row["name"] == "calm")
    assert trimmed == 600 * (64 << 20)
    curves = [row for row in rows_of(tables / "percentiles.csv") if row["name"] == "calm"]
    assert float(curves[-1]["io_weighted_share"]) == 1
    slow = {row["metric"]: row for row in rows_of(tables / "ratios.csv") if row["name"] == "slow-recovery"}
    assert slow["baseline"]["verdict"] in ("worse", "too_few_blocks")
    assert float(slow["baseline"]["ratio"]) == pytest.approx(900 / 400, rel=0.1)
    assert slow["peak"]["verdict"] == "no_interval"
    assert float(slow["peak"]["ratio"]) > 10
    assert slow["stall_time_over_10000000_ns"]["verdict"] == "no_stall_in_reference"
    assert {slow[name]["verdict"] for name in ("mean", "p50", "p90", "p99")} <= {"worse", "too_few_blocks"}
    apart = {row["name"]: row for row in rows_of(tables / "distances.csv")}
    assert list(apart) == ["original", "slow-recovery", "never-recovers"]
    assert float(apart["slow-recovery"]["wasserstein_1_ln_latency"]) > np.log(900 / 400)


def test_names_from_drives_and_traces_cannot_become_markup_or_formulas(tmp_path):
    columns = scenes.workload(span_s=3, rate_per_s=200)
    hostile = tmp_path / "<b>x.rec"
    builders.write_recording(
        hostile,
        {**columns, "latency_ns": 100_000},
        kind="run",
        drive={"model": HOSTILE, "serial": HOSTILE, "uri": HOSTILE, "modelled": True},
        host={"hostname": HOSTILE},
        source={"recording": HOSTILE, "format": HOSTILE},
        warnings=[{"code": HOSTILE, "message": HOSTILE, "remedy": HOSTILE}],
        dropped=[{"what": HOSTILE, "count": 3}],
        status="interrupted",
        status_reason=HOSTILE,
        phases=[builders.phase(kind="replay", settings={"lba": HOSTILE, "pace": HOSTILE, "data": HOSTILE})],
    )
    for page in (write_report(hostile), write_comparison([hostile, hostile], tmp_path / "out").page):
        markup = visible(page)
        assert "<img" not in markup
        assert "<b>x" not in markup
        assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in markup


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "No latency is known"),
        (
            {"intended_ns": np.arange(50) * 10**7, "length_bytes": 4096, "offset_bytes": 0},
            "No latency is known",
        ),
        ({"intended_ns": np.arange(50) * 10**7, "latency_ns": 10**5, "status": 5}, "50 I/Os failed"),
        ({"intended_ns": [5], "latency_ns": [10**5]}, "100 µs"),
    ],
    ids=["no I/Os", "no completions", "all failed", "one I/O"],
)
def test_reports_of_next_to_nothing_say_so_and_do_not_fail(tmp_path, columns, said):
    text = visible(write_report(builders.write_recording(tmp_path / "a.rec", columns)))
    assert said in text
    assert "nan" not in text.lower().replace("finance", "")


@pytest.mark.slow
def test_an_original_without_completions_gets_no_row_and_a_note(tmp_path):
    columns = scenes.workload(span_s=5)
    original = builders.write_recording(tmp_path / "prod.rec", columns)
    run = scenes.write_run(tmp_path / "a.rec", columns, scenes.SHAPES["calm"], original)
    assert [row["name"] for row in comparison_rows([run])] == ["a"]
    text = visible(write_comparison([run], tmp_path / "out").page)
    assert "recorded without completions, so it has no row" in text
    assert "1 drive under prod" in text


@pytest.mark.slow
def test_an_original_that_was_given_is_used_and_one_that_moved_beside_the_run_is_found(tmp_path):
    columns = scenes.workload(span_s=5)
    original = scenes.write_original(tmp_path / "prod.rec", columns, scenes.ORIGINAL)
    gone = tmp_path / "elsewhere" / "prod.rec"
    run = scenes.write_run(tmp_path / "a.rec", columns, scenes.SHAPES["calm"], gone)
    assert [row["name"] for row in comparison_rows([run])] == ["original", "a"]
    other = scenes.write_run(tmp_path / "b.rec", columns, scenes.SHAPES["calm"], tmp_path / "never.rec")
    assert [row["name"] for row in comparison_rows([other])] == ["b"]
    assert [row["name"] for row in comparison_rows([other], original)] == ["original", "b"]
    # Given among the runs, it is still the first row, and only once.
    assert [row["name"] for row in comparison_rows([run, original])] == ["original", "a"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_runs_of_different_workloads_are_shown_with_a_warning(tmp_path):
    columns = scenes.workload(span_s=5)
    runs = []
    for name in "ab":
        original = scenes.write_original(tmp_path / f"prod-{name}.rec", columns, scenes.ORIGINAL)
        runs.append(scenes.write_run(tmp_path / f"{name}.rec", columns, scenes.SHAPES["calm"], original))
    text = visible(write_comparison(runs, tmp_path / "out").page)
    assert "their figures are not of the same workload" in text


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_replays_that_were_not_faithful_say_so_in_table_and_verdict(tmp_path):
    columns = scenes.workload(span_s=10)
    original = scenes.write_original(tmp_path / "prod.rec", columns, scenes.ORIGINAL)
    late = scenes.Shape(400, lateness_us=4000, model="Late")
    run = scenes.write_run(tmp_path / "late.rec", columns, late, original)
    row = comparison_rows([run])[1]
    assert row["fidelity_verdict"] == "not_faithful"
    assert any("late" in reason for reason in row["fidelity_reasons"])
    text = visible(write_comparison([run], tmp_path / "out").page)
    assert "✗ not faithful" in text
    assert "Its replay was not faithful" in text


def test_nothing_to_compare_is_a_usage_error_and_a_missing_recording_is_named(tmp_path):
    with pytest.raises(UsageError, match="at least one recording"):
        write_comparison([], tmp_path / "out")
    with pytest.raises(RecordingError, match=r"missing\.rec"):
        write_comparison([tmp_path / "missing.rec"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_report_replaces_the_one_before_it(tmp_path):
    columns = scenes.workload(span_s=2, rate_per_s=100)
    path = builders.write_recording(tmp_path / "a.rec", {**columns, "latency_ns": 1000})
    page = write_report(path)
    page.write_text("old")
    assert write_report(path) == page
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not list(path.glob(".report.html.*"))
