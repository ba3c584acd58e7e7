"""Sizes and alignment of I/Os, and the trims.

``size_histogram`` counts I/Os by opcode and by the power of two that their length does not exceed (key
``"4096"``: more than 2048 and at most 4096 bytes). ``alignment_share`` is the share of I/Os whose offset
and length are both multiples of a number of bytes. I/Os without a length (flushes) are in neither. None
with a length: ``no_ios``. ``sizes_by_opcode`` has mean, p50, p99 (of rank ceil(p n)), maximum and the most
frequent size of each, ``transfer_sizes_most_frequent`` the most frequent of reads and writes together. The
mean size is told apart for transfers (reads and writes) and trims, which are larger by orders of magnitude;
it is absent where there are none. Where the source did not say what each I/O was, all of them stand as
``unknown``, and what is of transfers or trims alone is null (``sizes_of_operations_code`` ``not_recorded``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testdrive.manifest import READ, TRIM, WRITE
from testdrive.metrics.metric import NO_IOS, NOT_RECORDED, Metric, Values
from testdrive.metrics.scans import Scan
from testdrive.metrics.scans.distribution import rank

ALIGNMENTS_BYTES: tuple[int, ...] = (512, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 1_048_576)
_FREQUENT_MAX = 8


def compute(scan: Scan) -> Values:
    """Histograms, the most frequent sizes, alignment and trims."""
    shapes = scan.shapes
    sized = shapes["length_bytes"] > 0
    if not shapes["ios"][sized].sum():
        return METRIC.absent(NO_IOS)
    histogram = {
        scan.opcode_name(number): _histogram(shapes, sized & (shapes["code"] == number))
        for number in np.unique(shapes["code"][sized])
    }
    told, transfers = scan.told_apart, sized & np.isin(shapes["code"], (READ, WRITE))
    located = "offset_bytes" not in scan.absent_columns
    return {
        "workload.size_histogram": histogram,
        "workload.sizes_most_frequent": _most_frequent(shapes, sized),
        "workload.transfer_sizes_most_frequent": _most_frequent(shapes, transfers) if told else None,
        "workload.sizes_by_opcode": {
            scan.opcode_name(number): _sizes(shapes, sized & (shapes["code"] == number))
            for number in np.unique(shapes["code"][sized])
        },
        "workload.transfer_size_mean_bytes": _mean(shapes, transfers) if told else None,
        "workload.trim_size_mean_bytes": _mean(shapes, sized & (shapes["code"] == TRIM)) if told else None,
        "workload.alignment_share": _alignment(shapes, sized) if located else None,
        "workload.alignment_code": None if located else NOT_RECORDED,
        "workload.trims": _trims(shapes) if told else None,
        "workload.sizes_code": None,
        "workload.sizes_of_operations_code": None if told else NOT_RECORDED,
    }


def _histogram(shapes: Any, chosen: NDArray[np.bool_]) -> dict[str, int]:
    result: dict[int, int] = {}
    for length, ios in zip(shapes["length_bytes"][chosen], shapes["ios"][chosen], strict=True):
        edge = 1 << (int(length) - 1).bit_length()
        result[edge] = result.get(edge, 0) + int(ios)
    return {str(edge): result[edge] for edge in sorted(result)}


def _most_frequent(shapes: Any, sized: NDArray[np.bool_]) -> list[dict[str, Any]]:
    counts = _by_length(shapes, sized)
    whole = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_FREQUENT_MAX]
    return [{"length_bytes": length, "ios": ios, "share": ios / whole} for length, ios in ordered]


def _by_length(shapes: Any, chosen: NDArray[np.bool_]) -> dict[int, int]:
    lengths, index = np.unique(shapes["length_bytes"][chosen], return_inverse=True)
    ios = np.zeros(len(lengths), np.int64)
    np.add.at(ios, index, shapes["ios"][chosen])
    return dict(zip(lengths.tolist(), ios.tolist(), strict=True))


def _mean(shapes: Any, chosen: NDArray[np.bool_]) -> float | None:
    ios = shapes["ios"][chosen]
    return float((ios * shapes["length_bytes"][chosen]).sum() / ios.sum()) if len(ios) else None


def _alignment(shapes: Any, sized: NDArray[np.bool_]) -> dict[str, float]:
    ios, aligned = shapes["ios"][sized], shapes["alignment_bytes"][sized]
    return {str(size): float(ios[aligned >= size].sum() / ios.sum()) for size in ALIGNMENTS_BYTES}


def _sizes(shapes: Any, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    counts = _by_length(shapes, chosen)
    [frequent] = _most_frequent(shapes, chosen)[:1]
    return {
        "mean_bytes": _mean(shapes, chosen),
        **{f"{name}_bytes": value for name, value in _quantiles(counts).items()},
        "most_frequent_bytes": frequent["length_bytes"],
        "most_frequent_share": frequent["share"],
    }


def _quantiles(counts: dict[int, int]) -> dict[str, int | None]:
    """p50, p99 and the maximum of lengths that occur so often."""
    lengths = sorted(counts)
    reached = np.cumsum([counts[length] for length in lengths])
    n = int(reached[-1]) if lengths else 0
    return {
        name: lengths[int(np.searchsorted(reached, rank(millionths, n)))] if n else None
        for name, millionths in (("p50", 500_000), ("p99", 990_000), ("max", 1_000_000))
    }


def _trims(shapes: Any) -> dict[str, Any]:
    chosen = shapes["code"] == TRIM
    counts = _by_length(shapes, chosen)
    return {
        "ios": sum(counts.values()),
        "bytes": sum(length * ios for length, ios in counts.items()),
        "length_bytes": _quantiles(counts),
        "size_histogram": _histogram(shapes, chosen & (shapes["length_bytes"] > 0)),
    }


METRIC = Metric(
    "workload sizes",
    (
        "workload.size_histogram",
        "workload.sizes_most_frequent",
        "workload.transfer_sizes_most_frequent",
        "workload.sizes_by_opcode",
        "workload.transfer_size_mean_bytes",
        "workload.trim_size_mean_bytes",
        "workload.alignment_share",
        "workload.alignment_code",
        "workload.trims",
        "workload.sizes_code",
        "workload.sizes_of_operations_code",
    ),
    ("length_bytes",),
    compute,
)
