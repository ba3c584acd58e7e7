"""What the workload is: counts, mix, sizes, concurrency, places and arrivals, from the summary's `workload`
part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testdrive.manifest import UNKNOWN
from testdrive.report import html, units, words
from testdrive.report.html import Markup, Node
from testdrive.report.rows import dig
from testdrive.report.subject import Subject

_ALIGNMENTS_SHOWN = ("512", "4096", "65536", "1048576")


def workload_section(subject: Subject) -> Markup:
    """Return the counts by opcode, the sizes and the characteristics of the workload."""
    counts = dig(subject.summary, "io_counts") or {}
    by_opcode = {name: value for name, value in (counts.get("by_opcode") or {}).items() if value.get("ios")}
    found = dig(subject.summary, "workload") or {}
    return html.section(
        "workload",
        "What the workload is",
        html.table(
            [
                "Opcode",
                "I/Os",
                "Share of I/Os",
                "Bytes",
                "Share of bytes",
                "Mean size",
                "Sequential",
                "Footprint",
                "Errors",
            ],
            [_opcode_cells(name, value, counts, found) for name, value in by_opcode.items()],
            caption="I/Os by opcode",
        ),
        html.facts(_characteristics(found)),
        _sizes(found),
        link="Workload",
    )


def _opcode_cells(
    name: str, value: Mapping[str, Any], total: Mapping[str, Any], found: Mapping[str, Any]
) -> list[Node]:
    ios, size = value["ios"], value["bytes"]
    return [
        "I/O" if name == UNKNOWN else name.replace("_", " "),
        units.count(ios),
        units.percent(ios / total["ios"]),
        units.size(size),
        units.percent(size / total["bytes"]) if total["bytes"] else units.ABSENT,
        units.size(None if size is None else size / ios),
        units.percent(dig(found, f"sequential_share_by_opcode.{name}")),
        units.size(dig(found, f"footprint_bytes.by_opcode.{name}")),
        units.count(value["errors"]),
    ]


def _characteristics(found: Mapping[str, Any]) -> list[tuple[str, Node]]:
    """Return terms and values; what the source could not tell is left as the code that says why."""

    def said(path: str, scale: Any, code_path: str = "") -> str:
        value = dig(found, path)
        return (
            words.code(dig(found, code_path) if code_path else None) if value is None else str(scale(value))
        )

    def aligned(key: str) -> str:
        return said(f"alignment_share.{key}", units.percent, "alignment_code")

    def several(parts: list[str]) -> str:
        # What is absent for one reason is so once.
        return parts[0] if len(set(parts)) == 1 and not parts[0][0].isdigit() else ", ".join(parts)

    # Throughput may be absent where rates are there; so may the sizes of certain operations.
    rates, moved = "rates_code", "throughput_code" if found.get("throughput_code") else "rates_code"
    sizes = "sizes_of_operations_code" if found.get("sizes_of_operations_code") else "sizes_code"
    pairs: list[tuple[str, Node]] = [
        (
            "Rate, mean and busiest second",
            several([said("iops_mean", units.iops, rates), said("iops_peak_1s", units.iops, "peak_code")]),
        ),
        (
            "Throughput of reads and writes: mean and busiest second",
            several(
                [
                    said(f"transfer_throughput_bytes_per_s_{key}", units.rate, moved)
                    for key in ("mean", "peak_1s")
                ]
            ),
        ),
        (
            "I/Os in flight: mean, p50, p99, max",
            several(
                [
                    said(f"queue_depth.{key}", _depth, "queue_depth_code")
                    for key in ("mean", "p50", "p99", "max")
                ]
            ),
        ),
        ("Sequential share of I/Os", said("sequential_share", units.percent, "sequential_code")),
        ("Footprint: addresses touched", said("footprint_bytes.total", units.size, "footprint_code")),
        (
            "Working set of a minute, largest",
            said(
                "working_set_per_minute_bytes",
                lambda sizes: units.size(max(sizes, default=None)),
                "footprint_code",
            ),
        ),
        ("Mean size of reads and writes", said("transfer_size_mean_bytes", units.size, sizes)),
        (
            "Aligned to",
            several([f"{units.block(int(key))} {aligned(key)}" for key in _ALIGNMENTS_SHOWN])
            if found.get("alignment_share")
            else aligned(_ALIGNMENTS_SHOWN[0]),
        ),
        (
            "Time between arrivals: mean, p99",
            several(
                [said(f"interarrival.{key}_ns", units.time, "interarrival_code") for key in ("mean", "p99")]
            ),
        ),
        (
            "Burstiness: busiest second over mean; dispersion at 1 s, 10 s",
            several(
                [
                    said(f"burstiness.{key}", units.number, "burstiness_code")
                    for key in ("peak_to_mean_1s", "index_of_dispersion_1s", "index_of_dispersion_10s")
                ]
            ),
        ),
        (
            "Writes that overwrite, and bytes written between (median)",
            several(
                [
                    said("overwrite_distance.share", units.percent, "overwrite_distance_code"),
                    said("overwrite_distance.p50_bytes", units.size, "overwrite_distance_code"),
                ]
            ),
        ),
        (
            "Trims, bytes trimmed, mean and median size",
            several(
                [
                    said("trims.ios", units.count, sizes),
                    said("trims.bytes", units.size, sizes),
                    said("trim_size_mean_bytes", units.size, sizes),
                    said("trims.length_bytes.p50", units.size, sizes),
                ]
            ),
        ),
        (
            "Trimmed each second: mean and busiest second",
            several(
                [said(f"trim_throughput_bytes_per_s_{key}", units.rate, moved) for key in ("mean", "peak_1s")]
            ),
        ),
        ("Events lost on recording", said("events_dropped", units.count)),
    ]
    return pairs


def _depth(value: float) -> str:
    return units.count(value) if isinstance(value, int) else units.number(value)


def _sizes(found: Mapping[str, Any]) -> Markup | None:
    frequent = found.get("sizes_most_frequent") or []
    if not frequent:
        return None
    return html.table(
        ["Size", "I/Os", "Share"],
        [
            [units.block(one["length_bytes"]), units.count(one["ios"]), units.percent(one["share"])]
            for one in frequent
        ],
        caption="Most frequent sizes",
    )
