"""By the user-space driver a drive tells its health, is formatted to blocks of 4 KiB, written and read back
by the block path, purged by a format, has its write cache off for a run, and takes trims that share
commands, as the emulated drive traces them. QEMU's drive does not sanitize, and that is said. After each of
them the kernel has the drive.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from guest import Guest

GUEST = Guest(
    disks={"disk0": "64M"},
    devices=("nvme,serial=VM0,drive=disk0",),
    modules=("vfio-pci", "vfio_iommu_type1"),
    programs=("dd",),
    iommu=True,
    traces=("pci_nvme_dsm",),
)

SCRIPT = """
set -eu
address=$(address_of VM0)
options=
run() { # NAME MORE-OF-THE-DRIVE PHASES
    echo '{"version": 1, "drive": {"uri": "pci:'$address$options'", "erase": "VM0"'$2'},
      "output": "/tmp/'$1'.rec", "phases": ['"$3"']}' >/tmp/$1.job
    status=0
    testdrive-engine run --job /tmp/$1.job >/job/$1.json || status=$?
    cp /tmp/$1.rec/manifest.json /job/$1.manifest 2>/dev/null || tail -n 1 /job/$1.json
    [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    [ -z "$(ls /run/testdrive)" ]
    device=$(basename $(ls -d /sys/bus/pci/devices/$address/nvme/nvme*/nvme*n1))
    return $status
}
# How many bytes other than zero the block path reads from 1 MiB block $1 on, $2 of them.
content() {
    /usr/bin/dd if=/dev/$device bs=1M skip=$1 count=$2 iflag=direct 2>/dev/null | tr -d '\\000' | wc -c
}
size() { cat /sys/block/$device/queue/logical_block_size; }

write='{"kind": "prepare", "method": "sequential"}'
run to4k '' '{"kind": "prepare", "method": "format", "logical_block_bytes": 4096}, '"$write"',
  {"kind": "synthetic", "read_share": 0.5, "block_bytes": 4096, "ios": 200}'
[ $(size) -eq 4096 ]
[ $(content 0 64) -gt 66000000 ]

# Blocks of 512 bytes are no I/O on this drive as it is, but are on what a format makes of it.
! run refused '' '{"kind": "synthetic", "block_bytes": 512, "ios": 10}'
run purge '' '{"kind": "prepare", "method": "purge", "how": "format"},
  {"kind": "prepare", "method": "format", "logical_block_bytes": 512},
  {"kind": "synthetic", "read_share": 0, "block_bytes": 512, "ios": 100, "span_bytes": 1048576}'
[ $(size) -eq 512 ]
[ $(content 0 1) -gt 10000 ]
[ $(content 1 63) -eq 0 ]

run filled ', "volatile_write_cache": false' "$write"
[ $(content 0 64) -gt 66000000 ]
# Trims of every second 64 KiB, of which those that go together share commands.
options='?trim_ranges=256'
run burst '' '{"kind": "synthetic", "pattern": "random_once", "read_share": 0, "trim_share": 1, "ios": 512,
  "block_bytes": 65536, "alignment_bytes": 131072, "depth": 300}'
options=
[ $(content 0 64) -gt 33000000 ]
[ $(content 0 64) -lt 33600000 ]

! run sanitize '' '{"kind": "prepare", "method": "purge", "how": "sanitize"}'
! run nosuch '' '{"kind": "prepare", "method": "format", "logical_block_bytes": 8192}'
[ $(content 0 64) -gt 33000000 ]
# What it carries takes the second consent, also of a format.
printf '\\125\\252' | /usr/bin/dd of=/dev/$device bs=1 seek=510 conv=fsync 2>/dev/null
! run marked '' '{"kind": "prepare", "method": "purge", "how": "format"}'
"""


def _manifest(job: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job / f"{name}.manifest").read_text())
    return found


def _last(job: Path, name: str) -> dict[str, Any]:
    last: dict[str, Any] = json.loads((job / f"{name}.json").read_text().splitlines()[-1])
    return last


def check(job: Path) -> None:
    """Manifests say what the drive became, and QEMU's trace how many ranges a command had."""
    manifest = _manifest(job, "to4k")
    assert manifest["status"] == "complete", manifest["status_reason"]
    drive = manifest["drive"]
    assert (drive["path"], drive["logical_block_bytes"]) == ("userspace", 4096)
    assert drive["capacity_bytes"] == 64 << 20
    assert manifest["phases"][0]["accounting"]["format"]["logical_block_bytes"] == 4096
    assert manifest["phases"][1]["accounting"]["issued"]["write"]["bytes"] == 64 << 20
    assert manifest["counts"]["errors"] == 0
    account = manifest["nvme"]
    assert account["controller"]["serial"] == "VM0"
    assert account["namespace"]["formats"][0]["block_bytes"] == 512
    before, after = account["before"]["smart"], account["after"]["smart"]
    assert 200 < before["temperature_kelvin"] < 400, before
    assert after["host_writes"] > before["host_writes"], (before, after)
    assert after["host_reads"] > before["host_reads"], (before, after)
    assert account["after"]["errors"] == []

    purged = _manifest(job, "purge")["phases"]
    assert purged[0]["accounting"]["purge"] == "format"
    assert purged[1]["accounting"]["format"]["logical_block_bytes"] == 512
    cache = _manifest(job, "filled")["nvme"]
    assert (cache["before"]["volatile_write_cache"], cache["after"]["volatile_write_cache"]) == (False, False)
    assert _manifest(job, "burst")["nvme"]["before"]["volatile_write_cache"] is True

    burst = _manifest(job, "burst")
    assert (burst["drive"]["settings"]["trim_ranges"], burst["counts"]["errors"]) == (256, 0)
    assert burst["counts"]["by_opcode"]["trim"]["ios"] == 512
    ranges = [int(found) for found in re.findall(r"pci_nvme_dsm nr (\d+)", (job / "qemu.log").read_text())]
    assert sum(ranges) == 512, ranges
    assert max(ranges) == 256, ranges
    print(f"512 trims in {len(ranges)} commands")

    for name, words in (
        ("sanitize", "no sanitize command"),
        ("nosuch", "it has 512, 4096"),
        ("refused", "block_bytes is 512"),
        ("marked", "a partition table of dos"),
    ):
        assert words in str(_last(job, name)), _last(job, name)
