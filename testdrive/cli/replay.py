"""`testdrive replay`: the plan `replay` with its parameters as options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from testdrive.cli import options as shared


class Lba(StrEnum):
    """Where I/Os go on a drive of another capacity."""

    skip = "skip"
    wrap = "wrap"
    scale = "scale"
    scale_excess = "scale-excess"


class Pace(StrEnum):
    """When I/Os are issued."""

    timed = "timed"
    asap = "asap"
    depth = "depth"


class Events(StrEnum):
    """Which of the source's times is the schedule."""

    queued = "queued"
    issued = "issued"


class Streams(StrEnum):
    """How many workers submit."""

    one = "one"
    source = "source"


class Prepare(StrEnum):
    """What is done to the drive before."""

    none = "none"
    sequential = "sequential"


_DURATION = "DURATION"
_OPERATIONS = "OPS"


def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="REC", help="The recording to replay.", show_default=False)
    ],
    drive: shared.Drives,
    output: shared.RunOutput = None,
    lba: Annotated[Lba, typer.Option(help="Where I/Os go on a drive of another capacity.")] = Lba.skip,
    pace: Annotated[
        Pace,
        typer.Option(help="By the source's clock, as fast as it goes, or with the source's concurrency."),
    ] = Pace.timed,
    speed: Annotated[float, typer.Option(help="Divides the source's times.")] = 1.0,
    depth: Annotated[
        int | None, typer.Option(help="I/Os in flight, for --pace asap.  [default: 32]", show_default=False)
    ] = None,
    events: Annotated[
        Events, typer.Option(help="Replay what was queued, or what was issued to the drive.")
    ] = Events.queued,
    loop: Annotated[int | None, typer.Option(help="Replay it so many times.", show_default=False)] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar=_DURATION,
            help="Stop after so long, repeating it if needed: 10m.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar=_DURATION, help="Replay from this time of the recording.", show_default=False
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar=_DURATION, help="Replay up to this time of the recording.", show_default=False
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar=_OPERATIONS, help="Operations to keep: reads,writes,trims,flushes.", show_default=False
        ),
    ] = None,
    without: Annotated[
        str | None, typer.Option(metavar=_OPERATIONS, help="Operations to leave out.", show_default=False)
    ] = None,
    streams: Annotated[
        Streams, typer.Option(help="One submitting worker, or one for each of the source's streams.")
    ] = Streams.one,
    prepare: Annotated[
        Prepare, typer.Option(help="Write the whole drive before: `sequential`, for drives to compare.")
    ] = Prepare.none,
    data: Annotated[
        str, typer.Option(help="What is written: incompressible, zero, or a compressible share such as 0.5.")
    ] = "incompressible",
    erase: shared.Erase = None,
    erase_signatures: shared.EraseSignatures = False,
    io_timeout: shared.IoTimeout = None,
    on_error: shared.OnError = shared.OnErrorChoice.stop,
    save_state: shared.SaveState = None,
    power: shared.Power = None,
    power_idle: shared.PowerIdle = None,
    telemetry: shared.Telemetry = None,
    compare: shared.CompareAfterwards = True,
    as_json: shared.AsJson = False,
) -> int:
    """Issue a recorded workload again on a drive, and record every I/O.

    The same operations at the same places, sizes, times and order; the recording holds the proof. The method
    for comparing drives, with its preparation, is `testdrive run replay`.
    """
    parameters: dict[str, Any] = {
        "recording": recording,
        "lba": lba.value,
        "pace": pace.value,
        "speed": speed,
        "depth": depth,
        "events": events.value,
        "loop": loop,
        "for": duration,
        "from": start,
        "to": end,
        "only": only,
        "without": without,
        "streams": streams.value,
        "prepare": prepare.value,
        "data": data,
    }
    # What the replay needs is a second's worth of imports, which `--help` should not wait for.
    from testdrive.cli import running
    from testdrive.plans import bind, load

    bound = bind(load("replay"), parameters)
    request = running.Request(
        drives=drive,
        output=output,
        erase=erase or [],
        erase_signatures=erase_signatures,
        io_timeout=io_timeout,
        keep_on=on_error is shared.OnErrorChoice.continue_,
        save_state=save_state,
        compare=compare,
        power=power or [],
        power_idle=power_idle,
        telemetry=telemetry,
        as_json=as_json,
    )
    return running.carry_out(bound, request)
