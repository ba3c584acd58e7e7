"""`testdrive demo`: the main job from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The directory to make; that of an earlier demo is made anew."),
    ] = Path("demo-out"),
    as_json: shared.AsJson = False,
) -> int:
    """Replay a real workload on four modelled drives and a file, and show them side by side.

    It needs no hardware and no privileges, and takes a minute or two.
    """
    from testdrive.cli.output import note, print_json, show_on_stderr, stdout_console
    from testdrive.cli.running import exit_status
    from testdrive.demo import run_demo

    outcome = run_demo(output, show_on_stderr)
    for reason in outcome.left_out:
        note(reason)
    if as_json:
        recordings = [
            str(result.target.recording) for result in outcome.results if result.summary is not None
        ]
        print_json(
            {
                "page": str(outcome.page) if outcome.page else None,
                "recordings": recordings,
                "rows": outcome.rows,
            }
        )
    elif outcome.page is not None:
        from testdrive.cli.tables import comparison_table

        console = stdout_console()
        console.print(comparison_table(outcome.rows))
        console.print(f"Open this page: {outcome.page.resolve()}", soft_wrap=True)
    return exit_status(outcome.results)
