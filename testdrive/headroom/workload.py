"""The workload whose headroom is searched: what of a recording is replayed, and whether rules can be claimed.

All of it is known, and refused where it makes no sense, before anything is written to a drive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testdrive.errors import UsageError
from testdrive.headroom.intervals import INTERVALS_MAX, SECOND_NS, Window, joined
from testdrive.manifest import MANIFEST_NAME, OPCODES
from testdrive.qos.rules import parse_rules
from testdrive.recording import Recording
from testdrive.report.words import listed

_NEEDED_COLUMNS = ("offset_bytes", "length_bytes", "opcode")


@dataclass(frozen=True)
class Workload:
    """What is replayed, as it was recorded.

    Attributes
    ----------
    window : Window
        From the user's ``from`` to the last I/O; its intervals.
    intervals : list of (int, int)
        The pieces of the window that make each interval.
    opcodes : list of str
        What rules are held to.
    by_opcode : dict of str to int
        I/Os that are replayed.
    peak_iops : int
        I/Os in the busiest second.
    """

    window: Window
    intervals: list[tuple[int, int]]
    opcodes: list[str]
    by_opcode: dict[str, int]
    peak_iops: int

    @property
    def mean_iops(self) -> float:
        """I/Os a second over the whole window."""
        window = self.window
        return sum(self.by_opcode.values()) * SECOND_NS / (window.to_ns - window.from_ns)

    @property
    def longest_ns(self) -> int:
        """The longest interval."""
        bounds = (self.window.bounds_ns(*one) for one in self.intervals)
        return max(end_ns - start_ns for start_ns, end_ns in bounds)

    @property
    def last_ns(self) -> int:
        """The last interval, which ends with the last I/O."""
        start_ns, end_ns = self.window.bounds_ns(*self.intervals[-1])
        return end_ns - start_ns

    @property
    def writes(self) -> bool:
        """Whether it changes what a drive holds."""
        return any(self.by_opcode.get(name) for name in ("write", "trim", "write_zeroes"))


def read_workload(values: Mapping[str, Any]) -> Workload:
    """Read what the parameters choose of their recording.

    Raises
    ------
    UsageError
        It cannot be replayed, nothing is left of it, or it has too few I/Os for a rule.
    RecordingError
        The recording cannot be read.
    """
    path = Path(values["recording"])
    _refuse_several(path)
    with Recording.open(path) as recording:
        recording.require_rows("be replayed")
        absent = set(recording.manifest.absent_columns)
        for column in _NEEDED_COLUMNS:
            if column in absent:
                raise UsageError(
                    f"{path} does not tell {column}, so it cannot be replayed: import it with that column"
                )
        if {"intended_ns", "submit_ns"} <= absent:
            raise UsageError(f"{path} has no times, so that it has no speed; import it with its times")
        rows = _chosen(recording, values)
        by_code = recording.execute(
            rows.group_by("opcode").aggregate(ios=rows.count(), last_ns=rows.time_ns.max())
        )
        if not len(by_code["ios"]):
            raise UsageError(
                f"{path} has no I/O left to replay; look at from, to, only and without, and at"
                f" `testdrive inspect {path}`"
            )
        by_opcode = {OPCODES[int(code)]: int(by_code["ios"][at]) for at, code in enumerate(by_code["opcode"])}
        from_ns = values["from"] or 0
        window = Window(from_ns, from_ns + int(by_code["last_ns"].max()) + 1, values["interval"])
        if window.pieces > INTERVALS_MAX:
            raise UsageError(
                f"interval is {values['interval'] / 1e9:g} s, of which this recording has {window.pieces:,};"
                f" give one that makes at most {INTERVALS_MAX:,}"
            )
        opcodes = _judged(values["opcodes"], by_opcode)
        seconds = rows.group_by(second=rows.time_ns // SECOND_NS).aggregate(ios=rows.count())
        peak = recording.execute(seconds.aggregate(ios=seconds.ios.max()))
        counts = _counts(recording, rows, window, opcodes)
    return Workload(
        window, _intervals(counts, values["rules"], opcodes), opcodes, by_opcode, int(peak["ios"][0])
    )


def _refuse_several(path: Path) -> None:
    if not path.is_dir() or (path / MANIFEST_NAME).is_file():
        return
    held = sorted(each.name for each in path.iterdir() if (each / MANIFEST_NAME).is_file())
    if held:
        raise UsageError(
            f"{path} holds the recordings of several drives or volumes: {listed(held)}; a drive stands for"
            f" one of them, choose it with --set recording={path / held[0]}"
        )


def _chosen(recording: Recording, values: Mapping[str, Any]) -> Any:
    """The rows that are replayed, as the engine chooses them, with ``time_ns`` from where they begin."""
    phases = recording.manifest.measured_phases
    rows = recording.all_rows()
    rows = rows.filter(rows.phase.isin([phase.index for phase in phases] or [-1]))
    scheduled = rows.submit_ns if values["events"] == "issued" else rows.intended_ns
    start_ns = phases[0].start_ns if phases else 0
    from_ns = values["from"] or 0
    rows = rows.mutate(time_ns=scheduled - start_ns - from_ns)
    rows = rows.filter(rows.time_ns >= 0)
    if values["to"] is not None:
        rows = rows.filter(rows.time_ns < values["to"] - from_ns)
    if values["only"]:
        rows = rows.filter(rows.opcode.isin([OPCODES.index(name) for name in values["only"]]))
    if values["without"]:
        rows = rows.filter(~rows.opcode.isin([OPCODES.index(name) for name in values["without"]]))
    return rows


def _judged(wanted: Sequence[str] | None, by_opcode: Mapping[str, int]) -> list[str]:
    """The opcodes that rules are held to: those given, else reads, or writes where there are no reads."""
    if wanted is None:
        chosen = next((name for name in ("read", "write") if by_opcode.get(name)), None)
        if chosen is None:
            raise UsageError(
                f"the recording has neither reads nor writes to judge, only {listed(list(by_opcode))}; give"
                " opcodes"
            )
        return [chosen]
    for name in wanted:
        if not by_opcode.get(name):
            raise UsageError(f"opcodes has {name!r}, and the recording has none; judge those that it has")
    return list(dict.fromkeys(wanted))


def _counts(recording: Recording, rows: Any, window: Window, opcodes: Sequence[str]) -> Any:
    found = recording.execute(
        rows.group_by(piece=rows.time_ns // window.interval_ns, opcode=rows.opcode).aggregate(
            ios=rows.count()
        )
    )
    counts = np.zeros((window.pieces, len(opcodes)), np.int64)
    for at, name in enumerate(opcodes):
        mine = found["opcode"] == OPCODES.index(name)
        counts[found["piece"][mine].astype(np.int64), at] = found["ios"][mine]
    return counts


def _intervals(counts: Any, rules: str, opcodes: Sequence[str]) -> list[tuple[int, int]]:
    worst = max(parse_rules(rules), key=lambda rule: rule.samples_min)
    found = joined(counts, worst.samples_min)
    if not found:
        least = int(counts.sum(axis=0).argmin())
        raise UsageError(
            f"{worst.quantity} needs {worst.samples_min:,} {opcodes[least]}s to be claimed, and what is"
            f" replayed has {int(counts[:, least].sum()):,}; give a lower percentile or a longer recording"
        )
    return found
