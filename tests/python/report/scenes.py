"""Synthetic recordings that look like a real comparison: an original with bursts and drives that take them
differently.

The workload is the same for all: reads, writes and flushes at a steady rate, and trims in three bursts. Each
drive is a
function of time to a latency multiplier, so that what the page must say about it is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import builders
import numpy as np

SPAN_S = 100.0
RATE_PER_S = 500
BURSTS_S = (20.0, 50.0, 80.0)
CAPACITY_BYTES = 64 << 30
HOST = {
    "hostname": "bench",
    "kernel": "6.12.0",
    "cpu_model": "Example CPU",
    "cpus": 8,
    "memory_bytes": 16 << 30,
}


@dataclass(frozen=True)
class Shape:
    """How a drive takes the workload: latencies in microseconds, times in seconds."""

    baseline_us: float
    burst_factor: float = 1.0
    recovery_s: float = 0.0
    never_recovers_after_s: float | None = None
    lateness_us: float = 1.0
    errors: int = 0
    model: str = "Synthetic"
    modelled: bool = False
    scale: float = 1.0
    warnings: list[dict[str, str]] = field(default_factory=list)
    seed: int = 1


def workload(seed: int = 7, span_s: float = SPAN_S, rate_per_s: int = RATE_PER_S) -> dict[str, np.ndarray]:
    """Return the columns that all drives share, ordered by intended time."""
    rng = np.random.default_rng(seed)
    ios = int(span_s * rate_per_s)
    at_ns = np.sort(rng.integers(0, int(span_s * 1e9), ios))
    opcode = rng.choice([0, 1, 3], ios, p=[0.6, 0.38, 0.02])
    length = rng.choice([4096, 8192, 65536], ios, p=[0.6, 0.3, 0.1])
    # Reads fall in a hot quarter of the drive; writes advance through it, as a log does.
    hot = CAPACITY_BYTES // 4
    advancing = (at_ns / (span_s * 1e9) * 0.4 * CAPACITY_BYTES).astype(np.int64) + CAPACITY_BYTES // 2
    offset = np.where(opcode == 0, rng.integers(0, hot, ios), advancing) // 4096 * 4096
    parts = [(at_ns, opcode, length, offset)]
    for burst_s in BURSTS_S:
        if burst_s >= span_s:
            continue
        trims = 200
        trim_at = int(burst_s * 1e9) + np.sort(rng.integers(0, 1_000_000_000, trims))
        trim_offset = CAPACITY_BYTES // 4 + np.arange(trims, dtype=np.int64) * (64 << 20)
        parts.append((trim_at, np.full(trims, 2), np.full(trims, 64 << 20), trim_offset))
    at_ns, opcode, length, offset = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(at_ns, kind="stable")
    length = np.where(opcode == 3, 0, length)
    return {
        "intended_ns": at_ns[order].astype(np.int64),
        "opcode": opcode[order].astype(np.int32),
        "length_bytes": length[order].astype(np.int64),
        "offset_bytes": offset[order].astype(np.int64),
    }


def latencies_ns(shape: Shape, at_ns: np.ndarray) -> np.ndarray:
    """Return a latency for each submission time: log-normal around the shape's level at that time."""
    rng = np.random.default_rng(shape.seed)
    at_s = at_ns / 1e9
    level = np.full(len(at_s), shape.baseline_us * 1e3)
    for burst_s in BURSTS_S:
        if shape.recovery_s > 0:
            age = at_s - burst_s
            inside = (age >= 0) & (age < shape.recovery_s)
            rise = 1 + (shape.burst_factor - 1) * (1 - age / shape.recovery_s)
            level = np.where(inside, level * np.maximum(rise, 1), level)
    if shape.never_recovers_after_s is not None:
        level = np.where(at_s >= shape.never_recovers_after_s, level * shape.burst_factor, level)
    return np.maximum(level * rng.lognormal(0, 0.3, len(at_s)), 1000).astype(np.int64)


def write_original(path: Path, columns: dict[str, np.ndarray], shape: Shape) -> Path:
    """Write the imported original, with completions."""
    original = dict(columns, submit_ns=columns["intended_ns"])
    original["latency_ns"] = latencies_ns(shape, columns["intended_ns"])
    drive = {"uri": None, "path": "trace", "model": shape.model, "serial": None, "firmware": None}
    drive |= {"capacity_bytes": CAPACITY_BYTES, "logical_block_bytes": 512, "physical_block_bytes": 4096}
    drive |= {"modelled": False, "settings": {}}
    return builders.write_recording(
        path,
        original,
        kind="import",
        source={"format": "blktrace", "files": ["sda.blktrace.0"], "events": "queued", "device": "8,0"},
        drive=drive,
        host=HOST,
        absent_columns=[],
        in_completion_order=True,
    )


def write_run(path: Path, columns: dict[str, np.ndarray], shape: Shape, original: Path) -> Path:
    """Write a replay of `original` on a drive of this shape."""
    rng = np.random.default_rng(shape.seed + 100)
    run = dict(columns)
    ios = len(columns["intended_ns"])
    lateness = rng.exponential(shape.lateness_us * 1e3, ios).astype(np.int64)
    run["submit_ns"] = columns["intended_ns"] + lateness
    run["offset_bytes"] = (columns["offset_bytes"] * shape.scale).astype(np.int64) // 4096 * 4096
    run["latency_ns"] = latencies_ns(shape, columns["intended_ns"])
    run["status"] = np.zeros(ios, np.int32)
    run["status"][rng.choice(ios, shape.errors, replace=False)] = 5
    accounting = builders.accounting_of(run)
    if shape.scale != 1.0:
        accounting["scaled"] = accounting["source"]
    settings = {"pace": "timed", "speed": 1.0, "lba": "scale" if shape.scale != 1.0 else "skip"}
    settings |= {"prepare": "sequential", "data": "incompressible"}
    end_ns = int((run["submit_ns"] + run["latency_ns"]).max())
    drive = {
        "uri": f"sim:{path.stem}" if shape.modelled else f"/dev/{path.stem}",
        "path": "sim" if shape.modelled else "io_uring",
        "model": shape.model,
        "serial": f"SN-{path.stem}",
        "firmware": "1.0",
        "capacity_bytes": int(CAPACITY_BYTES * shape.scale),
        "logical_block_bytes": 512,
        "physical_block_bytes": 4096,
        "modelled": shape.modelled,
        "settings": {"direct": True, "polled": False},
    }
    return builders.write_recording(
        path,
        run,
        kind="run",
        source={"recording": str(original), "format": "blktrace"},
        drive=drive,
        host=HOST,
        clock={"source": "virtual" if shape.modelled else "clock_monotonic", "shift_ns": 0},
        phases=[builders.phase(kind="replay", end_ns=end_ns, settings=settings, accounting=accounting)],
        absent_columns=[],
        warnings=shape.warnings,
        in_completion_order=True,
    )


DEBUG_BUILD = {
    "code": "debug_build",
    "message": "The engine was a debug build, so lateness is higher than it needs to be.",
    "remedy": "Build the engine in release mode and run again.",
}
SHAPES = {
    "calm": Shape(400, model="Calm 960", seed=11),
    "slow-recovery": Shape(900, 40, 15, model="Slow 1920", seed=12, scale=0.5, warnings=[DEBUG_BUILD]),
    "never-recovers": Shape(
        1200, 60, never_recovers_after_s=51, model="Collapsing", seed=13, modelled=True, errors=3
    ),
}
ORIGINAL = Shape(2500, 30, 6, model="Production SSD", seed=10)


def write_scene(directory: Path) -> tuple[Path, list[Path]]:
    """Write the original and three runs; return the original's path and the runs' in table order."""
    columns = workload()
    original = write_original(directory / "production.rec", columns, ORIGINAL)
    runs = [write_run(directory / f"{name}.rec", columns, shape, original) for name, shape in SHAPES.items()]
    return original, runs
