"""``summary.json`` read instead of computed, by the rule of make: while it is newer than what it is of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import testdrive
from testdrive.drive_events import EVENTS_NAME
from testdrive.manifest import MANIFEST_NAME
from testdrive.metrics.summary import SUMMARY_FORMAT, SUMMARY_NAME, SUMMARY_VERSION, summarize
from testdrive.power.files import FOLDER as METERS_FOLDER
from testdrive.recording import Recording
from testdrive.segments import FOLDERS
from testdrive.telemetry import TELEMETRY_NAME


def summary_of(recording: Recording) -> dict[str, Any]:
    """The summary of a recording: the one beside it where that is current, else computed. Nothing is written.

    It is current if it is of this version of testdrive and of a recording of this name and status, and newer
    than each file that a summary is of, and than the code that makes it: whatever is edited, attached or gone
    on with has it computed anew. A file that is put back with an old time of modification is not noticed.

    Raises
    ------
    RecordingError
        If a segment is damaged.
    """
    return _current(recording) or summarize(recording)


def _current(recording: Recording) -> dict[str, Any] | None:
    path = recording.path / SUMMARY_NAME
    try:
        made_ns = path.stat().st_mtime_ns
        # Of two files that are as old as each other nobody knows which was first.
        if made_ns <= max(_code_ns(), *_times_ns(recording.path)):
            return None
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return summary if isinstance(summary, dict) and _is_of(summary, recording) else None


def _is_of(summary: dict[str, Any], recording: Recording) -> bool:
    written_by = (summary.get("format"), summary.get("version"), summary.get("tool_version"))
    about = summary.get("recording")
    return (
        written_by == (SUMMARY_FORMAT, SUMMARY_VERSION, testdrive.__version__)
        and isinstance(about, dict)
        and about.get("name") == recording.path.resolve().name
        and about.get("status") == recording.manifest.status
    )


def _times_ns(directory: Path) -> Iterator[int]:
    """When what a summary is of was last modified. A folder's time tells of files that are gone."""
    yield (directory / MANIFEST_NAME).stat().st_mtime_ns
    for name in (EVENTS_NAME, TELEMETRY_NAME, METERS_FOLDER, *FOLDERS):
        path = directory / name
        if path.exists():
            yield path.stat().st_mtime_ns
            if path.is_dir():
                yield from (each.stat().st_mtime_ns for each in path.iterdir())


@cache
def _code_ns() -> int:
    """When the package was last modified, or installed: a metric may have been defined anew since."""
    sources = Path(testdrive.__file__).parent.rglob("*.py")
    return max((source.stat().st_mtime_ns for source in sources), default=0)
