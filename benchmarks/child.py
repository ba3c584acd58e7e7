"""A program run to its end, with the time and memory that it took."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError

_MESSAGE_CHARACTERS = 2_000

# A program that is started by a large process counts the starter's memory as its own peak. So a small process
# starts it, and writes down what it took.
_LAUNCHER = """
import json, os, sys, time
began = time.monotonic()
child = os.fork()
if child == 0:
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(error, file=sys.stderr)
        os._exit(127)
_, status, usage = os.wait4(child, 0)
took = {
    "wall_s": time.monotonic() - began,
    "cpu_s": usage.ru_utime + usage.ru_stime,
    "rss_peak_bytes": usage.ru_maxrss * 1024,
}
os.write(int(sys.argv[1]), json.dumps(took).encode())
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
"""


@dataclass(frozen=True)
class Ended:
    """What a program said, and what it took. CPU time includes that of its own children."""

    output: str
    wall_s: float
    cpu_s: float
    rss_peak_bytes: int


def run(
    command: Sequence[str | Path], *, timeout_s: float, stdin_text: str = "", directory: Path | None = None
) -> Ended:
    """Run a program and wait for it; whatever happens meanwhile, it does not outlive this call.

    Raises
    ------
    BenchmarkError
        It ended with another status than 0, or was killed because it took longer than `timeout_s`.
    """
    words = [os.fspath(word) for word in command]
    # Files and not pipes: nobody has to read while the program runs, which would disturb it.
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+", errors="replace") as said,
        tempfile.TemporaryFile("w+", errors="replace") as complained,
        tempfile.TemporaryFile("w+") as measured,
    ):
        given.write(stdin_text)
        given.seek(0)
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(measured.fileno()), *words]
        process = subprocess.Popen(
            launcher,
            stdin=given,
            stdout=said,
            stderr=complained,
            cwd=directory,
            pass_fds=(measured.fileno(),),
            start_new_session=True,
        )
        overdue = _wait(process, timeout_s)
        for file in (said, complained, measured):
            file.seek(0)
        output, complaint, usage = said.read(), complained.read(), measured.read()
    if overdue or process.returncode or not usage:
        why = f"was killed after {timeout_s:.0f} s" if overdue else f"ended with status {process.returncode}"
        heard = (complaint or output).strip()[-_MESSAGE_CHARACTERS:]
        raise BenchmarkError(f"{' '.join(words)}\n{why}: {heard}")
    return Ended(output, **json.loads(usage))


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the launcher; whether it took too long, so that it and its program were killed."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return True
    except BaseException:
        _kill(process)
        raise
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
