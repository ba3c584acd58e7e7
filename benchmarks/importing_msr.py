"""MSR-style CSV: how fast it is imported, and the memory that a long trace takes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from benchmarks import engine, msr_trace, places
from benchmarks.errors import BenchmarkError
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import MIB, Sizes
from benchmarks.spread import Spread

ROWS_PER_CPU_S = 2e6
MEMORY_MAX_BYTES = 10**9
#: What the target of memory is about; shorter traces are only printed.
TARGET_ROWS = 100_000_000


def measure(sizes: Sizes, scratch: Path, section: Section) -> None:
    """Add the table and the targets to a section."""
    section.how.append(
        "MSR-style CSV: `testdrive-engine import trace.csv -o REC`, from start to end, to a recording on"
        " disk. The lines are made up as the published ones are, 52 bytes each, with places at random. Rows"
        " for each second of CPU time count decoding and encoding together, on whatever cores they ran. The"
        " longest trace is read from a pipe, so that it takes no disk; what writes it shares the cores, and"
        " only its memory says something."
    )
    rows = [_rate(sizes, scratch, section), *(_memory(count, scratch, section) for count in sizes.piped_rows)]
    columns = ["", "million rows/s", "million rows for each CPU second", "peak memory, MiB"]
    section.tables.append(Table("MSR-style CSV", columns, rows))


def _rate(sizes: Sizes, scratch: Path, section: Section) -> list[str]:
    trace, recording = scratch / "trace.csv", scratch / "trace.rec"
    count = sizes.csv_rows
    taken_bytes = msr_trace.write(trace, count)
    runs = []
    for _ in range(sizes.traced_rounds):
        runs.append(engine.import_trace(trace, recording))
        places.remove(recording)
    places.remove(trace)
    rate = Spread([count / 1e6 / ended.wall_s for ended in runs])
    each_cpu_s = Spread([count / 1e6 / ended.cpu_s for ended in runs])
    peak = Spread([ended.rss_peak_bytes for ended in runs])
    section.figures["msr"] = {
        "rows": count,
        "bytes": taken_bytes,
        "million_rows_per_s": rate.json(),
        "million_rows_per_cpu_s": each_cpu_s.json(),
        "rss_peak_bytes": peak.json(),
    }
    section.targets.append(
        Target(
            "rows/s/core of importing MSR-style CSV",
            f"at least {ROWS_PER_CPU_S / 1e6:g} million",
            each_cpu_s.text(2, " million"),
            each_cpu_s.median >= ROWS_PER_CPU_S / 1e6,
        )
    )
    return [f"a file of {count:,} rows", rate.text(2), each_cpu_s.text(2), peak.scaled(1 / MIB).text(0)]


def _memory(count: int, scratch: Path, section: Section) -> list[str]:
    pipe, recording = scratch / "trace.pipe", scratch / "trace.rec"
    os.mkfifo(pipe)
    # It waits for a reader; where none comes, it must not keep the benchmark from ending.
    threading.Thread(target=_write, args=(pipe, count), daemon=True).start()
    ended = engine.import_trace(pipe, recording, format_name="msr")
    imported = engine.imported_ios(ended)
    if imported != count:
        raise BenchmarkError(f"{imported:,} of {count:,} rows were imported")
    places.remove(recording)
    pipe.unlink()
    section.figures[f"msr, piped {count}"] = {"rows": count, "rss_peak_bytes": ended.rss_peak_bytes}
    if count == TARGET_ROWS:
        section.targets.append(
            Target(
                f"memory of importing {count:,} rows",
                "at most 1 GB",
                f"{ended.rss_peak_bytes / 1e6:.0f} MB",
                ended.rss_peak_bytes <= MEMORY_MAX_BYTES,
            )
        )
    return [f"a pipe of {count:,} rows", "", "", f"{ended.rss_peak_bytes / MIB:.0f}"]


def _write(pipe: Path, count: int) -> None:
    try:
        with pipe.open("wb", buffering=0) as file:
            for block in msr_trace.blocks(count):
                left = memoryview(block)
                while left:
                    left = left[file.write(left) or 0 :]
    except BrokenPipeError:
        # The import ended early; it says why.
        pass
