"""A run in the form of act_storage's own log, which its analysis script reads.

Every ``report-interval-sec`` the log has what was counted since the start: ``after N sec:``, and for each
histogram a line ``NAME (T total)`` with the buckets that hold something on the lines below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import testdrive
from testdrive.act.configuration import KEYS
from testdrive.act.counts import MS_NS, US_NS, Counts, Ints, count
from testdrive.act.load import (
    LARGE_READS,
    LARGE_WRITES,
    READS,
    SECOND_NS,
    TRANSACTIONS,
    WRITES,
    derive_load,
)
from testdrive.act.verdict import is_act, load_phase
from testdrive.errors import UsageError
from testdrive.manifest import Phase
from testdrive.recording import Recording

#: The version whose form it is.
VERSION = "6.6"
_COLUMNS = 4
_NOT_DRIVES = [key for key in KEYS if key not in ("device-names", "file-size-mbytes")]
#: Keys that its newer versions do not have.
_OF_OLDER = ("commit-min-bytes",)


def write_log(recordings: Sequence[Recording], path: Path) -> None:
    """Write the log of a run, of several drives as of one run on all of them.

    Parameters
    ----------
    recordings
        Of one run of the plan ``act``, one of each drive.
    path
        The file, which is made.

    Raises
    ------
    UsageError
        A recording is of another plan, or ended before its load began; the recordings are of different loads,
        or of more drives than shared one.
    OSError
        The file cannot be written.
    """
    phases = [_phase(recording) for recording in recordings]
    parameters = _parameters(recordings[0])
    for other in recordings[1:]:
        _check_same(parameters, recordings[0], other)
    drives = _drives(parameters, recordings, phases)
    step_s = int(parameters["report-interval-sec"])
    steps = min(_whole_steps(phase, step_s) for phase in phases)
    unit_ns = US_NS if parameters["microsecond-histograms"] else MS_NS
    counted = [
        count(recording, phase, step_s * SECOND_NS, steps + 1, unit_ns)
        for recording, phase in zip(recordings, phases, strict=True)
    ]
    names = _names(recordings)
    histograms = dict(_histograms(counted, names))
    with path.open("x", encoding="utf-8") as file:
        file.writelines(_head(parameters, names, drives, _planned_ns(phases[0]) // SECOND_NS))
        file.write("HISTOGRAM NAMES\n" + "".join(f"{name}\n" for name in histograms) + "\n")
        sums = {name: np.cumsum(each, axis=0) for name, each in histograms.items()}
        for step in range(steps):
            file.write(f"after {(step + 1) * step_s} sec:\n")
            for name, each in sums.items():
                file.writelines(_dump(name, each[step]))
            file.write("\n")
        file.writelines(_end(recordings))


def _phase(recording: Recording) -> Phase:
    phase = load_phase(recording) if is_act(recording) else None
    if phase is None:
        raise UsageError(
            f"{recording.path} has no load of the plan act; the form act-log is of its runs alone"
        )
    return phase


def _parameters(recording: Recording) -> dict[str, Any]:
    plan = recording.manifest.plan
    assert plan is not None, "a recording of the plan act has a plan"
    return plan.parameters


def _check_same(parameters: dict[str, Any], first: Recording, other: Recording) -> None:
    mine = _parameters(other)
    for key in sorted(parameters.keys() | mine.keys()):
        if parameters.get(key) != mine.get(key):
            raise UsageError(
                f"{key} is {parameters.get(key)} in {first.path} and {mine.get(key)} in {other.path}; a log"
                " is of one run, export those of other loads by themselves"
            )


def _drives(parameters: dict[str, Any], recordings: Sequence[Recording], phases: Sequence[Phase]) -> int:
    """How many drives share the rates that the parameters have: those of a rating are of each drive."""
    if not parameters.get("config"):
        return 1
    # Every configuration has a stream with a rate of its own, whose parts make the whole.
    streams = (phases[0].settings or {}).get("streams") or []
    load = derive_load(parameters)
    both = load.reads_per_s + load.writes_per_s
    whole = {READS: load.reads_per_s, TRANSACTIONS: both, LARGE_WRITES: load.large_writes_per_s}
    drives = next(
        (
            round(whole[stream["name"]] / stream["arrivals"]["rate_iops"])
            for stream in streams
            if stream.get("name") in whole
        ),
        1,
    )
    if len(recordings) > drives:
        raise UsageError(
            f"{len(recordings)} recordings are given, and the configuration {parameters['config']} is of"
            f" {drives} drives; give each drive's recording once"
        )
    return drives


def _names(recordings: Sequence[Recording]) -> list[str]:
    """What the drives are called, each by a name of its own: two models may have the same."""
    names: list[str] = []
    for recording in recordings:
        name = _drive(recording)
        same = sum(each == name or each.startswith(f"{name}#") for each in names)
        names.append(f"{name}#{same + 1}" if same else name)
    return names


def _drive(recording: Recording) -> str:
    drive = recording.manifest.drive
    uri = drive.uri if drive and drive.uri else recording.path.name
    # Names end at white space and brackets for whoever reads the log.
    return "".join("_" if letter.isspace() or letter in "()" else letter for letter in uri.partition("?")[0])


def _planned_ns(phase: Phase) -> int:
    return int((phase.settings or {}).get("duration_ns") or 0)


def _whole_steps(phase: Phase, step_s: int) -> int:
    ran_ns = max((phase.end_ns or phase.start_ns) - phase.start_ns, 0)
    return min(ran_ns, _planned_ns(phase)) // (step_s * SECOND_NS)


def _histograms(counted: Sequence[dict[str, Counts]], names: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    for stream, by_drive in ((READS, True), (LARGE_READS, False), (LARGE_WRITES, False), (WRITES, True)):
        mine = [each[stream].service for each in counted if stream in each]
        if not mine:
            if stream == LARGE_READS and any(LARGE_WRITES in each for each in counted):
                # act_storage has both or none, also where no defragmentation reads.
                yield stream, np.zeros_like(counted[0][LARGE_WRITES].service)
            continue
        yield stream, np.sum(mine, axis=0)
        if by_drive:
            yield from zip((f"{name}-{stream}" for name in names), mine, strict=True)


def _head(parameters: dict[str, Any], names: Sequence[str], drives: int, duration_s: int) -> Iterator[str]:
    # What the drives of this log had, where it is not of all that share the rates.
    rates = {
        key: parameters[key] * len(names) // drives for key in ("read-reqs-per-sec", "write-reqs-per-sec")
    }
    parameters = parameters | rates | {"test-duration-sec": duration_s}
    load = derive_load(parameters)
    yield f"\nACT version {VERSION}\nStorage device IO test\n"
    yield f"(in the form of act_storage, made by testdrive {testdrive.__version__})\n\n"
    yield "ACT-STORAGE CONFIGURATION\n"
    yield f"device-names: {' '.join(names)}\nnum-devices: {len(names)}\n"
    for key in _NOT_DRIVES:
        if key in parameters and (key not in _OF_OLDER or parameters[key]):
            value = parameters[key]
            yield f"{key}: {('no', 'yes')[value] if isinstance(value, bool) else value}\n"
    yield "\nDERIVED CONFIGURATION\n"
    yield f"record-stored-bytes: {load.stored_bytes} ... {load.stored_max_bytes}\n"
    yield f"internal-read-reqs-per-sec: {load.reads_per_s}\n"
    yield f"internal-write-reqs-per-sec: {load.writes_per_s}\n"
    yield f"large-block-reads-per-sec: {load.large_reads_per_s:.2f}\n"
    yield f"large-block-writes-per-sec: {load.large_writes_per_s:.2f}\n\n"


def _dump(name: str, buckets: Ints) -> Iterator[str]:
    yield f"{name} ({int(buckets.sum())} total)\n"
    held = [f" ({at:02d}: {int(buckets[at]):010d})" for at in np.flatnonzero(buckets)]
    for first in range(0, len(held), _COLUMNS):
        yield "".join(held[first : first + _COLUMNS]) + "\n"


def _end(recordings: Sequence[Recording]) -> Iterator[str]:
    for recording in recordings:
        if recording.manifest.status != "complete":
            reason = recording.manifest.status_reason or recording.manifest.status
            yield (
                f"ERROR: {reason}\ndrive(s) can't keep up - test stopped\n"
                if "keep up" in reason
                else (f"ERROR: {reason}\n")
            )
