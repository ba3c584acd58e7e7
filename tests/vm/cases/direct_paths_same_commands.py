"""One recorded workload, replayed by the block path with io_uring and with threads, by passthrough and by the
user-space driver, is the same commands at the drive: opcode, place, length and order, as the emulated drive
itself traces them. Threads differ by flushes.

The block layer merges neighbours that are handed over together, which no other path does, so that is switched
off; the drive's longest transfer makes all of them split the long ones.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import duckdb
from guest import Guest

GUEST = Guest(
    disks={"disk0": "64M"},
    devices=("nvme,serial=VM0,drive=disk0,mdts=5",),
    modules=("vfio-pci", "vfio_iommu_type1"),
    programs=("dd",),
    iommu=True,
    traces=("pci_nvme_io_cmd", "pci_nvme_read", "pci_nvme_write", "pci_nvme_dsm_deallocate"),
)

#: Before and after each replay these blocks of 4 KiB are read by dd; the workload keeps away from them.
MARKS = (8000, 8001, 8002, 8003, 8004)
BLOCK_BYTES = 512
#: The workload's part of the drive. The kernel, when it takes the drive back, and the erase guard, before a
#: run, look for what it carries: at its start, at 4 MiB and at its end.
FIRST_BYTES, SPAN_BYTES = 5 << 20, 24 << 20
PATHS = ("block", "threads", "passthrough", "userspace")
FLUSH = ("0x0", -1, -1)
FLAGS = ("", "fua", "preflush", "fua|preflush")


def _workload() -> list[str]:
    rows = []
    state = 12345
    for index in range(300):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        blocks = 1 + (state >> 8) % 16 if index % 10 else 600
        offset = FIRST_BYTES + (state >> 4) % ((SPAN_BYTES - 600 * BLOCK_BYTES) // BLOCK_BYTES) * BLOCK_BYTES
        opcode = ("read", "write", "read", "write", "trim", "write", "write_zeroes", "flush")[state % 8]
        flags = FLAGS[(state >> 16) % 4] if opcode == "write" else ""
        place = f"{offset},{blocks * BLOCK_BYTES}" if opcode != "flush" else ",0"
        rows.append(f"{index},{opcode},{place},{flags}")
    return rows


SCRIPT = """
set -eu
cat >/tmp/workload.csv <<END
time_ms,op,offset_bytes,length_bytes,flags
WORKLOAD
END
testdrive-engine import /tmp/workload.csv -o /tmp/workload.rec >/dev/null
address=$(cat /sys/class/nvme/nvme0/address)
mark() { /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4096 skip=$1 count=1 iflag=direct 2>/dev/null; }
replay() {
    cat >/tmp/job.json <<END
{"version": 1, "drive": {"uri": "$2", "erase": "VM0"}, "output": "/tmp/$1.rec",
 "phases": [{"kind": "replay", "recording": "/tmp/workload.rec", "pace": "asap", "depth": 1}]}
END
    testdrive-engine run --job /tmp/job.json >/tmp/$1.json || { cat /tmp/$1.json; exit 1; }
    cp -r /tmp/$1.rec /job/
}
echo 2 >/sys/block/nvme0n1/queue/nomerges
mark 8000
replay block /dev/nvme0n1
mark 8001
replay threads /dev/nvme0n1?engine=sync
mark 8002
replay passthrough /dev/ng0n1
mark 8003
replay userspace pci:$address
mark 8004
""".replace("WORKLOAD", "\n".join(_workload()))

_COMMAND = re.compile(r"pci_nvme_io_cmd cid (\d+) nsid \S+ sqid (\d+) opc (0x[0-9a-f]+) ")
_PLACE = re.compile(r"pci_nvme_(?:read|write) cid (\d+) .*nlb (\d+) count \d+ lba (0x[0-9a-f]+)")
_RANGE = re.compile(r"pci_nvme_dsm_deallocate slba (\d+|0x[0-9a-f]+) nlb (\d+)")


def _commands(log: str) -> list[tuple[str, int, int]]:
    """Opcode, first block and number of blocks of every command, in order; -1 where the trace has none."""
    found: list[tuple[str, int, int]] = []
    for line in log.splitlines():
        if match := _COMMAND.search(line):
            found.append((match[3], -1, -1))
        elif match := _PLACE.search(line):
            assert found[-1][1] == -1, line
            found[-1] = (found[-1][0], int(match[3], 16), int(match[2]))
        elif match := _RANGE.search(line):
            # The command's ranges are read by DMA, so that others may have come in between.
            index = max(i for i, each in enumerate(found) if each[0] == "0x9" and each[1] == -1)
            found[index] = ("0x9", int(match[1], 0), int(match[2]))
    return found


def _between(commands: list[tuple[str, int, int]], first: int, last: int) -> list[tuple[str, int, int]]:
    start, end = (commands.index(("0x2", mark * 8, 8)) for mark in (first, last))
    low, high = FIRST_BYTES // BLOCK_BYTES, (FIRST_BYTES + SPAN_BYTES) // BLOCK_BYTES
    return [each for each in commands[start + 1 : end] if each[1] == -1 or low <= each[1] < high]


def without_flushes(commands: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The commands that have a place."""
    return [each for each in commands if each != FLUSH]


def check(job: Path) -> None:
    """All lists are equal, and are as long as the workload and its splitting make them."""
    commands = _commands((job / "qemu.log").read_text())
    block, *others = (_between(commands, *marks) for marks in pairwise(MARKS))
    for path, other in zip(PATHS[1:], others, strict=True):
        if path == "threads":
            # The kernel adds a flush to a write with forced unit access that a thread waits for.
            assert other.count(FLUSH) >= block.count(FLUSH)
            other, wanted = without_flushes(other), without_flushes(block)
        else:
            wanted = block
        differing = [pair for pair in zip(wanted, other, strict=False) if pair[0] != pair[1]]
        assert wanted == other, (path, len(wanted), len(other), differing[:5])
    assert len(block) > 300
    assert {opcode for opcode, *_ in block} == {"0x0", "0x1", "0x2", "0x8", "0x9"}
    assert max(blocks for opcode, _, blocks in block if opcode in ("0x1", "0x2", "0x8")) == 256
    rows = [
        duckdb.sql(
            f"select opcode, offset_bytes, length_bytes, flags, status from '{job}/{name}.rec/ios/*.parquet'"
            " order by submit_ns"
        ).fetchall()
        for name in PATHS
    ]
    assert rows[0] == rows[1] == rows[2] == rows[3]
    assert len(rows[0]) == 300
    print(f"{len(block)} commands, the same by {', '.join(PATHS)} (threads: but for flushes)")
