"""I/Os, bytes and errors, in total and by opcode. No I/Os: zeros.

Where the source did not say what each I/O was, ``by_opcode`` has all of them as ``unknown``, and
``by_opcode_code`` is ``not_recorded``. Likewise without a status ``errors`` is null (``errors_code``),
without lengths ``bytes`` (``bytes_code``), without completions ``no_completion`` (``no_completion_code``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import OPCODES, UNKNOWN
from testdrive.metrics.metric import NOT_RECORDED, Metric, Values
from testdrive.metrics.scans import Scan

#: What cannot be counted without a column.
_COLUMNS = {"bytes": "length_bytes", "errors": "status", "no_completion": "latency_ns"}


def compute(scan: Scan) -> Values:
    """``io_counts``: ``ios``, ``bytes``, ``errors``, ``no_completion``, and each under ``by_opcode``."""
    code = scan.tallies["code"]
    whole = _counts(scan, np.ones(len(code), bool))
    if scan.told_apart:
        by_opcode = {name: _counts(scan, code == number) for number, name in enumerate(OPCODES)}
    else:
        by_opcode = {UNKNOWN: dict(whole)}
    counts = {**whole, "by_opcode": by_opcode}
    for name, column in (*_COLUMNS.items(), ("by_opcode", "opcode")):
        counts[f"{name}_code"] = NOT_RECORDED if column in scan.absent_columns else None
    return {"io_counts": counts}


def _counts(scan: Scan, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    tallies = scan.tallies
    ios = tallies["ios"]
    counts: dict[str, Any] = {
        "ios": int(ios[chosen].sum()),
        "bytes": int(tallies["bytes"][chosen].sum()),
        "errors": int(ios[chosen & tallies["failed"]].sum()),
        "no_completion": int(ios[chosen & ~tallies["completed"]].sum()),
    }
    return counts | {name: None for name, column in _COLUMNS.items() if column in scan.absent_columns}


METRIC = Metric("I/O counts", ("io_counts",), (), compute, needs="histograms")
