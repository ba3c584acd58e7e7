"""Footprint (unique bytes touched) in total, by opcode and as it grows, and the working set of each minute.

The footprint is the length of the union of ``[offset, offset + length)`` over all I/Os, failed or not; the
working set of a minute is the same over the reads, writes and write_zeroes that arrived in it. Growth is
the footprint at the end of each of 120 intervals. Exact up to a million distinct extents. Beyond, they are
estimated from a sample of regions (:mod:`testdrive.metrics.scans.extents`): ``sampled_one_in`` says how
much of the addresses was looked at, ``relative_standard_error`` how far the total may be off. Where a
source had no lengths or offsets: ``not_recorded``. No I/Os with a length: zeros. Growth and working sets
need times: ``growth_code``. Each minute stands in the summary for up to a week (``working_set_code``
``too_long`` beyond); the greatest and the median are there always.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testdrive.manifest import READ, WRITE, WRITE_ZEROES
from testdrive.metrics.metric import NOT_RECORDED, TOO_LONG, Metric, Values
from testdrive.metrics.scans import QUANTILES, Scan
from testdrive.metrics.scans.distribution import rank
from testdrive.metrics.scans.extents import interval_width_ns

#: The most minutes that stand in the summary one by one.
MINUTES_MAX = 7 * 24 * 60


def compute(scan: Scan) -> Values:
    """The footprint, its growth and the working sets."""
    places = scan.touched.places
    by_opcode = {scan.opcode_name(code): places.of(code) for code in places.codes}
    working_sets, code = _working_sets(scan)
    return {
        "workload.footprint_bytes": {
            "total": places.unique_bytes(),
            "by_opcode": {name: mine.unique_bytes() for name, mine in by_opcode.items()},
            "sampled_one_in": places.one_in if places.one_in > 1 else None,
            "relative_standard_error": places.relative_standard_error(),
        },
        "workload.footprint_growth": {
            "interval_ns": interval_width_ns(scan),
            "total": places.growth_bytes().tolist(),
            "by_opcode": {name: mine.growth_bytes().tolist() for name, mine in by_opcode.items()},
        }
        if scan.timed
        else None,
        **working_sets,
        "workload.footprint_code": None,
        "workload.growth_code": None if scan.timed else NOT_RECORDED,
        "workload.working_set_code": code,
    }


def _working_sets(scan: Scan) -> tuple[Values, str | None]:
    keys = ("workload.working_set_bytes", "workload.working_set_per_minute_bytes")
    if not scan.timed:
        return dict.fromkeys(keys), NOT_RECORDED
    minutes = scan.touched.minutes
    sizes = minutes.of(READ, WRITE, WRITE_ZEROES).per_minute_bytes()
    ordered = np.sort(sizes)
    summary: dict[str, Any] = {
        "minutes": len(sizes),
        "p50": int(ordered[rank(QUANTILES["p50"], len(sizes)) - 1]) if len(sizes) else None,
        "max": int(ordered[-1]) if len(sizes) else None,
        "max_minute": int(sizes.argmax()) if len(sizes) else None,
        "sampled_one_in": minutes.one_in if minutes.one_in > 1 else None,
    }
    listed = len(sizes) <= MINUTES_MAX
    values = (summary, sizes.tolist() if listed else None)
    return dict(zip(keys, values, strict=True)), None if listed else TOO_LONG


METRIC = Metric(
    "footprint",
    (
        "workload.footprint_bytes",
        "workload.footprint_growth",
        "workload.working_set_bytes",
        "workload.working_set_per_minute_bytes",
        "workload.footprint_code",
        "workload.growth_code",
        "workload.working_set_code",
    ),
    ("offset_bytes", "length_bytes"),
    compute,
)
