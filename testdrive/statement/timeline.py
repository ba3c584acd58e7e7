"""The axis of time that the figures of a statement share: equal windows, few enough to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.report.axes import Axis

#: The most windows of a figure.
WINDOWS_MAX = 600
#: Recordings whose lengths differ by more than this cannot be read on one axis of time.
SPREAD_MAX = 20

_SECOND = 1_000_000_000
_WIDTHS_NS = (
    *(step * 10**power for power in range(3, 9) for step in (1, 2, 5)),
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * 60 * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * 3600 * _SECOND for step in (1, 2, 3, 6, 12)),
)
_DAY_NS = 86_400 * _SECOND
#: Up to which length of time an axis is told in a unit.
_UNITS = (
    (1_000_000, 1_000, "µs"),
    (_SECOND, 1_000_000, "ms"),
    (300 * _SECOND, _SECOND, "s"),
    (4 * 3600 * _SECOND, 60 * _SECOND, "min"),
    (4 * _DAY_NS, 3600 * _SECOND, "h"),
)


@dataclass(frozen=True)
class Timeline:
    """``windows`` equal windows of ``width_ns`` from the start of the recording on."""

    width_ns: int
    windows: int

    def lengths_s(self, last_ns: int) -> NDArray[np.float64]:
        """The seconds of each window of a recording whose last event is at ``last_ns``.

        The window in which it ends is as long as it lasted, unless that is less than half of it: a rate over
        nearly nothing would say nothing.
        """
        lasted = last_ns - np.arange(self.windows, dtype=np.int64) * self.width_ns
        partly = (lasted >= self.width_ns // 2) & (lasted < self.width_ns)
        lengths: NDArray[np.float64] = np.where(partly, lasted, self.width_ns) / 1e9
        return lengths

    @property
    def end_ns(self) -> int:
        """Where the last window ends."""
        return self.width_ns * self.windows

    @property
    def unit(self) -> tuple[int, str]:
        """The unit in which the axis reads best: its length in ns, and its name."""
        fitting = ((ns, name) for limit, ns, name in _UNITS if self.end_ns < limit)
        return next(fitting, (_DAY_NS, "d"))

    def axis(self, cells: int | None = None) -> Axis:
        """The axis of a raster: a cell for each window, or another number of cells over the same time."""
        return Axis(0, self.end_ns, cells or self.windows)

    def window(self, column: Any) -> Any:
        """The window of a column of times, as an Ibis expression; what lies outside is in the first or
        last.
        """
        return (column // self.width_ns).cast("int64").clip(0, self.windows - 1)


def timeline(end_ns: int) -> Timeline:
    """The windows of a recording whose last event is at ``end_ns``."""
    # At least a microsecond, so that even a single I/O has a window.
    needed = max(end_ns + 1, 1)
    width = next((width for width in _WIDTHS_NS if width * WINDOWS_MAX >= needed), 0)
    if not width:
        width = -(-needed // (WINDOWS_MAX * _DAY_NS)) * _DAY_NS
    return Timeline(width, max(-(-needed // width), 1))


def timelines(ends_ns: Sequence[int]) -> list[Timeline]:
    """The windows of several recordings: the same for all, unless their lengths are too different."""
    if max(ends_ns) > SPREAD_MAX * max(min(ends_ns), 1):
        return [timeline(end) for end in ends_ns]
    return [timeline(max(ends_ns))] * len(ends_ns)
