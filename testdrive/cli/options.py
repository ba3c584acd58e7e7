"""Options that several commands have, declared once so that they read the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print data as JSON on standard output.")]

Drives = Annotated[
    list[str],
    typer.Option(
        "--drive",
        metavar="URI",
        help="/dev/nvme0n1, /dev/ng0n1, pci:0000:01:00.0, file:PATH?size=4GiB, sim:MODEL or null:?size=1TiB; "
        "several for one run on each.",
        show_default=False,
    ),
]
DrivesOrNone = Annotated[
    list[str] | None,
    typer.Option(
        "--drive",
        metavar="URI",
        help="/dev/nvme0n1, file:PATH?size=4GiB, sim:MODEL or null:?size=1TiB; several for one run on each.",
        show_default=False,
    ),
]
RunOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The recording to make, or with several drives the directory for one recording each."
        " Without it, a name is made up here.",
        show_default=False,
    ),
]
Erase = Annotated[
    list[str] | None,
    typer.Option(
        "--erase",
        metavar="SERIAL",
        help="Consent to write to the block device with this serial, or path where it has no serial."
        " `testdrive drives` shows it.",
        show_default=False,
    ),
]
EraseSignatures = Annotated[
    bool,
    typer.Option(
        "--erase-signatures",
        help="Second consent: also where the device carries a partition table, filesystem or RAID signature.",
    ),
]
IoTimeout = Annotated[
    str | None,
    typer.Option(
        "--io-timeout",
        metavar="DURATION",
        help="An I/O without an answer for so long ends the run.  [default: 30s]",
        show_default=False,
    ),
]
SaveState = Annotated[
    Path | None,
    typer.Option(
        "--save-state",
        metavar="FILE",
        help="Save the state of a modelled drive at the end, for sim:NAME?state=FILE to go on from.",
        show_default=False,
    ),
]
Power = Annotated[
    list[str] | None,
    typer.Option(
        "--power",
        metavar="METER",
        help="Read a meter beside the run: hwmon:NAME[:CHANNEL], quarch:ADDRESS, nvme:DEVICE, rapl, csv:FILE."
        " Repeatable. `testdrive power list` shows them.",
        show_default=False,
    ),
]
Telemetry = Annotated[
    str | None,
    typer.Option(
        "--telemetry",
        metavar="DURATION|off",
        help="How often an NVMe drive's SMART log is read; also before and after.  [default: 10s]",
        show_default=False,
    ),
]
PowerIdle = Annotated[
    str | None,
    typer.Option(
        "--power-idle",
        metavar="DURATION",
        help="With a meter of the drive: so long nothing is issued before the run, for idle power."
        "  [default: 5s]",
        show_default=False,
    ),
]
CompareAfterwards = Annotated[
    bool,
    typer.Option(
        "--compare/--no-compare", help="With several drives: write the comparison's page at the end."
    ),
]


class KeepChoice(StrEnum):
    """What a recording keeps of each I/O."""

    rows = "rows"
    slowest = "slowest"


class OnErrorChoice(StrEnum):
    """What happens after an I/O error."""

    stop = "stop"
    continue_ = "continue"


OnError = Annotated[
    OnErrorChoice, typer.Option("--on-error", help="After an I/O error: end the run, or record it and go on.")
]
