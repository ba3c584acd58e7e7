"""What a meter is: something that can be read again and again, and says what it reads and how well."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

#: What a meter measures: the drive alone, or the host around it, which is context and no drive's figure.
Of = Literal["drive", "host"]
#: How values of power stand to the time between them: ``instant`` is power at a moment, ``mean`` the mean
#: since the value before.
Shape = Literal["instant", "mean"]
#: Names the root of sysfs, for trees that are laid out elsewhere.
SYSFS_VARIABLE = "TESTDRIVE_SYSFS"

Values = Mapping[str, int]


@dataclass(frozen=True)
class Source:
    """What a meter says of itself, as the recording keeps it.

    Attributes
    ----------
    name : str
        As it was asked for, such as ``hwmon:ina226``.
    kind : str
        ``hwmon``, ``rapl``, ``nvme``, ``quarch`` or ``csv``.
    of : str
        ``drive`` or ``host``.
    title : str
        What it is, for people.
    interval_ns : int
        From one reading to the next.
    shape : str
        ``instant`` or ``mean``: what ``power_uw`` is between two readings.
    uncertainty : str
        How far values may be off, as far as the meter tells.
    details : dict
        Whatever else identifies it.
    """

    name: str
    kind: str
    of: Of
    title: str
    interval_ns: int
    shape: Shape = "instant"
    uncertainty: str = "not stated by the meter"
    details: dict[str, Any] = field(default_factory=dict)


class Meter(Protocol):
    """A meter that was opened. It is read by one thread at a time."""

    @property
    def source(self) -> Source:
        """What it says of itself."""

    def read(self) -> Values:
        """Read what it shows now: integers, by names that end in their unit (``power_uw``).

        Raises
        ------
        OSError
            It cannot be read now; it may be again later.
        """

    def close(self) -> None:
        """Let go of it. Closing twice is harmless."""


def sysfs() -> Path:
    """The root of sysfs."""
    return Path(os.environ.get(SYSFS_VARIABLE) or "/sys")


def text_of(path: Path) -> str | None:
    """The text of a file of sysfs, or None where it cannot be read or is empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def integer_of(path: Path) -> int | None:
    """The integer in a file of sysfs, or None where there is none."""
    text = text_of(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def read_integer(path: Path) -> int:
    """The integer in a file of sysfs.

    Raises
    ------
    OSError
        The file cannot be read, or holds something else.
    """
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    try:
        return int(text)
    except ValueError:
        raise OSError(f"{path} holds {text[:40]!r}, which is no integer") from None
