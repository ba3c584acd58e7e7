"""`testdrive doctor`: is this host, and this drive in it, fit to be measured with?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared

#: A problem makes runs impossible.
UNFIT_STATUS = 1


def doctor(
    drives: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DRIVE]...", help="Look at these drives, too.", show_default=False),
    ] = None,
    directory: Annotated[
        Path,
        typer.Option("--directory", help="Where recordings will be made.", show_default="here"),
    ] = Path("."),
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Run the engine for two seconds to measure its own cost."
        ),
    ] = True,
    as_json: shared.AsJson = False,
) -> int:
    """Check this host, and drives, for what makes figures wrong: each with its remedy."""
    from testdrive.cli.doctor_view import print_finding, print_verdict
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.doctor import Host, examine
    from testdrive.engine import list_drives

    found = []
    console = stdout_console()
    for each in examine(Host(), drives or [], directory, list_drives=list_drives, measure=measure):
        found.append(each)
        if not as_json:
            print_finding(console, each)
    prevented = any(each.prevents_runs for each in found)
    if as_json:
        print_json({"runs_possible": not prevented, "findings": [each.to_json_object() for each in found]})
    else:
        print_verdict(console, found)
    return UNFIT_STATUS if prevented else 0
