"""`testdrive inspect`: what a workload is and what it asks of a drive, for one recording or two side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testdrive.cli import options as shared
from testdrive.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from testdrive.explanation import Explanation
    from testdrive.metrics.scans import Scan
    from testdrive.recording import Recording

#: Where the page of two recordings goes, unless it is said.
BESIDE = Path("inspection")


def inspect(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="REC [REC]", help="The recording, or two to be set side by side.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The directory for the page.  [default: the recording; for two of them, inspection]",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page",
            help="Write inspect.html with its figures and tables.  [default: yes, but not with --json]",
            show_default=False,
        ),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIZE",
            help="A drive's capacity, such as 3.84TB: how often a day would it be written? May be repeated.",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="List what the drive was busy with in each burst, by its own log."),
    ] = False,
    as_json: shared.AsJson = False,
) -> int:
    """Say what a recorded workload is, in words, figures and as a page; every metric goes into
    summary.json.
    """
    from contextlib import ExitStack

    from testdrive.cli.output import note, print_json
    from testdrive.explanation import explanation_of
    from testdrive.metrics.scans import scan_of
    from testdrive.metrics.summary import summarize_scan
    from testdrive.quantities import size_bytes
    from testdrive.recording import Recording

    if len(recordings) > 2:
        raise UsageError(f"inspect takes one recording, or two to be set side by side, not {len(recordings)}")
    capacities = [_capacity(text, size_bytes(text)) for text in capacity or []]
    if page is None:
        page = output is not None or not as_json
    with ExitStack() as stack:
        opened = [stack.enter_context(Recording.open(path)) for path in recordings]
        for one in opened:
            if one.recovered:
                note(
                    f"{one.path}: its writer had crashed; it is marked interrupted now, with what was closed"
                )
            if not as_json:
                one.require_rows("be inspected as a workload")
        scans = [scan_of(one) for one in opened]
        summaries = [summarize_scan(scan) for scan in scans]
        for one, summary in zip(opened, summaries, strict=True):
            _leave_summary(one.path, summary)
        told = [explanation_of(*each) for each in zip(opened, summaries, strict=True)] if explain else None
        if not as_json:
            _show(opened, summaries, capacities, told)
        drawn = _page(scans, summaries, output, capacities) if page else None
    if as_json:
        print_json(_data(summaries, drawn, told))
    elif drawn:
        print(f"page: {drawn}")
    return 0


def _capacity(text: str, capacity_bytes: int) -> int:
    if capacity_bytes <= 0:
        raise UsageError(f"--capacity {text}: a drive holds more than that; write it like 3.84TB")
    return capacity_bytes


def _leave_summary(recording: Path, summary: dict[str, Any]) -> None:
    from testdrive.cli.output import note
    from testdrive.durable_json import write_json
    from testdrive.metrics.summary import SUMMARY_NAME

    try:
        write_json(recording / SUMMARY_NAME, summary)
    except OSError as error:
        # A recording on read-only storage can be looked at all the same.
        note(f"{recording / SUMMARY_NAME} was not written: {error.strerror or error}")


def _show(
    opened: Sequence[Recording],
    summaries: Sequence[dict[str, Any]],
    capacities: Sequence[int],
    told: Sequence[Explanation | None] | None,
) -> None:
    from testdrive.cli.explanation_view import explanation_view
    from testdrive.cli.output import stdout_console

    stdout_console().print(_view(opened, summaries, capacities))
    for one, explanation in zip(opened, told or [], strict=False):
        if len(opened) > 1:
            stdout_console().print(f"\n{one.path.name}", style="bold")
        stdout_console().print(explanation_view(explanation, one.manifest))


def _view(
    opened: Sequence[Recording], summaries: Sequence[dict[str, Any]], capacities: Sequence[int]
) -> RenderableType:
    if len(opened) == 1:
        from testdrive.cli.statement_view import statement_view

        return statement_view(summaries[0], opened[0].manifest, opened[0].path, capacities)
    from testdrive.cli.contrast_view import contrast_view
    from testdrive.report.subject import names

    return contrast_view(names([one.path for one in opened]), opened, summaries)


def _page(
    scans: Sequence[Scan],
    summaries: Sequence[dict[str, Any]],
    output: Path | None,
    capacities: Sequence[int],
) -> Path | None:
    """Write the page; where its place cannot be written to, say so unless the place was asked for."""
    from testdrive.cli.output import note
    from testdrive.statement import draw_statement

    place = output or (scans[0].recording.path if len(scans) == 1 else BESIDE)
    try:
        return draw_statement(scans, summaries, place, capacities)
    except OSError as error:
        if output is not None:
            raise
        note(f"the page was not written to {place}: {error.strerror or error}; -o chooses another directory")
        return None


def _data(
    summaries: Sequence[dict[str, Any]], page: Path | None, told: Sequence[Explanation | None] | None
) -> dict[str, Any]:
    """The summary itself for one recording; for two, both with their figures side by side."""
    if told is not None:
        explained = [explanation and explanation.as_json() for explanation in told]
        summaries = [
            {**summary, "explanation": each} for summary, each in zip(summaries, explained, strict=True)
        ]
    if len(summaries) == 1:
        return summaries[0]
    from testdrive.statement.contrast import contrasts

    rows = [
        {"group": row.group, "name": row.name, "key": row.key, "a": row.a, "b": row.b, "ratio": row.ratio}
        for row in contrasts(*summaries)
    ]
    return {"recordings": list(summaries), "side_by_side": rows, "page": str(page) if page else None}
