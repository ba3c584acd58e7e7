"""Power in figures: what each drive and each phase drew, what that bought, and who measured it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testdrive.report import html, units, words
from testdrive.report.html import Markup, Node
from testdrive.report.rows import dig
from testdrive.report.subject import Subject

NOT_MEASURED = "not measured"
#: More phases than this are folded.
_PHASES_SHOWN_MAX = 8
HEAD = ["", "Mean power", "MB/s for each W", "kIOPS for each W", "Energy for each I/O", "Measured"]


def power_tables(subjects: Sequence[Subject]) -> list[Markup]:
    """Return the table of all drives, that of the phases where there is one drive, and what measured them."""
    shown = [one for one in subjects if one.role == "drive" or dig(one.summary, "power.source")]
    rows = [[*_cells(_name(one), dig(one.summary, "power") or {}), _idle(one)] for one in shown]
    tables = [html.table([*HEAD, "Idle"], rows, caption="Power in the measured phases")]
    phases = dig(subjects[0].summary, "power.phases") if len(subjects) == 1 else None
    if phases and len(phases) > 1:
        each = [_cells(str(phase["name"]), phase) for phase in phases]
        table = html.table(HEAD, each, caption="Power of each phase")
        tables.append(html.details("Each phase", table) if len(phases) > _PHASES_SHOWN_MAX else table)
    tables.append(
        html.tag(
            "ul", *(html.tag("li", f"{one.name}: {power_statement(one)}.") for one in shown), class_="note"
        )
    )
    return tables


def power_figures(subjects: Sequence[Subject]) -> Markup | None:
    """Return the tables as a section of their own, for pages that draw no power; None where none was
    measured.
    """
    if not any(dig(one.summary, "power.source") for one in subjects):
        return None
    return html.section("power", "Power", *power_tables(subjects))


def power_statement(subject: Subject) -> str:
    """Say what measured a recording's power and how well, with the host's meters; or that nothing did."""
    source = dig(subject.summary, "power.source")
    said = (
        f"by {source['title']}; uncertainty: {source['uncertainty']}; clock: {source['clock']}"
        if source
        else NOT_MEASURED
    )
    for host in dig(subject.summary, "power.host") or []:
        mean_w = host["mean_w"]
        figure = NOT_MEASURED if mean_w is None else f"{units.significant(mean_w)} W"
        said += f"; the host meanwhile, {host['title']}: {figure}"
    return said


def _name(subject: Subject) -> str:
    return subject.label


def _cells(name: str, found: Mapping[str, Any]) -> list[Node]:
    mean_w, throughput, iops, each_uj = (
        found.get(key) for key in ("mean_w", "throughput_bytes_per_s_per_w", "iops_per_w", "energy_per_io_uj")
    )
    why = words.code(found.get("code")) if found.get("code") else NOT_MEASURED
    absent = why if mean_w is None else units.ABSENT
    return [
        name,
        why if mean_w is None else f"{units.significant(mean_w)} W",
        absent if throughput is None else units.significant(throughput / 1e6),
        absent if iops is None else units.significant(iops / 1e3),
        absent if each_uj is None else energy(each_uj),
        units.percent(found.get("covered_share") or 0.0),
    ]


def energy(value_uj: float) -> str:
    """Return an energy in µJ, mJ or J with three significant digits."""
    for scale, unit in ((1e6, "J"), (1e3, "mJ")):
        if value_uj >= scale:
            return f"{units.significant(value_uj / scale)} {unit}"
    return f"{units.significant(value_uj)} µJ"


def _idle(subject: Subject) -> str:
    idle_w = dig(subject.summary, "power.idle_w")
    return NOT_MEASURED if idle_w is None else f"{units.significant(idle_w)} W"
