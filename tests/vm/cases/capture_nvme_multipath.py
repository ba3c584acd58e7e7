"""A namespace with two controllers: the kernel shows one device and issues on hidden paths, whose numbers no
file tells. Every I/O is captured with its queueing, issue and completion, whichever path it took.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from guest import Guest

GUEST = Guest(
    disks={"shared": "64M", "other": "64M"},
    devices=(
        "nvme-subsys,id=subsystem,nqn=testdrive",
        "nvme,id=first,serial=VM0,subsys=subsystem",
        "nvme,id=second,serial=VM0,subsys=subsystem",
        "nvme-ns,drive=shared,nsid=1,shared=on,bus=first",
        "nvme,serial=VM1,drive=other",
    ),
    programs=("dd",),
)

SCRIPT = """
set -eu
dd() { /usr/bin/dd "$@" 2>/dev/null; }
# Which of the drives has hidden paths, and which has none.
shared=$(basename $(ls -d /sys/devices/virtual/nvme-subsystem/*/nvme*n1))
other=$(basename $(ls -d /sys/devices/pci*/*/nvme/nvme*/nvme[0-9]n1))
echo $shared $other
for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin >$policy; done
# What each path has served.
served() { for path in /sys/block/nvme*c*n1; do awk '{print $1 + $5}' $path/stat; done; }
served >/tmp/before

testdrive-engine capture $shared $other -o /tmp/all.rec >/tmp/all.json &
capture=$!
wait_until tells /tmp/all.json started
dd if=/dev/zero of=/dev/$shared bs=8k count=101 oflag=direct
dd if=/dev/zero of=/dev/$other bs=4k count=53 oflag=direct
dd if=/dev/$shared of=/dev/null bs=4k count=103 iflag=direct
kill -INT $capture
wait $capture
cp -r /tmp/all.rec /tmp/all.json /job
served >/tmp/after
paste /tmp/before /tmp/after
[ "$(paste /tmp/before /tmp/after | awk '$2 > $1 + 50' | wc -l)" -eq 2 ]
echo $shared >/job/shared
"""


def check(job: Path) -> None:
    """Every I/O of each drive is there once, and has all its times."""
    finished = json.loads((job / "all.json").read_text().splitlines()[-1])
    assert (finished["status"], finished["events_lost"]) == ("complete", 0), finished
    shared = (job / "shared").read_text().strip()
    for each in finished["recordings"]:
        path = job / "all.rec" / Path(each["output"]).name
        manifest = json.loads((path / "manifest.json").read_text())
        assert manifest["absent_columns"] == manifest["dropped"] == manifest["warnings"] == [], manifest
        rows = duckdb.sql(
            "select opcode, offset_bytes, length_bytes, intended_ns, submit_ns, latency_ns"
            f" from '{path}/ios/*.parquet' order by intended_ns"
        ).fetchall()
        if each["device"] == shared:
            expected = [(1, index * 8192, 8192) for index in range(101)]
            expected += [(0, index * 4096, 4096) for index in range(103)]
        else:
            expected = [(1, index * 4096, 4096) for index in range(53)]
        assert [row[:3] for row in rows] == expected, each["device"]
        assert all(submit > intended and latency > 0 for *_, intended, submit, latency in rows)
