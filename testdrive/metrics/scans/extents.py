"""The distinct extents of addresses that a workload touched, and when: footprint, growth and working sets.

Exact up to :data:`EXTENTS_MAX` distinct extents. Beyond, one in ``one_in`` regions of the address space is
looked at whole, chosen by a hash, and what is found there is scaled up. I/Os longer than a region are always
exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np

from testdrive.manifest import OPCODES
from testdrive.metrics.scans.intervals import Ints, covered_before, first_covered, union, union_length
from testdrive.recording import Arrays

if TYPE_CHECKING:
    from testdrive.metrics.scans import Scan

#: About how many distinct extents are held at most.
EXTENTS_MAX = 1_000_000
MINUTE_NS = 60_000_000_000
#: Into how many intervals of time the growth falls.
INTERVALS = 120
_REGION_BYTES_MIN = 1 << 16
#: Longer I/Os than a region are fetched one and all, so a region is made large enough that they are few.
_LONG_IOS_MAX = 200_000


@dataclass(frozen=True)
class Extents:
    """Distinct extents by ``minute`` and opcode (``code``), with ``offset`` and ``end`` in bytes and the
    first ``interval`` of time in that minute in which they were touched.

    ``short`` are those within sampled regions and stand for ``one_in`` times as much; ``long`` are all there
    are.
    """

    short: Arrays
    long: Arrays
    one_in: int
    region_bytes: int

    @property
    def codes(self) -> list[int]:
        """The opcodes that occur."""
        return [int(code) for code in np.unique(np.concatenate((self.short["code"], self.long["code"])))]

    def of(self, *codes: int) -> Extents:
        """Those of some opcodes."""
        parts = [
            {name: values[np.isin(found["code"], codes)] for name, values in found.items()}
            for found in (self.short, self.long)
        ]
        return Extents(parts[0], parts[1], self.one_in, self.region_bytes)

    def unique_bytes(self) -> int:
        """The length of their union, an estimate if they are a sample."""
        long_bytes = union_length(self.long["offset"], self.long["end"])
        offset, end = self._both("offset"), self._both("end")
        return long_bytes + self.one_in * (union_length(offset, end) - long_bytes)

    def relative_standard_error(self) -> float | None:
        """How far an estimate may be off; None if it is exact."""
        estimate = self.unique_bytes()
        if self.one_in == 1 or not estimate:
            return None
        start, end = union(self.short["offset"], self.short["end"])
        regions = np.unique(start // self.region_bytes) * self.region_bytes
        covered = covered_before(start, end, regions + self.region_bytes)
        covered = covered - covered_before(start, end, regions)
        # Each region is in the sample with probability 1/K: the variance of the scaled sum is K (K - 1) sum
        # b^2.
        variance = self.one_in * (self.one_in - 1) * (covered.astype(float) ** 2).sum()
        return float(np.sqrt(variance)) / estimate

    def growth_bytes(self) -> Ints:
        """The bytes touched by the end of each of the :data:`INTERVALS`, in it or earlier."""
        new = _newly_touched(self._both("offset"), self._both("end"), self._both("interval"))
        long = _newly_touched(self.long["offset"], self.long["end"], self.long["interval"])
        result: Ints = np.cumsum(long + self.one_in * (new - long))
        return result

    def per_minute_bytes(self) -> Ints:
        """The bytes touched in each minute, from the first of the recording to the last with an extent."""
        long = _by_minute(self.long)
        both = _by_minute({name: self._both(name) for name in self.short})
        result = np.zeros(max(both, default=-1) + 1, np.int64)
        for minute, length in both.items():
            long_bytes = long.get(minute, 0)
            result[minute] = long_bytes + self.one_in * (length - long_bytes)
        return result

    def _both(self, name: str) -> Ints:
        return np.concatenate((self.short[name], self.long[name]))


def _newly_touched(offset: Ints, end: Ints, interval: Ints) -> Ints:
    lengths, first = first_covered(offset, end, interval)
    result = np.zeros(INTERVALS, np.int64)
    np.add.at(result, first, lengths)
    return result


def _by_minute(extents: Arrays) -> dict[int, int]:
    """The length of the union of the extents of each minute that has some."""
    order = np.argsort(extents["minute"], kind="stable")
    minutes, starts = np.unique(extents["minute"][order], return_index=True)
    groups = np.split(order, starts[1:]) if len(minutes) else []
    return {
        int(minute): union_length(extents["offset"][mine], extents["end"][mine])
        for minute, mine in zip(minutes, groups, strict=True)
    }


def interval_width_ns(scan: Scan) -> int:
    """The width of the intervals in which the footprint grows."""
    return -(-(scan.extent.intended_last_ns + 1) // INTERVALS)


@dataclass(frozen=True)
class Touched:
    """What was touched: ``places`` for the footprint and its growth, ``minutes`` for the working sets."""

    places: Extents
    minutes: Extents


def fetch_touched(scan: Scan) -> Touched:
    """The distinct extents: all of them if they are few enough, else those of a sample of regions."""
    one_in = -(-scan.extent.ios // EXTENTS_MAX)
    found = _fetch(scan, max(one_in, 1))
    if one_in > 1 and len(found.short["code"]) * one_in <= EXTENTS_MAX:
        # Many I/Os at few places: holding them all is cheap after all.
        found, one_in = _fetch(scan, 1), 1
    if one_in > 1 and _distinct_places(found.short) * one_in <= EXTENTS_MAX:
        # The same places in many minutes: they can be held once, without the minutes.
        return Touched(_fetch(scan, 1, by_minute=False), found)
    return Touched(found, found)


def _distinct_places(extents: Arrays) -> int:
    return len(np.unique(extents["offset"] * len(OPCODES) + extents["code"]))


def _fetch(scan: Scan, one_in: int, *, by_minute: bool = True) -> Extents:
    rows = scan.rows.filter((scan.rows.length_bytes > 0) & (scan.rows.offset_bytes >= 0))
    rows = rows.select(
        minute=rows.intended_ns // MINUTE_NS if by_minute else ibis.literal(0, "int64"),
        code=rows.opcode.cast("int64"),
        offset=rows.offset_bytes,
        end=rows.offset_bytes + rows.length_bytes,
        interval=rows.intended_ns // interval_width_ns(scan),
    )
    region = _region_bytes(scan)
    if one_in == 1:
        return Extents(_distinct(scan, rows), _nothing(), 1, region)
    # A region is a power of two, and a shift is cheaper than a division.
    first, last = rows.offset >> region.bit_length() - 1, (rows.end - 1) >> region.bit_length() - 1
    chosen = (followed(first, one_in)) | ((last > first) & (followed(last, one_in)))
    found = _distinct(scan, rows.filter(chosen | (rows.end - rows.offset > region)))
    long = found["end"] - found["offset"] > region
    short = {name: values[~long] for name, values in found.items()}
    return Extents(
        _clipped(short, one_in, region),
        {name: values[long] for name, values in found.items()},
        one_in,
        region,
    )


def _clipped(extents: Arrays, one_in: int, region: int) -> Arrays:
    """The parts of extents, each no longer than a region, that lie in sampled regions."""
    first, last = extents["offset"] // region, (extents["end"] - 1) // region
    heads = followed(first, one_in)
    tails = (last > first) & (followed(last, one_in))
    parts = {name: np.concatenate((values[heads], values[tails])) for name, values in extents.items()}
    parts["end"][: heads.sum()] = np.minimum(extents["end"], (first + 1) * region)[heads]
    parts["offset"][heads.sum() :] = (last * region)[tails]
    return parts


def _distinct(scan: Scan, rows: Any) -> Arrays:
    found = rows.group_by("minute", "code", "offset", "end").aggregate(interval=rows.interval.min())
    return scan.execute(found)


def _nothing() -> Arrays:
    return {name: np.zeros(0, np.int64) for name in ("minute", "code", "offset", "end", "interval")}


def _region_bytes(scan: Scan) -> int:
    shapes = scan.shapes
    region = _REGION_BYTES_MIN
    while int(shapes["ios"][shapes["length_bytes"] > region].sum()) > _LONG_IOS_MAX:
        region *= 2
    return region


def followed(number: Any, one_in: int) -> Any:
    """Whether a region or block, told by its number, is in a sample of one in ``one_in``.

    The same in Ibis, on every backend, and in numpy: a multiplicative hash in 32 bits, of a number whose high
    bits were folded in first so that places at a constant distance do not fare alike. No product leaves 63
    bits.
    """
    folded = (number ^ (number >> 13)) & 0x3FFF_FFFF
    return ((folded * 2_654_435_761) & 0xFFFF_FFFF) < (1 << 32) // one_in
