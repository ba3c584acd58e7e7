"""The figures of a summary on a terminal, in human units and 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from testdrive.cli.tables import table
from testdrive.manifest import OPCODES, UNKNOWN, Manifest
from testdrive.plans.judgement import metric_at
from testdrive.report import units, words
from testdrive.report.losses import is_loss
from testdrive.statement.operations import one

_PERCENTILES = ("p50", "p99", "p99_9", "p99_99", "max")
_MOST_FREQUENT = 4

Summary = Mapping[str, Any]
Pairs = Iterator[tuple[str, str]]


def summary_parts(summary: Summary) -> list[RenderableType]:
    """The tables of operations and latencies, and what the workload is like, one figure a line."""
    parts: list[RenderableType] = [_operations(summary)]
    if metric_at(summary, "percentiles_ns.io_weighted.p50") is not None:
        parts.append(_percentiles(summary))
    parts += [pairs(_latency(summary)), pairs(_workload(summary))]
    if metric_at(summary, "fidelity.verdict"):
        parts.append(pairs(_fidelity(summary)))
    return parts


def pairs(found: Pairs) -> Table:
    """Names and values, one a line."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True, min_width=20)
    made.add_column(overflow="fold")
    for name, value in found:
        made.add_row(name, value)
    return made


def origin(summary: Summary, manifest: Manifest) -> Pairs:
    """Where the recording comes from, over which time, and what it lacks."""
    recording = summary["recording"]
    reason = f": {recording['status_reason']}" if recording.get("status_reason") else ""
    yield "recording", f"{recording['name']} ({recording['kind']}, {recording['status']}{reason})"
    drive, host = manifest.drive, manifest.host
    named = " ".join(part for part in (drive.model, drive.serial, drive.firmware) if part) if drive else ""
    uri = (drive.uri if drive else None) or (manifest.source or {}).get("device")
    if uri or named:
        capacity = units.capacity(drive.capacity_bytes) if drive and drive.capacity_bytes else ""
        yield "drive", "  ".join(part for part in (str(uri or ""), named, capacity) if part)
    if host and host.hostname:
        yield (
            "imported on" if recording["kind"] == "import" else "host",
            " ".join(part for part in (host.hostname, host.kernel) if part),
        )
    span = units.duration(metric_at(summary, "workload.span_ns") or manifest.counts.span_ns)
    yield "recorded", f"{units.count(metric_at(summary, 'io_counts.ios'))} I/Os over {span}"
    if recording.get("absent_columns"):
        yield "not in the source", ", ".join(recording["absent_columns"])
    for dropped in (each for each in manifest.dropped if not is_loss(each)):
        yield "dropped", f"{units.count(dropped.count)} {dropped.what.replace('_', ' ')}"


def _operations(summary: Summary) -> Table:
    heads = ("operation", "I/Os", "share", "bytes", "mean size", "sequential", "errors")
    made = table(*heads, right=heads[1:])
    counts = summary["io_counts"]
    sequential = metric_at(summary, "workload.sequential_share_by_opcode") or {}
    for name in (name for name in (*OPCODES, UNKNOWN) if (counts["by_opcode"].get(name) or {}).get("ios")):
        each = counts["by_opcode"][name]
        made.add_row(
            one(summary, name),
            units.count(each["ios"]),
            units.percent(each["ios"] / counts["ios"]),
            units.size(each["bytes"]),
            units.size(None if each["bytes"] is None else each["bytes"] / each["ios"]),
            units.percent(sequential.get(name)),
            units.count(each["errors"]),
        )
    return made


def _latency(summary: Summary) -> Pairs:
    if summary.get("peak_latency_ns") is None:
        yield "latency", words.code(summary.get("baseline_code"))
        return
    baseline = summary.get("baseline_latency_ns")
    yield (
        "baseline latency",
        units.time(baseline) if baseline is not None else words.code(summary.get("baseline_code")),
    )
    peak = units.time(summary["peak_latency_ns"])
    what = f", a {summary['peak_opcode']}" if summary["peak_opcode"] else ""
    at_least = metric_at(summary, "lost_ios.percentiles_at_least_ns.max")
    if at_least is not None:
        lost = units.count(metric_at(summary, "lost_ios.ios"))
        yield "peak latency", f"at least {units.time(at_least)}, with the {lost} I/Os lost; else"
    yield (
        "peak latency" if at_least is None else "",
        f"{peak} at {units.moment(summary['peak_time_ns'])}{what}",
    )
    yield "peak recovery", words.recovery(summary)
    for burst in summary.get("bursts") or []:
        end = f"{units.time(burst['recovery_ns'])} long" if burst.get("end_ns") else "to the end"
        yield (
            "burst",
            f"from {units.moment(burst['onset_ns'])}, {end}, mean {units.time(burst['mean_latency_ns'])}",
        )
    if summary.get("longest_rise_ns") is not None:
        begin = units.moment(summary["longest_rise_time_ns"])
        yield "longest other rise", f"{units.duration(summary['longest_rise_ns'])} from {begin} on"
    if summary.get("write_amplification") is not None:
        yield "write amplification", f"{units.number(summary['write_amplification'])} by the drive's counters"
    stalls = summary.get("stall_time") or {}
    told = [
        f"{units.percent(stalls[key])} over {units.duration(int(key))}"
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
        **{
            f"  {one(summary, name)}": f"percentiles_ns.by_opcode.{name}.io_weighted"
            for name in (*OPCODES, UNKNOWN)
            if metric_at(summary, f"percentiles_ns.by_opcode.{name}")
        },
        "≥ with those lost": "lost_ios.percentiles_at_least_ns",
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
    depth = workload.get("queue_depth")
    if depth:
        shares = (f"{name} {units.count(depth[name])}" for name in ("p50", "p99", "max"))
        yield "queue depth", ", ".join((f"mean {units.number(depth['mean'])}", *shares))
    arrival = workload.get("interarrival")
    if arrival:
        parts = [f"mean {units.time(arrival['mean_ns'])}"]
        parts += [f"p99 {units.time(arrival['p99_ns'])}"] if arrival["p99_ns"] is not None else []
        parts += [f"CV {units.number(arrival['cv'])}"] if arrival["cv"] is not None else []
        yield "between arrivals", ", ".join(parts)
    yield from _burstiness(workload.get("burstiness") or {})
    sizes = workload.get("sizes_most_frequent") or []
    if sizes:
        shown = (f"{units.block(each['length_bytes'])} ({units.percent(each['share'])})" for each in sizes)
        yield "frequent sizes", ", ".join([*shown][:_MOST_FREQUENT])
    aligned = workload.get("alignment_share")
    if aligned:
        keys = ("512", "4096", "65536", "1048576")
        yield (
            "aligned",
            ", ".join(f"{units.percent(aligned[key])} to {units.block(int(key))}" for key in keys),
        )
    yield from _places(workload)
    trims = workload.get("trims") or {}
    if trims.get("ios"):
        lengths = trims["length_bytes"]
        told = (f"{name} {units.block(lengths[name])}" for name in ("p50", "p99", "max"))
        yield "trim sizes", ", ".join(told)


def _burstiness(found: Mapping[str, Any]) -> Pairs:
    names = {
        "peak_to_mean_1s": "busiest second {} the mean",
        "index_of_dispersion_1s": "dispersion {} at 1 s",
        "index_of_dispersion_10s": "{} at 10 s",
    }
    told = [
        text.format(units.number(found[key]) + (f" {units.TIMES}" if key == "peak_to_mean_1s" else ""))
        for key, text in names.items()
        if found.get(key) is not None
    ]
    if told:
        yield "burstiness", ", ".join(told)


def _places(workload: Mapping[str, Any]) -> Pairs:
    if workload.get("sequential_share") is not None:
        yield "sequential", units.percent(workload["sequential_share"])
    footprint = workload.get("footprint_bytes")
    if footprint:
        parts = [f"{units.size(footprint['total'])} in all"]
        told = ((name, size) for name, size in footprint["by_opcode"].items() if size and name != UNKNOWN)
        parts += [f"{name} {units.size(size)}" for name, size in told]
        yield "footprint", ", ".join(parts)
    hot = workload.get("hot_regions")
    if hot:
        # A part of less than one region is none.
        parts = [
            f"{units.percent(hot['share_of_ios'][key])} in the hottest {units.percent(float(key), 2)}"
            for key in ("0.01", "0.1")
            if hot["regions_touched"] * float(key) >= 1
        ]
        if parts:
            yield "reads and writes", ", ".join(parts)
    overwritten = workload.get("overwrite_distance")
    if overwritten and overwritten["p50_bytes"] is not None:
        share, median = units.percent(overwritten["share"]), units.size(overwritten["p50_bytes"])
        yield "overwrites", f"{share} of the writes, half of them after at most {median} written"


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
