"""A program run to its end, with the time and memory that it took."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError

_MESSAGE_CHARACTERS = 2_000


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
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+", errors="replace") as said:
        given.write(stdin_text)
        given.seek(0)
        with tempfile.TemporaryFile("w+", errors="replace") as complained:
            began = time.monotonic()
            process = subprocess.Popen(words, stdin=given, stdout=said, stderr=complained, cwd=directory)
            status, usage = _wait(process, timeout_s)
            wall_s = time.monotonic() - began
            said.seek(0)
            complained.seek(0)
            output, complaint = said.read(), complained.read()
    if status:
        why = f"ended with status {status}" if wall_s < timeout_s else f"was killed after {timeout_s:.0f} s"
        heard = (complaint or output).strip()[-_MESSAGE_CHARACTERS:]
        raise BenchmarkError(f"{' '.join(words)}\n{why}: {heard}")
    return Ended(output, wall_s, usage.ru_utime + usage.ru_stime, _peak_bytes(usage))


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[int, resource.struct_rusage]:
    overdue = threading.Timer(timeout_s, process.kill)
    overdue.start()
    try:
        _, wait_status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(wait_status)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        overdue.cancel()
    return process.returncode, usage


def _peak_bytes(usage: resource.struct_rusage) -> int:
    """The peak, unless it cannot be told from what this process held when it started the program."""
    own_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * 1024 if usage.ru_maxrss > own_kib else 0
