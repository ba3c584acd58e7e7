"""Every opcode by every path, and what it left read back by another: by the kernel's block path, and in the
file that is the emulated drive's medium. Written, trimmed and zeroed blocks are where they should be and
nothing beside them; blocks of 512 bytes and of 4 KiB, polled and with interrupts, transfers that the drive's
limit splits.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from guest import Guest

GUEST = Guest(
    disks={"small": "64M", "large": "64M"},
    devices=(
        "nvme,serial=SMALL,drive=small,mdts=5",
        "nvme,serial=LARGE,id=large,mdts=5",
        "nvme-ns,drive=large,bus=large,logical_block_size=4096,physical_block_size=4096",
    ),
    modules=("vfio-pci", "vfio_iommu_type1"),
    programs=("dd", "cmp"),
    iommu=True,
    keeps_images=True,
)

#: What a recording calls each of the paths.
PATHS = {
    "block": "io_uring",
    "threads": "sync",
    "passthrough": "nvme_passthrough",
    "polled": "userspace",
    "interrupts": "userspace",
}
#: Each path has 1 MiB of sevens for its own, the first at 1 MiB.
SHARE_BYTES = 1 << 20
#: The I/Os of each path; offsets within its share, and lengths, in bytes.
OPERATIONS = (
    ("write", 0, 8192, ""),
    ("trim", 16_384, 8192, ""),
    ("write_zeroes", 32_768, 8192, ""),
    ("write", 49_152, 4096, "fua"),
    ("write", 57_344, 4096, "preflush"),
    ("write", 65_536, 4096, "fua|preflush"),
    ("read", 0, 524_288, ""),
    ("write", 262_144, 524_288, ""),
    ("flush", 0, 0, ""),
)


def _share(path: str) -> int:
    return (1 + list(PATHS).index(path)) * SHARE_BYTES


def _workload(path: str) -> str:
    rows = ["time_us,op,offset_bytes,length_bytes,flags"]
    for index, (opcode, offset, length, flags) in enumerate(OPERATIONS):
        rows.append(f"{index},{opcode},{_share(path) + offset if length else ''},{length},{flags}")
    return "\n".join(rows)


SCRIPT = (
    "set -eu\n"
    + "".join(f"cat >/tmp/{path}.csv <<END\n{_workload(path)}\nEND\n" for path in PATHS)
    + "".join(f"testdrive-engine import /tmp/{path}.csv -o /tmp/{path}.rec >/dev/null\n" for path in PATHS)
    + f"""
node() {{ echo /dev/$(basename $(ls -d /sys/bus/pci/devices/$address/nvme/nvme*/nvme*n1)); }}
run() {{ # PATH URI
    cat >/tmp/job.json <<END
{{"version": 1, "drive": {{"uri": "$2", "erase": "$drive"}}, "output": "/tmp/$drive-$1.rec",
 "phases": [{{"kind": "replay", "recording": "/tmp/$1.rec", "pace": "asap", "depth": 1}}]}}
END
    testdrive-engine run --job /tmp/job.json >/tmp/$drive-$1.json || {{ cat /tmp/$drive-$1.json; exit 1; }}
    [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    cp -r /tmp/$drive-$1.rec /job/
}}
head -c $(({len(PATHS)} * {SHARE_BYTES})) /dev/zero | tr '\\0' '\\7' >/tmp/sevens
testdrive-engine drives >/job/drives.json
for drive in SMALL LARGE; do
    address=$(address_of $drive)
    /usr/bin/dd if=/tmp/sevens of=$(node) bs=1M seek=1 oflag=direct 2>/dev/null
    run block $(node)
    run threads "$(node)?engine=sync"
    run passthrough $(node | sed s/nvme/ng/)
    run polled "pci:$address?interrupts=no"
    run interrupts "pci:$address?interrupts=yes"
    [ -z "$(ls /run/testdrive)" ]
    /usr/bin/dd if=$(node) of=/job/$drive.bytes bs=1M skip=1 count={len(PATHS)} iflag=direct 2>/dev/null
done
"""
)


def _holds_zeroes(at: int) -> bool:
    return any(
        opcode in ("trim", "write_zeroes") and offset <= at < offset + length
        for opcode, offset, length, _ in OPERATIONS
    )


def _is_written(at: int) -> bool:
    return any(
        opcode == "write" and offset <= at < offset + length for opcode, offset, length, _ in OPERATIONS
    )


def check(job: Path) -> None:
    """Each block of each path holds what it should, and each I/O is in the recording."""
    seen = {drive["serial"]: drive for drive in json.loads((job / "drives.json").read_text())}
    for drive in ("SMALL", "LARGE"):
        read = (job / f"{drive}.bytes").read_bytes()
        medium = (job / f"{drive.lower()}.img").read_bytes()
        assert medium[SHARE_BYTES:][: len(read)] == read, f"{drive}: the kernel reads what is not there"
        # Nothing before and behind what the paths were given.
        assert not any(medium[:SHARE_BYTES])
        assert not any(medium[SHARE_BYTES + len(read) :])
        for path in PATHS:
            start = _share(path)
            _check_share(f"{drive} by {path}", medium[start : start + SHARE_BYTES])
            _check_recording(job / f"{drive}-{path}.rec", path, seen[drive])


def _check_share(name: str, content: bytes) -> None:
    for at in range(0, len(content), 4096):
        block = content[at : at + 4096]
        if _is_written(at):
            assert len(set(block)) > 200, f"{name}: the block at {at} was not written"
        else:
            expected = 0 if _holds_zeroes(at) else 7
            assert set(block) == {expected}, f"{name}: the block at {at} has {set(block)}"


def _check_recording(recording: Path, path: str, listed: dict[str, object]) -> None:
    identity = json.loads((recording / "manifest.json").read_text())["drive"]
    for key in ("model", "serial", "firmware", "capacity_bytes", "logical_block_bytes"):
        assert identity[key] == listed[key], (path, key, identity[key], listed[key])
    assert identity["physical_block_bytes"] == listed["physical_block_bytes"]
    assert identity["path"] == PATHS[path], (path, identity)
    if identity["path"] == "userspace":
        assert identity["settings"]["polled_completions"] == (path == "polled")
    if identity["path"] in ("userspace", "nvme_passthrough"):
        assert identity["settings"]["transfer_bytes_max"] == 131_072
    rows = duckdb.sql(
        f"select opcode, offset_bytes, length_bytes, status, latency_ns from '{recording}/ios/*.parquet'"
        " order by submit_ns"
    ).fetchall()
    assert [row[2] for row in rows] == [length for _, _, length, _ in OPERATIONS], rows
    assert all(status == 0 and latency > 0 for *_, status, latency in rows), rows
