"""What was done in each phase, to hold its energy against: I/Os that completed without an error, and bytes
that they read or wrote. A trim of 64 MiB moves none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testdrive.manifest import READ, WRITE
from testdrive.power.phases import NOT_MEASURED, PhasePower, Power
from testdrive.segments import SERVICE

if TYPE_CHECKING:
    from testdrive.manifest import Phase
    from testdrive.recording import Recording

_MOVING = (READ, WRITE)


@dataclass(frozen=True)
class Work:
    """I/Os that completed without an error, and bytes read and written by them, over a length of time."""

    ios: int
    bytes: int
    length_ns: int

    def __add__(self, other: Work) -> Work:
        return Work(self.ios + other.ios, self.bytes + other.bytes, self.length_ns + other.length_ns)


@dataclass(frozen=True)
class Efficiency:
    """What energy bought. Each figure is None where power was not measured, or nothing was done.

    Attributes
    ----------
    throughput_bytes_per_s_per_w : float or None
        Mean throughput over mean power: bytes for each joule.
    iops_per_w : float or None
        I/Os for each joule.
    energy_per_io_uj : float or None
        Microjoules for each I/O.
    """

    power: PhasePower
    throughput_bytes_per_s_per_w: float | None
    iops_per_w: float | None
    energy_per_io_uj: float | None

    def to_json_object(self) -> dict[str, float | None]:
        """As ``summary.json`` has it."""
        return {
            "mean_w": self.power.mean_w,
            "energy_j": self.power.energy_j,
            "throughput_bytes_per_s_per_w": self.throughput_bytes_per_s_per_w,
            "iops_per_w": self.iops_per_w,
            "energy_per_io_uj": self.energy_per_io_uj,
            "covered_share": self.power.covered_share,
        }


def efficiency(work: Work, power: PhasePower) -> Efficiency:
    """Hold what was done against what was drawn meanwhile."""
    energy_j = power.energy_j
    if not energy_j or energy_j <= 0:
        return Efficiency(power, None, None, None)
    return Efficiency(
        power,
        work.bytes / energy_j if work.bytes else None,
        work.ios / energy_j if work.ios else None,
        energy_j * 1e6 / work.ios if work.ios else None,
    )


def work_of_phases(recording: Recording) -> dict[int, Work]:
    """What was done in each phase, by its index, from rows or from histograms alike."""
    if recording.manifest.kept is not None:
        table: Any = recording.intervals()
        table = table.filter((table.quantity == SERVICE) & (table.latency_ceiling_ns >= 0))
        sums = {"ios": table["count"].sum(), "bytes": table.bytes.sum(where=table.opcode.isin(_MOVING))}
    else:
        table = recording.all_rows()
        table = table.filter((table.status == 0) & (table.latency_ns >= 0))
        moved = table.length_bytes.sum(where=table.opcode.isin(_MOVING))
        sums = {"ios": table.count(), "bytes": moved}
    sums["bytes"] = sums["bytes"].fill_null(0)
    found = recording.execute(table.group_by("phase").aggregate(**sums))
    counts = {
        int(index): (int(ios), int(length_bytes))
        for index, ios, length_bytes in zip(found["phase"], found["ios"], found["bytes"], strict=True)
    }
    return {
        phase.index: Work(*counts.get(phase.index, (0, 0)), length_ns(phase))
        for phase in recording.manifest.phases
    }


def length_ns(phase: Phase) -> int:
    """How long a phase took."""
    return max((phase.end_ns or phase.start_ns) - phase.start_ns, 0)


def of_phases(phases: Sequence[Phase], power: Power | None, done: dict[int, Work]) -> Efficiency:
    """The figures of several phases together."""
    drawn = power.of_phases(phases) if power else NOT_MEASURED
    return efficiency(sum((done[phase.index] for phase in phases), Work(0, 0, 0)), drawn)
