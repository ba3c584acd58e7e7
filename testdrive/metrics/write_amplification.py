"""Write amplification by the drive's own counters, over the measured phases.

``write_amplification`` is the bytes that the drive programmed into its NAND for each byte that the host
wrote: the growth of ``nand_written_bytes`` over that of ``host_written_bytes``, as one would take it from a
drive's SMART log before and after. It holds garbage collection, parity and whatever else the drive programs;
what is still in the drive's buffer at the end counts once it is handed to the NAND.

``drive_counters`` is the growth of every counter. Codes: ``not_counted`` (the drive counts nothing of the
kind, or the run crashed), ``no_writes`` (the host wrote nothing).
"""

from __future__ import annotations

from testdrive.manifest import Phase
from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan

NOT_COUNTED = "not_counted"
NO_WRITES = "no_writes"


def compute(scan: Scan) -> Values:
    """The ratio, why there is none, and what the drive counted."""
    grown = counted(scan.recording.manifest.measured_phases)
    host, nand = grown.get("host_written_bytes"), grown.get("nand_written_bytes")
    ratio, code = None, None
    if host is None or nand is None:
        code = NOT_COUNTED
    elif host == 0:
        code = NO_WRITES
    else:
        ratio = nand / host
    return {
        "write_amplification": ratio,
        "write_amplification_code": code,
        "drive_counters": grown or None,
    }


def counted(phases: list[Phase]) -> dict[str, int]:
    """By how much each counter grew over these phases: those that were counted in every one of them."""
    grown: dict[str, int] | None = None
    for phase in phases:
        if phase.drive_counters is None:
            return {}
        before = phase.drive_counters.before.model_dump(exclude_none=True)
        after = phase.drive_counters.after.model_dump(exclude_none=True)
        numbers = (name for name, value in after.items() if isinstance(value, int) and name in before)
        growth = {name: after[name] - before[name] for name in numbers}
        if grown is None:
            grown = growth
        else:
            grown = {name: grown[name] + growth[name] for name in grown if name in growth}
    return grown or {}


METRIC = Metric(
    "write amplification",
    ("write_amplification", "write_amplification_code", "drive_counters"),
    (),
    compute,
    needs="manifest",
)
