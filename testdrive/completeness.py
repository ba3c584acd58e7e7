"""Whether all that was recorded is still there: a segment that is gone must not make a shorter recording that
looks whole (docs/recording-format.md, Damage).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from testdrive.errors import RecordingError
from testdrive.manifest import Manifest, Warning_
from testdrive.segments import FOLDERS

#: Behind the name of a segment that somebody decided to do without.
LEFT_OUT = ".parquet.damaged"
_CODE = "segments_left_out"
_NAMED_MAX = 3


def check_completeness(directory: Path, manifest: Manifest, ios_held: Callable[[], int]) -> None:
    """Refuse a recording whose segments hold other than its manifest counts; warn where some are left out.

    Parameters
    ----------
    directory : pathlib.Path
        The recording.
    manifest : Manifest
        Its manifest, which gets the warning.
    ios_held : callable
        Counts the I/Os that the closed segments hold; not called where that says nothing.

    Raises
    ------
    RecordingError
        They hold other than the manifest counts, and nobody left segments out.
    """
    names = [f"{folder}/{path.name}" for folder in FOLDERS for path in sorted((directory / folder).glob("*"))]
    left_out = [name for name in names if name.endswith(LEFT_OUT)]
    if left_out:
        manifest.warnings = [each for each in manifest.warnings if each.code != _CODE]
        manifest.warnings.append(_warning(left_out))
        return
    # A writer at work has counted nothing yet, and what a failed disk left of a segment may hold the rest.
    unsettled = manifest.status == "running" or any(name.endswith(".open") for name in names)
    if unsettled:
        return
    counted, held_ios = manifest.counts.ios, ios_held()
    if held_ios == counted:
        return
    told = f"is damaged: its segments hold {held_ios} I/Os, and its manifest counts {counted}; "
    if held_ios > counted:
        raise RecordingError(
            directory,
            told + "move segments away that are not its own, or restore manifest.json from a copy",
        )
    missing = _missing("ios" if manifest.kept is None else "intervals", names)
    raise RecordingError(
        directory,
        told + f"{missing} is missing: restore it from a copy, or make an empty file {missing}.damaged to do"
        " without its I/Os",
    )


def _warning(left_out: list[str]) -> Warning_:
    listed = ", ".join(left_out[:_NAMED_MAX])
    if len(left_out) > _NAMED_MAX:
        listed += f" and {len(left_out) - _NAMED_MAX} more"
    return Warning_(
        code=_CODE,
        message=f"what was recorded in {listed} is left out: it is damaged or gone",
        remedy="restore it from a copy; without it, times and counts are of the rest only",
    )


def _missing(folder: str, names: list[str]) -> str:
    """The first segment of a folder in the order of their numbers that is not there."""
    numbered = (f"{folder}/{number:05}.parquet" for number in count())
    return next(name for name in numbered if name not in names)
