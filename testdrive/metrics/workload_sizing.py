"""What a drive has to endure: how much is written, read and trimmed a day, and the drive writes per day.

These are extrapolations: what was recorded, times a day over the span of the recording
(``extrapolated_from_ns``), as if the workload went on like that day and night. Under a minute: absent,
``too_short``. Drive writes per day are the bytes written a day over the capacity of the drive that the
recording is from (``capacity_bytes``), null where that is not known. Only what the host writes counts: what a
drive writes of itself (write amplification) does not show at its interface.
"""

from __future__ import annotations

from testdrive.manifest import READ, TRIM, WRITE
from testdrive.metrics.metric import NO_IOS, TIMES, TOO_SHORT, Metric, Values
from testdrive.metrics.scans import Scan

DAY_NS = 86_400_000_000_000
#: Less than this says nothing of a day.
SPAN_MIN_NS = 60_000_000_000


def compute(scan: Scan) -> Values:
    """Bytes a day and drive writes per day."""
    extent = scan.extent
    if not extent.ios:
        return METRIC.absent(NO_IOS)
    first_ns = min(extent.intended_first_ns, extent.submit_first_ns)
    span_ns = max(extent.complete_last_ns, extent.intended_last_ns) - first_ns
    if span_ns < SPAN_MIN_NS:
        return METRIC.absent(TOO_SHORT)
    shapes = scan.shapes
    moved = shapes["ios"] * shapes["length_bytes"]
    a_day = {
        name: int(moved[shapes["code"] == code].sum()) * DAY_NS / span_ns
        for name, code in (("written", WRITE), ("read", READ), ("trimmed", TRIM))
    }
    drive = scan.recording.manifest.drive
    capacity_bytes = drive.capacity_bytes if drive else None
    return {
        "workload.sizing": {
            **{f"{name}_bytes_per_day": size for name, size in a_day.items()},
            "extrapolated_from_ns": span_ns,
            "capacity_bytes": capacity_bytes,
            "drive_writes_per_day": a_day["written"] / capacity_bytes if capacity_bytes else None,
        },
        "workload.sizing_code": None,
    }


METRIC = Metric(
    "sizing",
    ("workload.sizing", "workload.sizing_code"),
    (TIMES, "length_bytes", "opcode"),
    compute,
)
