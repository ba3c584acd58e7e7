"""`testdrive import`: a recording from foreign traces."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared
from testdrive.errors import UsageError


class Events(StrEnum):
    """What a row of the recording is."""

    queued = "queued"
    issued = "issued"


def import_(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES...", help="The trace's files.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The recording to make.  [default: named after the first file]",
            show_default=False,
        ),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="The trace's format; detected without it.", show_default=False
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=COLUMN,...",
            help="For csv: which column is what, by the header's name or an index, such as"
            " submit_us=time,latency_us=lat,op=rw,offset_bytes=off,length_bytes=len.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        Events | None,
        typer.Option(help="A row is what was queued, or what was issued to the drive.", show_default=False),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="MAJ:MIN", help="The device, where the trace holds several.", show_default=False
        ),
    ] = None,
    list_formats: Annotated[
        bool, typer.Option("--list-formats", help="Show the formats that can be read.")
    ] = False,
    as_json: shared.AsJson = False,
) -> int:
    """Make a recording of a trace that another tool captured."""
    if list_formats:
        return _list_formats(as_json)
    if not files:
        raise UsageError(
            "import needs the trace's files; `testdrive import --list-formats` shows what can be read"
        )
    return _import(files, output, format_name, columns, events.value if events else None, device, as_json)


def _import(
    files: list[Path],
    output: Path | None,
    format_name: str | None,
    columns: str | None,
    events: str | None,
    device: str | None,
    as_json: bool,
) -> int:
    from testdrive.cli.naming import RECORDING_SUFFIX, new_recording
    from testdrive.cli.output import print_json, show_on_stderr
    from testdrive.engine import import_traces

    recording = new_recording(output, Path(f"{files[0].name.partition('.')[0]}{RECORDING_SUFFIX}"))
    with show_on_stderr(files[0].name) as shown:
        finished = import_traces(
            files,
            recording,
            format_name=format_name,
            events=events,
            device=device,
            columns=columns,
            on_event=shown,
        )
    if as_json:
        print_json({"recording": str(recording), "status": finished.status, "counts": finished.counts})
        return 0
    from testdrive.report import units

    print(f"{units.count(finished.counts.get('ios'))} I/Os over {units.time(finished.counts.get('span_ns'))}")
    print(f"recording: {recording}")
    print(f"next: testdrive inspect {recording}")
    return 0


def _list_formats(as_json: bool) -> int:
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.cli.tables import formats_table
    from testdrive.engine import list_formats

    formats = list_formats()
    if as_json:
        print_json(formats)
    else:
        stdout_console().print(formats_table(formats))
    return 0
