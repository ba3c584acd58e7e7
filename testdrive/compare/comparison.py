"""The comparison's page: verdict, table, plots and certificates of several replays of one workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testdrive.compare.lineup import Lineup, line_up
from testdrive.compare.ratios import Ratios, ratios_section, write_ratios
from testdrive.compare.verdict import verdict_box
from testdrive.report import html, units, words
from testdrive.report.activities import activities_table
from testdrive.report.conditions import conditions_section, warnings_box
from testdrive.report.decision import decision_table
from testdrive.report.fidelity import fidelity_section
from testdrive.report.figures import write_figures
from testdrive.report.html import Markup
from testdrive.report.incidents import incidents_box
from testdrive.report.losses import gathered, losses_box
from testdrive.report.page import frame, write_page
from testdrive.report.plots import latency_section, offsets_section, percentiles_section, power_section
from testdrive.report.rows import Row, row
from testdrive.report.tables import write_tables
from testdrive.report.telemetry_tables import telemetry_section
from testdrive.report.trims import trims_table
from testdrive.report.view import Views, look

COMPARISON_NAME = "index.html"


@dataclass(frozen=True)
class Comparison:
    """What came of comparing.

    Attributes
    ----------
    page
        One file that needs no network.
    rows
        The decision table, the original first where it has completions: times in ns, absent ones None.
    losses
        The recordings that lost events, and what; all that is counted from them is too low.
    """

    page: Path
    rows: list[Row]
    losses: list[tuple[str, str]]


def write_comparison(
    recording_dirs: Sequence[Path], output_dir: Path | str, original: Path | None = None
) -> Comparison:
    """Write `index.html`, `figures/*.png` and `tables/*.csv` into `output_dir`, which is made if it is not
    there.

    Parameters
    ----------
    recording_dirs
        Runs of one workload, in the order of the table; the first drive is the one that ratios are against.
    output_dir
        Where the page goes.
    original
        The workload's own recording, for the first row; if None, it is found through the runs' manifests.

    Returns
    -------
    Comparison
        The page and the rows of its table.

    Raises
    ------
    UsageError
        If there is nothing to compare.
    RecordingError
        If a recording cannot be opened or read.
    OSError
        If `output_dir` cannot be written to.
    """
    output = Path(output_dir)
    with line_up([Path(path) for path in recording_dirs], original) as lineup:
        rows = [row(one) for one in lineup.subjects]
        views = look(lineup.subjects)
        ratios = Ratios.of(lineup.subjects)
        write_figures(views, output / "figures")
        write_tables(views, rows, output / "tables")
        write_ratios(ratios, output / "tables")
        body = _body(lineup, rows, views, ratios)
        title = f"{_title(lineup)}: testdrive"
        shown = [(one.name, one.manifest, one.recording.path) for one in lineup.subjects]
        unseen = [(one.path.stem, one.manifest, one.path) for one in lineup.unseen]
        page = write_page(output / COMPARISON_NAME, title, body, views.packed())
        return Comparison(page, rows, gathered([*shown, *unseen]))


def comparison_rows(recording_dirs: Sequence[Path], original: Path | None = None) -> list[Row]:
    """Return the rows of :class:`Comparison` without writing a page."""
    with line_up([Path(path) for path in recording_dirs], original) as lineup:
        return [row(one) for one in lineup.subjects]


def _title(lineup: Lineup) -> str:
    drives = sum(one.role == "drive" for one in lineup.subjects)
    return f"{words.plural(drives, 'drive')} under {lineup.source_name or 'one workload'}"


def _body(lineup: Lineup, rows: Sequence[Row], views: Views, ratios: Ratios) -> Markup:
    subjects = lineup.subjects
    fidelity = fidelity_section(subjects, rows, views)
    return frame(
        _title(lineup),
        html.escape(_lead(lineup, rows)),
        losses_box(subjects, lineup.unseen),
        incidents_box(subjects),
        verdict_box(subjects, rows),
        html.section("decision", "Drives side by side", decision_table(subjects, rows), link="Table"),
        warnings_box(subjects, lineup.notes),
        latency_section(views, trims_table(subjects), activities_table(subjects)),
        percentiles_section(views),
        ratios_section(ratios),
        offsets_section(views),
        power_section(views),
        telemetry_section([one for one in subjects if one.role == "drive"]),
        fidelity,
        conditions_section(subjects),
    )


def _lead(lineup: Lineup, rows: Sequence[Row]) -> str:
    drives = [one for one in lineup.subjects if one.role == "drive"]
    # The original stands first where it has a row.
    chosen, span = rows[0], lineup.subjects[0].span_ns
    pacings = sorted({words.pacing(one.settings) for one in drives} - {""})
    modes = sorted({str(one.settings["lba"]) for one in drives if one.settings.get("lba")})
    said = (
        f"{lineup.source_name or 'A workload'} ({words.plural(chosen['ios'], 'I/O')} over {units.time(span)})"
    )
    # Without an original the count and the length above are those of what was replayed.
    parts = {words.part(one.settings, span) for one in drives}
    if parts == {""}:
        said += " was replayed"
    elif len(parts) == 1:
        said += f" was replayed in part ({parts.pop()})"
    else:
        said += " was replayed in different parts (see the run conditions)"
    said += f" {' or '.join(pacings)}" if pacings else ""
    said += f" on {words.plural(len(drives), 'drive')}"
    if len(modes) == 1:
        said += f", {words.LBA_MODES.get(modes[0], modes[0])}"
    elif modes:
        said += f", with different modes of placing addresses ({words.listed(modes)}; see the run conditions)"
    return said + "; every I/O was recorded."
