"""What is in real traces, read here by plain means of Python's own, to hold imports against.

The traces are not part of the project: they are looked for in ``../shared/traces`` beside the checkout, or
where ``TESTDRIVE_TRACES`` says.
"""

from __future__ import annotations

import csv
import gzip
import os
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from support import missing

READ, WRITE, TRIM, FLUSH = 0, 1, 2, 3
SECTOR_BYTES = 512


class Io(NamedTuple):
    """One I/O with its times as the trace has them, in ns."""

    time_ns: int
    latency_ns: int
    opcode: int
    offset_bytes: int
    length_bytes: int
    volume: str | None = None


def folder(name: str) -> Path:
    """A folder of real traces, or the end of this test: skipped and counted."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
    found = Path(os.environ.get("TESTDRIVE_TRACES", beside)) / name
    if not found.is_dir():
        # They may not be passed on, so that continuous integration does without them too.
        import pytest

        if os.environ.get("TESTDRIVE_TRACES"):
            missing(f"the folder of real traces {found}")
        pytest.skip(f"the folder of real traces {found} is missing")
    return found


def lines(path: Path) -> Iterator[str]:
    """The lines of a file, unpacked where it is packed."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("ascii")
    yield from text.splitlines()


def ns(text: str, unit: str) -> int:
    """A time in ns, exactly."""
    value = Decimal(text.strip()) * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    assert value == int(value)
    return int(value)


def msr(path: Path) -> list[Io]:
    """Ticks of 100 ns since 1601, of which the seconds up to 1970 are taken away."""
    ios = []
    for ticks, host, disk, kind, offset, size, response in csv.reader(lines(path)):
        time_ns = (int(ticks) - 11_644_473_600 * 10**7) * 100
        opcode = {"Read": READ, "Write": WRITE}[kind]
        ios.append(Io(time_ns, int(response) * 100, opcode, int(offset), int(size), f"{host}_{disk}"))
    return ios


def spc(path: Path) -> list[Io]:
    return [
        Io(ns(time, "s"), -1, READ if kind in "rR" else WRITE, int(block) * SECTOR_BYTES, int(size), unit)
        for unit, block, size, kind, time in csv.reader(lines(path))
    ]


def simulator(path: Path, unit: str) -> list[Io]:
    """Of DiskSim, SSDSim and MQSim: time, device, sector, sectors, and a lowest bit that is a read."""
    ios = []
    for time, device, sector, sectors, flags in map(str.split, lines(path)):
        opcode = READ if int(flags, 16) & 1 else WRITE
        place = int(sector) * SECTOR_BYTES
        ios.append(Io(ns(time, unit), -1, opcode, place, int(sectors) * SECTOR_BYTES, device))
    return ios


def blkreplay(path: Path) -> list[Io]:
    ios, began = [], False
    for line in lines(path):
        if began:
            start, sector, sectors, kind, _, _ = line.split(";")
            opcode = {"R": READ, "RA": READ, "W": WRITE}[kind.strip()]
            place, length = int(sector) * SECTOR_BYTES, int(sectors) * SECTOR_BYTES
            ios.append(Io(ns(start, "s"), -1, opcode, place, length))
        began = began or line.startswith("start ;")
    return ios


def fio(path: Path) -> list[Io]:
    ios = []
    for words in map(str.split, lines(path)):
        if len(words) == 5 and words[2] in ("read", "write", "trim"):
            opcode = {"read": READ, "write": WRITE, "trim": TRIM}[words[2]]
            ios.append(Io(ns(words[0], "us"), -1, opcode, int(words[3]), int(words[4]), words[1]))
    return ios


def hfplayer(path: Path) -> list[Io]:
    """What went out is found by its sequence number; a first time that is 0 is worked out from the ticks."""
    rows = list(csv.DictReader(lines(path)))
    ends = {row["SEQID.I"]: row for row in rows if row["CMD.S"].endswith("_OUT")}
    ios = []
    for index, row in enumerate(rows):
        if not row["CMD.S"].endswith("_IN"):
            continue
        time_ns = ns(row["ELAPSED_USECS.D"], "us")
        if time_ns == 0:
            later = rows[index + 1]
            ticks_per_ns = Decimal(later["ELAPSED_TICKS.I"]) / ns(later["ELAPSED_USECS.D"], "us")
            time_ns = int(Decimal(row["ELAPSED_TICKS.I"]) / ticks_per_ns)
        end = ends.get(row["SEQID.I"], row)
        if end["CMD.S"][:2] != row["CMD.S"][:2]:
            end = row
        latency_ns = ns(end["LATENCY_USECS.D"], "us") or -1
        opcode = READ if row["CMD.S"] == "RD_IN" else WRITE
        place, length = (int(row[name]) * SECTOR_BYTES for name in ("LBA.I", "NBLKS.I"))
        ios.append(Io(time_ns, latency_ns, opcode, place, length, row["LUN_SSID.I"]))
    return ios


def vscsi(path: Path) -> list[Io]:
    return [
        Io(time_us * 1000, -1, {0x28: READ, 0x2A: WRITE}[code], block * SECTOR_BYTES, length)
        for _, length, _, code, _, block, time_us in struct.iter_unpack("<IIIHHQQ", path.read_bytes())
    ]


def oracle_general(path: Path, object_bytes: int | None) -> list[Io]:
    return [
        Io(seconds * 10**9, -1, READ, number * object_bytes if object_bytes else -1, length)
        for seconds, number, length, _ in struct.iter_unpack("<IQIq", path.read_bytes())
    ]
