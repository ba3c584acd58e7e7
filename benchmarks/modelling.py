"""(sim) How fast the modelled drive is, what memory a terabyte takes, and how long a run at full length."""

from __future__ import annotations

import functools
from pathlib import Path

from benchmarks import engine, places
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import GIB, Sizes
from benchmarks.spread import Spread, alternate

MODEL = "sim:enterprise-mixed"
#: Where a consistency test at full length is tried: the slowest of the models, as such tests were made for.
CONSISTENCY_MODEL = "sim:sata"
SPARES = ("7%", "28%")
PAGE_BYTES = 4096

WRITES_PER_CPU_S = 3e6
RECORDED_WRITES_PER_CPU_S = 1e6
MEMORY_MAX_BYTES = 2.3e9
CONSISTENCY_MAX_S = 60.0
#: What the targets of memory and of length are about; smaller drives and shorter runs are only printed.
TARGET_BYTES = 10**12
TARGET_S = 2_000.0


def measure(sizes: Sizes, scratch: Path) -> Section:
    """Speed, memory, and a long run."""
    section = Section(
        "sim",
        "The modelled drive",
        [
            "`testdrive-engine run` on drives in virtual time, as whole processes: their CPU time is that of"
            " the model, of what issues the I/O, of the recorder and of starting, on whatever cores they ran."
            " No other model of a drive is on this machine to stand beside it."
        ],
    )
    _measure_speed(sizes, scratch, section)
    _measure_memory(sizes, scratch, section)
    _measure_length(sizes, scratch, section)
    return section


def _measure_speed(sizes: Sizes, scratch: Path, section: Section) -> None:
    section.how.append(
        f"Speed: 4 KiB random writes at queue depth 32 to {MODEL} of {sizes.modelled_bytes / GIB:g} GiB in"
        " steady state, at two sizes of its spare. A first run makes as many writes as there are pages, which"
        f" takes the memory; a second does the same and then {sizes.modelled_ios:,} writes more. What the"
        f" second took longer is theirs. In {sizes.modelled_rounds} rounds. Histograms only: `record: false`"
        " times every I/O into a histogram and keeps no rows."
    )
    rows = []
    for record, kept in ((False, "histograms only"), (True, "every I/O recorded")):
        wanted = RECORDED_WRITES_PER_CPU_S if record else WRITES_PER_CPU_S
        for spare in SPARES:
            rate = _writes_per_cpu_s(spare, record, sizes, scratch)
            name = f"{kept}, {spare} spare"
            section.figures[name] = {"writes_per_cpu_s": rate.json()}
            millions = rate.scaled(1e-6)
            rows.append([name, millions.text(2), Spread([1e6 / value for value in rate.values]).text(3)])
            section.targets.append(
                Target(
                    f"random writes/s/core, {name}",
                    f"at least {wanted / 1e6:g} million",
                    millions.text(2, " million"),
                    rate.median >= wanted,
                )
            )
    columns = ["", "million writes for each CPU second", "CPU us for each write"]
    section.tables.append(Table("4 KiB random writes in steady state", columns, rows))


def _writes_per_cpu_s(spare: str, record: bool, sizes: Sizes, scratch: Path) -> Spread:
    uri = f"{MODEL}?capacity_bytes={sizes.modelled_bytes}&op={spare}&initial_state=steady"
    pages = sizes.modelled_bytes // PAGE_BYTES

    def run(*ios: int) -> engine.Run:
        output = scratch / "sim.rec"
        try:
            return engine.phases_of_writes(uri, output, ios, record=record)
        finally:
            places.remove(output)

    samples = alternate(
        {"first": functools.partial(run, pages), "second": functools.partial(run, pages, sizes.modelled_ios)},
        sizes.modelled_rounds,
    )
    # A round of the smallest size is over in no time, and noise may make the second run the shorter one.
    taken_s = [
        max(second.ended.cpu_s - first.ended.cpu_s, 1e-3)
        for first, second in zip(samples["first"], samples["second"], strict=True)
    ]
    return Spread([sizes.modelled_ios / cpu_s for cpu_s in taken_s])


def _measure_memory(sizes: Sizes, scratch: Path, section: Section) -> None:
    pages = sizes.modelled_fill_bytes // PAGE_BYTES
    capacity_bytes = pages * PAGE_BYTES
    section.how.append(
        f"Memory: {MODEL} of {capacity_bytes:,} bytes with 7 % of spare begins empty, is written in order"
        " from end to end, and then a tenth of its pages is written at random, which uses the spare as well."
        " The peak is that of the whole process, with every I/O recorded."
    )
    output = scratch / "sim.rec"
    uri = f"{MODEL}?capacity_bytes={capacity_bytes}&op=7%&initial_state=empty"
    try:
        run = engine.phases_of_writes(uri, output, (pages // 10,), fill=True)
        after = engine.drive_counters(output)
    finally:
        places.remove(output)
    peak_bytes = run.ended.rss_peak_bytes
    written_pages = after["host_written_bytes"] // PAGE_BYTES
    section.figures["memory"] = {
        "capacity_bytes": capacity_bytes,
        "host_written_bytes": after["host_written_bytes"],
        "nand_written_bytes": after["nand_written_bytes"],
        "rss_peak_bytes": peak_bytes,
        "rss_bytes_per_page": peak_bytes / pages,
        "wall_s": run.ended.wall_s,
        "cpu_s": run.ended.cpu_s,
    }
    section.tables.append(
        Table(
            "Memory of a drive that was written all over",
            ["drive, GB", "pages written", "peak memory, MB", "bytes for each page", "CPU s"],
            [
                [
                    f"{capacity_bytes / 1e9:g}",
                    f"{written_pages:,}",
                    f"{peak_bytes / 1e6:,.0f}",
                    f"{peak_bytes / pages:.2f}",
                    f"{run.ended.cpu_s:.1f}",
                ]
            ],
        )
    )
    if capacity_bytes == TARGET_BYTES:
        section.targets.append(
            Target(
                "memory of a drive of 1 TB with every page written",
                f"under {MEMORY_MAX_BYTES / 1e9:g} GB",
                f"{peak_bytes / 1e9:.2f} GB",
                peak_bytes < MEMORY_MAX_BYTES,
            )
        )


def _measure_length(sizes: Sizes, scratch: Path, section: Section) -> None:
    seconds = sizes.modelled_seconds
    uri = f"{CONSISTENCY_MODEL}?capacity=64GiB"
    section.how.append(
        f"Length: 4 KiB random writes at queue depth 32 to {uri} for {seconds:,g} s of its own time, every"
        " I/O recorded; wall time, from start to end."
    )
    output = scratch / "sim.rec"
    try:
        run = engine.synthetic(uri, output, seconds=seconds, read_share=0.0)
        taken_bytes = places.allocated_bytes(output)
    finally:
        places.remove(output)
    section.figures["length"] = {
        "modelled_s": seconds,
        "ios": run.ios,
        "wall_s": run.ended.wall_s,
        "cpu_s": run.ended.cpu_s,
        "recording_bytes": taken_bytes,
    }
    section.tables.append(
        Table(
            "A consistency run",
            ["of the drive's time, s", "I/Os", "wall, s", "CPU s", "recording, MB"],
            [
                [
                    f"{seconds:,g}",
                    f"{run.ios:,}",
                    f"{run.ended.wall_s:.1f}",
                    f"{run.ended.cpu_s:.1f}",
                    f"{taken_bytes / 1e6:,.0f}",
                ]
            ],
        )
    )
    if seconds == TARGET_S:
        section.targets.append(
            Target(
                f"a run of {TARGET_S:,.0f} s",
                f"under {CONSISTENCY_MAX_S:g} s",
                f"{run.ended.wall_s:.1f} s",
                run.ended.wall_s < CONSISTENCY_MAX_S,
            )
        )
