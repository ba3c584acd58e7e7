"""Every opcode by the user-space driver, and what it left read back by the kernel's: written, trimmed and
zeroed blocks where they should be and nothing beside them; blocks of 512 bytes and of 4 KiB, polled and with
interrupts, transfers that the drive's limit splits.
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
)

#: 1 MiB of sevens at 1 MiB, in which these I/Os happen; lengths and offsets in bytes.
OPERATIONS = (
    ("write", 1_048_576, 8192, ""),
    ("trim", 1_064_960, 8192, ""),
    ("write_zeroes", 1_081_344, 8192, ""),
    ("write", 1_097_728, 4096, "fua"),
    ("write", 1_105_920, 4096, "preflush"),
    ("write", 1_114_112, 4096, "fua|preflush"),
    ("read", 1_048_576, 524_288, ""),
    ("write", 1_310_720, 524_288, ""),
    ("flush", 0, 0, ""),
)

SCRIPT = """
set -eu
node() { echo /dev/$(basename $(ls -d /sys/bus/pci/devices/$1/nvme/nvme*/nvme*n1)); }
cat >/tmp/workload.csv <<END
time_us,op,offset_bytes,length_bytes,flags
WORKLOAD
END
testdrive-engine import /tmp/workload.csv -o /tmp/workload.rec >/dev/null
head -c 1048576 /dev/zero | tr '\\0' '\\7' >/tmp/sevens
testdrive-engine drives >/job/drives.json
for drive in SMALL LARGE; do
    address=$(address_of $drive)
    for options in "interrupts=no" "interrupts=yes"; do
        /usr/bin/dd if=/tmp/sevens of=$(node $address) bs=1M seek=1 oflag=direct 2>/dev/null
        name=$drive-$options
        cat >/tmp/job.json <<END
{"version": 1, "drive": {"uri": "pci:$address?$options", "erase": "$drive"}, "output": "/tmp/$name.rec",
 "phases": [{"kind": "replay", "recording": "/tmp/workload.rec", "pace": "asap", "depth": 1}]}
END
        testdrive-engine run --job /tmp/job.json >/job/$name.json || { cat /job/$name.json; exit 1; }
        [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
        [ -z "$(ls /run/testdrive)" ]
        cp -r /tmp/$name.rec /job/
        /usr/bin/dd if=$(node $address) of=/job/$name.bytes bs=1M skip=1 count=1 iflag=direct 2>/dev/null
    done
done
""".replace(
    "WORKLOAD",
    "\n".join(
        f"{index},{opcode},{offset if length else ''},{length},{flags}"
        for index, (opcode, offset, length, flags) in enumerate(OPERATIONS)
    ),
)


def _expected_zero(at: int) -> bool:
    return any(
        opcode in ("trim", "write_zeroes") and offset <= at < offset + length
        for opcode, offset, length, _ in OPERATIONS
    )


def _is_written(at: int) -> bool:
    return any(
        opcode == "write" and offset <= at < offset + length for opcode, offset, length, _ in OPERATIONS
    )


def check(job: Path) -> None:
    """Each block holds what it should."""
    seen = {drive["serial"]: drive for drive in json.loads((job / "drives.json").read_text())}
    for drive in ("SMALL", "LARGE"):
        for options in ("interrupts=no", "interrupts=yes"):
            name = f"{drive}-{options}"
            content = (job / f"{name}.bytes").read_bytes()
            for start in range(0, len(content), 4096):
                block, at = content[start : start + 4096], start + 1_048_576
                if _is_written(at):
                    assert len(set(block)) > 200, f"{name}: the block at {at} was not written"
                else:
                    expected = 0 if _expected_zero(at) else 7
                    assert set(block) == {expected}, f"{name}: the block at {at} has {set(block)}"
            manifest = json.loads((job / f"{name}.rec" / "manifest.json").read_text())
            identity = manifest["drive"]
            for key in ("model", "serial", "firmware", "capacity_bytes", "logical_block_bytes"):
                assert identity[key] == seen[drive][key], (key, identity[key], seen[drive][key])
            assert identity["physical_block_bytes"] == seen[drive]["physical_block_bytes"]
            settings = identity["settings"]
            assert identity["path"] == "userspace"
            assert settings["polled_completions"] == (options == "interrupts=no")
            assert settings["transfer_bytes_max"] == 131_072
            rows = duckdb.sql(
                f"select status, latency_ns from '{job}/{name}.rec/ios/*.parquet' order by submit_ns"
            ).fetchall()
            assert len(rows) == len(OPERATIONS)
            assert all(status == 0 and latency > 0 for status, latency in rows), rows
