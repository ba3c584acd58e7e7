"""The engine as a child process: finding it, running a job on it, and telling its ends apart (docs/job.md).

What other parts call::

    run_job(job, on_event=print)      # testdrive.events.Finished, or an exception that says what happened
    import_traces(files, output, ...)
    capture_devices(devices, output, ...)
    export_recording(recording, output, format_name, ...)
    identify_drive(uri)  # what the engine finds there, without writing
    list_drives(), list_models(), list_formats()
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from testdrive.engine_binary import BINARY_NAME, find_engine
from testdrive.engine_process import OnEvent, converse, crash, exception_of
from testdrive.errors import EngineError
from testdrive.events import (
    CAPTURE_EVENTS,
    EXPORT_EVENTS,
    IMPORT_EVENTS,
    RUN_EVENTS,
    Captured,
    Exported,
    Failed,
    Finished,
    Imported,
    Started,
    parse,
)
from testdrive.job import DriveRequest, Job, SyntheticPhase
from testdrive.manifest import Drive

__all__ = [
    "capture_devices",
    "export_recording",
    "find_engine",
    "identify_drive",
    "import_traces",
    "list_drives",
    "list_formats",
    "list_models",
    "run_job",
]


def run_job(job: Job, on_event: OnEvent | None = None) -> Finished:
    """Run a job to its end and return the engine's last word.

    SIGINT, SIGTERM and SIGHUP are passed on to the engine while it runs, which then closes the recording; a
    third one kills it. After the engine's last word it has a few seconds to end: with a drive that has died
    it may never, and is left behind with a warning on standard error.

    Parameters
    ----------
    job : Job
        What to do.
    on_event : callable, optional
        Called with each event as it arrives.

    Raises
    ------
    UsageError, SafetyRefusal, DriveFailure, Interrupted
        As the engine's exit status says. What was recorded is kept.
    EngineError
        The engine was not found, crashed, or broke its contract. What was recorded is kept, and is marked as
        interrupted when it is opened next.
    """
    request = json.dumps(job.to_json_object())
    return converse(["run"], request, RUN_EVENTS, on_event, str(job.output))


def identify_drive(uri: str) -> Drive:
    """What the engine finds at a drive's URI, whichever path leads there: a run of a single read asks it.

    Raises
    ------
    UsageError, SafetyRefusal, DriveFailure, Interrupted, EngineError
        As :func:`run_job`, which would meet the same.
    """
    found: list[dict[str, Any]] = []

    def note(event: object) -> None:
        if isinstance(event, Started) and event.drive is not None:
            found.append(event.drive)

    # 64 KiB are whole blocks of any drive.
    phase = SyntheticPhase(kind="synthetic", read_share=1.0, block_bytes=65536, depth=1, ios=1)
    with tempfile.TemporaryDirectory(prefix="testdrive-") as scratch:
        output = Path(scratch) / "identity.rec"
        run_job(Job(drive=DriveRequest(uri=uri), output=output, record=False, phases=[phase]), note)
    if not found:
        raise EngineError(
            f"{BINARY_NAME} did not say what {uri} is; reinstall both parts of testdrive together"
        )
    return Drive.model_validate(found[0])


def import_traces(
    files: Sequence[Path],
    output: Path,
    *,
    format_name: str | None = None,
    events: str | None = None,
    device: str | None = None,
    volume: str | None = None,
    columns: str | None = None,
    time_unit: str | None = None,
    object_bytes: int | None = None,
    on_event: OnEvent | None = None,
) -> Imported:
    """Make a recording of foreign traces, or one of each volume.

    Parameters and errors as ``testdrive import`` has them.
    """
    arguments = ["import", *map(os.fspath, files), "-o", os.fspath(output)]
    options = {
        "--format": format_name,
        "--events": events,
        "--device": device,
        "--volume": volume,
        "--columns": columns,
        "--time-unit": time_unit,
        "--object-bytes": object_bytes,
    }
    for option, value in options.items():
        if value is not None:
            arguments += [option, str(value)]
    finished = converse(arguments, None, IMPORT_EVENTS, on_event, str(output))
    assert isinstance(finished, Imported)
    return finished


def capture_devices(
    devices: Sequence[str],
    output: Path,
    *,
    duration_ns: int | None = None,
    size_max_bytes: int | None = None,
    events: str | None = None,
    buffer_bytes: int | None = None,
    on_event: OnEvent | None = None,
) -> Captured:
    """Record the I/O of block devices as it happens. Parameters and errors as ``testdrive capture`` has them.

    SIGINT, SIGTERM and SIGHUP end it, which without a duration is its regular end.
    """
    arguments = ["capture", "-o", os.fspath(output)]
    options = {
        "--for": None if duration_ns is None else f"{duration_ns}ns",
        "--max-size": None if size_max_bytes is None else str(size_max_bytes),
        "--events": events,
        "--buffer": None if buffer_bytes is None else str(buffer_bytes),
    }
    arguments += [f"{option}={value}" for option, value in options.items() if value is not None]
    arguments += ["--", *devices]
    finished = converse(arguments, None, CAPTURE_EVENTS, on_event, str(output))
    assert isinstance(finished, Captured)
    return finished


def export_recording(
    recording: Path,
    output: Path,
    format_name: str,
    *,
    phases: str | None = None,
    times: str | None = None,
    target: str | None = None,
    device: str | None = None,
    on_event: OnEvent | None = None,
) -> Exported:
    """Write a recording as a trace. Parameters and errors as ``testdrive export`` has them.

    With ``-`` as the output the engine writes to our own standard output.

    Raises
    ------
    BrokenPipeError
        Whoever reads standard output has closed it.
    """
    arguments = ["export", f"--output={output}", f"--format={format_name}"]
    options = {"--phases": phases, "--times": times, "--target": target, "--device": device}
    arguments += [f"{option}={value}" for option, value in options.items() if value is not None]
    arguments += ["--", os.fspath(recording)]
    to_stdout = os.fspath(output) == "-"
    finished = converse(arguments, None, EXPORT_EVENTS, on_event, str(output), data_on_stdout=to_stdout)
    assert isinstance(finished, Exported)
    return finished


def list_drives() -> list[dict[str, Any]]:
    """The block devices of this host, as docs/job.md has them."""
    return _ask("drives")


def list_models() -> list[dict[str, Any]]:
    """The modelled drives with their figures."""
    return _ask("models")


def list_formats() -> list[dict[str, Any]]:
    """The trace formats that can be imported."""
    return _ask("formats")


def release_drive(address: str) -> dict[str, Any]:
    """Give an NVMe controller back to the kernel's driver.

    Returns
    -------
    dict
        ``address``, ``driver`` that has it now, and ``restored``: whether that was not so before.

    Raises
    ------
    TestdriveError
        There is none at the address, a run has it, or the kernel does not bind its driver.
    """
    released = _answer("drives", "--release", address)
    if not isinstance(released, dict):
        raise EngineError(f"{BINARY_NAME} drives --release answered {type(released).__name__}, not an object")
    return released


def _ask(subcommand: str) -> list[dict[str, Any]]:
    """Run a subcommand that answers with one JSON list."""
    found = _answer(subcommand)
    if not isinstance(found, list):
        raise EngineError(f"{BINARY_NAME} {subcommand} answered {type(found).__name__}, not a list")
    return found


def _answer(*arguments: str) -> Any:
    """Run a subcommand that answers with JSON."""
    command = [os.fspath(find_engine()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        # A subcommand that fails says why as `run` does, with an `error` event.
        failed = _error_event(done.stdout.splitlines())
        raise exception_of(failed) if failed else crash(done.returncode, done.stderr.splitlines(), None)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        asked = " ".join(arguments)
        raise EngineError(f"{BINARY_NAME} {asked} did not answer with JSON: {error}") from error


def _error_event(lines: Iterable[str]) -> Failed | None:
    for line in lines:
        with contextlib.suppress(ValueError):
            event = parse(line, RUN_EVENTS)
            if isinstance(event, Failed):
                return event
    return None
