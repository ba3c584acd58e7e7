"""Where benchmarks put things: a directory and loop devices that go when the benchmark ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.errors import BenchmarkError

_PREFIX = "testdrive-bench-"
_BLOCK = 4 << 20


@contextlib.contextmanager
def scratch(parent: Path, needed_bytes: int) -> Iterator[Path]:
    """A directory for the time of a `with`; what an earlier benchmark left when it was killed goes too.

    Raises
    ------
    BenchmarkError
        `parent` has less than `needed_bytes` left, or another benchmark runs there: each would measure the
        other.
    """
    _sweep(parent)
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < needed_bytes:
        raise BenchmarkError(
            f"{parent} has {free_bytes >> 20} MiB free and the benchmarks need {needed_bytes >> 20};"
            " name another directory with --scratch, or measure less with --quick"
        )
    directory = parent / f"{_PREFIX}{os.getpid()}"
    directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def loop_device(file: Path) -> Iterator[Path]:
    """A loop device over a file, for the time of a `with`."""
    command = ["losetup", "--find", "--show", os.fspath(file)]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def can_make_loop_devices() -> bool:
    return os.geteuid() == 0 and shutil.which("losetup") is not None


def filled_file(path: Path, size_bytes: int) -> Path:
    """A file of which every byte is written: holes would be read without touching memory."""
    block = os.urandom(_BLOCK)
    with path.open("wb") as file:
        for start in range(0, size_bytes, _BLOCK):
            file.write(block[: size_bytes - start])
    return path


def allocated_bytes(path: Path) -> int:
    """What a file, or all files of a directory, take on disk: whole blocks."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files)


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sweep(parent: Path) -> None:
    for directory in parent.glob(f"{_PREFIX}*"):
        number = directory.name.removeprefix(_PREFIX)
        if not number.isdecimal():
            continue
        if Path("/proc", number).exists():
            raise BenchmarkError(
                f"process {number} is measuring too, in {directory}; wait for it, since two at once measure"
                " each other"
            )
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):
                if Path(backing.read_text().strip()).is_relative_to(directory):
                    device = f"/dev/{backing.parts[3]}"
                    subprocess.run(["losetup", "--detach", device], check=True)
        shutil.rmtree(directory)
