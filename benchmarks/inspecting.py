"""(d) Time and peak memory of `testdrive inspect` on long recordings."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from benchmarks import child, engine, places
from benchmarks.recorded_bytes import MODEL
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import GIB, MIB, Sizes
from benchmarks.spread import Spread, alternate

SECONDS_MAX = 30.0
MEMORY_MAX_BYTES = GIB
#: What the targets are about; smaller recordings are only printed beside it.
TARGET_ROWS = 100_000_000


def measure(sizes: Sizes, scratch: Path) -> Section:
    """Each size in turns with one plain pass over the same rows, the least that reading them takes."""
    section = Section(
        "d",
        "Time and memory of `inspect`",
        [
            f"`testdrive inspect REC --json`, from start to end, on recordings of {MODEL}: 4 KiB random,"
            " 70 % reads, queue depth 32. One pass: a process that starts DuckDB and sums every column once,"
            " with the same limit of memory. fio has nothing to compare with: it keeps no rows that could be"
            " looked at again.",
        ],
    )
    rows = []
    for number in sizes.inspect_rows:
        recording = scratch / "d.rec"
        engine.synthetic(MODEL, recording, ios=number, read_share=0.7)
        samples = alternate(
            {
                "inspect": functools.partial(_inspect, recording),
                "one pass": functools.partial(_one_pass, recording),
            },
            sizes.inspect_rounds,
        )
        taken_bytes = places.allocated_bytes(recording)
        places.remove(recording)
        rows.append(_row(number, taken_bytes, samples, section))
    columns = ["rows", "recording, MiB", "inspect, s", "peak, MiB", "one pass, s", "inspect / one pass"]
    section.tables.append(Table("inspect", columns, rows))
    return section


def _inspect(recording: Path) -> child.Ended:
    return engine.inspect(recording)[1]


def _one_pass(recording: Path) -> child.Ended:
    """Sum every column in a process of its own."""
    return child.run([Path(sys.executable), "-c", _ONE_PASS, recording], timeout_s=600)


_ONE_PASS = """
import duckdb, sys
connection = duckdb.connect(config={"memory_limit": "600MB"})
rows = f"read_parquet('{sys.argv[1]}/ios/*.parquet')"
connection.sql(f"SELECT sum(COLUMNS(*)) FROM {rows}").fetchall()
"""


def _row(number: int, taken_bytes: int, samples: dict[str, list[child.Ended]], section: Section) -> list[str]:
    seconds = {name: Spread([ended.wall_s for ended in runs]) for name, runs in samples.items()}
    peak = Spread([ended.rss_peak_bytes for ended in samples["inspect"]])
    section.figures[str(number)] = {
        "recording_bytes": taken_bytes,
        "inspect_s": seconds["inspect"].json(),
        "rss_peak_bytes": peak.json(),
        "one_pass_s": seconds["one pass"].json(),
    }
    if number == TARGET_ROWS:
        inspect = seconds["inspect"]
        section.targets += [
            Target(
                f"time of inspect on {number:,} rows",
                f"under {SECONDS_MAX:g} s",
                inspect.text(1, " s"),
                inspect.median < SECONDS_MAX,
            ),
            Target(
                f"memory of inspect on {number:,} rows",
                "under 1 GiB",
                peak.scaled(1 / MIB).text(0, " MiB"),
                peak.max < MEMORY_MAX_BYTES,
            ),
        ]
    return [
        f"{number:,}",
        f"{taken_bytes / MIB:,.0f}",
        seconds["inspect"].text(1),
        peak.scaled(1 / MIB).text(0),
        seconds["one pass"].text(1),
        (seconds["inspect"] / seconds["one pass"]).text(1),
    ]
