"""Figures of a run as words: the same ones on a terminal and in a log."""

from __future__ import annotations

from testdrive.events import CaptureProgress, Progress, RoundOver, SteadyProgress, Warned
from testdrive.report import units

#: Fewer bytes of a recording than this are none of its rows.
_RECORDED_BYTES_MIN = 1024


def figures(event: Progress) -> str:
    """What the last interval was like, in the order in which it matters."""
    parts = []
    if event.iops is not None:
        parts.append(f"{units.count(event.iops)} IOPS")
    if event.throughput_bytes_per_s is not None:
        parts.append(units.rate(event.throughput_bytes_per_s))
    return "  ".join([*parts, *latencies(event), *conditions(event)])


def latencies(event: Progress) -> list[str]:
    """Latencies of the last interval."""
    found = (("p50", event.latency_p50_ns), ("p99", event.latency_p99_ns), ("max", event.latency_max_ns))
    return [f"{name} {units.time(value)}" for name, value in found if value is not None]


def conditions(event: Progress) -> list[str]:
    """What is outstanding, how late I/Os were, where anything has a schedule, and what failed."""
    parts = []
    if event.in_flight is not None:
        parts.append(f"in flight {units.count(event.in_flight)}")
    # Closed loops are never late.
    if event.lateness_max_ns:
        parts.append(f"late {units.time(event.lateness_max_ns)}")
    if event.errors:
        parts.append(f"{units.count(event.errors)} errors")
    return parts


def steady(found: SteadyProgress) -> str:
    """The way to a steady state: rounds, and the last window's range and slope beside their limits."""
    parts = [f"round {found.rounds} of at most {found.rounds_max}"]
    if found.fit:
        limits = (
            ("range", found.fit.get("range_share"), found.range_share_max),
            ("slope", found.fit.get("slope_share"), found.slope_share_max),
        )
        for name, value, limit in limits:
            if value is not None:
                allowed = "" if limit is None else f" (limit {100 * limit:.0f} %)"
                parts.append(f"{name} {100 * abs(value):.1f} %{allowed}")
    elif found.window:
        parts.append(f"judged from round {found.window} on")
    return "  ".join([*parts, *(["steady"] if found.achieved else [])])


def round_over(event: RoundOver) -> str:
    """What a round of a group came to: how many there were, and how many of its figures are steady."""
    steady_count = sum(one.achieved for one in event.tracked)
    state = "steady" if event.achieved else f"{steady_count} of {len(event.tracked)} figures steady"
    return f"{event.name}: round {event.round + 1} of at most {event.rounds_max} ended, {state}"


def capture_figures(event: CaptureProgress) -> str:
    """What was seen so far, the last interval's rates, and whether something was lost."""
    parts = [f"{units.count(event.ios)} I/Os"]
    if event.iops is not None:
        parts.append(f"{units.count(event.iops)} IOPS")
    if event.throughput_bytes_per_s is not None:
        parts.append(units.rate(event.throughput_bytes_per_s))
    # Rows are encoded many at a time: before the first of them a file has hardly more than its name.
    if event.recorded_bytes >= _RECORDED_BYTES_MIN:
        parts.append(f"{units.size(event.recorded_bytes)} recorded")
    parts.append(f"{units.count(event.events_lost)} events lost")
    return "  ".join(parts)


def warning(event: Warned) -> str:
    """A warning with its remedy, in one line."""
    return f"{event.message}{f'; {event.remedy}' if event.remedy else ''}"


def percent(share: float | None) -> str:
    """A share in whole percents, empty where there is none."""
    return "" if share is None else f"{100 * min(share, 1.0):.0f} %"


def clock(seconds: float) -> str:
    """A length of time as a clock shows it: ``3:05``, ``1:02:03``."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
