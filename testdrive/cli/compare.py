"""`testdrive compare`: recordings of one workload side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared


def compare(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="REC...", help="Replays of one workload, in the table's order.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory for the page.")] = Path(
        "comparison"
    ),
    original: Annotated[
        Path | None,
        typer.Option(help="The replayed recording, if it has moved since.", show_default=False),
    ] = None,
    as_json: shared.AsJson = False,
) -> int:
    """Compare drives: the table that decides, overlays and certificates, as one page."""
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.cli.running import COMPARISON_NAME
    from testdrive.cli.tables import comparison_table, method_table
    from testdrive.compare import write_comparison
    from testdrive.methods.looking import has_method
    from testdrive.methods.page import write_method_page

    if original is None and has_method(recordings[0]):
        written = write_method_page(recordings, output / COMPARISON_NAME)
        if as_json:
            print_json({"page": str(written.path)})
        else:
            stdout_console().print(*(method_table(table) for table in written.tables))
            print(f"page: {written.path}")
        return 0
    made = write_comparison(recordings, output, original)
    if as_json:
        losses = [{"name": name, "lost": said} for name, said in made.losses]
        print_json({"page": str(made.page), "rows": made.rows, "losses": losses})
        return 0
    console = stdout_console()
    for name, said in made.losses:
        console.print(f"{name} lost events, and what is counted from it is too low: {said}", style="red")
    for row in (row for row in made.rows if row["incidents"]):
        lost = f", {row['lost_ios']:,} I/Os lost" if row["lost_ios"] else ""
        console.print(f"{row['name']} stopped answering, was reset or lost{lost}: see the page", style="red")
    console.print(comparison_table(made.rows))
    console.print(f"page: {made.page}", soft_wrap=True)
    return 0
