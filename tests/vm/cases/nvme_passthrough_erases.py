"""A drive is formatted to blocks of 4 KiB and back by a job's phases, purged by a format, and has its write
cache off for one run; what passthrough did is read back by the block path, through a page cache that somebody
keeps alive and that is full of other things before purges. QEMU's drive does not sanitize, and that is said.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from guest import nvme

GUEST = replace(nvme("8M"), programs=("addpart",))

SCRIPT = """
set -eu
uri=/dev/ng0n1
run() {
    echo '{"version": 1, "drive": {"uri": "'$uri'", "erase": "VM0", "erase_signatures": true'$2'},
      "output": "/tmp/'$1'.rec", "phases": ['"$3"']}' >/tmp/$1.job
    testdrive-engine run --job /tmp/$1.job >/job/$1.json || {
        status=$?; tail -n 1 /job/$1.json; return $status
    }
    cp /tmp/$1.rec/manifest.json /job/$1.manifest
}
# How many bytes other than zero the block path reads from block $1 of 1 MiB on, $2 of them, each time after
# whatever was waiting to be written, and both what the page cache says and what the drive has.
content() {
    sync
    cached=$(dd if=/dev/nvme0n1 bs=1M skip=$1 count=$2 2>/dev/null | tr -d '\\000' | wc -c)
    blockdev --flushbufs /dev/nvme0n1
    dd if=/dev/nvme0n1 bs=1M skip=$1 count=$2 2>/dev/null | tr -d '\\000' | wc -c >/tmp/bytes
    [ $(cat /tmp/bytes) -eq $cached ] || echo "the cache has $cached, not $(cat /tmp/bytes)" >&2
    [ $(cat /tmp/bytes) -eq $cached ] && echo $cached
}
hold() { exec 8</dev/nvme0n1 9</dev/nvme0n1p1; }
# Caches keep to the blocks that they began with.
let_go() { exec 8<&- 9<&-; }
# Full of what was not written yet: the disk's cache, and a partition's, which are not one.
dirty() {
    tr '\\000' A </dev/zero | dd of=/dev/nvme0n1 bs=1M count=4 iflag=fullblock conv=notrunc 2>/dev/null
    tr '\\000' B </dev/zero | dd of=/dev/nvme0n1p1 bs=1M count=3 iflag=fullblock conv=notrunc 2>/dev/null
    [ $(awk '/^Dirty/ { print $2 }' /proc/meminfo) -gt 5000 ]
    [ $(partition) -eq 3145728 ]
}
partition() { dd if=/dev/nvme0n1p1 bs=1M count=3 2>/dev/null | tr -d '\\000' | wc -c; }
size() { cat /sys/block/nvme0n1/queue/logical_block_size; }

write='{"kind": "prepare", "method": "sequential"}'
[ $(size) -eq 512 ]
# Nothing is written back because it is old.
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
run to4k '' '{"kind": "prepare", "method": "format", "logical_block_bytes": 4096}, '"$write"',
  {"kind": "synthetic", "read_share": 0.5, "block_bytes": 4096, "ios": 200}'
[ $(size) -eq 4096 ]
[ $(blockdev --getsize64 /dev/nvme0n1) -eq 8388608 ]
[ $(content 0 8) -gt 8250000 ]

addpart /dev/nvme0n1 1 8192 8192
wait_until [ -e /dev/nvme0n1p1 ]
# Somebody who only looks, as a monitor or a multipath daemon does.
hold
dirty
run purge '' '{"kind": "prepare", "method": "purge", "how": "format"}'
[ $(size) -eq 4096 ]
[ $(content 0 8) -eq 0 ]
[ $(partition) -eq 0 ]
let_go

# Blocks of 512 bytes are no I/O on this drive as it is, but are on what the format makes of it.
status=0; run refused '' '{"kind": "synthetic", "block_bytes": 512, "ios": 10}' || status=$?
[ $status -eq 2 ]
run to512 '' '{"kind": "prepare", "method": "format", "logical_block_bytes": 512},
  {"kind": "synthetic", "read_share": 0, "block_bytes": 512, "ios": 100, "span_bytes": 1048576}'
[ $(size) -eq 512 ]
[ $(content 0 1) -gt 10000 ]
hold
dirty
run trim '' '{"kind": "prepare", "method": "purge"}'
[ $(content 0 8) -eq 0 ]
# The block path's trims know nothing of a partition's cache either.
dirty
uri=/dev/nvme0n1
run block '' '{"kind": "prepare", "method": "purge"}'
[ $(content 0 8) -eq 0 ]
[ $(partition) -eq 0 ]
uri=/dev/ng0n1

# Trims of every second 64 KiB, of which those that go together share commands.
run filled '' "$write"
uri=/dev/ng0n1?trim_ranges=256
run burst '' '{"kind": "synthetic", "pattern": "random_once", "read_share": 0, "trim_share": 1, "ios": 64,
  "block_bytes": 65536, "alignment_bytes": 131072, "depth": 300}'
uri=/dev/ng0n1
[ $(content 0 8) -gt 4125000 ]
[ $(content 0 8) -lt 4200000 ]

run uncached ', "volatile_write_cache": false' "$write"
[ $(content 0 8) -gt 8250000 ]
run cached '' '{"kind": "synthetic", "ios": 10}'

status=0; run sanitize '' '{"kind": "prepare", "method": "purge", "how": "sanitize"}' || status=$?
[ $status -eq 2 ]
status=0; run nosuch '' '{"kind": "prepare", "method": "format", "logical_block_bytes": 8192}' || status=$?
[ $status -eq 2 ]
[ $(content 0 8) -gt 8250000 ]
"""


def _manifest(job: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job / f"{name}.manifest").read_text())
    return found


def check(job: Path) -> None:
    """Manifests say what the drive became, and what it said of itself."""
    manifest = _manifest(job, "to4k")
    assert manifest["status"] == "complete", manifest["status_reason"]
    assert manifest["drive"]["path"] == "nvme_passthrough"
    assert manifest["drive"]["logical_block_bytes"] == 4096
    assert manifest["phases"][0]["accounting"]["format"]["logical_block_bytes"] == 4096
    assert manifest["phases"][1]["accounting"]["issued"]["write"]["bytes"] == 8 << 20
    assert manifest["counts"]["errors"] == 0
    nvme_account = manifest["nvme"]
    assert nvme_account["controller"]["serial"] == "VM0"
    before, after = nvme_account["before"]["smart"], nvme_account["after"]["smart"]
    assert after["host_writes"] - before["host_writes"] >= 64, (before, after)
    assert _manifest(job, "purge")["phases"][0]["accounting"]["purge"] == "format"
    assert _manifest(job, "trim")["phases"][0]["accounting"]["purge"] == "trim"
    burst = _manifest(job, "burst")
    assert (burst["drive"]["settings"]["trim_ranges"], burst["counts"]["errors"]) == (256, 0)
    assert burst["counts"]["by_opcode"]["trim"]["ios"] == 64
    assert _manifest(job, "uncached")["nvme"]["before"]["volatile_write_cache"] is False
    assert _manifest(job, "cached")["nvme"]["before"]["volatile_write_cache"] is True
    assert "no sanitize command" in (job / "sanitize.json").read_text()
    assert "it has 512, 4096" in (job / "nosuch.json").read_text()
    assert "block_bytes is 512" in (job / "refused.json").read_text()
