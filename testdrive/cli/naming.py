"""Names of what a command makes: never one that is taken."""

from __future__ import annotations

from pathlib import Path

from testdrive.errors import UsageError

RECORDING_SUFFIX = ".rec"


def trace_name(file: Path) -> str:
    """What a trace is called: its file's name, or that of the folder, also where it is `.` or `..`."""
    return file.name if file.name.strip(".") else file.resolve().name or "trace"


def free_path(path: Path) -> Path:
    """The path itself, or with a number before its suffix if something is there."""
    candidate, number = path, 2
    while candidate.exists() or candidate.is_symlink():
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return candidate


def new_recording(chosen: Path | None, default: Path) -> Path:
    """Where a recording goes: where the user said, if nothing is there, else a free default.

    Raises
    ------
    UsageError
        Something is there already: a recording is never overwritten.
    """
    if chosen is None:
        return free_path(default)
    if chosen.exists() or chosen.is_symlink():
        raise UsageError(
            f"{chosen} exists, and a recording is never overwritten; choose another name with -o"
        )
    return chosen
