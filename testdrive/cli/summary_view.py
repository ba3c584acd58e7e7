"""`testdrive inspect` on a terminal: a summary in human units and 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from testdrive.cli.tables import table
from testdrive.manifest import OPCODES, Manifest
from testdrive.plans.judgement import metric_at
from testdrive.report import units, words

_PERCENTILES = ("p50", "p99", "p99_9", "p99_99", "p99_999", "max")
_MOST_FREQUENT = 3

Summary = Mapping[str, Any]
Pairs = Iterator[tuple[str, str]]


def summary_view(summary: Summary, manifest: Manifest) -> Group:
    """Everything that `inspect` shows, in the order in which someone asks."""
    parts: list[RenderableType] = [_pairs(_origin(summary, manifest)), _operations(summary)]
    parts.append(_pairs(_latency(summary)))
    if metric_at(summary, "percentiles_ns.io_weighted"):
        parts.append(_percentiles(summary))
    parts.append(_pairs(_workload(summary)))
    if metric_at(summary, "fidelity.verdict"):
        parts.append(_pairs(_fidelity(summary)))
    for warning in manifest.warnings:
        parts.append(
            Text.assemble(("warning: ", "yellow"), f"{warning.message}; {warning.remedy}".rstrip("; "))
        )
    return Group(*parts)


def _pairs(pairs: Pairs) -> Table:
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True, min_width=20)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(name, value)
    return made


def _origin(summary: Summary, manifest: Manifest) -> Pairs:
    recording = summary["recording"]
    reason = f": {recording['status_reason']}" if recording.get("status_reason") else ""
    yield "recording", f"{recording['name']} ({recording['kind']}, {recording['status']}{reason})"
    drive = manifest.drive
    if drive is not None:
        named = " ".join(part for part in (drive.model, drive.serial, drive.firmware) if part)
        yield "drive", f"{drive.uri or units.ABSENT}  {named}  {units.capacity(drive.capacity_bytes)}".strip()
    yield "span", units.time(metric_at(summary, "workload.span_ns") or manifest.counts.span_ns)
    if recording.get("absent_columns"):
        yield "not in the source", ", ".join(recording["absent_columns"])
    for dropped in manifest.dropped:
        yield "dropped", f"{units.count(dropped.count)} {dropped.what.replace('_', ' ')}"


def _operations(summary: Summary) -> Table:
    names = ("operation", "I/Os", "share", "bytes", "mean size", "sequential", "errors")
    made = table(*names, right=names[1:])
    counts = summary["io_counts"]
    sequential = metric_at(summary, "workload.sequential_share_by_opcode") or {}
    for name in (name for name in OPCODES if (counts["by_opcode"].get(name) or {}).get("ios")):
        each = counts["by_opcode"][name]
        made.add_row(
            name,
            units.count(each["ios"]),
            units.percent(each["ios"] / counts["ios"]),
            units.size(each["bytes"]),
            units.size(each["bytes"] / each["ios"]),
            units.percent(sequential.get(name)),
            units.count(each["errors"]),
        )
    return made


def _latency(summary: Summary) -> Pairs:
    baseline, recovery = summary.get("baseline_latency_ns"), summary.get("recovery_ns")
    yield (
        "baseline latency",
        units.time(baseline) if baseline is not None else words.code(summary.get("baseline_code")),
    )
    if summary.get("peak_latency_ns") is not None:
        peak = units.time(summary["peak_latency_ns"])
        yield "peak latency", f"{peak} at {units.moment(summary['peak_time_ns'])}, a {summary['peak_opcode']}"
    yield (
        "peak recovery",
        units.time(recovery) if recovery is not None else words.code(summary.get("recovery_code")),
    )
    for burst in summary.get("bursts") or []:
        end = f"{units.time(burst['recovery_ns'])} long" if burst.get("end_ns") else "to the end"
        yield (
            "burst",
            f"from {units.moment(burst['onset_ns'])}, {end}, mean {units.time(burst['mean_latency_ns'])}",
        )
    if summary.get("write_amplification") is not None:
        yield "write amplification", f"{units.number(summary['write_amplification'])} by the drive's counters"
    stalls = summary.get("stall_time") or {}
    told = [
        f"{units.percent(stalls[key])} over {units.time(int(key))}"
        for key in ("10000000", "100000000")
        if key in stalls
    ]
    if told:
        yield "time stalled", ", ".join(told)


def _percentiles(summary: Summary) -> Table:
    heads = [name.replace("_", ".") for name in _PERCENTILES]
    made = table("latency", *heads, right=heads)
    kinds = {
        "of I/Os": "percentiles_ns.io_weighted",
        "of I/O time": "percentiles_ns.latency_weighted",
        "response": "response_percentiles_ns.io_weighted",
    }
    for label, key in kinds.items():
        values = metric_at(summary, key)
        if values:
            made.add_row(label, *(units.time(values.get(name)) for name in _PERCENTILES))
    return made


def _workload(summary: Summary) -> Pairs:
    workload = summary.get("workload") or {}
    if workload.get("iops_mean") is not None:
        mean, peak = (units.count(workload[key]) for key in ("iops_mean", "iops_peak_1s"))
        yield "rate", f"{mean} IOPS mean, {peak} in the busiest second"
        yield "reads and writes", _throughput(workload, "transfer")
        if (workload.get("trims") or {}).get("ios"):
            yield "trims", _throughput(workload, "trim")
    means = {"reads and writes": "transfer_size_mean_bytes", "trims": "trim_size_mean_bytes"}
    told = [
        f"{what} {units.size(workload[key])}" for what, key in means.items() if workload.get(key) is not None
    ]
    if told:
        yield "mean size", ", ".join(told)
    depth = workload.get("queue_depth")
    if depth:
        shares = (f"{name} {units.count(depth[name])}" for name in ("p50", "p99", "max"))
        yield "queue depth", ", ".join((f"mean {units.number(depth['mean'])}", *shares))
    sizes = workload.get("sizes_most_frequent") or []
    if sizes:
        shown = (
            f"{units.size(each['length_bytes'])} ({units.percent(each['share'])})"
            for each in sizes[:_MOST_FREQUENT]
        )
        yield "frequent sizes", ", ".join(shown)
    if workload.get("sequential_share") is not None:
        yield "sequential", units.percent(workload["sequential_share"])
    footprint = workload.get("footprint_bytes")
    if footprint:
        parts = [f"{units.size(footprint['total'])} in all"]
        parts += [f"{name} {units.size(value)}" for name, value in footprint["by_opcode"].items() if value]
        yield "footprint", ", ".join(parts)


def _throughput(workload: Mapping[str, Any], what: str) -> str:
    """Mean and peak throughput of transfers or trims."""
    mean, peak = (
        units.rate(workload[f"{what}_throughput_bytes_per_s_{which}"]) for which in ("mean", "peak_1s")
    )
    return f"{mean} mean, {peak} in the busiest second"


def _fidelity(summary: Summary) -> Pairs:
    fidelity = summary["fidelity"]
    yield "replay", words.code(fidelity["verdict"])
    for reason in fidelity.get("reasons") or []:
        yield "", str(reason.get("message", reason)) if isinstance(reason, Mapping) else str(reason)
    names = {"p50": "lateness_p50_ns", "p99": "lateness_p99_ns", "max": "lateness_max_ns"}
    told = [
        f"{name} {units.time(fidelity[key])}" for name, key in names.items() if fidelity.get(key) is not None
    ]
    if told:
        yield "lateness", ", ".join(told)
    if fidelity.get("drift") is not None:
        yield "drift", units.percent(fidelity["drift"])
