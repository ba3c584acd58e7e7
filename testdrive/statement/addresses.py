"""The axis of addresses of a statement: what is touched, with great gaps between left out.

Many workloads use a few stretches of a large drive. On an axis of the whole drive they would be lines. So
gaps that nothing touches are cut out where that leaves much more room for the rest; where, is said on the
axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np

from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.intervals import union

#: A gap is left out if it is at least this share of the addresses up to the last one touched.
_GAP_MIN = 0.03
#: Gaps are left out if they are together at least this share.
_CUT_MIN = 0.3
#: The most gaps that are left out, the greatest.
_GAPS_MAX = 12


@dataclass(frozen=True)
class Segment:
    """Addresses from ``low_bytes`` up to ``high_bytes``, which begin at ``at_bytes`` of the axis."""

    low_bytes: int
    high_bytes: int
    at_bytes: int


@dataclass(frozen=True)
class Addresses:
    """The stretches of addresses that the axis has, one after the other without the gaps between."""

    segments: tuple[Segment, ...]

    @property
    def length_bytes(self) -> int:
        """How long the axis is."""
        last = self.segments[-1]
        return last.at_bytes + last.high_bytes - last.low_bytes

    @property
    def high_bytes(self) -> int:
        """The end of the last addresses."""
        return self.segments[-1].high_bytes

    @property
    def cut(self) -> bool:
        """Whether anything is left out."""
        return len(self.segments) > 1 or self.segments[0].low_bytes > 0

    def position(self, column: Any) -> Any:
        """Where on the axis a column of addresses is, as an Ibis expression."""
        shifts = [segment.low_bytes - segment.at_bytes for segment in self.segments]
        cases = [
            (column < segment.high_bytes, column - shift)
            for segment, shift in zip(self.segments[:-1], shifts, strict=False)
        ]
        return ibis.cases(*cases, else_=column - shifts[-1]) if cases else column - shifts[-1]

    def address_at(self, position_bytes: float) -> float:
        """The address at a place of the axis."""
        inside = [each for each in self.segments if each.at_bytes <= position_bytes] or self.segments[:1]
        return inside[-1].low_bytes + position_bytes - inside[-1].at_bytes

    def payload(self) -> list[dict[str, int]]:
        """Return the form that the page's script reads."""
        return [
            {"low": each.low_bytes, "high": each.high_bytes, "at": each.at_bytes} for each in self.segments
        ]


def stretches(scan: Scan) -> tuple[Any, Any]:
    """The stretches of addresses that anything touches, disjoint and in order, to the size of a region."""
    found = scan.regions
    return union(found.start_bytes, found.end_bytes)


def addresses(found: Sequence[tuple[Any, Any]]) -> Addresses:
    """The axis for stretches of one recording or several; from zero on, unless that is a gap that is cut."""
    start, end = union(*(np.concatenate(each) for each in zip(*found, strict=True)))
    if not len(start):
        return Addresses((Segment(0, 1, 0),))
    # From zero to the first address is a gap as well.
    begins, ends = np.append(0, end[:-1]), start
    widths = ends - begins
    greatest = np.argsort(-widths, kind="stable")[:_GAPS_MAX]
    cut = np.sort(greatest[widths[greatest] >= _GAP_MIN * end[-1]])
    if widths[cut].sum() < _CUT_MIN * end[-1]:
        return Addresses((Segment(0, int(end[-1]), 0),))
    lows, highs = [0, *ends[cut].tolist()], [*begins[cut].tolist(), int(end[-1])]
    segments: list[Segment] = []
    for low, high in zip(lows, highs, strict=True):
        if high > low:
            at = segments[-1].at_bytes + segments[-1].high_bytes - segments[-1].low_bytes if segments else 0
            segments.append(Segment(int(low), int(high), at))
    return Addresses(tuple(segments))
