"""The tables of a statement's page: needs, operations, sizes, latencies, trims, and two recordings side by
side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from testdrive.manifest import OPCODES, UNKNOWN
from testdrive.report import html, units, words
from testdrive.report.html import Markup, Node
from testdrive.report.rows import dig
from testdrive.report.subject import Subject
from testdrive.statement.contrast import contrasts
from testdrive.statement.needs import CAPACITIES_BYTES, drive_writes_per_day, needs
from testdrive.statement.operations import one

_ALIGNMENTS = ("512", "4096", "8192", "16384", "65536", "1048576")
_PERCENTILES = ("p50", "p90", "p99", "p99_9", "p99_99", "max")


def needs_section(subjects: Sequence[Subject], capacities_bytes: Sequence[int]) -> Markup:
    """Return what a drive has to bring, and how often a day it would be written over."""
    return html.section(
        "needs",
        "What a drive needs for it",
        html.tag(
            "p",
            "A drive that is bought for this workload has to take its busiest second, not its mean. What"
            " is said of a day is extrapolated from the time that was recorded, as if it went on like that"
            " day and night; only what the host writes counts, not what a drive writes of itself.",
        ),
        html.tag(
            "div",
            *(_needs_table(subject, len(subjects) > 1) for subject in subjects),
            _endurance_table(subjects, capacities_bytes),
            class_="pair",
        ),
        link="Needs",
    )


def _needs_table(subject: Subject, several: bool) -> Markup:
    found = needs(subject.summary)
    rows: list[list[Node]] = [
        [f"Busiest second of {need.name}" if need.part else need.name, need.value, need.note]
        for need in found
    ]
    caption = f"Figures to choose a drive by: {subject.name}" if several else "Figures to choose a drive by"
    return html.table(["Figure", "Value", "Note"], rows, caption=caption, class_="words")


def _endurance_table(subjects: Sequence[Subject], capacities_bytes: Sequence[int]) -> Markup | None:
    chosen = sorted({*CAPACITIES_BYTES, *capacities_bytes})
    known = [subject for subject in subjects if dig(subject.summary, "workload.sizing")]
    if not known:
        return None
    columns = [dict(drive_writes_per_day(subject.summary, chosen)) for subject in known]
    rows: list[list[Node]] = [
        [units.capacity(capacity), *(units.number(column[capacity]) for column in columns)]
        for capacity in chosen
    ]
    spans = (
        f"{subject.name + ' ' if len(subjects) > 1 else ''}from"
        f" {units.duration(dig(subject.summary, 'workload.sizing.extrapolated_from_ns'))}"
        for subject in known
    )
    heads = [
        f"Drive writes a day: {each.name}" if len(subjects) > 1 else "Drive writes a day" for each in known
    ]
    caption = f"Drive writes per day by capacity, extrapolated {', '.join(spans)}"
    return html.table(["Capacity", *heads], rows, caption=caption)


def operations_table(subject: Subject, several: bool) -> Markup:
    """Return counts, shares, rates, sizes and places of each operation."""
    summary = subject.summary
    counts = dig(summary, "io_counts") or {}
    rows = [
        _operation(name, counts, summary)
        for name in (*OPCODES, UNKNOWN)
        if (dig(counts, f"by_opcode.{name}") or {}).get("ios")
    ]
    heads = [
        "Operation",
        "I/Os",
        "Share",
        "Bytes",
        "IOPS mean",
        "IOPS busiest second",
        "Bytes/s mean",
        "Bytes/s busiest second",
        "Mean size",
        "Sequential",
        "Touched",
        "Errors",
    ]
    caption = f"Operations: {subject.name}" if several else "Operations"
    return html.table(heads, rows, caption=caption)


def _operation(name: str, counts: Mapping[str, Any], summary: Mapping[str, Any]) -> list[Node]:
    each = counts["by_opcode"][name]
    rates = dig(summary, f"workload.rates_by_opcode.{name}") or {}
    return [
        one(summary, name),
        units.count(each["ios"]),
        units.percent(each["ios"] / counts["ios"]),
        units.size(each["bytes"]),
        units.number(rates.get("iops_mean")),
        units.count(rates.get("iops_peak_1s")),
        units.rate(rates.get("throughput_bytes_per_s_mean")),
        units.rate(rates.get("throughput_bytes_per_s_peak_1s")),
        units.size(None if each["bytes"] is None else each["bytes"] / each["ios"]),
        units.percent(dig(summary, f"workload.sequential_share_by_opcode.{name}")),
        units.size(dig(summary, f"workload.footprint_bytes.by_opcode.{name}")),
        units.count(each["errors"]),
    ]


def sizes_tables(subjects: Sequence[Subject]) -> Markup | None:
    """Return sizes of each operation and the alignment of all I/Os."""
    rows: list[list[Node]] = []
    aligned: list[list[Node]] = []
    for subject in subjects:
        who = f"{subject.name}, " if len(subjects) > 1 else ""
        for name, found in (dig(subject.summary, "workload.sizes_by_opcode") or {}).items():
            share = units.percent(found["most_frequent_share"])
            rows.append(
                [
                    f"{who}{one(subject.summary, name)}",
                    f"{units.block(found['most_frequent_bytes'])} ({share})",
                    units.size(found["mean_bytes"]),
                    *(units.block(found[f"{key}_bytes"]) for key in ("p50", "p99", "max")),
                ]
            )
        shares = dig(subject.summary, "workload.alignment_share")
        if shares:
            aligned.append([f"{who}all I/Os", *(units.percent(shares[key]) for key in _ALIGNMENTS)])
    if not rows:
        return None
    heads = [f"to {units.block(int(key))}" for key in _ALIGNMENTS]
    return html.join(
        html.table(["Operation", "Most frequent", "Mean", "p50", "p99", "Largest"], rows, caption="Sizes"),
        html.table(["", *heads], aligned, caption="Share whose address and length are multiples of a size")
        if aligned
        else None,
    )


def latency_table(subjects: Sequence[Subject]) -> Markup | None:
    """Return the percentiles of service time of each operation."""
    rows: list[list[Node]] = []
    for subject in subjects:
        found = dig(subject.summary, "percentiles_ns.by_opcode") or {}
        codes = dig(subject.summary, "percentile_codes.by_opcode") or {}
        who = f"{subject.name}, " if len(subjects) > 1 else ""
        for name, values in found.items():
            rows.append(
                [
                    f"{who}{one(subject.summary, name)}",
                    *_percentiles(values["io_weighted"], dig(codes, f"{name}.io_weighted") or {}),
                ]
            )
    if not rows:
        return None
    heads = ["Operation", *(name.replace("_", ".") for name in _PERCENTILES)]
    return html.table(heads, rows, caption="Service time of I/Os without an error")


def _percentiles(values: Mapping[str, Any], codes: Mapping[str, str]) -> Iterable[Node]:
    for name in _PERCENTILES:
        value = values.get(name)
        yield units.time(value) if value is not None else html.tag("small", words.code(codes.get(name)))


def trim_table(subjects: Sequence[Subject]) -> Markup | None:
    """Return how many trims each stream sent."""
    rows: list[list[Node]] = []
    for subject in subjects:
        streams = dig(subject.summary, "workload.trim_streams") or []
        whole = sum(each["ios"] for each in streams)
        who = f"{subject.name}, " if len(subjects) > 1 else ""
        stream = "worker" if subject.manifest.kind == "run" else "CPU"
        rows += [
            [
                f"{who}{stream} {each['stream']}",
                units.count(each["ios"]),
                units.percent(each["ios"] / whole),
                units.size(each["bytes"]),
            ]
            for each in streams[:16]
        ]
    if not rows:
        return None
    return html.table(["Stream", "Trims", "Share", "Bytes"], rows, caption="Who trimmed (up to sixteen)")


def arrivals_facts(subject: Subject) -> Markup:
    """Return the figures of arrivals and of I/Os in flight."""
    found = dig(subject.summary, "workload") or {}

    def said(path: str, scale: Any, code_path: str) -> str:
        value = dig(found, path)
        return words.code(dig(found, code_path)) if value is None else str(scale(value))

    def several(parts: list[str]) -> str:
        # What is absent for one reason is so once.
        return parts[0] if len(set(parts)) == 1 else ", ".join(parts)

    arrival, burst, depth = "interarrival", "burstiness", "queue_depth"
    dispersions = [
        said(f"{burst}.index_of_dispersion_{key}", units.number, f"{burst}_code") for key in ("1s", "10s")
    ]
    depths = [
        said(f"{depth}.{key}", units.number if key == "mean" else units.count, f"{depth}_code")
        for key in ("mean", "p50", "p99", "max")
    ]
    overwrites = [
        said(f"overwrite_distance.{key}", scale, "overwrite_distance_code")
        for key, scale in (("share", units.percent), ("p50_bytes", units.size))
    ]
    pairs: list[tuple[str, Node]] = [
        ("Between arrivals, mean", said(f"{arrival}.mean_ns", units.time, f"{arrival}_code")),
        ("Between arrivals, p99", said(f"{arrival}.p99_ns", units.time, f"{arrival}.p99_code")),
        ("Variation (CV; chance alone has 1)", said(f"{arrival}.cv", units.number, f"{arrival}_code")),
        ("Busiest second over mean", said(f"{burst}.peak_to_mean_1s", units.number, f"{burst}_code")),
        ("Dispersion at 1 s, 10 s (chance alone has 1)", several(dispersions)),
        ("In flight: mean, p50, p99, max", several(depths)),
        ("Writes that overwrite; written before, median", several(overwrites)),
    ]
    sampled = {dig(found, f"{name}.sampled_ios") for name in (arrival, depth)} - {None}
    if sampled:
        pairs.append(("Taken from a sample of", f"{units.count(max(sampled))} I/Os"))
    return html.facts(pairs)


def contrast_section(a: Subject, b: Subject) -> Markup:
    """Return every figure of two recordings side by side."""
    groups: dict[str, list[list[Node]]] = {}
    for row in contrasts(a.summary, b.summary):
        groups.setdefault(row.group, []).append([row.name, *row.shown, row.ratio_words])
    tables = (
        html.table([group, a.name, b.name, "B over A"], rows, caption=group) for group, rows in groups.items()
    )
    return html.section("contrast", "Side by side", html.tag("div", *tables, class_="columns"))
