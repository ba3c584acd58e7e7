"""What a drive has to bring for a workload: the figures that it is bought by, each with where it comes
from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testdrive.manifest import UNKNOWN
from testdrive.report import units, words
from testdrive.report.rows import dig
from testdrive.statement.operations import many, told

Summary = Mapping[str, Any]

#: Capacities that data-centre drives are sold in.
CAPACITIES_BYTES = (480 * 10**9, 960 * 10**9, *((1_920 * 10**9) << step for step in range(5)))
_MINUTE_NS = 60_000_000_000


@dataclass(frozen=True)
class Need:
    """One figure: what it is called, its value in words, and what is to be known of it.

    ``part`` marks one that is a part of the figure before it.
    """

    name: str
    value: str
    note: str = ""
    part: bool = False


def needs(summary: Summary) -> list[Need]:
    """The figures in the order in which a drive is chosen by them; an absent one says why."""
    return [*_rates(summary), *_concurrency(summary), *_places(summary), *_endurance(summary)]


def drive_writes_per_day(
    summary: Summary, capacities_bytes: Sequence[int] = CAPACITIES_BYTES
) -> list[tuple[int, float]]:
    """For each capacity, how often a day it would be written; empty where nothing is known of a day."""
    written = dig(summary, "workload.sizing.written_bytes_per_day")
    return [] if written is None else [(capacity, written / capacity) for capacity in capacities_bytes]


def _rates(summary: Summary) -> list[Need]:
    workload = dig(summary, "workload") or {}
    if workload.get("iops_peak_1s") is None:
        code = workload.get("rates_code") or workload.get("peak_code")
        note = "it lasts less than a second" if code == "too_short" else ""
        return [Need("Busiest second", words.code(code), note)]
    most, mean = moved_at(summary, "peak_1s"), moved_at(summary, "mean")
    found = [
        Need(
            "Busiest second",
            f"{units.iops(workload['iops_peak_1s'])}{f', {units.rate(most)}' if most is not None else ''}",
            f"mean {units.iops(workload['iops_mean'])}{f', {units.rate(mean)}' if mean is not None else ''}",
        )
    ]
    for opcode in ("read", "write", "trim", "flush"):
        rates = dig(workload, f"rates_by_opcode.{opcode}")
        if rates and told(summary):
            value = units.iops(rates["iops_peak_1s"])
            if rates["throughput_bytes_per_s_peak_1s"]:
                value += f", {units.rate(rates['throughput_bytes_per_s_peak_1s'])}"
            note = f"mean {units.iops(rates['iops_mean'])}"
            found.append(Need(many(summary, opcode), value, note, part=True))
    minute = workload.get("busiest_minute")
    if minute:
        moved = minute["transfer_throughput_bytes_per_s"]
        rate = f", {units.rate(moved)}" if moved is not None else ""
        begin = f"from {units.duration(minute['start_ns'])} on"
        found.append(Need("Busiest minute", f"{units.iops(minute['iops'])}{rate}", begin))
    return found


def moved_at(summary: Summary, which: str) -> float | None:
    """Bytes a second that reads and writes moved, or all I/Os where they were not told apart: in the `mean`,
    or at most (`peak_1s`). None where the source had no lengths.
    """
    key = f"throughput_bytes_per_s_{which}"
    found: float | None = dig(
        summary, f"workload.transfer_{key}" if told(summary) else f"workload.rates_by_opcode.{UNKNOWN}.{key}"
    )
    return found


def _concurrency(summary: Summary) -> list[Need]:
    depth = dig(summary, "workload.queue_depth")
    if not depth:
        return [Need("I/Os in flight", words.code(dig(summary, "workload.queue_depth_code")))]
    value = f"{units.count(depth['p99'])} for 99 % of the time, {units.count(depth['max'])} at most"
    where = "this drive" if dig(summary, "recording.kind") == "run" else "the recorded drive"
    return [Need("I/Os in flight", value, f"on {where}")]


def _places(summary: Summary) -> list[Need]:
    workload = dig(summary, "workload") or {}
    footprint = workload.get("footprint_bytes")
    if not footprint:
        return [Need("Addresses touched", words.code(workload.get("footprint_code")))]
    error = footprint["relative_standard_error"]
    note = f"estimated, standard error {units.percent(error, 2)}" if error else "by all operations"
    found = [Need("Addresses touched", units.size(footprint["total"]), note)]
    working = workload.get("working_set_bytes")
    if working and working["max"] is not None:
        found.append(_working_set(working, (workload.get("span_ns") or 0) < _MINUTE_NS))
    return found


def _working_set(working: Mapping[str, Any], short: bool) -> Need:
    if short:
        return Need("Working set", units.size(working["max"]), "read and written in less than a minute")
    median = f"in the median minute {units.size(working['p50'])}"
    return Need("Working set of a minute", f"{units.size(working['max'])} at most", median)


def _endurance(summary: Summary) -> list[Need]:
    sizing = dig(summary, "workload.sizing")
    if not sizing:
        code = dig(summary, "workload.sizing_code")
        note = "less than a minute does not tell of a day" if code == "too_short" else ""
        return [Need("Written a day", words.code(code), note)]
    extrapolated = f"extrapolated from {units.duration(sizing['extrapolated_from_ns'])}"
    found = [Need("Written a day", units.capacity(sizing["written_bytes_per_day"]), extrapolated)]
    if sizing["trimmed_bytes_per_day"]:
        trimmed = units.capacity(sizing["trimmed_bytes_per_day"])
        found.append(Need("Trimmed a day", trimmed, extrapolated))
    if sizing["drive_writes_per_day"] is not None:
        capacity = units.capacity(sizing["capacity_bytes"])
        value = f"{units.number(sizing['drive_writes_per_day'])} a day"
        note = f"of the recorded drive's {capacity}, {extrapolated}"
        found.append(Need("Drive writes", value, note))
    return found
