"""The seven schedules of the replay benchmark, written as a trace for testdrive and the same for fio.

A schedule is made in a process of its own, `python -m benchmarks.schedules NAME SECONDS DIRECTORY TARGET`,
so that its size is not taken for that of what is measured.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import child, engine

SAMPLE = Path(__file__).resolve().parents[1] / "testdrive" / "samples" / "pgbench-trim.rec"
#: The window of the sample begins here, just before the greatest of its bursts of trims.
SAMPLE_FROM_NS = 70_000_000_000
#: The sample's drive had 8 GiB; the other schedules read the part of the target that is filled.
TARGET_BYTES = 9 << 30
FILLED_BYTES = 256 << 20

BLOCK_BYTES = 4096
COLUMNS = "intended_ns=intended_ns,op=op,offset_bytes=offset_bytes,length_bytes=length_bytes"
_OPERATIONS = ["read", "write", "trim", "flush", "write"]
_SEED = 1

#: When an I/O is wanted (ns), what, where, how long.
Row = tuple[int, str, int, int]


@dataclass(frozen=True)
class Trace:
    """A schedule as both tools read it."""

    recording: Path
    window_ns: tuple[int, int] | None
    iolog: Path
    ios: int
    span_s: float


def prepare(name: str, seconds: float, directory: Path, target: Path) -> Trace:
    """Write a schedule of about this length, with `target` as the file that fio's trace names."""
    command: list[str | Path] = [
        Path(sys.executable),
        "-m",
        "benchmarks.schedules",
        name,
        f"{seconds}",
        directory,
        target,
    ]
    ended = child.run(command, timeout_s=300, directory=Path(__file__).resolve().parents[1])
    ios, first_ns, last_ns = (int(word) for word in ended.output.split())
    iolog = directory / "trace.iolog"
    span_s = (last_ns - first_ns) / 1e9
    if name == SAMPLE_NAME:
        return Trace(SAMPLE, _sample_window(seconds), iolog, ios, span_s)
    recording = directory / "trace.rec"
    engine.import_csv(directory / "trace.csv", recording, COLUMNS)
    return Trace(recording, None, iolog, ios, span_s)


def constant(gap_ns: int, seconds: float) -> Iterator[int]:
    """One I/O every `gap_ns`."""
    yield from range(0, round(seconds * 1e9), gap_ns)


def poisson(mean_ns: int, seconds: float) -> Iterator[int]:
    """Exponential gaps."""
    source = random.Random(_SEED)
    now_ns = 0.0
    while now_ns < seconds * 1e9:
        yield int(now_ns)
        now_ns += source.expovariate(1 / mean_ns)


def bursts(count: int, every_ns: int, seconds: float) -> Iterator[int]:
    """`count` I/Os at the same instant, every `every_ns`."""
    for start_ns in range(0, round(seconds * 1e9), every_ns):
        yield from [start_ns] * count


SAMPLE_NAME = "the sample workload, with a burst of trims"
TIMES: dict[str, Callable[[float], Iterator[int]]] = {
    "every 1 ms": lambda seconds: constant(1_000_000, seconds),
    "every 100 us": lambda seconds: constant(100_000, seconds),
    "every 10 us": lambda seconds: constant(10_000, seconds),
    "every 5 us": lambda seconds: constant(5_000, seconds),
    "Poisson, mean 10 us": lambda seconds: poisson(10_000, seconds),
    "32 at once, every 1 ms": lambda seconds: bursts(32, 1_000_000, seconds),
}
NAMES = [*TIMES, SAMPLE_NAME]


def rows(name: str, seconds: float) -> Iterator[Row]:
    """The I/Os of a schedule in their order."""
    if name == SAMPLE_NAME:
        yield from _sample_rows(seconds)
        return
    places = random.Random(_SEED)
    for intended_ns in TIMES[name](seconds):
        yield intended_ns, "read", places.randrange(FILLED_BYTES // BLOCK_BYTES) * BLOCK_BYTES, BLOCK_BYTES


def _sample_window(seconds: float) -> tuple[int, int]:
    return SAMPLE_FROM_NS, SAMPLE_FROM_NS + round(seconds * 1e9)


def _sample_rows(seconds: float) -> Iterator[Row]:
    import duckdb

    found = duckdb.execute(
        "SELECT intended_ns, opcode, offset_bytes, length_bytes FROM read_parquet(?)"
        " WHERE intended_ns >= ? AND intended_ns < ? ORDER BY intended_ns",
        [str(SAMPLE / "ios" / "*.parquet"), *_sample_window(seconds)],
    )
    for intended_ns, opcode, offset_bytes, length_bytes in found.fetchall():
        yield intended_ns, _OPERATIONS[opcode], max(offset_bytes, 0), length_bytes


def _write(name: str, seconds: float, directory: Path, target: Path) -> str:
    """Write the csv and the iolog; say how many I/Os, and when the first and the last are wanted."""
    ios, first_ns, last_ns = 0, None, 0
    with (directory / "trace.csv").open("w") as csv, (directory / "trace.iolog").open("w") as iolog:
        csv.write("intended_ns,op,offset_bytes,length_bytes\n")
        iolog.write(f"fio version 3 iolog\n0 {target} add\n0 {target} open\n")
        for intended_ns, operation, offset_bytes, length_bytes in rows(name, seconds):
            first_ns = intended_ns if first_ns is None else first_ns
            csv.write(f"{intended_ns},{operation},{offset_bytes},{length_bytes}\n")
            # fio's third version of the format has microseconds since the start.
            when_us = (intended_ns - first_ns) // 1000
            action = "sync 0 0" if operation == "flush" else f"{operation} {offset_bytes} {length_bytes}"
            iolog.write(f"{when_us} {target} {action}\n")
            ios, last_ns = ios + 1, intended_ns
        iolog.write(f"{(last_ns - (first_ns or 0)) // 1000} {target} close\n")
    return f"{ios} {first_ns or 0} {last_ns}"


if __name__ == "__main__":
    chosen, length, into, names = sys.argv[1:]
    print(_write(chosen, float(length), Path(into), Path(names)))
