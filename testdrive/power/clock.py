"""The recording's clock seen from outside: how the host's monotonic clock stands to it.

The engine tells where its clock stands with every phase that begins and twice a second. What it tells arrives
late by an unknown little, never early: so of many observations the smallest difference is the nearest, and
the others say how far off it may be. Both clocks drift, so that one such observation is kept for every
minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.events import Event, PhaseBegun, Progress

#: How often the nearest observation is kept.
KEPT_EVERY_NS = 60_000_000_000
#: Observations so many before and after one may correct it, which is soon enough for clocks to have drifted.
_NEIGHBOURS = 2
#: The error that is always told: reading the clock and handing over take some of it.
ERROR_MIN_NS = 1_000_000


@dataclass(frozen=True)
class Tie:
    """One moment on all clocks: the recording's, the host's monotonic one, and the wall's."""

    recording_ns: int
    monotonic_ns: int
    unix_ns: int

    @property
    def apart_ns(self) -> int:
        """The monotonic clock less the recording's, at most so much too great as the word was late."""
        return self.monotonic_ns - self.recording_ns


class ClockWatch:
    """Chooses, of all that the engine tells, which observations are kept."""

    def __init__(self) -> None:
        self._phase_start_ns: int | None = None
        self._nearest: Tie | None = None
        self._kept_ns: int | None = None

    def observe(self, event: Event, monotonic_ns: int, unix_ns: int) -> Tie | None:
        """Take an event that just arrived; return an observation that is to be kept, if there is one."""
        if isinstance(event, PhaseBegun) and event.start_ns is not None:
            self._phase_start_ns = event.start_ns
            recording_ns = event.start_ns
        elif isinstance(event, Progress) and self._phase_start_ns is not None:
            recording_ns = self._phase_start_ns + event.elapsed_ns
        else:
            return None
        tie = Tie(recording_ns, monotonic_ns, unix_ns)
        if self._kept_ns is None:
            # The first at once, so that a crash in the first minute leaves times that mean something.
            self._kept_ns = monotonic_ns
            return tie
        if self._nearest is None or tie.apart_ns < self._nearest.apart_ns:
            self._nearest = tie
        if monotonic_ns - self._kept_ns < KEPT_EVERY_NS:
            return None
        self._kept_ns = monotonic_ns
        return self.last()

    def last(self) -> Tie | None:
        """Return the nearest observation since the last that was kept, if there is one."""
        found, self._nearest = self._nearest, None
        return found


@dataclass(frozen=True)
class Mapping:
    """The host's monotonic clock to the recording's, over a whole run.

    Attributes
    ----------
    error_ns : int
        By how much a time may be too early or too late, from how far observations are apart.
    """

    at_ns: NDArray[np.int64]
    apart_ns: NDArray[np.int64]
    unix_apart_ns: NDArray[np.int64]
    error_ns: int

    @staticmethod
    def of(ties: Sequence[Tie]) -> Mapping | None:
        """Return the mapping that these observations make; None without any."""
        if not ties:
            return None
        ordered = sorted(ties, key=lambda tie: tie.monotonic_ns)
        raw = np.array([tie.apart_ns for tie in ordered], np.int64)
        near = range(len(raw))
        nearest = np.array([raw[max(i - _NEIGHBOURS, 0) : i + _NEIGHBOURS + 1].min() for i in near], np.int64)
        # The first word of a phase may come a little later than others: it is corrected, and counts no error.
        spread = int(np.median(raw - nearest)) if len(raw) > 1 else 50 * ERROR_MIN_NS
        unix = np.array([tie.unix_ns - tie.monotonic_ns for tie in ordered], np.int64)
        at = np.array([tie.monotonic_ns for tie in ordered], np.int64)
        return Mapping(at, nearest, unix, spread + ERROR_MIN_NS)

    def to_recording_ns(self, monotonic_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times on the recording's clock."""
        # Differences are small enough for floats to be exact to a microsecond; the times themselves are not.
        base = self.apart_ns[0]
        shift = np.interp(monotonic_ns - self.at_ns[0], self.at_ns - self.at_ns[0], self.apart_ns - base)
        found: NDArray[np.int64] = monotonic_ns - base - np.rint(shift).astype(np.int64)
        return found

    @property
    def begin_ns(self) -> int:
        """The recording's time of the first observation."""
        return int(self.at_ns[0] - self.apart_ns[0])

    @property
    def zero_unix_ns(self) -> int:
        """The wall clock's time of the recording's time zero, by the first observation."""
        return int(self.apart_ns[0] + self.unix_apart_ns[0])
