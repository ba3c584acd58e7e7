"""Energy and mean power over a stretch of time, from what a meter showed at moments.

Definition
----------
Between two neighbouring readings power is a straight line (``instant``), the value of the later one
(``mean``), or the difference of a counter of energy over the time between (``counter``). Energy is the
integral of that: for ``instant`` the trapezoidal rule. A stretch that begins or ends between two readings has
its part of that piece.

A piece longer than `GAP_INTERVALS` intervals of the meter is a gap: what happened in it nobody saw. It is
neither zero nor filled; it is not measured, and the share of the stretch that was is told with every figure.
A counter counted on through a gap, so that one within the stretch is no loss; one that reaches over the
stretch's ends is, since nobody knows how much was drawn before and how much after. A counter that falls was
set back: not measured.

Mean power is energy over the time that was measured, not over the stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["instant", "mean", "counter"]
GAP_INTERVALS = 5


@dataclass(frozen=True)
class Stretch:
    """What was drawn over a stretch of time.

    Attributes
    ----------
    energy_uj : float
        In the time that was measured.
    covered_ns : int
        How much of it was measured.
    length_ns : int
        Of the stretch.
    readings : int
        How many readings of the meter lie within it.
    """

    energy_uj: float
    covered_ns: int
    length_ns: int
    readings: int = 0

    @property
    def covered_share(self) -> float:
        """The share that was measured; 0 of a stretch without length."""
        return self.covered_ns / self.length_ns if self.length_ns > 0 else 0.0

    @property
    def mean_w(self) -> float | None:
        """Mean power over what was measured; None of nothing."""
        return self.energy_uj * 1e3 / self.covered_ns if self.covered_ns > 0 else None


class Pieces:
    """What a meter showed, as pieces of straight lines of power.

    Parameters
    ----------
    time_ns : numpy.ndarray
        int64, rising; readings that do not rise in time are left out.
    value : numpy.ndarray
        float64, as many: microwatts, or microjoules for a counter.
    kind : str
        ``instant``, ``mean`` or ``counter``.
    interval_ns : int
        From one reading of the meter to the next, as intended.
    """

    def __init__(
        self, time_ns: NDArray[np.int64], value: NDArray[np.float64], kind: Kind, interval_ns: int
    ) -> None:
        kept = np.isfinite(value)
        time_ns, value = time_ns[kept], value[kept]
        latest = np.maximum.accumulate(time_ns) if len(time_ns) else time_ns
        rising = np.append(True, time_ns[1:] > latest[:-1]) if len(time_ns) else np.zeros(0, bool)
        time_ns, value = time_ns[rising], value[rising]
        self.times_ns = time_ns
        self.start_ns, self.end_ns = time_ns[:-1], time_ns[1:]
        self.length_ns = self.end_ns - self.start_ns
        self.short = self.length_ns <= GAP_INTERVALS * interval_ns
        if kind == "counter":
            grown = np.diff(value)
            first = last = grown * 1e9 / np.maximum(self.length_ns, 1)
            self.valid = grown >= 0
        else:
            first, last = (value[:-1] if kind == "instant" else value[1:]), value[1:]
            self.valid = self.short
        self.first_uw, self.last_uw = first, last
        energy_uj = (first + last) / 2 * self.length_ns / 1e9
        self._energy_before_uj = np.append(0.0, np.cumsum(np.where(self.valid, energy_uj, 0.0)))
        self._covered_before_ns = np.append(0, np.cumsum(np.where(self.valid, self.length_ns, 0)))

    def __len__(self) -> int:
        return len(self.start_ns)

    def over(self, start_ns: int, end_ns: int) -> Stretch:
        """Return what was drawn from one time to another."""
        length_ns = max(end_ns - start_ns, 0)
        if not len(self) or not length_ns:
            return Stretch(0.0, 0, length_ns)
        first, behind = (
            np.searchsorted(self.times_ns, start_ns),
            np.searchsorted(self.times_ns, end_ns, "right"),
        )
        readings = int(behind - first)
        energy_uj, covered_ns = 0.0, 0
        if readings >= 2:
            # The pieces between readings within: each piece has the number of its first reading.
            low, high = first, behind - 1
            energy_uj = float(self._energy_before_uj[high] - self._energy_before_uj[low])
            covered_ns = int(self._covered_before_ns[high] - self._covered_before_ns[low])
        # The piece that each end lies within, once where it is the same.
        for at in {self._holding(start_ns), self._holding(end_ns)} - {None}:
            assert at is not None
            if not (self.valid[at] and self.short[at]):
                continue
            low_ns, high_ns = max(int(self.start_ns[at]), start_ns), min(int(self.end_ns[at]), end_ns)
            if low_ns < high_ns:
                energy_uj += self._within(at, low_ns, high_ns)
                covered_ns += high_ns - low_ns
        return Stretch(energy_uj, covered_ns, length_ns, readings)

    def _holding(self, time_ns: int) -> int | None:
        """The piece that a time lies truly within."""
        at = int(np.searchsorted(self.start_ns, time_ns, side="right")) - 1
        return at if at >= 0 and self.start_ns[at] < time_ns < self.end_ns[at] else None

    def _within(self, at: int, low_ns: int, high_ns: int) -> float:
        """Microjoules from one time to another within a piece: the straight line's mean there."""
        slope = (self.last_uw[at] - self.first_uw[at]) / self.length_ns[at]
        middle_ns = (low_ns + high_ns) / 2 - self.start_ns[at]
        return float((self.first_uw[at] + slope * middle_ns) * (high_ns - low_ns) / 1e9)
