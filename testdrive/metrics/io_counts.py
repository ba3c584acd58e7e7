"""I/Os, bytes and errors, in total and by opcode. No I/Os: zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import OPCODES
from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan


def compute(scan: Scan) -> Values:
    """``io_counts``: ``ios``, ``bytes``, ``errors``, ``no_completion``, and each under ``by_opcode``."""
    code = scan.shapes["code"]
    counts = _counts(scan, np.ones(len(code), bool))
    counts["by_opcode"] = {name: _counts(scan, code == number) for number, name in enumerate(OPCODES)}
    return {"io_counts": counts}


def _counts(scan: Scan, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    shapes = scan.shapes
    ios = shapes["ios"]
    return {
        "ios": int(ios[chosen].sum()),
        "bytes": int((ios * shapes["length_bytes"])[chosen].sum()),
        "errors": int(ios[chosen & shapes["failed"]].sum()),
        "no_completion": int(ios[chosen & ~shapes["completed"]].sum()),
    }


METRIC = Metric("I/O counts", ("io_counts",), (), compute)
