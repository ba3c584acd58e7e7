"""The intervals of a recording that are judged: parts of its own time, each with enough I/Os for a verdict.

They are cut by the recording's clock, so that an interval has the same I/Os at whatever speed it is replayed.
Where there are too few I/Os in one, it is joined with those that follow until there are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECOND_NS = 1_000_000_000
#: More intervals than that make neither a figure nor a table.
INTERVALS_MAX = 100_000


@dataclass(frozen=True)
class Window:
    """A part of a recording, and the length of its intervals; all on the recording's clock."""

    from_ns: int
    to_ns: int
    interval_ns: int

    @property
    def pieces(self) -> int:
        """How many intervals there are before any are joined. The last is what is left."""
        return max(-(-(self.to_ns - self.from_ns) // self.interval_ns), 1)

    def due_ns(self, piece: int, speed: float) -> int:
        """When the first I/O that may belong to a piece is due in a replay, from its start.

        As the engine computes it: in double precision, without the fraction.
        """
        return int(piece * self.interval_ns / speed)

    def bounds_ns(self, first: int, after: int) -> tuple[int, int]:
        """From when to when the pieces from ``first`` on are, before that of ``after``."""
        ends_ns = self.from_ns + after * self.interval_ns
        return self.from_ns + first * self.interval_ns, min(ends_ns, self.to_ns)


def joined(counts: NDArray[np.int64], needed: int, *, whole: bool = True) -> list[tuple[int, int]]:
    """Which pieces make an interval.

    Parameters
    ----------
    counts : array of shape (pieces, opcodes)
        The I/Os of each judged opcode in each piece.
    needed : int
        How many of each opcode an interval must have at least.
    whole : bool
        Whether the pieces are all that there are: then those at the end that have too few belong to the
        interval before them; else they are left out, since what would follow is not known.

    Returns
    -------
    list of (int, int)
        The first piece of each interval and the first after it; none where all together have too few.
    """
    found: list[tuple[int, int]] = []
    first, held = 0, np.zeros(counts.shape[1], np.int64)
    for at, row in enumerate(counts):
        held = held + row
        if (held >= needed).all():
            found.append((first, at + 1))
            first, held = at + 1, np.zeros_like(held)
    if whole and found and first < len(counts):
        found[-1] = (found[-1][0], len(counts))
    return found


def called(start_ns: int, end_ns: int) -> str:
    """What an interval is called: from when to when on the recording's clock, such as ``12:10..12:20``."""
    hours = end_ns >= 3_600 * SECOND_NS
    return f"{_clock(start_ns, hours=hours)}..{_clock(end_ns, hours=hours)}"


def _clock(time_ns: int, *, hours: bool) -> str:
    seconds, rest_ns = divmod(time_ns, SECOND_NS)
    minutes, seconds = divmod(seconds, 60)
    text = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    # A trial's intervals end with its last I/O, at any nanosecond.
    return f"{text}.{rest_ns // 1_000_000:03}" if rest_ns >= 1_000_000 else text
