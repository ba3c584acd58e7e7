"""What meters showed beside a run, read back from a recording's ``meters/`` on the recording's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.errors import RecordingError
from testdrive.manifest import Gap
from testdrive.power.clock import Mapping as ClockMapping
from testdrive.power.clock import Tie
from testdrive.power.files import FOLDER, WARNINGS_NAME, is_live, lines_of, live_files
from testdrive.power.integral import Kind, Pieces
from testdrive.power.meter import Source
from testdrive.power.parts import Part, part_at, parts_of

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

    def only(self, part: Part) -> Metered:
        """What it showed in a part of the run."""
        inside = part.holds(self.time_ns)
        if inside.all():
            return self
        values = {name: each[inside] for name, each in self.values.items()}
        return replace(self, time_ns=self.time_ns[inside], values=values)

    def pieces(self) -> Pieces | None:
        """Its power as pieces, by its counter of energy where it has one; None where it has neither."""
        kind: Kind
        for name, kind in (("energy_uj", "counter"), ("power_uw", self.source.shape)):
            if name in self.values:
                return Pieces(self.time_ns, self.values[name], kind, self.source.interval_ns)
        return None


def read_meters(recording: Path, gaps: Sequence[Gap] = ()) -> list[Metered]:
    """Read what each meter showed: those brought in after the run first, then in the order they were named.

    Of a run that was resumed a meter has a file for each part, which become one.

    Parameters
    ----------
    recording : pathlib.Path
        The recording's directory.
    gaps : sequence of Gap
        Where its run was interrupted and resumed, by its manifest.

    Raises
    ------
    RecordingError
        If a file is damaged.
    """
    folder = recording / FOLDER
    if not folder.is_dir():
        return []
    files = sorted(path for path in folder.glob("*.jsonl") if path.name != WARNINGS_NAME)
    attached = [metered for path in files if not is_live(path) for metered in _read(path)[1]]
    parts = parts_of(gaps)
    read_beside: dict[tuple[str, str], list[Metered]] = {}
    for path in live_files(recording):
        mapping, found = _read(path)
        for metered in found:
            if mapping is not None:
                metered = metered.only(part_at(parts, mapping.begin_ns))
            read_beside.setdefault((metered.source.name, metered.source.of), []).append(metered)
    return [*attached, *(_joined(each) for each in read_beside.values())]


def _joined(parts: Sequence[Metered]) -> Metered:
    """One meter in several parts of a run, which follow one another."""
    if len(parts) == 1:
        return parts[0]
    names = sorted({name for part in parts for name in part.values})
    values = {
        name: np.concatenate([part.values.get(name, np.full(len(part.time_ns), np.nan)) for part in parts])
        for name in names
    }
    source = replace(parts[0].source, interval_ns=max(part.source.interval_ns for part in parts))
    clock = "; resumed: ".join(dict.fromkeys(part.clock for part in parts))
    return Metered(source, np.concatenate([part.time_ns for part in parts]), values, clock, False)


def _read(path: Path) -> tuple[ClockMapping | None, list[Metered]]:
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
        return mapping, [
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


def clock_mappings(recording: Path) -> list[ClockMapping]:
    """How the host's clocks stood to the recording's, for each part of the run that a sampler watched."""
    found = []
    for path in live_files(recording):
        ties = [
            Tie(line["recording_ns"], line["monotonic_ns"], line["unix_ns"])
            for line in lines_of(path)
            if "recording_ns" in line
        ]
        mapping = ClockMapping.of(ties)
        if mapping is not None:
            found.append(mapping)
    return found
