"""Flags of the I/Os: how many must be on stable media before they complete, and what else was marked.

``fua`` and ``preflush`` writes and flushes wait for stable media: on a drive without protection against the
loss of power each costs a write to flash. ``sync`` means that somebody waits for it, ``metadata`` that a file
system wrote of itself, ``read_ahead`` that it was a guess. An I/O may have several. Where a source had no
flags: ``not_recorded``. No I/Os: zeros.
"""

from __future__ import annotations

from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan

#: The names of the bits.
FLAGS = ("fua", "preflush", "sync", "metadata", "read_ahead")


def compute(scan: Scan) -> Values:
    """The number of I/Os with each flag."""
    rows = scan.rows
    found = scan.execute(rows.group_by("flags").aggregate(ios=rows.count()))
    flags, ios = found["flags"].astype(int), found["ios"]
    return {
        "workload.flags": {name: int(ios[(flags >> bit) & 1 == 1].sum()) for bit, name in enumerate(FLAGS)},
        "workload.flags_code": None,
    }


METRIC = Metric("flags", ("workload.flags", "workload.flags_code"), ("flags",), compute)
