"""The parts of a recording whose run was interrupted and resumed, as far as clocks outside it are concerned.

The recording's clock goes on two seconds or less after where it stopped, whenever that is by the host's
clocks: what was read in between has no place on it. So each part has its own relation of the clocks, and what
a meter showed belongs to one part alone. Two parts meet in the middle of the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import Gap

_ALWAYS = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Part:
    """A stretch of the recording's clock in which the run was not interrupted.

    Attributes
    ----------
    start_ns, end_ns : int
        Half open; the first part begins long before the recording, and the last never ends.
    gap : Gap or None
        After which it began; None for the first.
    """

    start_ns: int
    end_ns: int
    gap: Gap | None

    def holds(self, time_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which times are of this part."""
        return (time_ns >= self.start_ns) & (time_ns < self.end_ns)


def parts_of(gaps: Sequence[Gap]) -> list[Part]:
    """The parts of a recording with these gaps, in order; one, without any."""
    middles = [(gap.after_ns + gap.resumed_ns) // 2 for gap in gaps]
    starts, ends = [int(_ALWAYS[0]), *middles], [*middles, int(_ALWAYS[1])]
    return [Part(*each) for each in zip(starts, ends, [None, *gaps], strict=True)]


def part_at(parts: Sequence[Part], recording_ns: int) -> Part:
    """The part that a time is of."""
    return next(part for part in reversed(parts) if recording_ns >= part.start_ns)
