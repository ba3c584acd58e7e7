"""Which reads and writes of a burst overlap a trim, without a range join.

A trim's influence is from its submission until one window (a cell) after its completion, so it lasts at least
a window. Cut time into bins of a tenth of that: no bin holds both the start and then the end of a stretch of
influence, so two numbers a bin tell for every I/O that starts in it whether it meets one: until when the
stretch that reaches into the bin lasts, and when the next one starts. The rows are joined with the bins on
equality.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pyarrow as pa

from testdrive.manifest import READ, WRITE
from testdrive.metrics.scans.intervals import Ints, union

if TYPE_CHECKING:
    from testdrive.metrics.scans import Scan
    from testdrive.metrics.scans.windows import Level

#: Bins in a window.
_BINS = 10
#: More ranges than this are slower to compare than rows are to read.
_RANGES_MAX = 64
_NEVER = np.iinfo(np.int64).max


def excess_by_burst(scan: Scan, level: Level) -> list[dict[str, int]]:
    """For each burst the number, latency sum and peak of its reads and writes, and of those near trims.

    Returns
    -------
    list of dict
        ``all_ios``, ``all_ns``, ``near_ios``, ``near_ns``, ``peak_ns``, one entry a burst.
    """
    empty = {"all_ios": 0, "all_ns": 0, "near_ios": 0, "near_ns": 0, "peak_ns": 0}
    result = [dict(empty) for _ in level.bursts]
    if not level.bursts:
        return result
    bins = _bins(level, *influence(scan))
    rows = scan.ok_rows
    rows = rows.filter(rows.opcode.isin((READ, WRITE)) & _within(level, rows.submit_ns))
    rows = rows.select("submit_ns", "latency_ns", bin=rows.submit_ns // (level.width_ns // _BINS))
    table = ibis.memtable(pa.table({name: bins[name] for name in ("bin", "burst", "until_ns", "next_ns")}))
    joined = rows.join(table, "bin")
    near = (joined.submit_ns < joined.until_ns) | (joined.submit_ns + joined.latency_ns > joined.next_ns)
    joined = joined.select("burst", "latency_ns", near=near.cast("int64"))
    found = scan.execute(
        joined.group_by("burst").aggregate(
            all_ios=joined.count(),
            all_ns=joined.latency_ns.sum(),
            near_ios=joined.near.sum(),
            near_ns=(joined.near * joined.latency_ns).sum(),
            peak_ns=joined.latency_ns.max(),
        )
    )
    for place, burst in enumerate(found["burst"]):
        result[burst] = {name: int(found[name][place]) for name in empty}
    return result


def _within(level: Level, submit_ns: Any) -> Any:
    """Whether a time may be in a burst: as ranges, by which whole row groups are left out unread."""
    ranges = [(burst.onset, len(level.ios) if burst.end is None else burst.end) for burst in level.bursts]
    if len(ranges) > _RANGES_MAX:
        ranges = [(ranges[0][0], ranges[-1][1])]
    parts = [(submit_ns >= level.time_ns(onset)) & (submit_ns < level.time_ns(end)) for onset, end in ranges]
    return functools.reduce(operator.or_, parts)


def influence(scan: Scan) -> tuple[Ints, Ints]:
    """The stretches of time in which a trim is outstanding or completed less than a window ago: disjoint, in
    order.

    Trims that start in the same bin overlap in their influence, so each bin's first start and last end are
    enough.
    """
    trims = scan.trims
    return union(trims["start_ns"], trims["end_ns"] + scan.cells.width_ns)


def _bins(level: Level, start: Ints, end: Ints) -> dict[str, Any]:
    """For each bin of a burst: until when influence that reaches into it lasts, and when the next begins."""
    bin_ns = level.width_ns // _BINS
    bins, bursts = [], []
    for number, burst in enumerate(level.bursts):
        last = len(level.ios) if burst.end is None else burst.end
        first_bin, last_bin = level.time_ns(burst.onset) // bin_ns, level.time_ns(last) // bin_ns
        mine = np.arange(first_bin, last_bin, dtype=np.int64)
        bins.append(mine)
        bursts.append(np.full(len(mine), number, np.int64))
    bin_ = np.concatenate(bins)
    begins = bin_ * bin_ns
    reaching = np.searchsorted(start, begins, side="right")
    reach = np.append(end, 0)[reaching - 1]
    until = np.where((reaching > 0) & (reach > begins), reach, begins)
    following = np.append(start, _NEVER)[np.searchsorted(start, begins, side="right")]
    return {
        "bin": bin_,
        "burst": np.concatenate(bursts),
        "start": begins,
        "until_ns": until,
        "next_ns": following,
    }
