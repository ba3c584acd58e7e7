"""Recordings of every kind that a statement has to be made of: with little in them, and with much missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import builders
import numpy as np

SECOND_NS = 1_000_000_000
Columns = dict[str, Any]
#: The kinds of plots on the page of a statement that has everything.
PLOTS = [
    "rates",
    "mix",
    "sizes",
    "places",
    "hot",
    "growth",
    "arrivals",
    "in-flight",
    "statement-latency",
    "opcode-latency",
    "trim-streams",
]


def mixed(seconds: int = 90, rate_per_s: int = 60, seed: int = 1) -> Columns:
    """8 KiB random reads and writes at 300 us, flushes, and a burst of 1 MiB trims every 20 s from CPU 3."""
    rng = np.random.default_rng(seed)
    ios = seconds * rate_per_s
    begins = np.arange(10, seconds, 20)
    trims = np.repeat(begins, 30) * SECOND_NS + np.tile(np.arange(30) * 10_000_000, len(begins))
    opcode = rng.choice([0, 1, 3], ios, p=[0.6, 0.3, 0.1])
    columns = {
        "submit_ns": np.r_[rng.integers(0, seconds * SECOND_NS, ios), trims],
        "opcode": np.r_[opcode, np.full(len(trims), 2)],
        "offset_bytes": np.r_[rng.integers(0, 1 << 15, ios) * 8192, (np.arange(len(trims)) + 512) << 20],
        "length_bytes": np.r_[np.where(opcode == 3, 0, 8192), np.full(len(trims), 1 << 20)],
        "stream": np.r_[rng.integers(0, 4, ios), np.full(len(trims), 3)],
    }
    order = np.argsort(columns["submit_ns"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    columns["latency_ns"] = rng.lognormal(np.log(300e3), 0.4, len(order)).astype(np.int64)
    columns["intended_ns"] = columns["submit_ns"]
    columns["flags"] = np.where(columns["opcode"] == 1, rng.integers(0, 2, len(order)), 0)
    return columns


def write_mixed(path: Path, **changes: Any) -> Path:
    """An import of :func:`mixed`."""
    return builders.write_recording(path, mixed(), absent_columns=[], **changes)


def _spread(ios: int, span_ns: int) -> Columns:
    rng = np.random.default_rng(2)
    return {
        "submit_ns": np.sort(rng.integers(0, span_ns, ios)),
        "latency_ns": rng.integers(100_000, 1_000_000, ios),
        "offset_bytes": rng.integers(0, 1 << 16, ios) * 4096,
        "length_bytes": 4096,
        "opcode": rng.integers(0, 2, ios),
        "stream": 1,
    }


def _without(columns: Columns, *names: str) -> Columns:
    return {name: values for name, values in columns.items() if name not in names}


LOST = [
    {"what": "events lost by the kernel's buffer", "count": 12_345},
    {"what": "zone commands", "count": 2},
]
LOSS_WARNING = {
    "code": "events_lost",
    "message": "The kernel's buffer ran over.",
    "remedy": "Capture with a larger buffer.",
}

#: How each is written, by name.
KINDS: dict[str, Callable[[Path], Path]] = {
    "mixed": write_mixed,
    "no I/O": lambda path: builders.write_recording(path, None),
    "one I/O": lambda path: builders.write_recording(path, _spread(1, 10)),
    "no completions": lambda path: builders.write_recording(path, _without(mixed(), "latency_ns")),
    "no queue events": lambda path: builders.write_recording(path, _without(mixed(), "intended_ns")),
    "no submissions": lambda path: builders.write_recording(path, _without(mixed(), "submit_ns")),
    "no places": lambda path: builders.write_recording(path, _without(mixed(), "offset_bytes")),
    "no sizes": lambda path: builders.write_recording(
        path, _without(mixed(), "offset_bytes", "length_bytes", "stream")
    ),
    "no times": lambda path: builders.write_recording(
        path,
        _without(mixed(), "latency_ns", "stream") | {"submit_ns": 0, "intended_ns": 0},
        absent_columns=["intended_ns", "submit_ns", "latency_ns", "stream", "flags"],
    ),
    "no operations": lambda path: builders.write_recording(
        path, _spread(500, 80 * SECOND_NS) | {"opcode": 0}, absent_columns=["opcode", "intended_ns"]
    ),
    "only reads": lambda path: builders.write_recording(path, _spread(2000, 5 * SECOND_NS) | {"opcode": 0}),
    "only trims": lambda path: builders.write_recording(
        path, _spread(50, 5 * SECOND_NS) | {"opcode": 2, "length_bytes": 1 << 24}
    ),
    "all failed": lambda path: builders.write_recording(path, _spread(500, 5 * SECOND_NS) | {"status": 5}),
    "milliseconds": lambda path: builders.write_recording(path, _spread(2000, 20_000_000)),
    "days": lambda path: builders.write_recording(path, _spread(20_000, 3 * 86_400 * SECOND_NS)),
    "lost events": lambda path: builders.write_recording(
        path,
        _spread(2000, 30 * SECOND_NS),
        kind="capture",
        dropped=LOST,
        warnings=[LOSS_WARNING, {"code": "other", "message": "Something else.", "remedy": "Mend it."}],
        drive={"model": "Acme 960", "uri": "/dev/nvme0n1", "capacity_bytes": 960 * 10**9},
        host={"hostname": "db1", "kernel": "6.1"},
    ),
}
