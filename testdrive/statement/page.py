"""The page of a workload statement: one recording, or two beside each other on the same scales."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from testdrive.errors import UsageError
from testdrive.metrics.scans import Scan
from testdrive.metrics.summary import summarize_scan
from testdrive.recording import Recording
from testdrive.report import html, units, words
from testdrive.report.conditions import conditions_section, warnings_box
from testdrive.report.html import Markup
from testdrive.report.incidents import incidents_box
from testdrive.report.losses import losses_box
from testdrive.report.page import frame, write_page
from testdrive.report.plots import badge
from testdrive.report.subject import UNKNOWN_DRIVE, Subject, names, subject
from testdrive.statement import sections
from testdrive.statement.csv_files import write_tables
from testdrive.statement.facts import arrivals_facts, contrast_section, needs_section, operations_table
from testdrive.statement.figures import write_figures
from testdrive.statement.latency_sections import latency_section
from testdrive.statement.place_sections import places_section
from testdrive.statement.sentences import sentences
from testdrive.statement.view import Views, look

PAGE_NAME = "inspect.html"
#: How many recordings a statement can be of.
RECORDINGS_MAX = 2


def write_statement(
    recording_dirs: Sequence[Path | str],
    output_dir: Path | str | None = None,
    capacities_bytes: Sequence[int] = (),
) -> Path:
    """Write `inspect.html`, `figures/workload-*.png` and `tables/workload-*.csv`.

    Parameters
    ----------
    recording_dirs
        One recording, of any kind, or two to be set side by side.
    output_dir
        Where they go, made if it is not there; if None, into the directory of the only recording.
    capacities_bytes
        Capacities of drives for which drive writes per day are given, beside the usual ones.

    Returns
    -------
    pathlib.Path
        The page: one file that needs no network.

    Raises
    ------
    UsageError
        If there is none, more than two, or two without a directory.
    RecordingError
        If a recording cannot be opened or read.
    OSError
        If the directory cannot be written to.
    """
    paths = [Path(path) for path in recording_dirs]
    if not 1 <= len(paths) <= RECORDINGS_MAX:
        raise UsageError(f"a statement is of one recording or of two, not of {len(paths)}")
    if output_dir is None and len(paths) > 1:
        raise UsageError("the statement of two recordings needs a directory of its own")
    output = Path(output_dir) if output_dir is not None else paths[0]
    with ExitStack() as stack:
        scans = [Scan(stack.enter_context(Recording.open(path))) for path in paths]
        return draw_statement(scans, [summarize_scan(scan) for scan in scans], output, capacities_bytes)


def draw_statement(
    scans: Sequence[Scan],
    summaries: Sequence[dict[str, Any]],
    output: Path,
    capacities_bytes: Sequence[int] = (),
) -> Path:
    """As :func:`write_statement`, of recordings that are open and whose summaries are there."""
    called = names([scan.recording.path for scan in scans])
    if len(called) > 1:
        called = [f"{letter}: {name}" for letter, name in zip("AB", called, strict=True)]
    subjects = [
        subject(name, "drive", at, scan.recording, summary)
        for at, (name, scan, summary) in enumerate(zip(called, scans, summaries, strict=True))
    ]
    views = look(subjects, scans)
    write_figures(views, output / "figures")
    write_tables(views, output / "tables", capacities_bytes)
    title = " and ".join(one.name for one in subjects)
    body = _body(subjects, views, capacities_bytes)
    return write_page(output / PAGE_NAME, f"{title}: workload", body, views.packed())


def _body(subjects: Sequence[Subject], views: Views, capacities_bytes: Sequence[int]) -> Markup:
    several = len(subjects) > 1
    return frame(
        f"Workload: {' beside '.join(one.name for one in subjects)}",
        html.join(*(_lead(one, several) for one in subjects)),
        losses_box(subjects),
        incidents_box(subjects),
        html.tag("div", *(_statement(one, several) for one in subjects), class_="pair" if several else None),
        warnings_box(subjects),
        needs_section(subjects, capacities_bytes),
        contrast_section(*subjects) if several else None,
        html.section("operations", "Operations", *(operations_table(one, several) for one in subjects)),
        sections.rates_section(views),
        sections.sizes_section(views),
        places_section(views),
        sections.arrivals_section(views),
        *(_facts(one, several) for one in subjects),
        latency_section(views),
        sections.trims_section(views),
        conditions_section(subjects),
    )


def _facts(one: Subject, several: bool) -> Markup:
    return html.join(html.tag("h3", one.name) if several else None, arrivals_facts(one))


def _lead(one: Subject, several: bool) -> Markup:
    manifest = one.manifest
    known = one.identity != UNKNOWN_DRIVE
    did = {"capture": ", captured", "import": ", imported", "run": ""}[manifest.kind]
    where = {"capture": " from ", "import": "; recorded on ", "run": ", issued to "}[manifest.kind]
    # What imported a trace is not what it was recorded on.
    there = manifest.host is not None and manifest.host.hostname and manifest.kind != "import"
    host = f" on {manifest.host.hostname}" if manifest.host and there else ""
    ios = (one.summary.get("io_counts") or {}).get("ios", 0)
    return html.join(
        html.tag("strong", f"{one.name}: ") if several else None,
        f"{words.plural(ios, 'I/O')} over {units.duration(manifest.counts.span_ns)}{did}",
        f"{where}{one.identity}{host}" if known else None,
        " " if one.modelled else None,
        badge(one),
        f" ({manifest.status})" if manifest.status != "complete" else None,
        ". ",
    )


def _statement(one: Subject, several: bool) -> Markup:
    said = sentences(one.summary)
    title = f"In plain words: {one.name}" if several else "In plain words"
    return html.tag(
        "section",
        html.tag("h2", title),
        html.tag("p", said[0], class_="headline"),
        html.tag("ul", *(html.tag("li", sentence) for sentence in said[1:])) if said[1:] else None,
        html.tag("p", "By rules, from the figures below. What is not said was not seen.", class_="note"),
        class_="verdict",
    )
