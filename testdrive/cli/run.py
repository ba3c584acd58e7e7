"""`testdrive run`: any plan on a drive."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testdrive.cli import options as shared
from testdrive.errors import UsageError

if TYPE_CHECKING:
    from testdrive.plans import BoundPlan, Plan


def run(
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN", help="A built-in plan (`testdrive plans`), or FILE.toml.", show_default=False
        ),
    ],
    drive: shared.DrivesOrNone = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A parameter of the plan; repeatable.", show_default=False
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For the plan act: an act_storage configuration. It names the drives, unless --drive does.",
            show_default=False,
        ),
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(metavar="PROCESS", help="The same as --set arrivals=PROCESS.", show_default=False),
    ] = None,
    short: Annotated[
        bool,
        typer.Option("--short", help="The plan's short form: seconds on a part of the drive, for trying it."),
    ] = False,
    keep: Annotated[
        shared.KeepChoice | None,
        typer.Option(
            help="Keep each I/O's row, or histograms and the slowest I/Os.  [default: the plan's]",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="REC",
            help="Go on with this recording, of a run of the same plan that was interrupted.",
            show_default=False,
        ),
    ] = None,
    output: shared.RunOutput = None,
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
    """Run a plan on a drive, record every I/O, and judge it by the plan's rules."""
    from testdrive.cli import running, searching
    from testdrive.plans import bind, load

    loaded = load(plan)
    settings = _settings(setting or [], rules="rules" in loaded.parameters)
    if config is not None:
        if "config" in settings:
            raise UsageError("--config and --set config are both given; give one of them")
        settings["config"] = str(config)
    if arrivals is not None:
        if "arrivals" in settings:
            raise UsageError("--arrivals and --set arrivals are both given; give one of them")
        settings["arrivals"] = arrivals
    _lead_to_headroom(loaded, settings)
    bound = bind(loaded, settings, short=short)
    request = running.Request(
        drives=drive or _drives_of(bound),
        output=output,
        erase=erase or [],
        erase_signatures=erase_signatures,
        io_timeout=io_timeout,
        keep_on=on_error is shared.OnErrorChoice.continue_,
        save_state=save_state,
        resume=resume,
        compare=compare,
        power=power or [],
        power_idle=power_idle,
        telemetry=telemetry,
        keep=None if keep is None else keep.value,
        as_json=as_json,
    )
    if loaded.search is not None:
        return searching.carry_out(loaded, settings, request, short=short)
    return running.carry_out(bound, request)


def _lead_to_headroom(plan: Plan, settings: dict[str, str]) -> None:
    """Arrivals that are a recording are another question, with parameters of its own."""
    given = settings.get("arrivals")
    if plan.search != "rate" or given is None or given in plan.parameters["arrivals"].choices:
        return
    if "/" in given or Path(given).suffix or Path(given).exists():
        rules = f" --set {shlex.quote(settings['rules'])}" if "rules" in settings else ""
        raise UsageError(
            f"arrivals is {given}, a recording, and the plan {plan.name!r} makes I/Os of its own; how many"
            " times a recorded workload a drive takes is the plan headroom: testdrive run headroom --set"
            f" recording={shlex.quote(given)}{rules}"
        )


def _drives_of(bound: BoundPlan) -> list[str]:
    """The drives that a configuration names, where the command does not."""
    configuration = bound.values.get("config")
    if configuration is None:
        raise UsageError("--drive is missing; give the drive to run on (`testdrive drives` lists them)")
    from testdrive.act.plan import drives_of

    return drives_of(configuration)


def _settings(texts: list[str], *, rules: bool) -> dict[str, str]:
    """The parameters; of a plan with rules also rules by themselves, such as ``p99.9<1ms``: all must hold."""
    settings: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if rules and (not equals or "<" in key or ">" in key):
            settings["rules"] = ", ".join(part for part in (settings.get("rules"), text) if part)
            continue
        if not equals or not key.strip():
            raise UsageError(f"--set {text!r} is not of the form KEY=VALUE")
        if key.strip() in settings:
            raise UsageError(f"--set {key.strip()} is given twice; give each parameter once")
        settings[key.strip()] = value
    return settings
