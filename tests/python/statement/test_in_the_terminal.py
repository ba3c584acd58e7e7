"""`testdrive inspect` as it is typed: in 80 columns, as JSON, as a page, for one recording and for two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import recordings
from rich.console import Console

from testdrive.cli import main
from testdrive.cli.charts import bar, resampled, spark

COLUMNS = 80


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", recordings.KINDS)
def test_every_kind_of_recording_is_told_in_80_columns(kind, tmp_path, capsys):
    out = shown(capsys, recordings.KINDS[kind](tmp_path / "a.rec"), "--no-page")
    assert max(len(line) for line in out.splitlines()) <= COLUMNS
    assert not any(word in out for word in ("None", "nan", "{"))
    assert "What a drive needs for it" in out


def test_two_recordings_stand_side_by_side_in_80_columns(tmp_path, capsys):
    names = ("a-name-that-is-much-too-long-for-a-column-of-figures.rec", "b.rec")
    pair = [recordings.write_mixed(tmp_path / name) for name in names]
    out = shown(capsys, *pair, "--no-page")
    assert max(len(line.rstrip()) for line in out.splitlines()) <= COLUMNS
    assert "B / A" in out
    line = next(line for line in out.splitlines() if line.strip().startswith("IOPS, mean"))
    assert line.split()[-3:] == ["61.3", "61.3", "1.00"]
    assert sum(line.startswith("   Mostly reads") for line in out.splitlines()) == 2


def test_a_wide_terminal_does_not_make_it_wider(tmp_path):
    from testdrive.cli.statement_view import statement_view
    from testdrive.metrics import summarize
    from testdrive.recording import Recording

    with Recording.open(recordings.write_mixed(tmp_path / "a.rec")) as recording:
        console = Console(width=200, record=True, file=(tmp_path / "out").open("w", encoding="utf-8"))
        console.print(statement_view(summarize(recording), recording.manifest, recording.path))
    assert max(len(line) for line in console.export_text().splitlines()) <= COLUMNS


def test_lost_events_are_said_before_anything_that_was_counted(tmp_path, capsys):
    path = recordings.KINDS["lost events"](tmp_path / "prod.rec")
    out = shown(capsys, path, "--no-page")
    assert out.index("Events were lost") < out.index("IOPS")
    assert out.count("12,345 events lost by the kernel's buffer.") == 1
    assert out.count("The kernel's buffer ran over.") == 1
    assert "warning: Something else; Mend it" in out
    assert "2 zone commands" in out
    other = recordings.write_mixed(tmp_path / "b.rec")
    out = shown(capsys, other, path, "--no-page")
    assert "prod: 12,345 events lost by the kernel's buffer." in out
    assert out.index("Events were lost") < out.index("IOPS")
    assert "Events were lost" not in shown(capsys, other, "--no-page")


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_compare_says_which_recording_lost_events(tmp_path, capsys):
    lost = recordings.KINDS["lost events"](tmp_path / "prod.rec")
    run = recordings.write_mixed(tmp_path / "a.rec", kind="run", source={"recording": str(lost)})
    assert main(["compare", str(run), "-o", str(tmp_path / "out")]) == 0
    assert "original lost events, and what is counted from it is too low: 12,345" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["compare", str(run), "-o", str(tmp_path / "out"), "--json"]) == 0
    losses = json.loads(capsys.readouterr().out)["losses"]
    assert losses[0] == {"name": "original", "lost": "12,345 events lost by the kernel's buffer."}


@pytest.mark.usefixtures("without_images")
def test_the_page_is_written_unless_it_is_not_wanted(tmp_path, capsys):
    path = recordings.KINDS["one I/O"](tmp_path / "a.rec")
    out = shown(capsys, path, "--no-page")
    assert not (path / "inspect.html").exists()
    assert "page:" not in out
    summary = json.loads(shown(capsys, path, "--json"))
    assert not (path / "inspect.html").exists()
    assert summary == json.loads((path / "summary.json").read_text())
    out = shown(capsys, path)
    assert f"page: {path / 'inspect.html'}" in out
    assert (path / "inspect.html").exists()
    assert json.loads(shown(capsys, path, "--json", "-o", tmp_path / "out")) == summary
    assert (tmp_path / "out" / "inspect.html").exists()


def test_two_recordings_as_json_have_both_summaries_and_their_ratios(tmp_path, capsys):
    pair = [recordings.write_mixed(tmp_path / "a.rec"), recordings.KINDS["only reads"](tmp_path / "b.rec")]
    content = json.loads(shown(capsys, *pair, "--json"))
    assert [one["recording"]["name"] for one in content["recordings"]] == ["a.rec", "b.rec"]
    rows = {row["key"]: row for row in content["side_by_side"]}
    row = rows["io_counts.ios"]
    assert row["ratio"] == row["b"] / row["a"] == 2000 / content["recordings"][0]["io_counts"]["ios"]
    assert rows["workload.trims.length_bytes.p50"]["b"] is None
    assert content["page"] is None


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_two_recordings_have_their_page_in_a_directory_of_its_own(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = recordings.KINDS["one I/O"](tmp_path / "a.rec")
    assert "page: inspection/inspect.html" in shown(capsys, path, path)
    assert (tmp_path / "inspection" / "inspect.html").exists()


def test_drive_writes_are_told_for_the_capacities_that_are_asked_for(tmp_path, capsys):
    path = recordings.write_mixed(tmp_path / "a.rec")
    out = shown(capsys, path, "--no-page", "--capacity", "1TB", "--capacity", "3.84TB")
    words = " ".join(out.split())
    assert "of 1.00 TB, extrapolated from 90 s" in words
    assert "of 3.84 TB, extrapolated from 90 s" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.rec", "b.rec", "c.rec"], "inspect takes one recording, or two to be set side by side, not 3"),
        (["a.rec", "--capacity", "0"], "--capacity 0: a drive holds more than that; write it like 3.84TB"),
        (["a.rec", "--capacity", "big"], "'big' is not a size"),
    ],
)
def test_what_cannot_be_shown_is_one_message(arguments, message, capsys):
    assert main(["inspect", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("without_images")
def test_a_page_that_cannot_be_written_leaves_the_statement_standing(tmp_path, capsys, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    path = recordings.KINDS["one I/O"](tmp_path / "a.rec")
    monkeypatch.setattr("testdrive.statement.page.write_page", fail)
    assert main(["inspect", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "What a drive needs for it" in out
    assert "Read-only file system; -o chooses another directory" in err
    assert main(["inspect", str(path), "-o", str(tmp_path / "out")]) == 2


def test_a_line_of_bars_shows_a_little_apart_from_nothing():
    assert spark([0, 0.001, 4, 8]) == " ▁▅█"
    assert spark([0, 0]) == "  "
    assert spark([]) == ""
    assert bar(0.5, 4) == "██"
    assert bar(0.0001, 4) == "▏"
    assert bar(0, 4) == ""
    assert bar(1, 4) == "████"


def test_counts_are_resampled_to_rates_that_keep_their_sum():
    counts, edges = [10.0, 0.0, 30.0, 5.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 4.5]
    for width in (1, 2, 3, 5):
        rates = resampled(counts, edges, width)
        assert len(rates) == width
        assert sum(rates) * 4.5 / width == pytest.approx(50)
    assert len(resampled(counts, edges, 40)) == 5
