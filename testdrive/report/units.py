"""Scaling to human units. Everything inside is integers of ns and bytes; only pages and terminals scale."""

from __future__ import annotations

import math

ABSENT = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"
_TIMES = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with so many significant digits, never in exponent form, thousands grouped by commas."""
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    # Rounding may have carried into the next magnitude (999.7 -> 1000).
    magnitude = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(digits - 1 - magnitude, 0)}f}"


def time(value_ns: float | None) -> str:
    """Return a duration or latency in ns, µs, ms or s with three significant digits; absent as a dash."""
    if value_ns is None:
        return ABSENT
    size = abs(round(float(f"{value_ns:.3g}"))) if value_ns else 0
    scale, unit = _TIMES[0]
    for candidate, name in _TIMES:
        if size >= candidate:
            scale, unit = candidate, name
    if scale == 1_000_000_000 and size >= 1000 * scale:
        return f"{value_ns / scale:,.0f} s"
    return f"{significant(value_ns / scale)} {unit}"


def duration(value_ns: float | None) -> str:
    """Return a length of time as people say it: `350 ms`, `90 s`, `12 min 30 s`, `5 h 20 min`, `7 d 3 h`."""
    if value_ns is None:
        return ABSENT
    if value_ns < 120e9:
        number, unit = time(value_ns).split(" ")
        return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
    for limit_s, (large, name), (small, lesser) in (
        (7_200, (60, "min"), (1, "s")),
        (172_800, (3_600, "h"), (60, "min")),
        (math.inf, (86_400, "d"), (3_600, "h")),
    ):
        whole = round(value_ns / 1e9 / small) * small
        if whole < limit_s:
            rest = whole % large // small
            return f"{whole // large:,} {name}" + (f" {rest} {lesser}" if rest else "")
    raise AssertionError("every length of time is below infinity")


def moment(value_ns: float | None) -> str:
    """Return a time since the start in seconds with one decimal, so that moments line up with the plots'
    axes.
    """
    return ABSENT if value_ns is None else f"{value_ns / 1e9:,.1f} s"


def size(value_bytes: float | None) -> str:
    """Return bytes in binary units (block sizes, footprints)."""
    return ABSENT if value_bytes is None else _scaled(value_bytes, 1024, _BINARY)


def block(value_bytes: float | None) -> str:
    """Return the size of an I/O: as `size`, without decimals that say nothing (`8 KiB`, `4.5 KiB`)."""
    if value_bytes is None:
        return ABSENT
    number, unit = size(value_bytes).split(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def capacity(value_bytes: float | None) -> str:
    """Return bytes in decimal units, as drives are sold."""
    return ABSENT if value_bytes is None else _scaled(value_bytes, 1000, _DECIMAL)


def rate(value_bytes_per_s: float | None) -> str:
    """Return a throughput in decimal units for each second."""
    return ABSENT if value_bytes_per_s is None else f"{_scaled(value_bytes_per_s, 1000, _DECIMAL)}/s"


def _scaled(value: float, step: int, units: tuple[str, ...]) -> str:
    exponent = 0
    while abs(value) >= step and exponent < len(units) - 1:
        value /= step
        exponent += 1
    return f"{significant(value) if exponent else f'{value:,.0f}'} {units[exponent]}"


def count(value: float | None) -> str:
    """Return a number of things, thousands grouped."""
    return ABSENT if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 3) -> str:
    """Return a plain number with significant digits."""
    return ABSENT if value is None else significant(value, digits)


def iops(value: float | None) -> str:
    """Return a rate of I/Os: whole from a hundred on, with three significant digits below."""
    if value is None:
        return ABSENT
    return f"{count(value) if value >= 100 or value == round(value) else number(value)} IOPS"


def percent(share: float | None, digits: int = 3) -> str:
    """Return a share of one as a percentage."""
    return ABSENT if share is None else f"{significant(100 * share, digits)} %"
