"""What `replay` and `run` have in common: drives and recordings from the options, words at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testdrive.cli.consent import consents
from testdrive.cli.metering import IDLE_DEFAULT_NS, beside_meters
from testdrive.cli.naming import RECORDING_SUFFIX, free_path, new_recording
from testdrive.cli.output import note, print_json, show_on_stderr, stdout_console
from testdrive.drive_names import distinct_names, drive_name
from testdrive.errors import UsageError
from testdrive.job import Keep, RoundsPhase
from testdrive.plans import BoundPlan
from testdrive.quantities import duration_ns
from testdrive.report import words
from testdrive.running import Result, RunOptions, Target, check_drives, run_on

if TYPE_CHECKING:
    from testdrive.methods.drawing import Table as MethodTable

VERDICT_FAIL_STATUS = 1
COMPARISON_DIRECTORY = "comparison"
COMPARISON_NAME = "index.html"


@dataclass(frozen=True)
class Request:
    """The options that every command has that runs a plan."""

    drives: Sequence[str]
    output: Path | None
    erase: Sequence[str]
    erase_signatures: bool
    io_timeout: str | None
    keep_on: bool
    save_state: Path | None
    compare: bool
    as_json: bool
    keep: Keep | None = None
    power: Sequence[str] = ()
    power_idle: str | None = None
    telemetry: str | None = None
    #: The recording of an interrupted run of the same plan, which goes on.
    resume: Path | None = None


def carry_out(bound: BoundPlan, request: Request) -> int:
    """Run the plan as requested, print what came of it, and return the exit status.

    Raises
    ------
    UsageError
        An option makes no sense; then nothing was started.
    """
    options = RunOptions(
        erase_signatures=request.erase_signatures,
        io_timeout_s=None if request.io_timeout is None else duration_ns(request.io_timeout) / 1e9,
        on_error="continue" if request.keep_on else "stop",
        save_state=request.save_state,
        keep=request.keep,
        resume=request.resume is not None,
        idle_ns=_idle_ns(request),
    )
    if request.save_state is not None and len(request.drives) > 1:
        raise UsageError(f"--save-state {request.save_state} is of one drive; give one --drive")
    resume = request.resume
    chosen = _targets(bound, request) if resume is None else [_resumed(request, resume)]
    targets = beside_meters(chosen, request.power, request.telemetry)
    if len(targets) > 1:
        check_drives(targets)
    results = run_on(bound, targets, options, show_on_stderr)
    return _conclude(bound, results, request)


def _idle_ns(request: Request) -> int:
    """How long the drive is left alone first. Of a run that is resumed nobody would find it again."""
    if request.power_idle is not None:
        return duration_ns(request.power_idle)
    return IDLE_DEFAULT_NS if request.resume is None else 0


def _resumed(request: Request, recording: Path) -> Target:
    """The drive of an interrupted run. The consent is asked for anew, as for any run."""
    if len(request.drives) != 1:
        raise UsageError(f"--resume {recording} is of one drive; give one --drive")
    if request.output is not None:
        raise UsageError(f"--resume goes on with {recording} itself; leave --output {request.output} away")
    if request.power_idle is not None:
        raise UsageError(
            f"--power-idle {request.power_idle} is of the time before a run begins, which one that is resumed"
            " has behind it; leave it away"
        )
    if not recording.is_dir():
        raise UsageError(f"--resume {recording}: there is no such recording")
    (right,) = consents(request.drives, request.erase)
    return Target(request.drives[0], right, recording)


def _targets(bound: BoundPlan, request: Request) -> list[Target]:
    """The drives with their recordings, none of which exists yet."""
    subject = bound.values.get("recording")
    stem = Path(subject).stem if subject is not None else bound.plan.name
    if len(request.drives) == 1:
        default = Path(f"{stem}-on-{drive_name(request.drives[0])}{RECORDING_SUFFIX}")
        recordings = [new_recording(request.output, default)]
    else:
        directory = request.output or free_path(Path(f"{stem}-on-{len(request.drives)}-drives"))
        if directory.exists() and not directory.is_dir():
            raise UsageError(
                f"{directory} is a file; with several drives, -o is the directory for their recordings"
            )
        names = distinct_names(request.drives)
        recordings = [new_recording(directory / f"{name}{RECORDING_SUFFIX}", directory) for name in names]
    rights = consents(request.drives, request.erase)
    return [Target(*each) for each in zip(request.drives, rights, recordings, strict=True)]


def _conclude(bound: BoundPlan, results: Sequence[Result], request: Request) -> int:
    recorded = [result.target.recording for result in results if result.summary is not None]
    page, found = _compared(recorded) if request.compare and len(recorded) > 1 else (None, None)
    if request.as_json:
        metrics = bound.plan.judgement.metrics
        content = {
            "plan": bound.plan.name,
            "results": [result.to_json_object(metrics) for result in results],
            "comparison": str(page) if page else None,
        }
        print_json(content)
    else:
        _print(results, page, found, together=_measures_several(bound))
        if bound.short and recorded:
            note(f"note: {words.SHORT_FORM}")
    return exit_status(results)


def _compared(recordings: Sequence[Path]) -> tuple[Path, list[MethodTable] | None]:
    """Write the comparison, and return its page; of a standard test also the tables that decide."""
    from testdrive.compare import write_comparison
    from testdrive.methods.looking import has_method
    from testdrive.methods.page import write_method_page

    note("comparing ...")
    directory = recordings[0].parent / COMPARISON_DIRECTORY
    if has_method(recordings[0]):
        written = write_method_page(recordings, directory / COMPARISON_NAME)
        return written.path, written.tables
    return write_comparison(recordings, directory).page, None


def _measures_several(bound: BoundPlan) -> bool:
    """Whether the figures of a run are of several phases, which the plan's page tells apart."""
    measured = [
        phase
        for phase in bound.phases
        # A group measures its phases in each of its rounds.
        if isinstance(phase, RoundsPhase) or (phase.kind != "prepare" and phase.measured is not False)
    ]
    return len(measured) > 1 or any(isinstance(phase, RoundsPhase) for phase in measured)


def _found(recordings: Sequence[Path]) -> list[MethodTable]:
    """The tables that decide a standard test; none of other recordings."""
    from testdrive.methods.looking import has_method, method_tables

    return method_tables(recordings) if has_method(recordings[0]) else []


def _print(
    results: Sequence[Result], page: Path | None, found: list[MethodTable] | None, *, together: bool
) -> None:
    from testdrive.cli import tables

    console = stdout_console()
    recorded: list[Path] = []
    for result in results:
        if result.summary is None:
            continue
        recorded.append(result.target.recording)
        console.print(tables.run_table(result.target.uri, result.summary, together=together))
        for outcome in result.verdict.outcomes:
            console.print(tables.outcome_line(outcome, result.summary))
        console.print(f"recording: {result.target.recording}", soft_wrap=True)
        if result.saved_state is not None:
            console.print(f"state: {result.saved_state}", soft_wrap=True)
    if found is None and recorded:
        found = _found(recorded)
    for table in found or []:
        console.print(tables.method_table(table))
    if page is not None:
        console.print(f"comparison: {page}", soft_wrap=True)
    elif recorded:
        command = "compare" if len(recorded) > 1 else "report"
        console.print(f"next: testdrive {command} {' '.join(map(str, recorded))}", soft_wrap=True)


def exit_status(results: Sequence[Result]) -> int:
    """Say each error, and return the status of the first; without one, 1 if a verdict is fail, else 0."""
    errors = [result.error for result in results if result.error is not None]
    for error in errors:
        note(f"error: {error}")
    if errors:
        return errors[0].exit_status
    failed = any(result.verdict.verdict == "fail" for result in results)
    return VERDICT_FAIL_STATUS if failed else 0
