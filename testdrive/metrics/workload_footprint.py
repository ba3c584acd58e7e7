"""Footprint (unique bytes touched) in total and by opcode, and the working set of each minute.

The footprint is the length of the union of ``[offset, offset + length)`` over all I/Os, failed or not; the
working set of a minute is the same over the reads, writes and write_zeroes that arrived in it. Exact up to
:data:`EXTENTS_MAX` distinct extents. Beyond, one in ``sampled_one_in`` regions of the address space is looked
at whole, chosen by a hash, and scaled up; ``relative_standard_error`` says how far that may be off. I/Os
longer than a region are always exact. Where a source had no lengths or offsets: ``not_recorded``. No I/Os
with a length: zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, WRITE, WRITE_ZEROES, opcode_name
from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.intervals import covered_before, union, union_length
from testdrive.recording import Arrays

#: About how many distinct extents are held at most.
EXTENTS_MAX = 1_000_000
_MINUTE_NS = 60_000_000_000
_REGION_BYTES_MIN = 1 << 20
#: Longer I/Os than a region are fetched one and all, so a region is made large enough that they are few.
_LONG_IOS_MAX = 200_000


@dataclass(frozen=True)
class Extents:
    """Distinct extents by ``minute`` and opcode (``code``), with ``offset`` and ``end`` in bytes.

    ``short`` are those within sampled regions and stand for ``one_in`` times as much; ``long`` are all there
    are.
    """

    short: Arrays
    long: Arrays
    one_in: int
    region_bytes: int


def compute(scan: Scan) -> Values:
    """``footprint_bytes`` (``total`` and by opcode) and ``working_set_per_minute_bytes``."""
    found = fetch_extents(scan)
    codes = np.unique(np.concatenate((found.short["code"], found.long["code"])))
    total, error = _unique_bytes(found, None, None)
    minutes = np.unique(np.concatenate((found.short["minute"], found.long["minute"])))
    data = np.array([READ, WRITE, WRITE_ZEROES])
    working_set = np.zeros(int(minutes.max()) + 1 if len(minutes) else 0, np.int64)
    for minute in minutes:
        working_set[minute] = _unique_bytes(found, data, int(minute))[0]
    return {
        "workload.footprint_bytes": {
            "total": total,
            "by_opcode": {
                opcode_name(code): _unique_bytes(found, np.array([code]), None)[0] for code in codes
            },
            "sampled_one_in": found.one_in if found.one_in > 1 else None,
            "relative_standard_error": error,
        },
        "workload.working_set_per_minute_bytes": [int(size) for size in working_set],
        "workload.footprint_code": None,
    }


def fetch_extents(scan: Scan) -> Extents:
    """The distinct extents: all of them if they are few enough, else those of a sample of regions."""
    one_in = -(-scan.extent.ios // EXTENTS_MAX)
    if one_in <= 1:
        return _fetch(scan, 1)
    found = _fetch(scan, one_in)
    if len(found.short["code"]) * one_in <= EXTENTS_MAX:
        # Many I/Os at few places: holding them all is cheap after all.
        return _fetch(scan, 1)
    return found


def _fetch(scan: Scan, one_in: int) -> Extents:
    rows = scan.rows.filter((scan.rows.length_bytes > 0) & (scan.rows.offset_bytes >= 0))
    rows = rows.select(
        minute=rows.intended_ns // _MINUTE_NS,
        code=rows.opcode,
        offset=rows.offset_bytes,
        end=rows.offset_bytes + rows.length_bytes,
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
    return scan.execute(rows.group_by("minute", "code", "offset").aggregate(end=rows.end.max()))


def _nothing() -> Arrays:
    return {name: np.zeros(0, np.int64) for name in ("minute", "code", "offset", "end")}


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


def _unique_bytes(found: Extents, codes: NDArray[Any] | None, minute: int | None) -> tuple[int, float | None]:
    """Unique bytes of some opcodes in a minute, and the relative standard error if they are estimated."""
    short, long = _chosen(found.short, codes, minute), _chosen(found.long, codes, minute)
    long_bytes = union_length(*long)
    if found.one_in == 1:
        return union_length(*short), None
    both = [np.concatenate(parts) for parts in zip(short, long, strict=True)]
    estimate = long_bytes + found.one_in * (union_length(*both) - long_bytes)
    start, end = union(*short)
    regions = np.unique(start // found.region_bytes) * found.region_bytes
    covered = covered_before(start, end, regions + found.region_bytes) - covered_before(start, end, regions)
    # Each region is in the sample with probability 1/K: the variance of the scaled sum is K (K - 1) sum b^2.
    deviation = float(np.sqrt(found.one_in * (found.one_in - 1) * (covered.astype(float) ** 2).sum()))
    return estimate, deviation / estimate if estimate else None


def _chosen(extents: Arrays, codes: NDArray[Any] | None, minute: int | None) -> tuple[Any, Any]:
    mask = np.ones(len(extents["code"]), bool)
    if codes is not None:
        mask &= np.isin(extents["code"], codes)
    if minute is not None:
        mask &= extents["minute"] == minute
    return extents["offset"][mask], extents["end"][mask]


METRIC = Metric(
    "footprint",
    (
        "workload.footprint_bytes",
        "workload.working_set_per_minute_bytes",
        "workload.footprint_code",
    ),
    ("offset_bytes", "length_bytes"),
    compute,
)
