"""What a benchmark found: tables for people, targets with whether they were reached, figures for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Target:
    """Something that testdrive must reach, and what it reached."""

    what: str
    wanted: str
    measured: str
    reached: bool


@dataclass
class Section:
    """One benchmark's findings."""

    letter: str
    title: str
    how: list[str]
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """As Markdown, aligned so that it reads well on a terminal too."""
        lines = [line for sentence in self.how for line in (sentence, "")]
        for table in [*self.tables, self._targets_table()]:
            if table.rows:
                lines += [f"**{table.title}**", "", *table_lines(table), ""]
        return lines[:-1]

    def _targets_table(self) -> Table:
        rows = [
            [target.what, target.wanted, target.measured, "yes" if target.reached else "**no**"]
            for target in self.targets
        ]
        return Table("Targets", ["target", "wanted", "measured", "reached"], rows)


def table_lines(table: Table) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(table.columns, *table.rows, strict=True)]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [line(table.columns), rule, *map(line, table.rows)]
