"""Who made a load late: the drive, or this host, whose lateness must not be taken for a slow drive.

An I/O goes late for one of two reasons: as many were outstanding as may be, so that the drive held it back,
or the host had no time for it. The outstanding ones follow from Little's law: in a second their mean is the
sum of the times that the drive took. The host is blamed only where fewer than half of those that may be
outstanding were, in every second, and where the drive served every interval that could be judged within the
rules: what it served too slowly is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from testdrive.manifest import Phase
from testdrive.qos.held import Held
from testdrive.qos.times import times
from testdrive.recording import Recording
from testdrive.segments import SERVICE

SECOND_NS = 1_000_000_000
#: Of the outstanding I/Os that are allowed; below it they held nothing back.
_FULL_SHARE = 0.5
#: The engine's own, of a phase that does not say how many may be outstanding.
_IN_FLIGHT_MAX = 4_096

LimitedBy = Literal["drive", "host"]

HOST_LATE = "this host sent I/Os late itself, which says nothing about the drive (see testdrive doctor)"


def limited_by(
    recording: Recording, phase: Phase | None, held: Sequence[Held], behind: dict[str, Any] | None
) -> LimitedBy | None:
    """Who made a trial fail by its lateness; None where it is not for lateness that it fails.

    Parameters
    ----------
    recording : Recording
        With rows or histograms.
    phase : Phase or None
        That which fell behind, or else the one that was judged.
    held : sequence of Held
        The rules in the intervals that were judged, none where no interval was whole.
    behind : dict or None
        That an I/O was too late for the trial to go on, as the engine says it.
    """
    over = any(value is not None and not one.rule.holds(value) for one in held for value in one.values)
    if phase is None or (behind is None and not over):
        return None
    manifest = recording.manifest
    modelled = manifest.drive is not None and manifest.drive.modelled
    # A model has no host that could be late; and what is never answered is outstanding, and in no sum.
    if modelled or manifest.counts.no_completion or any(one.is_served is False for one in held):
        return "drive"
    most = int((phase.settings or {}).get("max_in_flight") or _IN_FLIGHT_MAX)
    return "drive" if outstanding_max(recording, phase) >= _FULL_SHARE * most else "host"


def outstanding_max(recording: Recording, phase: Phase) -> float:
    """The most I/Os that were outstanding on average in a second of a phase; 0.0 of a phase without any."""
    found = times(recording, phase, SECOND_NS)
    mine = found["quantity"] == SERVICE
    seconds = np.maximum(found["place"][mine].astype(np.int64), 0)
    sums = np.bincount(seconds, weights=found["total"][mine].astype(np.float64))
    return float(sums.max(initial=0.0)) / SECOND_NS
