"""What the workload is: counts, mix, sizes, concurrency, places and arrivals, from the summary's `workload` part."""

from __future__ import annotations

from typing import Any

from testdrive.report import html, units
from testdrive.report.html import Markup, Node
from testdrive.report.rows import dig
from testdrive.report.subject import Subject


def workload_section(subject: Subject) -> Markup:
    """Return the counts by opcode and the characteristics of the workload."""
    counts = dig(subject.summary, "io_counts") or {}
    by_opcode = {name: value for name, value in (counts.get("by_opcode") or {}).items() if value.get("ios")}
    return html.section(
        "workload",
        "What the workload is",
        html.table(
            ["Opcode", "I/Os", "Share of I/Os", "Bytes", "Share of bytes", "Mean size", "Errors"],
            [_opcode_cells(name, value, counts) for name, value in by_opcode.items()],
            caption="I/Os by opcode",
        ),
        _characteristics(subject),
    )


def _opcode_cells(name: str, value: dict[str, Any], total: dict[str, Any]) -> list[Node]:
    ios, size = value["ios"], value["bytes"]
    return [
        name.replace("_", " "),
        units.count(ios),
        units.percent(ios / total["ios"]),
        units.size(size),
        units.percent(size / total["bytes"]) if total["bytes"] else units.ABSENT,
        units.size(size / ios),
        units.count(value["errors"]),
    ]


def _characteristics(subject: Subject) -> Markup | None:
    found = dig(subject.summary, "workload") or {}
    pairs = [(name, node) for name, node in _flatten("", found)]
    return html.facts(pairs) if pairs else None


def _flatten(prefix: str, values: dict[str, Any]) -> list[tuple[str, Node]]:
    pairs: list[tuple[str, Node]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            pairs += _flatten(f"{prefix}{key} ", value)
        elif isinstance(value, (int, float)):
            pairs.append((f"{prefix}{key}", units.number(value)))
    return pairs
