"""`testdrive run` of a plan that searches: trial after trial on each drive, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testdrive.cli.consent import consents
from testdrive.cli.naming import free_path
from testdrive.cli.output import note, print_json, show_on_stderr, stdout_console
from testdrive.cli.running import VERDICT_FAIL_STATUS, Request
from testdrive.drive_names import distinct_names, drive_name
from testdrive.errors import Interrupted, TestdriveError, UsageError
from testdrive.plans import Plan
from testdrive.quantities import duration_ns
from testdrive.report.words import SHORT_FORM
from testdrive.running import RunOptions, Target
from testdrive.search.bisection import Found, Trial
from testdrive.search.rates import RateDrive
from testdrive.search.ratings import RatingDrive
from testdrive.search.speeds import SpeedDrive
from testdrive.search.trials import Drive
from testdrive.stopping import signals_stop

PAGE_NAME = "index.html"
#: By what a plan names in its ``search``.
_KINDS: dict[str, type[Drive]] = {"rating": RatingDrive, "rate": RateDrive, "speed": SpeedDrive}


def carry_out(plan: Plan, given: Mapping[str, Any], request: Request, *, short: bool = False) -> int:
    """Search on each drive in turn, print what was found, and return the exit status.

    Raises
    ------
    UsageError
        An option makes no sense; then nothing was started.
    """
    if request.save_state is not None or request.power or request.resume is not None:
        raise UsageError("--save-state, --power and --resume are of a single run; a search has many")
    kind = _KINDS[plan.search or "rating"]
    if given.get(kind.sets) is not None:
        raise UsageError(f"{kind.sets} is what the search sets; leave it out, and {kind.instead}")
    options = RunOptions(
        erase_signatures=request.erase_signatures,
        io_timeout_s=None if request.io_timeout is None else duration_ns(request.io_timeout) / 1e9,
        on_error="continue" if request.keep_on else "stop",
        keep=request.keep,
    )
    drives = [
        kind(plan, given, target, options, show_on_stderr, _tell, short=short)
        for target in _targets(plan, request)
    ]
    error: TestdriveError | None = None
    for drive in drives:
        try:
            if told := drive.foretold():
                note(f"{drive.name}: {told}")
            with signals_stop() as stop_if_asked:
                drive.stop_if_asked = stop_if_asked
                drive.search()
        except TestdriveError as failure:
            error = error or failure
            note(f"error: {drive.name}: {failure}")
            if isinstance(failure, Interrupted):
                break
    # Of a search that was stopped, too: what was tried is shown, and that it has no result.
    found = [(drive, drive.found) for drive in drives if drive.found is not None]
    shown = [(drive, each) for drive, each in found if each.history]
    page = _page(shown, drives) if shown else None
    _print(plan, found, page, as_json=request.as_json)
    if short and shown:
        note(f"note: {SHORT_FORM}")
    if error is not None:
        return error.exit_status
    return VERDICT_FAIL_STATUS if any(drive.fails(each) for drive, each in found) else 0


def _targets(plan: Plan, request: Request) -> list[Target]:
    """The drives, each with a new directory for its trials."""
    uris = request.drives
    single = len(uris) == 1
    default = f"{plan.name}-on-{drive_name(uris[0])}" if single else f"{plan.name}-on-{len(uris)}-drives"
    folder = request.output or free_path(Path(default))
    if folder.exists():
        raise UsageError(f"{folder} exists; a search makes a directory of its own, choose another with -o")
    folders = [folder] if single else [folder / name for name in distinct_names(uris)]
    rights = consents(uris, request.erase)
    return [Target(*each) for each in zip(uris, rights, folders, strict=True)]


def _page(found: list[tuple[Drive, Found]], drives: list[Drive]) -> Path:
    from testdrive.methods.page import write_method_page

    folder = drives[0].folder if len(drives) == 1 else drives[0].folder.parent
    # The recording that decided is called by its load, which is a result and no name of the drive.
    called = distinct_names([drive.target.uri for drive, _ in found])
    return write_method_page([drive.decisive(each) for drive, each in found], folder / PAGE_NAME, called).path


def _tell(name: str, load: str, trial: Trial) -> None:
    word = "passes" if trial.passes else "fails"
    kind = "confirming run" if trial.confirming else "trial"
    why = f": {trial.reasons[0]}" if trial.reasons else ""
    note(f"{name}: {kind} at {load} {word}{why}")


def _print(plan: Plan, found: list[tuple[Drive, Found]], page: Path | None, *, as_json: bool) -> None:
    if as_json:
        results = [
            {
                "drive": drive.target.uri,
                drive.key: each.value,
                **drive.facts(each),
                "is_monotone": each.is_monotone,
                "not_confirmed": each.not_confirmed,
                "unfinished": each.unfinished,
                "recording": str(drive.decisive(each)) if each.history else None,
                "trials": [
                    {
                        drive.key: trial.value,
                        "passes": trial.passes,
                        "confirming": trial.confirming,
                        "ended_after": trial.ended_after,
                    }
                    for trial in each.history
                ],
            }
            for drive, each in found
        ]
        print_json({"plan": plan.name, "results": results, "page": str(page) if page else None})
        return
    console = stdout_console()
    for drive, each in found:
        if each.unfinished is not None and not each.history:
            continue  # Nothing was tried, and the error has said why.
        told = drive.told(each) if each.unfinished is None else drive.told_unfinished(each)
        console.print(f"{drive.name}: {told}", highlight=False)
        if each.not_confirmed is not None:
            console.print(
                f"  {drive.shown(each.not_confirmed)} passed in its trial and not in the run that was to"
                " confirm it: so near to its border it passes or fails from run to run, and longer trials"
                " tell more"
            )
    if page is not None:
        console.print(f"page: {page}", soft_wrap=True)
