"""Under which conditions each recording was made, and what makes its figures less valid than they look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testdrive.report import html, units, words
from testdrive.report.html import Markup, Node
from testdrive.report.incidents import is_incident
from testdrive.report.losses import is_loss
from testdrive.report.plots import badge
from testdrive.report.power_tables import power_statement
from testdrive.report.subject import Subject

#: The most items of a list that are shown: a trace may have a file for each of many CPUs.
_LISTED_MAX = 4


def warnings_box(subjects: Sequence[Subject], notes: Sequence[str] = ()) -> Markup | None:
    """Return every warning of every recording, in sight, each with its remedy, after notes on all; None with
    neither.
    """
    gathered: dict[tuple[str, str], list[str]] = {}
    for subject in subjects:
        for message, remedy in _warnings(subject):
            gathered.setdefault((message, remedy), []).append(subject.name)
    if not gathered and not notes:
        return None
    everywhere = len(subjects)
    items = [html.tag("li", note) for note in notes]
    for (message, remedy), names in gathered.items():
        who = None if everywhere == 1 else "All: " if len(names) == everywhere else f"{words.listed(names)}: "
        items.append(
            html.tag(
                "li",
                html.tag("strong", who) if who else None,
                message,
                # The engine's messages are parts of a sentence, ours are whole ones.
                (" " if message.endswith((".", "!", "?")) else "; ") if remedy else None,
                remedy or None,
            )
        )
    return html.tag(
        "section",
        html.tag("h2", "What makes these figures less certain"),
        html.tag("ul", *items),
        class_="warnings",
        aria_label="Warnings",
    )


def _warnings(subject: Subject) -> list[tuple[str, str]]:
    manifest = subject.manifest
    found = [(words.SHORT_FORM, "Run it without --short.")] if manifest.plan and manifest.plan.short else []
    # What was lost and what happened to the drive stand above everything else, and are not said twice.
    found += [
        (warning.message or warning.code, warning.remedy)
        for warning in subject.warnings
        if not is_loss(warning) and not is_incident(warning)
    ]
    found += [
        (f"{dropped.count:,} {units.TIMES} {dropped.what} could not be used.", "")
        for dropped in manifest.dropped
        if dropped.count and not is_loss(dropped)
    ]
    if manifest.status != "complete":
        reason = f": {manifest.status_reason}" if manifest.status_reason else ""
        found.append((f"The recording is {manifest.status}{reason}.", "It holds only what came before."))
    if subject.modelled:
        found.append(("This is a modelled drive in virtual time: it shows the method, not a product.", ""))
    return found


def conditions_section(subjects: Sequence[Subject]) -> Markup:
    """Return drive, path, host, kernel, tool, preparation and settings of each recording, folded."""
    return html.section(
        "conditions",
        "Run conditions" if "run" in {each.manifest.kind for each in subjects} else "Where it is from",
        *(
            html.details(
                html.join(
                    subject.name, " " if subject.modelled else None, badge(subject), f", {subject.identity}"
                ),
                html.facts(_facts(subject)),
                open_=len(subjects) == 1,
            )
            for subject in subjects
        ),
        link="Conditions",
    )


def _facts(subject: Subject) -> list[tuple[str, Node]]:
    manifest, drive, host = subject.manifest, subject.drive, subject.manifest.host
    pairs: list[tuple[str, Any]] = [
        ("Recording", str(subject.recording.path)),
        ("Kind and status", f"{manifest.kind}, {manifest.status}"),
        ("Written", manifest.created),
        ("Drive", drive.uri),
        ("Model", drive.model),
        ("Serial number", drive.serial),
        ("Firmware", drive.firmware),
        ("Capacity", units.capacity(drive.capacity_bytes) if drive.capacity_bytes else None),
        ("Logical / physical block", _blocks(subject)),
        ("I/O path", drive.path),
        ("Path settings", _listing(drive.settings)),
        ("Host", host.hostname if host else None),
        ("Kernel", host.kernel if host else None),
        (
            "Processor",
            f"{host.cpu_model or 'not known'}, {words.plural(host.cpus, 'CPU')}"
            if host and host.cpus
            else None,
        ),
        ("Memory", units.size(host.memory_bytes) if host and host.memory_bytes else None),
        ("Clock", manifest.clock.source),
        ("Tool", f"{manifest.tool.name} {manifest.tool.version}, {manifest.tool.build} build"),
        ("Source", _listing(manifest.source or {})),
        ("Power", power_statement(subject)),
    ]
    if manifest.kind == "run":
        pairs += [
            ("Preparation", _preparation(subject)),
            ("Write data", subject.settings.get("data")),
            ("Measured phase's settings", _listing(subject.settings)),
        ]
    return [(term, "not recorded" if value in (None, "") else str(value)) for term, value in pairs]


def _blocks(subject: Subject) -> str | None:
    drive = subject.drive
    if drive.logical_block_bytes is None:
        return None
    physical = f"{drive.physical_block_bytes:,} B" if drive.physical_block_bytes else "not known"
    return f"{drive.logical_block_bytes:,} B / {physical}"


def _preparation(subject: Subject) -> str:
    prepared = [phase for phase in subject.manifest.phases if phase.kind == "prepare"]
    if prepared:
        return "; ".join(
            f"{phase.name} ({_listing(phase.settings or {}) or 'no settings'})" for phase in prepared
        )
    return "none"


def _listing(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {_short(value)}"
        for key, value in values.items()
        if value is not None and value not in ([], {})
    )


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        shown = [str(item) for item in value[:_LISTED_MAX]]
        rest = len(value) - len(shown)
        return " ".join([*shown, *([f"and {rest} more"] if rest else [])])
    return str(value)
