"""The power of a recording's phases, from whichever source measured it: the only place that chooses one.

In this order: a meter of the drive that was attached after the run, one that was read beside it (the first
that was named), the ledger that a modelled drive keeps of itself. Figures of the host are context, and never
stand in for the drive's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from testdrive.power.integral import Pieces, Stretch
from testdrive.power.recorded import Metered

if TYPE_CHECKING:
    from testdrive.manifest import Phase
    from testdrive.recording import Recording

#: A phase of which less was measured has no figure: its mean could be another's.
COVERED_SHARE_MIN = 0.9
#: Nor has one with fewer readings within it: what stands for it then is mostly what was before and after.
READINGS_MIN = 2
#: What stands before a run is idle if it is as long as this.
IDLE_MIN_NS = 1_000_000_000
#: And of a log that was brought in no more than this, which is how long a run waits beside a meter if nothing
#: else is asked for: a bench meter may have logged the whole day, with the test before this one in it.
IDLE_OF_LOGS_NS = 5_000_000_000
_LEDGER_INTERVAL_NS = 1_000_000_000
#: The kind of a phase in which nothing is issued on purpose.
_IDLE_KIND = "idle"
Readings = tuple[NDArray[np.int64], NDArray[np.float64]]
#: The name of the source that a modelled drive is itself.
LEDGER = "ledger"


@dataclass(frozen=True)
class PhasePower:
    """What was drawn in a phase.

    Attributes
    ----------
    mean_w, energy_j : float or None
        Mean power, and energy over the whole phase by that mean; None where too little of it was measured.
    covered_share : float
        How much of the phase was measured.
    """

    mean_w: float | None
    energy_j: float | None
    covered_share: float


NOT_MEASURED = PhasePower(None, None, 0.0)


@dataclass(frozen=True)
class Power:
    """A source of power over a whole recording.

    Attributes
    ----------
    name, title : str
        As it was asked for, and for people.
    uncertainty, clock : str
        How far values and times may be off.
    pieces : Pieces
        Its power over time.
    counted : dict of int to float
        Microjoules of phases, by their index, that the source counted itself.
    temperature : tuple of numpy.ndarray, optional
        Times, and thousandths of a degree Celsius, where the drive's log tells.
    idle_max_ns : int, optional
        How long before the run it can be taken for idle; None for as long as there are readings.
    """

    name: str
    title: str
    of: str
    uncertainty: str
    clock: str
    pieces: Pieces
    counted: dict[int, float]
    temperature: Readings | None = None
    idle_max_ns: int | None = None

    @property
    def is_ledger(self) -> bool:
        """Whether it is a modelled drive's own."""
        return self.name == LEDGER

    @property
    def statement(self) -> str:
        """Source, error and clock in a sentence's end, for people."""
        return f"{self.title}; uncertainty: {self.uncertainty}; clock: {self.clock}"

    def of_phase(self, phase: Phase) -> PhasePower:
        """Return what was drawn in a phase."""
        length_ns = max((phase.end_ns or phase.start_ns) - phase.start_ns, 0)
        if phase.index in self.counted and length_ns:
            energy_j = self.counted[phase.index] / 1e6
            return PhasePower(energy_j / (length_ns / 1e9), energy_j, 1.0)
        return _figure(self.pieces.over(phase.start_ns, phase.start_ns + length_ns))

    def of_phases(self, phases: Sequence[Phase]) -> PhasePower:
        """Return what was drawn in several phases together, without what lies between them."""
        lengths = [max((phase.end_ns or phase.start_ns) - phase.start_ns, 0) for phase in phases]
        whole_ns = sum(lengths)
        each = [self.of_phase(phase) for phase in phases]
        if not whole_ns:
            return NOT_MEASURED
        covered = sum(one.covered_share * ns for one, ns in zip(each, lengths, strict=True)) / whole_ns
        if any(one.energy_j is None for one, ns in zip(each, lengths, strict=True) if ns):
            return PhasePower(None, None, covered)
        energy_j = sum(one.energy_j or 0.0 for one in each)
        return PhasePower(energy_j / (whole_ns / 1e9), energy_j, covered)

    def idle(self, phases: Sequence[Phase]) -> PhasePower:
        """Return what was drawn while nothing was issued: before the run, and in phases that are for it."""
        stretches = [
            self.pieces.over(phase.start_ns, phase.end_ns or phase.start_ns)
            for phase in phases
            if phase.kind == _IDLE_KIND
        ]
        if len(self.pieces) and self.pieces.start_ns[0] <= -IDLE_MIN_NS:
            first_ns = int(self.pieces.start_ns[0])
            begin_ns = first_ns if self.idle_max_ns is None else max(first_ns, -self.idle_max_ns)
            stretches.append(self.pieces.over(begin_ns, 0))
        whole = Stretch(
            sum(one.energy_uj for one in stretches),
            sum(one.covered_ns for one in stretches),
            sum(one.length_ns for one in stretches),
            sum(one.readings for one in stretches),
        )
        return _figure(whole)


def _figure(stretch: Stretch) -> PhasePower:
    mean_w = stretch.mean_w
    if mean_w is None or stretch.covered_share < COVERED_SHARE_MIN or stretch.readings < READINGS_MIN:
        return PhasePower(None, None, stretch.covered_share)
    return PhasePower(mean_w, mean_w * stretch.length_ns / 1e9, stretch.covered_share)


def power_of(recording: Recording) -> Power | None:
    """Return the power of a recording's drive; None where nothing measured it.

    Raises
    ------
    RecordingError
        If what a meter left is damaged.
    """
    every = powers(recording)
    return next((power for power in every if power.of == "drive"), None)


def powers(recording: Recording) -> list[Power]:
    """Return every source of power of a recording, the drive's and the host's, the best of each first."""
    every = recording.meters()
    warm = next((readings for metered in every if (readings := _temperature(metered)) is not None), None)
    found = [power for metered in every if (power := _metered(metered, warm)) is not None]
    ledger = _ledger(recording)
    return [*found, *([ledger] if ledger else [])]


def _temperature(metered: Metered) -> Readings | None:
    """The drive's temperature, which only its own log tells: a meter's chip has one of its own."""
    celsius = metered.values.get("temperature_mc") if metered.source.kind == "nvme" else None
    if celsius is None or not (known := np.isfinite(celsius)).any():
        return None
    return metered.time_ns[known], celsius[known]


def _metered(metered: Metered, warm: Readings | None) -> Power | None:
    pieces = metered.pieces()
    if pieces is None or not len(pieces):
        return None
    source = metered.source
    return Power(
        source.name,
        source.title,
        source.of,
        source.uncertainty,
        metered.clock,
        pieces,
        {},
        warm,
        IDLE_OF_LOGS_NS if metered.attached else None,
    )


def _ledger(recording: Recording) -> Power | None:
    """The energy that a modelled drive counts of itself: exact for phases, and by seconds within them."""
    counted = {}
    for phase in recording.manifest.phases:
        around = phase.drive_counters
        if around and around.before.energy_uj is not None and around.after.energy_uj is not None:
            counted[phase.index] = float(around.after.energy_uj - around.before.energy_uj)
    energy = recording.telemetry().get("energy")
    if energy is None or energy.unit != "uJ":
        if not counted:
            return None
        pieces = Pieces(np.zeros(0, np.int64), np.zeros(0), "counter", _LEDGER_INTERVAL_NS)
    else:
        pieces = Pieces(energy.time_ns, energy.value.astype(np.float64), "counter", _LEDGER_INTERVAL_NS)
    modelled = recording.manifest.drive is not None and recording.manifest.drive.modelled
    title = "the modelled drive's own ledger" if modelled else "the drive's own counter"
    return Power(LEDGER, title, "drive", "that of the model", "the drive's own", pieces, counted)
