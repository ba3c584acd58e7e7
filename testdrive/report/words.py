"""Codes and figures as people say them, the same in tables, verdicts and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from testdrive.report import units

if TYPE_CHECKING:
    from testdrive.report.rows import Row

CODES = {
    "no_burst": "no burst",
    "never_recovered": "never recovered",
    "unstable": "never calm for long",
    "saturated": "no burst, saturated",
    "not_recorded": "not recorded",
    "rows_not_kept": "not told by histograms",
    "no_ios": "no I/Os",
    "no_completions": "no completions",
    "too_few_samples": "too few I/Os",
    "too_few_blocks": "too short",
    "too_few_stalls": "too few stalls",
    "no_baseline": "no baseline",
    "no_stall": "no stall",
    "no_stall_in_reference": "the first has none",
    "no_interval": "no interval",
    "too_short": "too short",
    "too_long": "not counted for so long a recording",
    "closed_loop": "no schedule",
    "not_a_replay": "not a replay",
    "not_a_run": "not a run",
    "no_span": "too short",
    "no_overwrites": "none",
    "no_trims": "no trims",
    "no_latency": "no latency above 0",
    "not_counted": "the drive does not tell",
    "no_writes": "nothing was written",
    "not_measured": "not measured",
    "partly_measured": "measured in part only",
}
#: What a run with ``--short`` is worth, on pages and in the terminal.
SHORT_FORM = (
    "This is the plan's short form: it shows that the plan works here, and says nothing about the drive."
)
#: What a drive can be busy with (docs/recording-format.md).
EVENTS = {
    "slc_folding": "SLC cache folding",
    "slc_full": "SLC cache full",
    "mapping_misses": "mapping read from NAND",
    "write_buffer_full": "write buffer full",
}
ACCOUNTING = (
    ("filtered", "left out by request"),
    ("skipped", "skipped: beyond the drive"),
    ("wrapped", "wrapped around the drive's end"),
    ("scaled", "moved by scaling"),
    ("clipped", "clipped at the drive's end"),
    ("widened", "widened to the drive's block"),
    ("unsupported", "not supported by the drive"),
    ("not_reached", "not reached: the run ended first"),
)
LBA_MODES = {
    "skip": "I/Os beyond a drive's end left out (skip)",
    "wrap": "addresses wrapped at a drive's end (wrap)",
    "scale": "all addresses scaled to each drive's capacity (scale)",
    "scale-excess": "only addresses beyond a drive's end scaled into it (scale-excess)",
}


def code(value: str | None) -> str:
    """Return a code in words; an unknown one as it is, without underscores; none as a dash."""
    return units.ABSENT if value is None else CODES.get(value, value.replace("_", " "))


def event(kind: str) -> str:
    """Return what a drive was busy with, in words; a kind that is not known without underscores."""
    return EVENTS.get(kind, kind.replace("_", " "))


def baseline(row: Row) -> str:
    """Return the baseline, or why there is none."""
    if row["baseline_latency_ns"] is not None:
        return units.time(row["baseline_latency_ns"])
    return code(row["baseline_code"])


def recovery(row: Mapping[str, Any]) -> str:
    """Return how long the worst burst lasted, or its code in words: `never recovered (> 62 s)`."""
    if row.get("recovery_code") == "never_recovered":
        limit = row.get("recovery_more_than_ns")
        return code("never_recovered") + (f" (> {units.time(limit)})" if limit is not None else "")
    if row.get("recovery_ns") is not None:
        return units.time(row["recovery_ns"])
    return code(row.get("recovery_code"))


def pacing(settings: dict[str, object]) -> str:
    """Return how the replay was paced, or an empty text where nothing says so."""
    pace = settings.get("pace")
    speed = settings.get("speed", 1.0)
    if pace == "timed":
        return "at the recorded times" + (
            f", sped up {speed:g}{units.TIMES}" if isinstance(speed, (int, float)) and speed != 1 else ""
        )
    if pace == "asap":
        return f"as fast as the drive took it, {settings.get('depth', '?')} I/Os in flight"
    if pace == "depth":
        return "with the recorded concurrency and think times"
    return str(pace) if pace else ""


def part(settings: Mapping[str, Any], span_ns: int) -> str:
    """Return which part of a workload of this length was replayed, or an empty text for all of it."""
    said = []
    first_ns, last_ns, stop_ns = (settings.get(key) or 0 for key in ("from_ns", "to_ns", "duration_ns"))
    if first_ns:
        said.append(f"from {units.time(first_ns)}")
    if 0 < last_ns < span_ns:
        said.append(f"up to {units.time(last_ns)}")
    if 0 < stop_ns < span_ns:
        said.append(f"for {units.time(stop_ns)}")
    for key in ("only", "without"):
        if settings.get(key):
            said.append(f"{key} {listed([str(opcode).replace('_', ' ') for opcode in settings[key]])}")
    return ", ".join(said)


def listed(items: list[str]) -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def plural(number: int, noun: str) -> str:
    """Return a count with its noun: `1 drive`, `2 drives`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
