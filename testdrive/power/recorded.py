"""What meters showed beside a run, read back from a recording's ``meters/`` on the recording's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.errors import RecordingError
from testdrive.power.clock import Mapping as ClockMapping
from testdrive.power.clock import Tie
from testdrive.power.files import FOLDER, LIVE_NAME, WARNINGS_NAME, is_live, lines_of
from testdrive.power.integral import Kind, Pieces
from testdrive.power.meter import Source

_SOURCE_KEYS = {field.name for field in fields(Source)}


@dataclass(frozen=True)
class Metered:
    """What one meter showed, in the order of time.

    Attributes
    ----------
    source : Source
        What the meter says of itself.
    time_ns : numpy.ndarray
        int64, on the recording's clock; below 0 before the run.
    values : mapping of str to numpy.ndarray
        float64 for each quantity (``power_uw``, ``energy_uj``, ``temperature_mc`` and the like), NaN where a
        reading had none.
    clock : str
        How its times were brought to the recording's clock, and how well.
    attached : bool
        Whether it was brought in after the run.
    """

    source: Source
    time_ns: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]
    clock: str
    attached: bool

    def pieces(self) -> Pieces | None:
        """Its power as pieces, by its counter of energy where it has one; None where it has neither."""
        kind: Kind
        for name, kind in (("energy_uj", "counter"), ("power_uw", self.source.shape)):
            if name in self.values:
                return Pieces(self.time_ns, self.values[name], kind, self.source.interval_ns)
        return None


def read_meters(recording: Path) -> list[Metered]:
    """Read what each meter showed: those brought in after the run first, then in the order they were named.

    Raises
    ------
    RecordingError
        If a file is damaged.
    """
    folder = recording / FOLDER
    if not folder.is_dir():
        return []
    files = sorted(path for path in folder.glob("*.jsonl") if path.name != WARNINGS_NAME)
    found: list[Metered] = []
    for path in sorted(files, key=is_live):
        found += _read(path)
    return found


def _read(path: Path) -> list[Metered]:
    sources: dict[int, Source] = {}
    rows: dict[int, list[dict[str, Any]]] = {}
    ties: list[Tie] = []
    for number, line in enumerate(lines_of(path), start=2):
        try:
            if "name" in line:
                sources[line["source"]] = Source(**{key: line[key] for key in _SOURCE_KEYS & line.keys()})
            elif "recording_ns" in line:
                ties.append(Tie(line["recording_ns"], line["monotonic_ns"], line["unix_ns"]))
            else:
                rows.setdefault(line["source"], []).append(line)
        except (KeyError, TypeError) as error:
            raise RecordingError(
                path, f"is damaged in line {number}: {error}; restore it from a copy, or remove it"
            ) from error
    mapping = ClockMapping.of(ties)
    try:
        return [
            metered
            for number, source in sources.items()
            if (metered := _metered(source, rows.get(number, []), mapping)) is not None
        ]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordingError(path, f"is damaged: {error}; restore it from a copy, or remove it") from error


def _metered(source: Source, rows: Sequence[dict[str, Any]], mapping: ClockMapping | None) -> Metered | None:
    attached = bool(rows) and "time_ns" in rows[0]
    if attached:
        time_ns = np.array([row["time_ns"] for row in rows], np.int64)
        clock = str(source.details.get("clock", "as it was given"))
    elif mapping is None:
        # The run ended before its first phase: nobody knows when these readings were.
        return None
    else:
        time_ns = mapping.to_recording_ns(np.array([row["monotonic_ns"] for row in rows], np.int64))
        clock = f"the host's monotonic clock, tied to the recording's within {mapping.error_ns / 1e6:.0f} ms"
    names = sorted({name for row in rows for name in row} - {"monotonic_ns", "time_ns", "source"})
    values = {name: np.array([row.get(name, np.nan) for row in rows], np.float64) for name in names}
    return Metered(source, time_ns, values, clock, attached)


def clock_mapping(recording: Path) -> ClockMapping | None:
    """How the host's clocks stood to the recording's, where a sampler watched; else None."""
    path = recording / FOLDER / LIVE_NAME
    if not path.is_file():
        return None
    return ClockMapping.of(
        [
            Tie(line["recording_ns"], line["monotonic_ns"], line["unix_ns"])
            for line in lines_of(path)
            if "recording_ns" in line
        ]
    )
