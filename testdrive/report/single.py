"""The page of one recording: the workload it holds, how its drive took it, and under which conditions."""

from __future__ import annotations

from pathlib import Path

from testdrive.metrics import summary_of
from testdrive.recording import Recording
from testdrive.report import html, units, words
from testdrive.report.activities import activities_table
from testdrive.report.conditions import conditions_section, warnings_box
from testdrive.report.decision import decision_table
from testdrive.report.fidelity import fidelity_section, name_cell
from testdrive.report.figures import write_figures
from testdrive.report.html import Markup
from testdrive.report.incidents import incidents_box
from testdrive.report.losses import losses_box
from testdrive.report.page import frame, write_page
from testdrive.report.plots import latency_section, offsets_section, percentiles_section, power_section
from testdrive.report.rows import Row, row
from testdrive.report.subject import UNKNOWN_DRIVE, Subject, names, subject
from testdrive.report.tables import write_tables
from testdrive.report.telemetry_tables import telemetry_section
from testdrive.report.trims import trims_table
from testdrive.report.verdict import mark, sentences
from testdrive.report.view import Views, look
from testdrive.report.workload import workload_section

REPORT_NAME = "report.html"


def write_report(recording_dir: Path | str) -> Path:
    """Write `report.html`, `figures/*.png` and `tables/*.csv` into a recording's directory.

    Parameters
    ----------
    recording_dir
        The recording, of any kind.

    Returns
    -------
    pathlib.Path
        The page: one file that needs no network.

    Raises
    ------
    RecordingError
        If the recording cannot be opened or read.
    OSError
        If its directory cannot be written to.
    """
    path = Path(recording_dir)
    with Recording.open(path) as recording:
        recording.require_rows("be reported on in full")
        run = recording.manifest.kind == "run"
        one = subject(names([path])[0], "drive" if run else "original", 0, recording, summary_of(recording))
        views = look([one])
        figures = row(one)
        body = _body(one, figures, views)
        write_figures(views, path / "figures")
        write_tables(views, [figures], path / "tables")
        return write_page(path / REPORT_NAME, f"{one.name}: testdrive report", body, views.packed())


def _body(one: Subject, figures: Row, views: Views) -> Markup:
    fidelity = fidelity_section([one], [figures], views)
    return frame(
        f"Report: {one.name}",
        _lead(one, figures),
        losses_box([one]),
        incidents_box([one]),
        _verdict(one, figures),
        warnings_box([one]),
        html.section("decision", "Figures", decision_table([one], [figures])),
        workload_section(one),
        latency_section(views, trims_table([one]), activities_table([one])),
        percentiles_section(views),
        offsets_section(views),
        power_section(views),
        telemetry_section([one]),
        fidelity,
        conditions_section([one]),
    )


def _lead(one: Subject, figures: Row) -> Markup:
    manifest = one.manifest
    span = units.duration(one.span_ns)
    did = {
        "capture": "captured from",
        "import": "imported, recorded on",
        "run": "issued to",
    }[manifest.kind]
    if manifest.kind == "import" and one.identity == UNKNOWN_DRIVE:
        return html.join(f"{words.plural(figures['ios'], 'I/O')} over {span}, imported.")
    pacing = words.pacing(one.settings)
    return html.join(
        f"{words.plural(figures['ios'], 'I/O')} over {span}, {did} ",
        name_cell(one, identity=False) if one.identity == one.name else one.identity,
        f", {pacing}" if pacing else None,
        ".",
    )


def _verdict(one: Subject, figures: Row) -> Markup:
    original = figures["role"] == "original"
    return html.tag(
        "section",
        html.tag("h2", "In this recording" if original else "How the drive took it"),
        html.tag("p", None if original else mark(figures), None if original else ". ", sentences(figures)),
        html.tag("p", "This says what was seen, not why.", class_="note"),
        class_="verdict",
        id="verdict",
    )
