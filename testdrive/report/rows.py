"""The figures that decide, one row a recording: the only place that knows the names in a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testdrive.report.incidents import is_incident
from testdrive.report.subject import Subject

PERCENTILES = ("p50", "p99", "p99_9", "p99_99")
DECIDING = (
    "baseline_latency_ns",
    "baseline_code",
    "peak_latency_ns",
    "peak_time_ns",
    "recovery_ns",
    "recovery_code",
    "recovery_more_than_ns",
    "longest_rise_ns",
    "longest_rise_time_ns",
    "level_before_burst_ns",
)
Row = dict[str, Any]


def dig(summary: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or None where any step of it is missing."""
    value: Any = summary
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def row(subject: Subject) -> Row:
    """Return a recording's row.

    Returns
    -------
    dict
        Names with units as in summary.json; times in ns. A figure that is absent is None, and its code says
        why.
    """
    summary = subject.summary
    counts = dig(summary, "io_counts") or {}
    result: Row = {
        "name": subject.name,
        "key": subject.key,
        "role": subject.role,
        "modelled": subject.modelled,
        "recording": str(subject.recording.path),
        "status": subject.manifest.status,
        "uri": subject.drive.uri,
        "model": subject.drive.model,
        "ios": counts.get("ios", 0),
        "errors": counts.get("errors", 0),
        "left_out_ios": _left_out(subject),
        "no_completion": counts.get("no_completion", 0),
        "lost_ios": dig(summary, "lost_ios.ios") or 0,
        "peak_at_least_ns": dig(summary, "lost_ios.percentiles_at_least_ns.max"),
        "incidents": [each.code for each in subject.warnings if is_incident(each)],
        "bursts": dig(summary, "bursts") or [],
        "stall_time": dig(summary, "stall_time"),
        "fidelity_verdict": dig(summary, "fidelity.verdict"),
        "fidelity_verdict_code": dig(summary, "fidelity.verdict_code"),
        "fidelity_reasons": [reason["message"] for reason in dig(summary, "fidelity.reasons") or []],
        "excess_near_trims_share": dig(summary, "trim_attribution.excess_share"),
        "ios_near_trims_share": _ios_near_trims(summary),
    }
    for name in DECIDING:
        result[name] = dig(summary, name)
    for name in PERCENTILES:
        result[f"service_{name}_ns"] = dig(summary, f"percentiles_ns.io_weighted.{name}")
        result[f"service_{name}_code"] = dig(summary, f"percentile_codes.io_weighted.{name}") or dig(
            summary, "latency_weighted_code"
        )
        result[f"service_{name}_at_least_ns"] = dig(summary, f"lost_ios.percentiles_at_least_ns.{name}")
    result["response_p99_9_ns"] = dig(summary, "response_percentiles_ns.io_weighted.p99_9")
    result["response_code"] = dig(summary, "response_code") or dig(
        summary, "response_percentile_codes.io_weighted.p99_9"
    )
    return result


def _left_out(subject: Subject) -> int:
    """Return how many I/Os of the workload were not asked of the drive: outside the window, or left out by
    request.
    """
    whole = (subject.manifest.source or {}).get("ios")
    asked = subject.accounting.get("source")
    if not isinstance(whole, int) or not isinstance(asked, Mapping):
        return 0
    filtered = subject.accounting.get("filtered") or {}
    return max(whole - _ios(asked), 0) + _ios(filtered)


def _ios(by_opcode: Mapping[str, Any]) -> int:
    return sum(int(one.get("ios", 0)) for one in by_opcode.values())


def _ios_near_trims(summary: Mapping[str, Any]) -> float | None:
    """Return the share of the worst burst's reads and writes that were near trims, beside that of their
    excess.
    """
    bursts = dig(summary, "trim_attribution.bursts") or []
    worst = max(bursts, key=lambda burst: burst["peak_latency_ns"], default=None)
    return worst["ios_near_trims"] / worst["ios"] if worst and worst["ios"] else None


def stall_share(row: Row, threshold_ns: int) -> float | None:
    """Return the share of wall-clock time during which the oldest outstanding I/O was older than the
    threshold.
    """
    share = (row["stall_time"] or {}).get(str(threshold_ns))
    return None if share is None else float(share)
