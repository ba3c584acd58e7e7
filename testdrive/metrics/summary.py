"""``summary.json``: every metric of a recording in one dictionary."""

from __future__ import annotations

from typing import Any

import testdrive
from testdrive.durable_json import write_json
from testdrive.metrics.registry import all_metrics
from testdrive.metrics.scans import Scan, scan_of
from testdrive.metrics.validity import derived_warnings
from testdrive.recording import Recording

SUMMARY_NAME = "summary.json"
SUMMARY_FORMAT = "testdrive-summary"
SUMMARY_VERSION = 1


def summarize(recording: Recording) -> dict[str, Any]:
    """Every metric of a recording, as docs/recording-format.md and each metric's module define them.

    Parameters
    ----------
    recording : Recording
        Opened by :meth:`Recording.open`.

    Returns
    -------
    dict
        What ``summary.json`` holds: units are in the names, an absent value is null (None) and a key beside
        it that ends in ``_code`` or ``_codes`` says why. Nothing in it is NaN or infinite.

    Raises
    ------
    RecordingError
        If a segment is damaged.
    """
    return summarize_scan(scan_of(recording))


def summarize_scan(scan: Scan) -> dict[str, Any]:
    """As :func:`summarize`, from a scan whose passes over the rows are wanted for more than the summary."""
    recording = scan.recording
    manifest = recording.manifest
    summary: dict[str, Any] = {
        "format": SUMMARY_FORMAT,
        "version": SUMMARY_VERSION,
        "tool_version": testdrive.__version__,
        "recording": {
            "name": recording.path.resolve().name,
            "kind": manifest.kind,
            "status": manifest.status,
            "status_reason": manifest.status_reason,
            "absent_columns": list(manifest.absent_columns),
        },
        "warnings": [warning.model_dump(mode="json") for warning in manifest.warnings],
    }
    for metric in all_metrics():
        for key, value in metric.values(scan).items():
            _place(summary, key.split("."), value)
    summary["warnings"] += [each.model_dump(mode="json") for each in derived_warnings(recording, summary)]
    # The largest of the passes that are kept, and nothing else asks for it.
    scan.__dict__.pop("touched", None)
    return summary


def write_summary(recording: Recording) -> dict[str, Any]:
    """Compute the summary, write it into the recording's directory and return it.

    Raises
    ------
    RecordingError
        If a segment is damaged.
    OSError
        If the directory cannot be written to.
    """
    summary = summarize(recording)
    write_json(recording.path / SUMMARY_NAME, summary)
    return summary


def _place(summary: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        summary = summary.setdefault(part, {})
    summary[path[-1]] = value
