"""Durations and sizes as people write them, to the integers of ns and bytes that everything inside uses."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from testdrive.errors import UsageError

_DURATION_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_SIZE_BYTES = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-zµ]*)")


def duration_ns(text: str) -> int:
    """Read a duration such as ``30s``, ``10m``, ``500ms`` or ``1h30m``; a bare number is an error.

    Returns
    -------
    int
        Nanoseconds, at least 0. A fraction of a nanosecond is rounded.

    Raises
    ------
    UsageError
        The text is not a duration.
    """
    return _sum_of_parts(text, _DURATION_NS, "a duration", "30s, 10m, 500ms or 1h30m")


def size_bytes(text: str) -> int:
    """Read a size such as ``4GiB``, ``128KiB``, ``1TB`` or a bare number of bytes.

    Returns
    -------
    int
        Bytes, at least 0.

    Raises
    ------
    UsageError
        The text is not a size.
    """
    return _sum_of_parts(text, _SIZE_BYTES, "a size", "4GiB, 128KiB, 1TB or a number of bytes")


def _sum_of_parts(text: str, units: dict[str, int], what: str, examples: str) -> int:
    total = Decimal(0)
    position = 0
    while position < len(text.rstrip()):
        part = _QUANTITY.match(text, position)
        if part is None or part[2] not in units:
            break
        try:
            total += Decimal(part[1]) * units[part[2]]
        except InvalidOperation:  # pragma: no cover - the pattern only lets numbers through
            break
        position = part.end()
    else:
        if position:
            return int(total.to_integral_value())
    raise UsageError(f"{text!r} is not {what}; write it like {examples}")
