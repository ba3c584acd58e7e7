"""Short names of drives, for files and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


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
