"""`testdrive power`: the meters that there are, and measurements that are brought in after a run."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from testdrive.cli import options as shared


class PowerOf(StrEnum):
    """What a meter measured."""

    drive = "drive"
    host = "host"


app = typer.Typer(
    help="Meters to read beside a run, and measurements to bring in after one.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("list")
def list_(as_json: shared.AsJson = False) -> int:
    """List the meters of this host that `--power` takes."""
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.power import found

    meters = found()
    if as_json:
        print_json([asdict(meter) for meter in meters])
        return 0
    console = stdout_console()
    if not meters:
        console.print("No meter was found on this host. A modelled drive keeps a ledger of its own.")
        return 0
    from testdrive.cli.tables import table

    made = table("meter", "measures", "what it is")
    for meter in meters:
        made.add_row(meter.address, meter.of, meter.title + (f"; {meter.obstacle}" if meter.obstacle else ""))
    console.print(made)
    return 0


@app.command()
def attach(
    recording: Annotated[
        Path, typer.Argument(metavar="REC", help="The recording of the run.", show_default=False)
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What the meter logged, as CSV.", show_default=False)
    ],
    power: Annotated[
        list[str] | None,
        typer.Option(
            "--power",
            metavar="COLUMN",
            help="The column of power; several are rails, and are added up.",
            show_default=False,
        ),
    ] = None,
    time: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column of time: a header's name, or an index from 0.")
    ] = "0",
    voltage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="In V, with --current instead of --power; repeatable.", show_default=False
        ),
    ] = None,
    current: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="In A; repeatable.", show_default=False)
    ] = None,
    time_unit: Annotated[str, typer.Option(metavar="UNIT", help="Of numbers: s, ms, us or ns.")] = "s",
    power_unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT", help="W, mW or uW.  [default: the header's, else W]", show_default=False
        ),
    ] = None,
    offset: Annotated[
        str, typer.Option(metavar="DURATION", help="Added to the meter's times: 1.5s or -300ms.")
    ] = "0s",
    utc: Annotated[bool, typer.Option("--utc", help="Dates without a zone are UTC, not local time.")] = False,
    of: Annotated[PowerOf, typer.Option(help="What it measured.")] = PowerOf.drive,
    as_json: shared.AsJson = False,
) -> int:
    """Bring in what another meter logged during a run, and say what each phase drew by it."""
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.cli.power_view import attached_lines
    from testdrive.metrics import write_summary
    from testdrive.power import Attachment
    from testdrive.power import attach as bring_in
    from testdrive.power.choice import offset_ns
    from testdrive.power.csv_text import Layout
    from testdrive.recording import Recording

    layout = Layout(
        time=time,
        power=tuple(power or ()),
        voltage=tuple(voltage or ()),
        current=tuple(current or ()),
        time_unit=time_unit,
        power_unit=power_unit,
        utc=utc,
    )
    attached = bring_in(recording, Attachment(file, layout, offset_ns(offset), of.value))
    with Recording.open(recording) as opened:
        summary = write_summary(opened)
    if as_json:
        told = {key: str(value) if key == "file" else value for key, value in asdict(attached).items()}
        print_json({"attached": told, "power": summary["power"]})
        return 0
    console = stdout_console()
    for line in attached_lines(attached, summary["power"]):
        console.print(line, soft_wrap=isinstance(line, str))
    console.print(f"next: testdrive report {recording}", soft_wrap=True)
    return 0
