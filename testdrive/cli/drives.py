"""`testdrive drives`: what can be tested here, and whether it is safe to erase."""

from __future__ import annotations

from typing import Annotated

import typer

from testdrive.cli import options as shared


def drives(
    models: Annotated[bool, typer.Option("--models", help="Show the modelled drives instead.")] = False,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="ADDRESS",
            help="Give an NVMe drive that a killed run left behind back to the kernel's driver.",
        ),
    ] = None,
    as_json: shared.AsJson = False,
) -> int:
    """List this host's drives with their identity, and what stands against erasing each."""
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.engine import list_drives, list_models, release_drive

    if release is not None:
        released = release_drive(release)
        if as_json:
            print_json(released)
        elif released["restored"]:
            stdout_console().print(f"{released['address']} is back with the kernel's {released['driver']}.")
        else:
            stdout_console().print(
                f"{released['address']} is with the kernel's {released['driver']} already."
            )
        return 0
    found = list_models() if models else list_drives()
    if as_json:
        print_json(found)
        return 0
    from testdrive.cli.tables import drives_table, models_table

    console = stdout_console()
    if not found:
        console.print(
            "No block device was found. A file or a model can be tested: --drive file:PATH?size=4GiB"
        )
    else:
        console.print(models_table(found) if models else drives_table(found))
    return 0
