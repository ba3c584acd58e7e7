"""The share of I/Os that are sequential: that start where one of the last 32 of their stream and opcode
ended.

The order is that of issue (``intended_ns``, ties in file order). I/Os without a length are left out. Where
the source had no streams all I/Os count as one stream (``sequential_by`` says which). Exact for the I/Os of
the sample, whose number is ``sampled_ios`` where it is not all of them; there, the I/Os that begin a slice
lack what came before them, which lowers the share by at most 32 I/Os a slice, stream and opcode. No I/Os:
``no_ios``. One I/O: 0, nothing came before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import OPCODES
from testdrive.metrics.metric import NO_IOS, Metric, Values
from testdrive.metrics.scans import Scan

#: How many I/Os of a stream and opcode are looked back on.
WINDOW_IOS = 32


def compute(scan: Scan) -> Values:
    """The share in total and by opcode."""
    rows = scan.sample.rows
    kept = (scan.sample.slice_index >= 0) & (rows["length_bytes"] > 0) & (rows["offset_bytes"] >= 0)
    if not kept.any():
        return METRIC.absent(NO_IOS)
    code = rows["opcode"][kept].astype(np.int64)
    group = (rows["stream"][kept].astype(np.int64) * len(OPCODES) + code) * (
        int(scan.sample.slice_index.max()) + 1
    ) + scan.sample.slice_index[kept]
    sequential = find_sequential(group, rows["offset_bytes"][kept], rows["length_bytes"][kept])
    return {
        "workload.sequential_share": float(sequential.mean()),
        "workload.sequential_share_by_opcode": {
            scan.opcode_name(number): float(sequential[code == number].mean()) for number in np.unique(code)
        },
        "workload.sequential_by": "all" if "stream" in scan.absent_columns else "stream",
        "workload.sequential_sampled_ios": scan.sample.sampled_ios,
        "workload.sequential_code": None,
    }


def find_sequential(
    group: NDArray[np.int64], offset: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which I/Os, in order of issue, start where one of the last 32 of their group ended."""
    order = np.argsort(group, kind="stable")
    group, offset, end = group[order], offset[order], (offset + length)[order]
    found = np.zeros(len(group), bool)
    for lag in range(1, min(WINDOW_IOS, len(group) - 1) + 1):
        found[lag:] |= (offset[lag:] == end[:-lag]) & (group[lag:] == group[:-lag])
    result = np.zeros(len(group), bool)
    result[order] = found
    return result


METRIC = Metric(
    "sequentiality",
    (
        "workload.sequential_share",
        "workload.sequential_share_by_opcode",
        "workload.sequential_by",
        "workload.sequential_sampled_ios",
        "workload.sequential_code",
    ),
    ("offset_bytes", "length_bytes"),
    compute,
)
