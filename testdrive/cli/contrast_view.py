"""`testdrive inspect A B` on a terminal: two workloads beside each other in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from testdrive.cli.statement_view import COLUMNS, incident_lines, losses_lines
from testdrive.cli.tables import table
from testdrive.recording import Recording
from testdrive.statement.contrast import Contrast, contrasts
from testdrive.statement.sentences import sentences

_NAME_MAX = 18


def contrast_view(
    names: Sequence[str], recordings: Sequence[Recording], summaries: Sequence[Mapping[str, Any]]
) -> RenderableType:
    """What each of two workloads is in words, and all their figures side by side."""
    given = zip(names, recordings, strict=True)
    parts = losses_lines((name, recording.manifest, recording.path) for name, recording in given)
    parts += incident_lines(zip(names, summaries, strict=True))
    for letter, name, summary in zip("AB", names, summaries, strict=True):
        parts.append(Text.assemble((f"{letter}  ", "bold"), (name, "bold")))
        parts += [Padding(Text(said), (0, 0, 0, 3)) for said in sentences(summary)]
        parts.append(Text())
    rows = contrasts(*summaries)
    parts.append(_table(names, rows))
    return Constrain(Group(*parts), COLUMNS)


def _table(names: Sequence[str], rows: Sequence[Contrast]) -> RenderableType:
    heads = [f"{letter} {_short(name)}" for letter, name in zip("AB", names, strict=True)]
    made = table("", *heads, "B / A", right=[*heads, "B / A"])
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            made.add_row(Text(group, style="bold"))
        made.add_row(f"  {row.name}", *row.shown, row.ratio_words)
    return made


def _short(name: str) -> str:
    return name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX - 1]}…"
