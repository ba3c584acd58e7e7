"""`testdrive plans`: what can be run."""

from __future__ import annotations

from typing import Annotated

import typer

from testdrive.cli import options as shared
from testdrive.errors import UsageError


def plans(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Print this plan as TOML, to copy and edit.", show_default=False),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of plans, for editors, instead.")
    ] = False,
    as_json: shared.AsJson = False,
) -> int:
    """List the built-in plans, or print one."""
    from testdrive.cli.output import print_json, stdout_console
    from testdrive.plans import built_in_names, load, read_text

    if schema:
        from testdrive.plans.schema import plan_schema

        if name is not None:
            raise UsageError(f"--schema is of all plans; leave {name} away")
        print_json(plan_schema())
        return 0
    if name is not None:
        if as_json:
            print_json(load(name).model_dump(mode="json"))
        else:
            print(read_text(name)[1], end="")
        return 0
    found = [load(each) for each in built_in_names()]
    if as_json:
        print_json([plan.model_dump(mode="json") for plan in found])
        return 0
    from testdrive.cli.tables import plans_table

    stdout_console().print(plans_table(found))
    return 0
