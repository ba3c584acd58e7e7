"""What operations are called, also where a source did not tell them apart.

A recording holds a read where the source did not say what an I/O was. To call it one would be a claim: a
summary has it as `unknown`, and people read of I/Os.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testdrive.manifest import UNKNOWN
from testdrive.report.rows import dig

Summary = Mapping[str, Any]

MANY = {
    "read": "reads",
    "write": "writes",
    "trim": "trims",
    "flush": "flushes",
    "write_zeroes": "write zeroes",
}


def told(summary: Summary) -> bool:
    """Whether the source said what each I/O was."""
    return "opcode" not in (dig(summary, "recording.absent_columns") or [])


def in_summary(summary: Summary, name: str) -> str:
    """The name by which a summary has the I/Os that rows hold as `name`: `unknown` where they were not told
    apart.
    """
    return name if told(summary) else UNKNOWN


def one(summary: Summary, name: str) -> str:
    """An operation by its name in a summary: `read`, `write zeroes`; `I/O` where the source did not tell."""
    return name.replace("_", " ") if told(summary) else "I/O"


def many(summary: Summary, name: str) -> str:
    """Several of them: `reads`, `flushes`; `I/Os` where the source did not tell."""
    return MANY.get(name, name) if told(summary) else "I/Os"
