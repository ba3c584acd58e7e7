"""`testdrive inspect`: what a recording holds, in figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared


def inspect(
    recording: Annotated[Path, typer.Argument(metavar="REC", help="The recording.", show_default=False)],
    explain: Annotated[
        bool,
        typer.Option("--explain", help="List what the drive was busy with in each burst, by its own log."),
    ] = False,
    as_json: shared.AsJson = False,
) -> int:
    """Compute every metric of a recording, captured, imported or run, and leave them in its summary.json."""
    from testdrive.cli.output import note, print_json, stdout_console
    from testdrive.explanation import explanation_of
    from testdrive.manifest import write_json
    from testdrive.metrics import summarize
    from testdrive.metrics.summary import SUMMARY_NAME
    from testdrive.recording import Recording

    with Recording.open(recording) as opened:
        if opened.recovered:
            note(f"{recording}: its writer had crashed; it is marked interrupted now, with what was closed")
        summary = summarize(opened)
        manifest = opened.manifest
        explanation = explanation_of(opened, summary) if explain else None
    try:
        write_json(recording / SUMMARY_NAME, summary)
    except OSError as error:
        # A recording on read-only storage can be looked at all the same.
        note(f"{recording / SUMMARY_NAME} was not written: {error.strerror or error}")
    if as_json:
        told = {"explanation": explanation and explanation.as_json()} if explain else {}
        print_json({**summary, **told})
        return 0
    from testdrive.cli.explanation_view import explanation_view
    from testdrive.cli.summary_view import summary_view

    stdout_console().print(summary_view(summary, manifest))
    if explain:
        stdout_console().print(explanation_view(explanation, manifest))
    return 0
