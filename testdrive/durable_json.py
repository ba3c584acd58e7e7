"""Writing JSON so that a reader finds the old file or the new one whole, whenever the writer crashed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON to ``path`` atomically and durably: a new file, synced, renamed over the old one, then the
    directory.

    Raises
    ------
    OSError
        If the directory cannot be written to or is full.
    ValueError
        If ``content`` holds NaN or infinity, which JSON cannot.
    """
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            # mkstemp makes files that only their owner can read; a recording is as readable as any other
            # file.
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _umask() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
