"""The page of a standard test: one drive, or several on the same scales, in one file without a network."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from testdrive.manifest import Manifest
from testdrive.methods.drawing import Figure, Findings, Table
from testdrive.methods.images import write_images
from testdrive.methods.looking import Found, deciding, looked_at
from testdrive.methods.method import Method
from testdrive.report import html, units, words
from testdrive.report.conditions import conditions_section, warnings_box
from testdrive.report.html import Markup, Section
from testdrive.report.incidents import incidents_box
from testdrive.report.losses import losses_box
from testdrive.report.pack import pack
from testdrive.report.page import frame, write_page
from testdrive.report.plots import badge
from testdrive.report.power_tables import power_figures
from testdrive.report.subject import Subject
from testdrive.report.telemetry_tables import telemetry_section


@dataclass(frozen=True)
class MethodPage:
    """A page that was written, and the tables that decide, which a terminal can show too."""

    path: Path
    tables: list[Table]


def write_method_page(
    recording_dirs: Sequence[Path], page: Path, called: Sequence[str] | None = None
) -> MethodPage:
    """Write a page with its figures (``figures/*.png``) and tables (``tables/*.csv``) beside it.

    Parameters
    ----------
    recording_dirs
        Recordings of one plan, in the order of the legend.
    page
        The HTML file.
    called
        What the drives are called; without it, by the names of their recordings.

    Returns
    -------
    MethodPage
        The page, and its tables without those of details; the first of details where there is no other.

    Raises
    ------
    UsageError
        If they are not all of one plan, or it names no method.
    RecordingError
        If a recording cannot be opened or read.
    OSError
        If the directory cannot be written to.
    """
    with looked_at(recording_dirs, called) as (subjects, found):
        figures = [figure for _, findings in found for figure in findings.figures]
        write_images(figures, page.parent / "figures")
        tables = [table for _, findings in found for table in (*findings.tables, *findings.details)]
        _write_csv(tables, page.parent / "tables")
        data = pack({"figures": {figure.key: figure.payload() for figure in figures}})
        title = _title(subjects[0].manifest, subjects)
        written = write_page(page, f"{title}: testdrive", _body(title, subjects, found), data)
        return MethodPage(written, deciding(found))


def _title(manifest: Manifest, subjects: Sequence[Subject]) -> str:
    plan = manifest.plan.title if manifest.plan else "Test"
    return f"{plan}: {subjects[0].name if len(subjects) == 1 else words.plural(len(subjects), 'drive')}"


def _body(title: str, subjects: Sequence[Subject], found: Found) -> Markup:
    manifest = subjects[0].manifest
    notes = [*differences(subjects, found), *(note for _, findings in found for note in findings.notes)]
    return frame(
        title,
        html.join(manifest.plan.question if manifest.plan else None, " ", _drives(subjects)),
        losses_box(subjects),
        incidents_box(subjects),
        warnings_box(subjects, notes),
        *(section for method, findings in found for section in _sections(method, findings)),
        power_figures(subjects),
        telemetry_section(subjects),
        _kept_section(manifest),
        conditions_section(subjects),
    )


def _drives(subjects: Sequence[Subject]) -> Markup:
    marked = []
    for one in subjects:
        marked.append(html.join(one.name, " " if one.modelled else None, badge(one), f" ({_identity(one)})"))
    return html.join("On ", html.join(*marked, separator=", "), ".")


def differences(subjects: Sequence[Subject], found: Found) -> list[str]:
    """One sentence where the runs were not asked for alike: what differs then may be no drive's doing."""
    given = [one.manifest.plan.parameters if one.manifest.plan else {} for one in subjects]
    settled = {key for method, _ in found for key in method.settles}
    every = dict.fromkeys(key for each in given for key in each if key not in settled)
    different = [key for key in every if any(each.get(key) != given[0].get(key) for each in given)]
    if not different:
        return []
    return [
        f"These runs had different parameters ({', '.join(different)}): what differs between the drives may"
        " come from that. Their settings are under Run conditions."
    ]


def _identity(one: Subject) -> str:
    """What drive it is, since a recording may have any name: its model, firmware and capacity."""
    firmware = f"firmware {one.drive.firmware}" if one.drive.firmware else None
    capacity = units.capacity(one.drive.capacity_bytes) if one.drive.capacity_bytes else None
    return ", ".join(part for part in (one.identity, firmware, capacity) if part)


def _sections(method: Method, findings: Findings) -> list[Section]:
    """The method's section and those of its chapters."""
    tables, figures, details = findings.tables, findings.figures, findings.details
    chapters = dict.fromkeys(
        ["", *(one.chapter for one in (*tables, *details)), *(one.chapter for one in figures)]
    )
    made = []
    for at, chapter in enumerate(chapters):
        section = html.section(
            f"{method.name}-{at}" if chapter else method.name,
            chapter or method.title,
            None if chapter else html.tag("p", method.reading),
            *(_table(table) for table in tables if table.chapter == chapter),
            *_figures([figure for figure in figures if figure.chapter == chapter]),
            None if figures else html.tag("p", "The run ended before there was anything to draw."),
            *(_table(table) for table in details if table.chapter == chapter),
        )
        made.append(section)
    return made


def _table(table: Table) -> Markup:
    return html.table(table.head, table.rows, caption=table.title, class_="method")


def _figures(figures: Sequence[Figure]) -> list[Markup]:
    """The figures in their order, those of a part together under its heading."""
    made: list[Markup] = []
    for part, together in groupby(figures, key=lambda figure: figure.part):
        drawn = [_figure(figure) for figure in together]
        if part is None:
            made += drawn
        else:
            pairs = html.tag("div", *drawn, class_="pair")
            made.append(html.details(f"{part.title[:1].upper()}{part.title[1:]}", pairs, open_=part.open))
    return made


def _figure(figure: Figure) -> Markup:
    return html.tag(
        "figure",
        html.tag("h3", figure.title),
        html.tag(
            "div",
            class_="plot method",
            style=f"--panels: {len(figure.y)}",
            data_panels=str(len(figure.y)),
            data_plot="method",
            data_figure=figure.key,
            data_file=figure.key,
            role="img",
            aria_label=figure.full_title,
        ),
        html.tag("figcaption", figure.caption),
    )


def _kept_section(manifest: Manifest) -> Markup | None:
    kept = manifest.kept
    if kept is None:
        return None
    said = (
        f"Histograms of every {units.duration(kept.interval_ns)} and the rows of about the"
        f" {kept.slowest_per_second:,} slowest I/Os of each. Counts, means and maxima are exact, percentiles"
        " at most 0.8 % above the exact ones."
    )
    return html.section("kept", "What was recorded", html.tag("p", said))


def _write_csv(tables: Sequence[Table], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for table in tables:
        with (directory / f"{table.key}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([table.head, *table.rows])
