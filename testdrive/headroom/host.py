"""Whether a trial failed for its host: one that sends late must not be taken for a slow drive."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from testdrive.manifest import Manifest, Phase
from testdrive.qos.delivery import LimitedBy
from testdrive.qos.held import Held
from testdrive.qos.rules import parse_rules

#: What a replay keeps in flight at most: the engine's own default.
IN_FLIGHT_MAX = 4_096
_LATE = "generator_late"


def host_lateness_ns(summary: Mapping[str, Any], manifest: Manifest) -> int | None:
    """The 99th percentile of lateness, of a failed trial of which it says nothing about the drive; else None.

    That is where the warning ``generator_late`` stands with it, the drive never had as many I/Os in flight as
    it may have, so that nothing but the host held others back, and in every interval that could be judged
    each rule holds by service time. Without such an interval nobody knows.
    """
    codes = {warning.get("code") for warning in summary.get("warnings") or []}
    fidelity = summary.get("fidelity") or {}
    depth = (fidelity.get("replay_depth") or {}).get("max")
    late_ns = fidelity.get("lateness_p99_ns")
    rules = (summary.get("headroom") or {}).get("rules") or []
    if _LATE not in codes or late_ns is None or depth is None or not rules:
        return None
    if depth >= _in_flight_max(manifest):
        return None
    for rule in rules:
        (asked,) = parse_rules(rule["rule"])
        if rule["worst_service"] is None or not asked.holds(rule["worst_service"]):
            return None
    return int(late_ns)


def fell_behind(manifest: Manifest, phase: Phase, held: Sequence[Held]) -> LimitedBy:
    """Who made a trial fall behind in a phase.

    The host, where the drive never had as many I/Os in flight as it may have, and served every interval that
    could be judged within the rules. A model has no host that could be late.
    """
    depth = ((phase.accounting or {}).get("replay_depth") or {}).get("max")
    modelled = manifest.drive is not None and manifest.drive.modelled
    if modelled or depth is None or depth >= _in_flight_max(manifest):
        return "drive"
    return "drive" if any(one.is_served is False for one in held) else "host"


def _in_flight_max(manifest: Manifest) -> int:
    """The least number of I/Os in flight at which the next may have had to wait for the drive."""
    most = IN_FLIGHT_MAX
    if any((phase.settings or {}).get("streams") == "source" for phase in manifest.phases):
        # Submitters share it, at most one for each CPU and at least two; one of them may have had its part.
        most //= max(os.cpu_count() or 1, 2)
    entries = (manifest.drive.settings or {}).get("queue_entries") if manifest.drive else None
    # An NVMe queue is full with one entry free.
    return most if entries is None else min(most, int(entries) - 1)
