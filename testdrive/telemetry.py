"""What a drive measured of itself: ``telemetry.jsonl`` of a recording (docs/recording-format.md).

Only drives that tell leave one, so far the modelled ones. Opened by
:meth:`testdrive.recording.Recording.telemetry`.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testdrive.errors import RecordingError
from testdrive.manifest import Manifest
from testdrive.regular_files import open_text

TELEMETRY_NAME = "telemetry.jsonl"


@dataclass(frozen=True)
class Series:
    """What one sensor showed, in the order of time.

    Attributes
    ----------
    unit : str
        Of the values, as the file has it: ``mW``, ``uJ``, ``mC`` (thousandths of a degree Celsius).
    time_ns : numpy.ndarray
        int64, on the recording's clock.
    value : numpy.ndarray
        int64, as many.
    """

    unit: str
    time_ns: NDArray[np.int64]
    value: NDArray[np.int64]


def read_telemetry(path: Path, manifest: Manifest) -> dict[str, Series]:
    """Read what each sensor of a drive showed; empty where the drive told nothing.

    Raises
    ------
    RecordingError
        If the file is missing though the manifest has rows of it, or is not what the format says.
    """
    file = path / TELEMETRY_NAME
    summary = manifest.telemetry
    if summary is None and not file.exists():
        return {}
    # Without the manifest's word the writer crashed: its last line may be the part of one.
    lines = _lines(file, may_be_torn=summary is None)
    found: dict[str, tuple[str, array[int], array[int]]] = {}
    rows = 0
    for time_ns, sensor, value, unit in islice(lines, summary.rows if summary else None):
        _, times, values = found.setdefault(sensor, (unit, array("q"), array("q")))
        times.append(time_ns)
        values.append(value)
        rows += 1
    if summary is not None and rows < summary.rows:
        raise RecordingError(
            file, f"has {rows} rows, and the manifest has {summary.rows}; restore it from a copy"
        )
    return {
        sensor: Series(unit, np.array(times, np.int64), np.array(values, np.int64))
        for sensor, (unit, times, values) in found.items()
    }


def _lines(path: Path, *, may_be_torn: bool) -> Iterator[tuple[int, str, int, str]]:
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if may_be_torn and not line.endswith("\n"):
                    return
                try:
                    row = json.loads(line)
                    sensor, unit = str(row["sensor"]), str(row["unit"])
                    yield _integer(row["time_ns"]), sensor, _integer(row["value"]), unit
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise RecordingError(
                        path, f"is damaged in line {number}: {error}; restore it from a copy, or remove it"
                    ) from error
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}; restore it from a copy") from error
    except UnicodeDecodeError as error:
        raise RecordingError(path, f"is not text ({error}); restore it from a copy") from error


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value!r} is no integer of 64 bits")
    return value
