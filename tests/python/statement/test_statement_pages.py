"""Whole statement pages, read as text: what they say, what stands beside them, and what must not get in."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

import builders
import pytest
import recordings
from matplotlib.figure import Figure

from testdrive.compare import write_comparison
from testdrive.errors import RecordingError, UsageError
from testdrive.report import units, write_report
from testdrive.statement import PAGE_NAME, write_statement

HOSTILE = "<img src=x onerror=\"alert(1)\"> $\\frac{a}{b}$ & 'co'"
SIZE_MAX_BYTES = 5_000_000
FIGURES = [
    "arrivals",
    "footprint",
    "hot-regions",
    "in-flight",
    "latency-by-operation",
    "latency",
    "mix",
    "places",
    "rates",
    "sizes",
    "trim-streams",
]
TABLES = [
    "arrivals",
    "drive-writes",
    "footprint",
    "hot-regions",
    "in-flight",
    "latency",
    "rates",
    "sizes",
    "trim-streams",
    "working-sets",
]


def visible(page: Path) -> str:
    """The page's HTML without its packed data and scripts, which are not markup."""
    return re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def prose(page: Path) -> str:
    """The page as it is read."""
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", visible(page), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(text))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Path:
    """A recording with its statement."""
    path = recordings.write_mixed(tmp_path_factory.mktemp("statement") / "prod.rec")
    assert write_statement([path], capacities_bytes=[10**12]) == path / PAGE_NAME
    return path


@pytest.fixture(scope="module")
def pair(mixed, tmp_path_factory) -> Path:
    """The statement of two recordings."""
    directory = tmp_path_factory.mktemp("pair")
    night = recordings.KINDS["only reads"](directory / "night.rec")
    return write_statement([mixed, night], directory / "out")


def test_the_page_is_one_file_that_refers_to_nothing_outside(mixed):
    page = mixed / PAGE_NAME
    assert page.stat().st_size < SIZE_MAX_BYTES
    references = re.findall(r"""\s(?:src|href)=["']?([^"'\s>]*)""", visible(page))
    assert len(references) >= 8
    assert all(reference.startswith(("#", "data:")) for reference in references), references
    assert "default-src 'none'" in visible(page)


def test_the_page_says_what_the_workload_is_and_what_a_drive_needs(mixed):
    text = prose(mixed / PAGE_NAME)
    assert "Mostly reads (67 % reads, 33 % writes): random, all of 8 KiB." in text
    assert "in 4 bursts of about 300 ms, 20 s apart, all from CPU 3." in text
    assert "Busiest second" in text
    assert "1.00 TB" in text
    assert "extrapolated from 90 s" in text


def test_each_figure_has_words_on_how_to_read_it_and_a_label(mixed):
    markup = visible(mixed / PAGE_NAME)
    kinds = re.findall(r'data-plot="([^"]*)"', markup)
    assert sorted(kinds) == sorted(recordings.PLOTS)
    assert markup.count("How to read it:") == len(kinds)
    assert len(re.findall(r'data-plot="[^"]*"[^>]*aria-label="[^"]+"', markup)) == len(kinds)


def test_every_section_has_its_link(mixed, pair):
    for page in (mixed / PAGE_NAME, pair):
        markup = visible(page)
        linked = re.findall(r'href="#([^"]*)"', markup)
        assert linked == re.findall(r'<section id="([^"]*)"', markup)
        assert {"needs", "conditions"} < set(linked)


def test_figures_and_tables_stand_beside_the_page(mixed):
    assert sorted(path.name for path in (mixed / "figures").iterdir()) == [
        f"workload-{name}.png" for name in FIGURES
    ]
    for path in (mixed / "figures").iterdir():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(path.name for path in (mixed / "tables").iterdir()) == [
        f"workload-{name}.csv" for name in TABLES
    ]
    columns = recordings.mixed()
    rates = rows_of(mixed / "tables" / "workload-rates.csv")
    assert sum(int(row["ios"]) for row in rates) == len(columns["submit_ns"])
    assert sum(int(row["bytes"]) for row in rates) == columns["length_bytes"].sum()
    sizes = rows_of(mixed / "tables" / "workload-sizes.csv")
    assert sum(int(row["ios"]) for row in sizes) == (columns["length_bytes"] > 0).sum()
    trims = rows_of(mixed / "tables" / "workload-trim-streams.csv")
    assert {row["stream"] for row in trims} == {"3"}
    assert sum(int(row["trimmed_bytes"]) for row in trims) == 120 << 20
    flight = rows_of(mixed / "tables" / "workload-in-flight.csv")
    assert sum(float(row["time_share"]) for row in flight) == pytest.approx(1)
    writes = rows_of(mixed / "tables" / "workload-drive-writes.csv")
    assert "1000000000000" in {row["capacity_bytes"] for row in writes}


def test_two_recordings_stand_in_every_figure_and_side_by_side(pair):
    markup, text = visible(pair), prose(pair)
    assert "A: prod" in text
    assert "B: night" in text
    assert "B over A" in text
    for kind in ("rates", "mix", "places", "growth", "statement-latency"):
        assert len(re.findall(f'data-plot="{kind}"', markup)) == 2, kind
    for kind in ("sizes", "hot", "arrivals", "in-flight", "opcode-latency"):
        assert len(re.findall(f'data-plot="{kind}"', markup)) == 1, kind
    assert "Trims by stream of B: night is absent: there are no trims ( no_trims )." in text
    rows = {row["figure"]: row for row in rows_of(pair.parent / "tables" / "workload-side-by-side.csv")}
    assert float(rows["I/Os"]["ratio"]) == pytest.approx(2000 / len(recordings.mixed()["submit_ns"]))
    assert rows["baseline"]["key"] == "baseline_latency_ns"
    assert {row["name"] for row in rows_of(pair.parent / "tables" / "workload-rates.csv")} == {
        "A: prod",
        "B: night",
    }


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_recordings_of_lengths_too_different_have_an_axis_of_time_each(mixed, tmp_path):
    short = recordings.KINDS["milliseconds"](tmp_path / "short.rec")
    text = prose(write_statement([mixed, short], tmp_path / "out"))
    assert "too different for one axis of time: each has its own" in text


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("no completions", ["Latency against time", "I/Os in flight"]),
        pytest.param(
            "no places",
            ["Addresses against time", "Hot regions", "Growth of the footprint"],
            marks=pytest.mark.slow,
        ),
        ("no times", ["Rates over time", "Time between arrivals", "Growth of the footprint"]),
        pytest.param("no sizes", ["Sizes of I/Os", "Hot regions"], marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("without_images")
def test_a_figure_that_is_absent_says_why_with_its_code(kind, missing, tmp_path):
    page = write_statement([recordings.KINDS[kind](tmp_path / "a.rec")])
    for figure in missing:
        said = f"{figure} is absent: the source did not record what it needs ( not_recorded )."
        assert said in prose(page), figure


def _kinds() -> list[Any]:
    """The ones with least in them are enough for the fast tests."""
    fast = ("no I/O", "one I/O", "no operations")
    return [kind if kind in fast else pytest.param(kind, marks=pytest.mark.slow) for kind in recordings.KINDS]


@pytest.mark.parametrize("kind", _kinds())
def test_every_kind_of_recording_gets_a_page_without_gaps_in_its_words(kind, tmp_path):
    page = write_statement([recordings.KINDS[kind](tmp_path / "a.rec")])
    said = prose(page)
    assert not re.search(r"[{}]|\bNone\b|\bnan\b|_ns\b|units\.|lambda", said)
    assert page.stat().st_size < SIZE_MAX_BYTES


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_lost_events_stand_above_everything_on_every_page(tmp_path):
    lost = recordings.KINDS["lost events"](tmp_path / "prod.rec")
    columns = recordings.KINDS["mixed"]
    replay = columns(
        tmp_path / "a.rec",
        kind="run",
        source={"recording": str(lost)},
        phases=[builders.phase(kind="replay", settings={"pace": "timed"})],
    )
    other = columns(tmp_path / "b.rec")
    pages = {
        "statement": write_statement([lost]),
        "report": write_report(lost),
        "report of the replay": write_report(replay),
        "statement of two": write_statement([other, lost], tmp_path / "two"),
        "comparison": write_comparison([replay], tmp_path / "compare").page,
    }
    for name, page in pages.items():
        text = prose(page)
        assert "Events were lost: counts and rates are too low" in text, name
        assert "12,345 events lost by the kernel's buffer." in text, name
        assert "Capture with a larger buffer." in text, name
        place = text.index("Events were lost")
        for later in (
            "In plain words",
            "What makes these figures",
            "How the drive took it",
            "Drives side by",
        ):
            assert place < text.find(later) or later not in text, (name, later)
    assert f"2 {units.TIMES} zone commands could not be used." in prose(pages["statement"])
    # What was not lost is not said to be.
    assert "Events were lost" not in prose(write_statement([other]))


@pytest.mark.usefixtures("without_images")
def test_a_comparison_tells_of_losses_of_an_original_that_has_no_row(tmp_path):
    columns = {name: values for name, values in recordings.mixed().items() if name != "latency_ns"}
    original = builders.write_recording(
        tmp_path / "prod.rec", columns, dropped=recordings.LOST, warnings=[recordings.LOSS_WARNING]
    )
    run = recordings.write_mixed(tmp_path / "a.rec", kind="run", source={"recording": "elsewhere.rec"})
    made = write_comparison([run], tmp_path / "out", original)
    assert made.losses[0] == ("prod", "12,345 events lost by the kernel's buffer.")
    assert "prod: 12,345 events lost" in prose(made.page).replace(" :", ":")


@pytest.mark.usefixtures("without_images")
def test_operations_that_were_not_told_apart_are_not_named(tmp_path):
    text = prose(write_statement([recordings.KINDS["no operations"](tmp_path / "a.rec")]))
    assert "Whether they read or write is not known." in text
    assert "Operation I/Os Share" in text
    assert " I/O 500 100 %" in text
    assert "reads 500" not in text


@pytest.mark.slow
def test_names_from_drives_and_traces_cannot_become_markup(tmp_path):
    hostile = builders.write_recording(
        tmp_path / "<b>x.rec",
        recordings.mixed(),
        absent_columns=[],
        kind="capture",
        drive={"model": HOSTILE, "serial": HOSTILE, "uri": HOSTILE},
        host={"hostname": HOSTILE},
        source={"device": HOSTILE},
        warnings=[{"code": HOSTILE, "message": HOSTILE, "remedy": HOSTILE}],
        dropped=[{"what": f"lost {HOSTILE}", "count": 3}],
        status="interrupted",
        status_reason=HOSTILE,
    )
    for page in (write_statement([hostile]), write_statement([hostile, hostile], tmp_path / "out")):
        markup = visible(page)
        assert "<img" not in markup
        assert "<b>x" not in markup
        assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in markup


@pytest.mark.slow
def test_a_figure_that_is_gone_does_not_stay_from_an_earlier_statement(tmp_path):
    path = recordings.write_mixed(tmp_path / "a.rec")
    write_statement([path], tmp_path / "out")
    assert (tmp_path / "out" / "figures" / "workload-latency.png").exists()
    without = recordings.KINDS["no completions"](tmp_path / "b.rec")
    write_statement([without], tmp_path / "out")
    assert not (tmp_path / "out" / "figures" / "workload-latency.png").exists()


def test_a_statement_is_of_one_or_two_recordings(tmp_path):
    with pytest.raises(UsageError, match="not of 0"):
        write_statement([])
    with pytest.raises(UsageError, match="not of 3"):
        write_statement([tmp_path] * 3, tmp_path)
    with pytest.raises(UsageError, match="a directory of its own"):
        write_statement([tmp_path] * 2)
    with pytest.raises(RecordingError, match=r"missing\.rec"):
        write_statement([tmp_path / "missing.rec"])


def test_data_beyond_the_limit_are_made_coarser_and_lose_no_io(mixed):
    from testdrive.metrics.scans import Scan
    from testdrive.metrics.summary import summarize_scan
    from testdrive.recording import Recording
    from testdrive.report.subject import subject
    from testdrive.statement.view import look

    with Recording.open(mixed) as recording:
        scan = Scan(recording)
        views = look([subject("a", "drive", 0, recording, summarize_scan(scan))], [scan])
        whole = len(views.packed())
        limited = len(views.packed(whole - 4000))
        assert limited <= whole - 4000
        [view] = views.views
        assert view.places is not None
        assert view.places.coarser().cells["ios"].sum() == view.places.cells["ios"].sum()
    json.dumps(view.subject.summary, allow_nan=False)


def test_every_figure_of_a_modelled_drive_says_so_in_the_page_and_as_an_image(tmp_path, monkeypatch) -> None:
    drive = {
        "uri": "sim:qlc",
        "path": "sim",
        "model": "qlc",
        "serial": "",
        "firmware": "",
        "capacity_bytes": 1 << 40,
        "logical_block_bytes": 512,
        "physical_block_bytes": 4096,
        "modelled": True,
        "settings": {},
    }
    model = recordings.write_mixed(tmp_path / "model.rec", drive=drive)
    plain = recordings.write_mixed(tmp_path / "plain.rec")
    marks: list[str] = []

    def noting(figure: Figure, *_: Any, **__: Any) -> None:
        marks.append(figure.get_suptitle())

    monkeypatch.setattr(Figure, "savefig", noting)
    page = visible(write_statement([model]))
    drawn = [each for each in re.findall("<figure>.*?</figure>", page, re.DOTALL) if "data-plot" in each]
    assert len(drawn) >= len(FIGURES)
    assert all('class="badge"' in each for each in drawn)
    assert marks == ["model (modelled)"] * len(FIGURES)
    marks.clear()
    page = visible(write_statement([plain, model], tmp_path / "both"))
    drawn = [each for each in re.findall("<figure>.*?</figure>", page, re.DOTALL) if "data-plot" in each]
    of_plain = [each for each in drawn if 'data-subject="' in each and "plain" in each]
    others = [each for each in drawn if each not in of_plain]
    assert of_plain
    assert others
    assert not any('class="badge"' in each for each in of_plain)
    assert all('class="badge"' in each for each in others)
    assert all("model (modelled)" in mark and "plain" not in mark for mark in marks)
    marks.clear()
    write_statement([plain])
    assert marks == [""] * len(FIGURES)
