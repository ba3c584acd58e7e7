"""Running a bound plan on drives, one after the other, and reading what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from testdrive.engine import identify_drive, run_job
from testdrive.errors import DriveFailure, Interrupted, SafetyRefusal, TestdriveError, UsageError
from testdrive.events import Event
from testdrive.job import DriveRequest, Job, Keep
from testdrive.plans import BoundPlan, Verdict, judge
from testdrive.plans.fitting import depends_on_drive, fitted
from testdrive.plans.judgement import metric_at
from testdrive.power import Sampler
from testdrive.progress import Display
from testdrive.stopping import signals_stop

#: Makes the display for a drive, of which it gets the URI without its options.
Show = Callable[[str], Display]


@dataclass(frozen=True)
class Target:
    """One drive of a run: where it is, the consent to write to it, its recording, and meters beside it."""

    uri: str
    erase: str | None
    recording: Path
    sampler: Sampler | None = None


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out, whatever its plan. None leaves it to the engine.

    Before a run beside which a meter of the drive is read, ``idle_ns`` pass with nothing issued.
    """

    erase_signatures: bool = False
    io_timeout_s: float | None = None
    on_error: Literal["stop", "continue"] | None = None
    save_state: Path | None = None
    keep: Keep | None = None
    resume: bool = False
    idle_ns: int = 0
    segment_s: float | None = None


@dataclass
class Result:
    """What came of one drive: a summary where something was recorded, an error where it did not go well."""

    target: Target
    summary: dict[str, Any] | None = None
    verdict: Verdict = field(default_factory=lambda: Verdict("none", []))
    error: TestdriveError | None = None
    saved_state: Path | None = None

    def to_json_object(self, metrics: Sequence[str]) -> dict[str, Any]:
        """As ``--json`` prints it, with the metrics of these names."""
        summary = self.summary or {}
        return {
            "drive": self.target.uri,
            "recording": str(self.target.recording) if self.summary is not None else None,
            "status": (summary.get("recording") or {}).get("status"),
            "error": str(self.error) if self.error else None,
            "saved_state": str(self.saved_state) if self.saved_state is not None else None,
            "metrics": {name: metric_at(summary, name) for name in metrics},
            "verdict": self.verdict.to_json_object(),
        }


def check_drives(targets: Sequence[Target]) -> None:
    """Ask for every drive before the first one runs: a test may take hours, and the last name have a typo.

    A drive that fails to answer is left to its own run, which does not keep the others from theirs. A file
    that is not there is left too, since to ask for it makes it.

    Raises
    ------
    UsageError, SafetyRefusal
        A drive is not there, or not as its URI says; no drive was written to.
    Interrupted
        A signal came.
    """
    for target in targets:
        kind, _, rest = target.uri.partition("?")[0].partition(":")
        if kind == "file" and not Path(rest).exists():
            continue
        try:
            identify_drive(target.uri)
        except (UsageError, SafetyRefusal) as error:
            raise type(error)(f"{error}; nothing was started") from error
        except Interrupted:
            raise
        except TestdriveError:
            continue


def run_on(bound: BoundPlan, targets: Sequence[Target], options: RunOptions, show: Show) -> list[Result]:
    """Run the plan on each drive in turn. A drive that fails does not stop the next; a signal does."""
    if len(targets) == 1:
        return [run_one(bound, target, options, show) for target in targets]
    results = []
    with signals_stop() as stop_if_asked:
        for number, target in enumerate(targets, start=1):
            title = f"{target.uri.partition('?')[0]} (drive {number} of {len(targets)})"
            try:
                stop_if_asked()
                result = run_one(bound, target, options, show, title)
            except Interrupted as error:
                result = Result(target, error=error)
            results.append(result)
            if isinstance(result.error, Interrupted):
                break
    return results


def run_one(
    bound: BoundPlan, target: Target, options: RunOptions, show: Show, title: str | None = None
) -> Result:
    """Run the plan on one drive, then read what was recorded, also of a run that failed."""
    if depends_on_drive(bound):
        try:
            bound = fitted(bound, identify_drive(target.uri))
        except TestdriveError as error:
            return Result(target, error=error)
    job = Job(
        drive=DriveRequest(uri=target.uri, erase=target.erase, erase_signatures=options.erase_signatures),
        output=target.recording,
        io_timeout_s=options.io_timeout_s,
        segment_s=options.segment_s,
        on_error=options.on_error,
        save_state=options.save_state,
        resume=True if options.resume else None,
        plan=bound.described(),
        keep=options.keep or bound.plan.keep,
        phases=bound.phases,
    )
    result = Result(target)
    target.recording.parent.mkdir(parents=True, exist_ok=True)
    try:
        with show(title or target.uri.partition("?")[0]) as display:
            _run_beside_meters(job, target.sampler, options.idle_ns, display)
        result.saved_state = options.save_state
    except TestdriveError as error:
        result.error = error
    if target.recording.exists():
        _read(bound, result)
    return result


def _run_beside_meters(job: Job, sampler: Sampler | None, idle_ns: int, display: Display) -> None:
    if sampler is None:
        run_job(job, display)
        return

    def follow(event: Event) -> None:
        for news in sampler.follow(event):
            display(news)
        display(event)

    try:
        with sampler:
            if sampler.has_drive_meter:
                time.sleep(idle_ns / 1e9)
            run_job(job, follow)
    finally:
        for news in sampler.news():
            display(news)


def _read(bound: BoundPlan, result: Result) -> None:
    # A second's worth of imports, made while nobody waits for the first word of a run.
    from testdrive.metrics import write_summary
    from testdrive.recording import Recording

    try:
        with Recording.open(result.target.recording) as recording:
            result.summary = write_summary(recording)
    except TestdriveError as error:
        # Why the run failed says more than why its recording cannot be read.
        result.error = result.error or error
        return
    result.verdict = judge(bound.rules, result.summary)
    behind = any(
        metric_at(result.summary, f"{figures}.cannot_keep_up") for figures in ("act", "qos", "headroom")
    )
    if behind and result.verdict.verdict == "fail" and isinstance(result.error, DriveFailure):
        # That the drive is too slow is what was to be found out, and the verdict says it.
        result.error = None
