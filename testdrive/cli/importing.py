"""`testdrive import`: recordings from foreign traces."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testdrive.cli import options as shared
from testdrive.errors import UsageError

if TYPE_CHECKING:
    from testdrive.events import Imported


class TimeUnit(StrEnum):
    """What the times of a trace are counted in."""

    s = "s"
    ms = "ms"
    us = "us"
    ns = "ns"


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
            help="The recording to make; of several volumes each gets one: prod.VOLUME.rec for prod.rec."
            "  [default: named after the first file]",
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
    volume: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The volume, where the trace holds several; without it, each becomes a recording.",
            show_default=False,
        ),
    ] = None,
    time_unit: Annotated[
        TimeUnit | None,
        typer.Option(
            help="What times are counted in, where the format leaves that open.", show_default=False
        ),
    ] = None,
    object_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Objects are blocks of N bytes, where the format leaves open what they are.",
            show_default=False,
        ),
    ] = None,
    list_formats: Annotated[
        bool, typer.Option("--list-formats", help="Show the formats that can be read.")
    ] = False,
    as_json: shared.AsJson = False,
) -> int:
    """Make a recording of a trace that another tool captured, or one of each of its volumes."""
    if list_formats:
        return _list_formats(as_json)
    if not files:
        raise UsageError(
            "import needs the trace's files; `testdrive import --list-formats` shows what can be read"
        )
    from testdrive.cli.naming import RECORDING_SUFFIX, new_recording, trace_name
    from testdrive.cli.output import print_json, show_on_stderr
    from testdrive.engine import import_traces

    name = trace_name(files[0])
    recording = new_recording(output, Path(f"{name.lstrip('.').partition('.')[0]}{RECORDING_SUFFIX}"))
    with show_on_stderr(name) as shown:
        finished = import_traces(
            files,
            recording,
            format_name=format_name,
            events=events.value if events else None,
            device=device,
            volume=volume,
            columns=columns,
            time_unit=time_unit.value if time_unit else None,
            object_bytes=object_bytes,
            on_event=shown,
        )
    if as_json:
        print_json(_result(finished, recording))
    else:
        _show(finished, recording)
    return 0


def _result(finished: Imported, recording: Path) -> dict[str, Any]:
    """What was made, for programs: `recording` is null where there are several."""
    made = [
        {"recording": str(one.output), "volume": one.volume, "counts": one.counts}
        for one in finished.recordings
    ]
    return {
        "recording": None if len(made) > 1 else str(recording),
        "recordings": made,
        "status": finished.status,
        "counts": finished.counts,
        "dropped": [{"what": part.what, "count": part.count} for part in finished.dropped],
    }


def _show(finished: Imported, recording: Path) -> None:
    from testdrive.cli.output import stdout_console
    from testdrive.cli.tables import recordings_table
    from testdrive.report import units

    print(f"{units.count(finished.counts.get('ios'))} I/Os over {units.time(finished.counts.get('span_ns'))}")
    for part in finished.dropped:
        print(f"left out: {units.count(part.count)} {part.what}")
    if len(finished.recordings) > 1:
        stdout_console().print(recordings_table(finished.recordings))
        recording = max(finished.recordings, key=lambda one: one.counts.get("ios", 0)).output
    else:
        print(f"recording: {recording}")
    print(f"next: testdrive inspect {recording}")


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
