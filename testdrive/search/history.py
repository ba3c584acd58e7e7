"""The history of a search, kept beside the recording that decided it, for its page and for scripts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testdrive.search.bisection import Found

HISTORY_NAME = "search.json"
HISTORY_VERSION = 1


def write_history(recording: Path, found: Found, facts: Mapping[str, Any]) -> None:
    """Keep a search beside the recording that decided it, for its page and for scripts."""
    content = {
        "version": HISTORY_VERSION,
        "value": found.value,
        "method": found.method,
        "is_monotone": found.is_monotone,
        **facts,
        "history": [dataclasses.asdict(trial) for trial in found.history],
    }
    (recording / HISTORY_NAME).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_history(recording: Path) -> dict[str, Any] | None:
    """The search that a recording decided; None where it is of none, or of a newer version."""
    path = recording / HISTORY_NAME
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) and content.get("version", 0) <= HISTORY_VERSION else None
