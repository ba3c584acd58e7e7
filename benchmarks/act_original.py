"""act_storage itself, where somebody built it: how it is found, run and read.

Nothing of it is part of testdrive.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import BenchmarkError

#: What names the program where it is not on the PATH.
VARIABLE = "TESTDRIVE_ACT_STORAGE"
PROGRAM = "act_storage"
NOT_FOUND = (
    f"{PROGRAM} itself was not found: build it from github.com/aerospike/act (`make act_storage`), and put it"
    f" on the PATH or name it with {VARIABLE}."
)

_TOTAL = re.compile(r"(\S+) \((\d+) total\)")
_BUCKET = re.compile(r"\((\d+): (\d+)\)")


def find() -> Path | None:
    """The program that the variable names, or that is on the PATH; None without either.

    Raises
    ------
    BenchmarkError
        The variable names no program.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = Path(named)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise BenchmarkError(f"{VARIABLE} is {named}, which is no program; name act_storage, or unset it")
        return path.resolve()
    found = shutil.which(PROGRAM)
    return Path(found).resolve() if found else None


def version(program: Path) -> str:
    """What it calls itself, which it does before it asks for a configuration."""
    said = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False).stdout
    return next((line for line in said.splitlines() if line.startswith("ACT version")), "of no known version")


def run(program: Path, configuration: Path, timeout_s: float) -> str:
    """Run it to its end; what it printed.

    Raises
    ------
    BenchmarkError
        It did not end, or not well.
    """
    try:
        done = subprocess.run(
            [program, configuration], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BenchmarkError(f"{program} did not end within {timeout_s:g} s") from error
    if done.returncode != 0 or "ERROR" in done.stdout:
        wrong = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise BenchmarkError(f"{program} ended with {done.returncode}: {' / '.join(wrong) or done.stderr}")
    return done.stdout


def last_report(log: str, buckets: int) -> dict[str, NDArray[np.int64]]:
    """The histograms of a log's last report, by name.

    Raises
    ------
    BenchmarkError
        The log has no report, or a total that is not that of its buckets.
    """
    head, _, report = log.rpartition("after ")
    if not head:
        raise BenchmarkError("the log of act_storage has no report")
    found: dict[str, NDArray[np.int64]] = {}
    totals: dict[str, int] = {}
    name = ""
    for line in report.splitlines():
        if total := _TOTAL.fullmatch(line):
            name = total[1]
            found[name], totals[name] = np.zeros(buckets, np.int64), int(total[2])
        for at, ios in _BUCKET.findall(line) if name else ():
            found[name][min(int(at), buckets - 1)] += int(ios)
    for name, each in found.items():
        if int(each.sum()) != totals[name]:
            raise BenchmarkError(
                f"the log of act_storage has {totals[name]} {name}, and {each.sum()} in buckets"
            )
    return found
