"""The commands and what they have in common: help, version and the exit statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import testdrive
from testdrive.cli import (
    capturing,
    compare,
    demo,
    doctor,
    drives,
    exporting,
    importing,
    inspecting,
    plans,
    power,
    replay,
    report,
    run,
)

EXIT_STATUSES = (
    "Exit status: 0 done; 1 the test ran and its verdict is fail; 2 usage, or an input that cannot be read;"
    " 3 refused for safety; 4 the drive failed; 5 interrupted (what was recorded is kept and marked);"
    " 70 a defect of testdrive itself."
)

app = typer.Typer(
    name="testdrive",
    help="Test-drive an SSD with your own production workload before you buy it, deploy it or ship its"
    " firmware.",
    epilog=EXIT_STATUSES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# In the order in which someone meets them.
COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo.demo,
    "drives": drives.drives,
    "doctor": doctor.doctor,
    "capture": capturing.capture,
    "import": importing.import_,
    "inspect": inspecting.inspect,
    "export": exporting.export,
    "replay": replay.replay,
    "run": run.run,
    "plans": plans.plans,
    "compare": compare.compare,
    "report": report.report,
}
for name, command in COMMANDS.items():
    app.command(name, epilog=EXIT_STATUSES)(command)
app.add_typer(power.app, name="power", epilog=EXIT_STATUSES)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"testdrive {testdrive.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and end.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
