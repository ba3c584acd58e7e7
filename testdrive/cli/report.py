"""`testdrive report`: one recording as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared


def report(
    recordings: Annotated[
        list[Path],
        typer.Argument(metavar="REC...", help="The recordings; each gets its own page.", show_default=False),
    ],
    as_json: shared.AsJson = False,
) -> int:
    """Write a recording's page, report.html, with its figures and tables beside it."""
    from testdrive.cli.output import print_json
    from testdrive.methods.looking import has_method
    from testdrive.methods.page import write_method_page
    from testdrive.report import write_report
    from testdrive.report.single import REPORT_NAME

    def page_of(recording: Path) -> Path:
        if has_method(recording):
            return write_method_page([recording], recording / REPORT_NAME).path
        return write_report(recording)

    pages = [str(page_of(recording)) for recording in recordings]
    if as_json:
        print_json({"pages": pages})
    else:
        print("\n".join(pages))
    return 0
