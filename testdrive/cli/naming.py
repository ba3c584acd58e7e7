"""Names of what a command makes: from the drive and the workload, never one that is taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from testdrive.errors import UsageError

RECORDING_SUFFIX = ".rec"


def drive_name(uri: str) -> str:
    """A short name of a drive for files: ``nvme1n1``, ``enterprise-mixed``, ``null``."""
    plain = uri.partition("?")[0]
    scheme, colon, rest = plain.partition(":")
    if colon and "/" not in scheme:
        plain = Path(rest).stem or scheme if scheme == "file" else rest or scheme
    else:
        plain = Path(plain).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-.") or "drive"


def distinct_names(uris: Sequence[str]) -> list[str]:
    """A short name for each drive, numbered where two would be the same."""
    names: list[str] = []
    for uri in uris:
        plain = name = drive_name(uri)
        number = 2
        while name in names:
            name = f"{plain}-{number}"
            number += 1
        names.append(name)
    return names


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
