"""How true each replay was to its source: verdict, lateness, and what became of every I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testdrive.report import html, units, words
from testdrive.report.html import Markup, Node
from testdrive.report.plots import badge, lateness_figure
from testdrive.report.rows import Row, dig
from testdrive.report.subject import Subject
from testdrive.report.view import Views


def fidelity_mark(row: Row) -> Markup:
    """Return the verdict in words and colour, with each reason."""
    verdict = row["fidelity_verdict"]
    if row["role"] == "original":
        return html.tag("span", units.ABSENT)
    if verdict == "faithful":
        return html.tag("span", "✓ faithful", class_="mark good")
    if verdict == "not_faithful":
        reasons = "; ".join(row["fidelity_reasons"])
        return html.join(
            html.tag("span", "✗ not faithful", class_="mark bad"),
            html.tag("small", reasons, class_="reasons") if reasons else None,
        )
    return html.tag("span", words.code(verdict or row["fidelity_verdict_code"]))


def fidelity_section(subjects: Sequence[Subject], rows: Sequence[Row], views: Views) -> Markup | None:
    """Return the certificate of each replay; None where nothing was replayed."""
    replays = [
        (subject, row)
        for subject, row in zip(subjects, rows, strict=True)
        if subject.accounting or row["fidelity_verdict"] is not None
    ]
    if not replays:
        return None
    head = [
        "Replay",
        "Verdict",
        "I/Os issued",
        "Lateness p50",
        "p99",
        "p99.9",
        "Max",
        "Drift",
        "Order inversions",
        "In flight, mean (source)",
    ]
    return html.section(
        "fidelity",
        "Was it the same workload?",
        html.tag(
            "p",
            "A replay proves something only if the same I/Os went to the same places at the same times. "
            "Drift is how much longer the replay took "
            "than the workload; lateness is how long after its time an I/O was submitted.",
        ),
        html.table(
            head, [_certificate(subject, row) for subject, row in replays], caption="Fidelity of each replay"
        ),
        lateness_figure(views),
        html.table(
            ["Replay", "Source", "Issued", *(title for _, title in words.ACCOUNTING)],
            [_accounting(subject) for subject, _ in replays if subject.accounting],
            caption="What became of every I/O of the source: I/Os and bytes",
        ),
        link="Fidelity",
    )


def _certificate(subject: Subject, row: Row) -> list[Node]:
    fidelity = dig(subject.summary, "fidelity") or {}
    accounting = subject.accounting
    drift = fidelity.get("drift")
    lateness_code = fidelity.get("lateness_code")
    late: list[Node] = [
        units.time(fidelity.get(f"lateness_{name}_ns")) for name in ("p50", "p99", "p99_9", "max")
    ]
    if lateness_code is not None:
        late = [html.tag("small", words.code(lateness_code)), *[units.ABSENT] * 3]
    depth = [dig(accounting, f"{name}.mean") for name in ("replay_depth", "source_depth")]
    return [
        name_cell(subject),
        fidelity_mark(row),
        units.count(_total(accounting.get("issued"))[0] if accounting else row["ios"]),
        *late,
        units.ABSENT if drift is None else f"{100 * drift:+.3f} %",
        units.count(fidelity.get("order_inversions")),
        " ".join([units.number(depth[0]), f"({units.number(depth[1])})"]),
    ]


def _accounting(subject: Subject) -> list[Node]:
    parts = ["source", "issued", *(key for key, _ in words.ACCOUNTING)]
    return [name_cell(subject), *(_amount(subject.accounting.get(part)) for part in parts)]


def _amount(part: Any) -> Node:
    ios, size = _total(part)
    return html.join(units.count(ios), html.tag("small", units.size(size))) if ios else "0"


def _total(part: Any) -> tuple[int, int]:
    """Return I/Os and bytes over all opcodes."""
    if not isinstance(part, dict):
        return 0, 0
    values = [value for value in part.values() if isinstance(value, dict)]
    return sum(int(value.get("ios", 0)) for value in values), sum(
        int(value.get("bytes", 0)) for value in values
    )


def name_cell(subject: Subject, *, identity: bool = True) -> Markup:
    """Return a recording's name as the head of a table's row, with the mark of a model and, if wanted, its
    identity.
    """
    small = html.tag("small", subject.identity) if identity and subject.identity != subject.name else None
    return html.join(subject.name, " " if subject.modelled else None, badge(subject), small)
