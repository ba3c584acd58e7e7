"""`testdrive power`: the meters that there are, and measurements that are brought in after a run."""

from __future__ import annotations

from dataclasses import asdict

import typer

from testdrive.cli import options as shared

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
