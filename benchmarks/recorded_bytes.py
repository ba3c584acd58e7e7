"""(c) What a recorded I/O takes: bytes of disk, and of memory, which must not grow with their number."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks import child, engine, fio, places
from benchmarks.schedules import SAMPLE
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import MIB, Sizes

DISK_BYTES_MAX = 10.0
#: Beyond the smallest run: queues and tables of fixed size that a short run does not fill.
MEMORY_GROWTH_MAX_BYTES = 16 * MIB
MODEL = "sim:enterprise-mixed"


def measure(sizes: Sizes, scratch: Path) -> Section:
    """Disk of several workloads, memory of longer and longer runs, and fio's logs of the same work."""
    section = Section(
        "c",
        "Bytes for each I/O recorded",
        [
            "Disk: the blocks that the whole recording takes, divided by its I/Os. Memory: the peak resident"
            " set of the whole process. fio writes its three latency logs (submission, completion, total),"
            " each with a line for each I/O.",
        ],
    )
    _measure_memory(sizes, scratch, section)
    _measure_disk(sizes, scratch, section)
    return section


def _measure_memory(sizes: Sizes, scratch: Path, section: Section) -> None:
    rows, peaks = [], {}
    for ios in sizes.recorded_ios:
        run = engine.synthetic("null:", scratch / "c.rec", ios=ios)
        places.remove(scratch / "c.rec")
        peaks[ios] = run.ended.rss_peak_bytes
        rows.append(["testdrive, every I/O recorded", f"{ios:,}", _mebibytes(peaks[ios])])
    logged: dict[int, fio.Run] = {}
    for ios in sizes.logged_ios:
        logged[ios] = fio.synthetic(None, scratch, ios=ios, log=True)
        rows.append(
            ["fio, latency log of every I/O", f"{ios:,}", _mebibytes(logged[ios].ended.rss_peak_bytes)]
        )
    few, many = logged.values()
    fio_bytes = (many.ended.rss_peak_bytes - few.ended.rss_peak_bytes) / (many.ios - few.ios)
    least, most = min(sizes.recorded_ios), max(sizes.recorded_ios)
    growth_bytes = max(peaks.values()) - peaks[least]
    section.tables.append(Table("Peak memory, null path", ["", "I/Os", "MiB"], rows))
    section.tables.append(
        Table(
            "Growth of memory",
            ["", "bytes for each further I/O"],
            [
                ["testdrive", f"{(peaks[most] - peaks[least]) / (most - least):.3f}"],
                ["fio", f"{fio_bytes:.0f}"],
            ],
        )
    )
    section.figures["memory"] = {
        "rss_peak_bytes": {str(ios): peak for ios, peak in peaks.items()},
        "fio_rss_peak_bytes": {str(ios): run.ended.rss_peak_bytes for ios, run in logged.items()},
        "fio_bytes_per_io": fio_bytes,
        "fio_log_bytes_per_io": many.log_bytes / many.ios,
    }
    section.targets.append(
        Target(
            f"memory at {most:,} I/Os against {least:,}",
            f"constant (within {MEMORY_GROWTH_MAX_BYTES // MIB} MiB)",
            f"{growth_bytes / MIB:+.1f} MiB",
            growth_bytes <= MEMORY_GROWTH_MAX_BYTES,
        )
    )


def _measure_disk(sizes: Sizes, scratch: Path, section: Section) -> None:
    ios = sizes.recorded_ios[0]
    output = scratch / "c.rec"
    disk: dict[str, float] = {}
    columns: dict[str, dict[str, float]] = {}

    def take(name: str, run: engine.Run) -> None:
        disk[name] = places.allocated_bytes(output) / run.ios
        columns[name] = {column: taken / run.ios for column, taken in _column_bytes(output).items()}
        places.remove(output)

    take("4 KiB random read, null path", engine.synthetic("null:", output, ios=ios))
    if places.can_make_loop_devices():
        file = places.filled_file(scratch / "loop.img", sizes.loop_bytes)
        with places.loop_device(file) as device:
            take("4 KiB random read, loop device", engine.synthetic(str(device), output, ios=ios))
        places.remove(file)
    name = f"4 KiB random, 70 % reads, {MODEL}"
    take(name, engine.synthetic(MODEL, output, ios=ios, read_share=0.7))
    take(f"the sample workload replayed, {MODEL}", engine.replay(MODEL, output, SAMPLE))
    fio_bytes = section.figures["memory"]["fio_log_bytes_per_io"]
    rows = [[name, f"{taken:.1f}", f"{taken / fio_bytes:.2f}"] for name, taken in disk.items()]
    rows.append(["fio's logs, 4 KiB random read, null engine", f"{fio_bytes:.1f}", "1"])
    section.tables.append(Table("Disk", ["", "bytes for each I/O", "of fio's logs"], rows))
    section.tables.append(_columns_table(columns))
    section.figures["disk_bytes_per_io"] = disk
    section.figures["column_bytes_per_io"] = columns
    section.targets += [
        Target(
            f"disk for each I/O, {name}",
            f"at most {DISK_BYTES_MAX:g} bytes",
            f"{taken:.1f}",
            taken <= DISK_BYTES_MAX,
        )
        for name, taken in disk.items()
    ]


def _column_bytes(recording: Path) -> dict[str, int]:
    """What each column takes in all segments, as their footers say."""
    command: list[str | Path] = [Path(sys.executable), "-c", _COLUMN_BYTES, recording]
    found: dict[str, int] = json.loads(child.run(command, timeout_s=60).output)
    return found


_COLUMN_BYTES = """
import duckdb, json, sys
rows = duckdb.sql(
    "SELECT path_in_schema, sum(total_compressed_size)::BIGINT"
    f" FROM parquet_metadata('{sys.argv[1]}/ios/*.parquet') GROUP BY 1"
).fetchall()
print(json.dumps(dict(rows)))
"""


def _columns_table(columns: dict[str, dict[str, float]]) -> Table:
    """The columns that take a tenth of a byte anywhere, the greatest first."""
    greatest = {
        column: max(taken[column] for taken in columns.values()) for column in next(iter(columns.values()))
    }
    shown = sorted((name for name in greatest if greatest[name] >= 0.1), key=lambda name: -greatest[name])
    rows = [[name, *(f"{taken[column]:.2f}" for column in shown)] for name, taken in columns.items()]
    return Table("Disk by column, bytes for each I/O", ["", *shown], rows)


def _mebibytes(peak_bytes: int) -> str:
    return f"{peak_bytes / MIB:.1f}" if peak_bytes else "too little to tell"
