"""The engine's process: starting it, following its events, passing signals on, and judging its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import TypeAdapter

from testdrive.engine_binary import find_engine
from testdrive.errors import (
    DriveFailure,
    EngineError,
    Interrupted,
    SafetyRefusal,
    TestdriveError,
    UsageError,
)
from testdrive.events import RUN_EVENTS, Event, Failed, Finished, Stopping, parse
from testdrive.stopping import hand_on, handled_by

#: The engine ends at once at its second signal; a third finds it hanging and kills it. At a fourth it is left
#: behind, since only the kernel can end it.
_PATIENCE_SIGNALS = 3
#: How long the engine may take to end after its last word, and to die after it was killed. One with a thread
#: that waits inside the kernel for a drive that has died does neither.
_END_PATIENCE_S = 10.0
_KILL_PATIENCE_S = 1.0
_STDERR_LINES = 20
_EXCEPTIONS: dict[int, type[TestdriveError]] = {
    UsageError.exit_status: UsageError,
    SafetyRefusal.exit_status: SafetyRefusal,
    DriveFailure.exit_status: DriveFailure,
    Interrupted.exit_status: Interrupted,
}

OnEvent = Callable[[Event], None]


def converse(
    arguments: Sequence[str],
    request: str | None,
    kinds: TypeAdapter[Any],
    on_event: OnEvent | None,
    output: str,
    *,
    data_on_stdout: bool = False,
) -> Finished:
    """Start the engine, hand it the request, follow its events to the end, and judge how it ended.

    With ``data_on_stdout`` the engine writes data to our own standard output, and its events to its standard
    error.
    """
    sys.stdout.flush()
    try:
        # A group of its own: Ctrl-C reaches the engine once, through us, and not a second time from the
        # terminal.
        process = subprocess.Popen(
            [os.fspath(find_engine()), *arguments],
            stdin=subprocess.PIPE if request is not None else subprocess.DEVNULL,
            stdout=None if data_on_stdout else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
    except OSError as error:
        raise EngineError(f"the engine cannot be started: {error}; is it built for this machine?") from error
    said: deque[str] = deque(maxlen=_STDERR_LINES)
    listener = threading.Thread(target=_listen, args=(process, said), daemon=True)
    if not data_on_stdout:
        listener.start()
    last: Finished | Failed | None = None
    with _stopped_at_the_end(process), _signals_passed_to(process) as passed_on:
        # Only from here on can anything happen to the drive: an engine without its job does nothing.
        _hand_over(process, request)
        told_to_stop = False
        for event in _events(process, kinds, said):
            if isinstance(event, Finished | Failed):
                last = event
            if on_event is not None:
                if passed_on and not told_to_stop and last is None:
                    # Not from the handler of the signal, which may interrupt the display at any place.
                    on_event(Stopping())
                    told_to_stop = True
                on_event(event)
        status = _wait(process) if last is not None else process.wait()
    if not data_on_stdout:
        listener.join(timeout=1)
    if last is None and passed_on:
        # A second signal ends the engine at once, without its last word: that was asked for, and is no crash.
        raise Interrupted(f"interrupted at once, without waiting for the drive{_kept(output)}")
    finished = _judged(last, status, said, output)
    if passed_on:
        hand_on(passed_on[-1])
    return finished


def _listen(process: subprocess.Popen[str], said: deque[str]) -> None:
    """Keep the last lines of the engine's standard error; show them at once when debugging."""
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line.rstrip("\n"))
        if os.environ.get("TESTDRIVE_DEBUG"):
            print(line, end="", file=sys.stderr)


def _hand_over(process: subprocess.Popen[str], request: str | None) -> None:
    if request is None:
        return
    assert process.stdin is not None
    # An engine that ended before it read its job has told the reason, which is what should be shown.
    with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(request)


def _events(process: subprocess.Popen[str], kinds: TypeAdapter[Any], said: deque[str]) -> Iterator[Event]:
    stream = process.stdout or process.stderr
    assert stream is not None
    for line in stream:
        try:
            event = parse(line, kinds)
        except ValueError as error:
            if stream is process.stderr:
                # What else stands there is what the engine says before it dies of a defect.
                said.append(line.rstrip("\n"))
                continue
            shown = line.strip()[:120]
            raise EngineError(
                f"the engine wrote something else than progress: {shown!r} ({error});"
                " are engine and package of the same version? `make install` renews both"
            ) from error
        if event is not None:
            yield event
        if isinstance(event, Finished | Failed):
            # Not on to the end of the output: an engine that cannot end does not close it either.
            return


def _wait(process: subprocess.Popen[str]) -> int | None:
    """The exit status of an engine that has said its last word, or None if it did not end by itself.

    By then the recording is closed, so that nothing is lost with the process.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_END_PATIENCE_S)
    process.kill()
    try:
        process.wait(_KILL_PATIENCE_S)
        fate = "did not end after its last word and was killed"
    except subprocess.TimeoutExpired:
        fate = "cannot end until the kernel gives up on the drive; the drive stays in use until then"
    print(f"warning: the engine (pid {process.pid}) {fate}", file=sys.stderr)
    return None


@contextlib.contextmanager
def _stopped_at_the_end(process: subprocess.Popen[str]) -> Iterator[None]:
    """Leave no engine behind, whatever went wrong on this side."""
    try:
        yield
    except Interrupted:
        # It was killed, and asked after once more: what keeps it now is out of anybody's reach.
        raise
    except BaseException:
        if process.poll() is None:
            process.terminate()
            # It may be writing progress that nobody reads any more: read on until it has closed the
            # recording.
            for line in process.stdout or process.stderr or ():
                if _is_last_word(line):
                    break
            _wait(process)
        raise


def _is_last_word(line: str) -> bool:
    try:
        return isinstance(parse(line, RUN_EVENTS), Finished | Failed)
    except ValueError:
        return False


@contextlib.contextmanager
def _signals_passed_to(process: subprocess.Popen[str]) -> Iterator[list[int]]:
    """While this lasts, pass signals that would end us to the engine, which ends first and in good order.

    What is yielded grows with each signal.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def pass_on(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) > _PATIENCE_SIGNALS:
            raise Interrupted("interrupted at once; the engine was killed, and ends when the kernel lets it")
        if len(received) == _PATIENCE_SIGNALS:
            process.kill()
        else:
            process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    with handled_by(pass_on):
        yield received


def _judged(last: Finished | Failed | None, status: int | None, said: Iterable[str], output: str) -> Finished:
    if isinstance(last, Failed):
        raise exception_of(last)
    if last is None and status == UsageError.exit_status:
        # Arguments that it cannot read, which it says on standard error as any program does.
        for line in said:
            if line.startswith("error: "):
                raise UsageError(line.removeprefix("error: "))
    if status is not None and (last is None or (last.status == "complete" and status != 0)):
        raise crash(status, said, output)
    # Without a status only the last word counts.
    assert last is not None
    if last.status == "complete":
        return last
    kept = f"what was recorded is kept in {output}"
    if last.status == "interrupted":
        raise Interrupted(f"interrupted: {last.reason or 'by a signal'}; {kept}")
    raise DriveFailure(f"the run failed: {last.reason or 'the engine gave no reason'}; {kept}")


def exception_of(failed: Failed) -> TestdriveError | BrokenPipeError:
    """The exception that an ``error`` event stands for, by its exit status."""
    if failed.kind == "closed_output":
        return BrokenPipeError(failed.message)
    if failed.kind == "internal":
        return EngineError(failed.message)
    return _EXCEPTIONS.get(failed.exit_status, EngineError)(failed.message)


def crash(status: int, said: Iterable[str], output: str | None) -> EngineError:
    """The exception for an engine that ended without its last word: how it ended, and what it said."""
    if status < 0:
        how = f"was killed by signal {-status} ({signal.strsignal(-status) or 'unknown'})"
    else:
        how = f"ended with status {status} and did not say how the run went"
    words = "\n".join(f"  engine: {line}" for line in said)
    return EngineError(f"the engine {how}{_kept(output)}" + (f"\n{words}" if words else ""))


def _kept(output: str | None) -> str:
    return f"; what was recorded until then is kept in {output}" if output and Path(output).exists() else ""
