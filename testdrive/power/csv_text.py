"""Reading what a bench meter logged: a CSV file of any shape to times and microwatts.

Nothing is guessed about time zones or units without saying so: what was taken for what is told.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testdrive.errors import UsageError

#: Microwatts for each unit.
POWER_UNITS_UW = {"W": 1e6, "mW": 1e3, "uW": 1.0}
TIME_UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: Times beyond this (in 1973) are since 1970; below, since some start of the meter's own.
_ABSOLUTE_NS = 10**17
#: Times beyond this (in the year 2128) are none, and differences of them would not fit.
_TIME_MAX_NS = 5 * 10**18
_DELIMITERS = ",;\t"
#: A header is looked for this far: meters write their settings before it.
_PREAMBLE_LINES_MAX = 200
_UNIT = re.compile(r"(?:^|[^A-Za-z])(mW|uW|µW|W)\s*\)?\]?$")


@dataclass(frozen=True)
class Layout:
    """Which column is what. Columns are a header's name, or an index from 0.

    Attributes
    ----------
    time : str
        When; numbers in `time_unit`, or dates as ISO 8601 has them.
    power : tuple of str
        One or more columns whose power is added up: a meter has one for each rail.
    voltage, current : tuple of str
        In volts and amperes, in pairs, instead of power.
    power_unit : str or None
        ``W``, ``mW`` or ``uW``; without it what stands at the header's end, else W.
    utc : bool
        Whether dates that name no zone are UTC; else they are this host's local time.
    """

    time: str = "0"
    power: tuple[str, ...] = ()
    voltage: tuple[str, ...] = ()
    current: tuple[str, ...] = ()
    time_unit: str = "s"
    power_unit: str | None = None
    utc: bool = False

    def check(self) -> None:
        """Raise a UsageError where it makes no sense."""
        if bool(self.power) == bool(self.voltage or self.current):
            raise UsageError("name the column of power, or those of voltage and of current, and not both")
        if len(self.voltage) != len(self.current):
            raise UsageError("name as many columns of voltage as of current: each pair is one rail")
        if self.time_unit not in TIME_UNITS_NS:
            raise UsageError(f"{self.time_unit!r} is no unit of time; use {', '.join(TIME_UNITS_NS)}")
        if self.power_unit not in (None, *POWER_UNITS_UW):
            raise UsageError(f"{self.power_unit!r} is no unit of power; use {', '.join(POWER_UNITS_UW)}")


@dataclass(frozen=True)
class Log:
    """What was read.

    Attributes
    ----------
    time_ns : numpy.ndarray
        int64: since 1970 if `absolute`, else since the meter's own start.
    power_uw : numpy.ndarray
        float64, over all rails.
    passed_over : int
        Lines behind the first reading that are none.
    """

    time_ns: NDArray[np.int64]
    power_uw: NDArray[np.float64]
    absolute: bool
    columns: str
    passed_over: int


def read_log(path: Path, layout: Layout) -> Log:
    """Read a meter's log.

    Raises
    ------
    UsageError
        It cannot be read, has not the columns, or fewer than two readings.
    """
    layout.check()
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            return _read(path, _rows(file), layout)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; check the path") from error
    except csv.Error as error:
        raise UsageError(f"{path} is no CSV file: {error}") from error


def _rows(file: Iterator[str]) -> Iterator[list[str]]:
    """Rows, by the separator that the first line with any has most of."""
    delimiter = None
    for line in file:
        if delimiter is None or line.count(delimiter) == 0:
            best = max(_DELIMITERS, key=line.count)
            delimiter = best if line.count(best) else delimiter
        for row in csv.reader([line], delimiter=delimiter or ","):
            # Where columns are not parted by commas, a comma is a decimal point.
            yield [cell.strip().replace(",", ".") if delimiter != "," else cell.strip() for cell in row]


def _read(path: Path, rows: Iterator[list[str]], layout: Layout) -> Log:
    wanted = (layout.time, *layout.power, *layout.voltage, *layout.current)
    header, places, pending = _header(path, rows, wanted)
    scales = _scales(header, places, layout)
    rails = len(layout.power) or len(layout.voltage)
    times: list[int] = []
    powers: list[float] = []
    kinds: set[bool] = set()
    passed_over = 0
    for row in [*pending, *rows] if pending else rows:
        try:
            when_ns, absolute = _time_ns(row[places[0]], layout)
            cells = [_finite(row[place]) for place in places[1:]]
        except (ValueError, IndexError):
            passed_over += bool(times)
            continue
        kinds.add(absolute)
        pairs = cells[:rails] if layout.power else [cells[at] * cells[rails + at] for at in range(rails)]
        times.append(when_ns)
        powers.append(sum(value * scale for value, scale in zip(pairs, scales, strict=True)))
    if len(times) < 2:
        raise UsageError(
            f"{path} has {len(times)} readings in the columns {', '.join(wanted)}; at least two make power"
            " over time: check the columns"
        )
    if len(kinds) > 1:
        raise UsageError(f"{path} mixes dates with times since a start; give a file of one kind")
    shown = [header[place] if header else f"column {place}" for place in places]
    return Log(np.array(times, np.int64), np.array(powers), kinds.pop(), ", ".join(shown), passed_over)


def _header(
    path: Path, rows: Iterator[list[str]], wanted: Sequence[str]
) -> tuple[list[str], list[int], list[list[str]]]:
    """The header, the place of each column, and rows that were read already and are data."""
    named = [column for column in wanted if not column.isdigit()]
    if not named:
        return [], [int(column) for column in wanted], []
    seen: list[list[str]] = []
    for row in rows:
        if all(column in row for column in named):
            for column in named:
                if row.count(column) > 1:
                    raise UsageError(f"{path} has several columns {column!r}; name it by its index, from 0")
            return row, [int(column) if column.isdigit() else row.index(column) for column in wanted], []
        seen.append(row)
        if len(seen) >= _PREAMBLE_LINES_MAX:
            break
    widest = max(seen, key=lambda row: sum(bool(cell) for cell in row), default=[])
    raise UsageError(
        f"{path} has no header with {', '.join(repr(column) for column in named)}; it has"
        f" {', '.join(repr(cell) for cell in widest) or 'nothing'}"
    )


def _scales(header: list[str], places: list[int], layout: Layout) -> list[float]:
    """Microwatts for each value of each rail."""
    if not layout.power:
        return [1e6] * len(layout.voltage)
    if layout.power_unit is not None:
        return [POWER_UNITS_UW[layout.power_unit]] * len(layout.power)
    scales = []
    for place in places[1:]:
        match = _UNIT.search(header[place]) if header else None
        scales.append(POWER_UNITS_UW[match[1].replace("µ", "u")] if match else POWER_UNITS_UW["W"])
    return scales


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no reading")
    return value


def _time_ns(text: str, layout: Layout) -> tuple[int, bool]:
    """A time in ns, and whether it is since 1970."""
    try:
        # Seconds since 1970 with fractions have more digits than a float.
        value = Decimal(text)
    except InvalidOperation:
        when = datetime.fromisoformat(text.replace("/", "-"))
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC) if layout.utc else when.astimezone()
        since = when - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000, True
    if not value.is_finite():
        raise ValueError(f"{text!r} is no time")
    time_ns = round(value * TIME_UNITS_NS[layout.time_unit])
    if abs(time_ns) > _TIME_MAX_NS:
        raise ValueError(f"{text!r} is no time")
    return time_ns, abs(time_ns) >= _ABSOLUTE_NS
