"""The history of a search, kept beside the recording that decided it, for its page and for scripts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testdrive.durable_json import write_json
from testdrive.errors import RecordingError
from testdrive.search.bisection import Found

HISTORY_NAME = "search.json"
HISTORY_VERSION = 2


def write_history(recording: Path, found: Found, facts: Mapping[str, Any]) -> None:
    """Keep a search beside the recording that decided it, or the last one of a search that is not over."""
    content = {
        "version": HISTORY_VERSION,
        "value": found.value,
        "unfinished": found.unfinished,
        "method": found.method,
        "is_monotone": found.is_monotone,
        **facts,
        "history": [dataclasses.asdict(trial) for trial in found.history],
    }
    write_json(recording / HISTORY_NAME, content)


def remove_history(recording: Path) -> None:
    """Take a search away from a recording that did not decide it."""
    (recording / HISTORY_NAME).unlink(missing_ok=True)


def read_history(recording: Path) -> dict[str, Any] | None:
    """The search that a recording decided; None where it is of none, or of a newer version."""
    path = recording / HISTORY_NAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = isinstance(content, dict) and content.get("version", 0) <= HISTORY_VERSION
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RecordingError(
            path, f"is damaged: {error}; restore it from a copy, or remove it to do without the search"
        ) from error
    return content if known else None
