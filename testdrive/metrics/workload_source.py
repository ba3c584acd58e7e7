"""Where the workload comes from: device, host, what a row is, and what was lost on the way."""

from __future__ import annotations

from testdrive.metrics.metric import Metric, Values
from testdrive.metrics.scans import Scan


def compute(scan: Scan) -> Values:
    """From the manifest alone; what it does not tell is null."""
    manifest = scan.recording.manifest
    source = manifest.source or {}
    drive, host = manifest.drive, manifest.host
    return {
        "workload.captured": {
            "device": source.get("device") or (drive.uri if drive else None),
            "model": drive.model if drive else None,
            "capacity_bytes": drive.capacity_bytes if drive else None,
            "host": host.hostname if host else None,
            "kernel": host.kernel if host else None,
            "events": source.get("events"),
            "clock": manifest.clock.source,
        },
        "workload.events_dropped": sum(dropped.count for dropped in manifest.dropped),
        "workload.dropped": [{"what": dropped.what, "count": dropped.count} for dropped in manifest.dropped],
    }


METRIC = Metric(
    "source of the workload",
    ("workload.captured", "workload.events_dropped", "workload.dropped"),
    (),
    compute,
    needs="manifest",
)
