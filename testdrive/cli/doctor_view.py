"""The doctor's findings on a terminal: a line for what is well, and three for what is not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from testdrive.doctor.finding import Finding
from testdrive.report import words

_MARKS = {
    "ok": ("ok", "green"),
    "info": ("info", "cyan"),
    "warning": ("warning", "yellow"),
    "problem": ("problem", "bold red"),
}
_MARK_COLUMNS = 7
_NAME_COLUMNS = 20


def print_finding(console: Console, finding: Finding) -> None:
    """Print one finding, as it is made."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=_MARK_COLUMNS, no_wrap=True)
    row.add_column(width=_NAME_COLUMNS, no_wrap=True)
    row.add_column(overflow="fold")
    mark, style = _MARKS[finding.severity]
    told = Text(finding.found)
    if finding.subject:
        told = Text.assemble((f"{finding.subject}: ", "dim"), told)
    if finding.meaning:
        told.append(f"\n{finding.meaning}")
    if finding.remedy:
        told.append("\nremedy: ", style="dim")
        told.append(finding.remedy, style="bold")
    row.add_row(Text(mark, style=style), finding.code.replace("_", " "), told)
    console.print(row)


def print_verdict(console: Console, findings: Sequence[Finding]) -> None:
    """Print what it all comes to."""
    warnings = sum(finding.severity == "warning" for finding in findings)
    problems = sum(finding.severity == "problem" for finding in findings)
    counts = f"{words.plural(problems, 'problem')}, {words.plural(warnings, 'warning')}"
    if any(finding.prevents_runs for finding in findings):
        verdict = Text(f"{counts}: runs are not possible as it is", style="bold red")
    elif problems:
        verdict = Text(f"{counts}: runs are possible, but figures would not be the drive's", style="red")
    elif warnings:
        verdict = Text(f"{counts}: runs are possible; what is said above belongs to the results")
    else:
        verdict = Text("nothing stands against measuring here", style="green")
    console.print(verdict)
