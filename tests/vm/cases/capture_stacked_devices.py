"""Device mapper on a disk, on a partition, and striped over both drives, and md over two partitions: what is
captured of each is its own I/Os, and what is captured of the drives below is what they were given.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import duckdb
from guest import nvme

GUEST = dataclasses.replace(
    nvme("128M", "128M"),
    modules=("dm-mod", "raid0", "md-mod"),
    programs=("dd", "dmsetup", "mdadm", "sfdisk"),
    packages=("mdadm",),
)

#: The workload is 97 writes and then 89 reads of 8 KiB in a row, and 7 flushes.
SCRIPT = """
set -eu
dd() { /usr/bin/dd "$@" 2>/dev/null; }
work() {
    dd if=/dev/zero of=$1 bs=8k count=97 oflag=direct
    dd if=$1 of=/dev/null bs=8k count=89 iflag=direct
    for n in 1 2 3 4 5 6 7; do dd if=/dev/zero of=$1 count=0 conv=notrunc,fsync; done
}
# capture NAME DEVICE OTHER...: captures all of them while the workload runs on the first
capture() {
    name=$1; worked=$2; shift
    # At the first open the kernel looks for partitions.
    dd if=$worked of=/dev/null bs=4k count=1
    testdrive-engine capture "$@" -o /tmp/$name.rec >/tmp/$name.json &
    capture=$!
    wait_until tells /tmp/$name.json started
    work $worked
    kill -INT $capture
    wait $capture
    cp -r /tmp/$name.rec /tmp/$name.json /job
}

printf 'label: dos\\nstart=2048,size=100000\\nstart=104448,size=100000\\n' | sfdisk -q /dev/nvme0n1
printf 'label: dos\\nstart=2048,size=100000\\nstart=104448,size=100000\\n' | sfdisk -q /dev/nvme1n1


echo '0 50000 linear /dev/nvme0n1p1 0' | dmsetup create onpart

capture dm_on_partition /dev/dm-0 nvme0n1 nvme0n1p1
dmsetup remove onpart

echo '0 100000 striped 2 16 /dev/nvme0n1p2 0 /dev/nvme1n1p2 0' | dmsetup create striped

capture dm_striped /dev/dm-0 nvme0n1 nvme1n1
dmsetup remove striped

mdadm --build /dev/md0 --level=0 --chunk=64 --raid-devices=2 /dev/nvme0n1p1 /dev/nvme1n1p1 2>/dev/null
capture md_raid0 /dev/md0 nvme0n1 nvme1n1p1
mdadm --stop /dev/md0 2>/dev/null
"""

READ, WRITE, FLUSH = 0, 1, 3
PARTITION_1, PARTITION_2 = 2048 * 512, 104448 * 512
KIB8 = 8192


def check(job: Path) -> None:
    """Look at each recording of each capture."""
    upper, disk, partition = recordings(job, "dm_on_partition")
    sequential = [(index * KIB8, KIB8) for index in range(97)]
    assert upper[WRITE] == sequential
    assert upper[READ] == sequential[:89]
    assert len(upper[FLUSH]) == 7
    assert partition[WRITE] == sequential
    assert partition[READ] == sequential[:89]
    assert disk[WRITE] == [(PARTITION_1 + offset, length) for offset, length in sequential]
    assert len(disk[FLUSH]) == len(partition[FLUSH]) == 7

    # Stripes of 16 sectors are as long as an I/O: every other one is on the same drive.
    upper, first, second = recordings(job, "dm_striped")
    assert upper[WRITE] == sequential
    assert first[WRITE] == [(PARTITION_2 + index * KIB8, KIB8) for index in range(49)]
    assert second[WRITE] == [(PARTITION_2 + index * KIB8, KIB8) for index in range(48)]
    assert len(first[FLUSH]) == len(second[FLUSH]) == len(upper[FLUSH]) == 7

    # Chunks of 64 KiB hold eight I/Os.
    upper, first, second = recordings(job, "md_raid0")
    assert upper[WRITE] == sequential
    assert upper[READ] == sequential[:89]
    of_first = [offset for offset, _ in sequential if offset // 65536 % 2 == 0]
    of_second = [offset for offset, _ in sequential if offset // 65536 % 2 == 1]
    assert [offset - PARTITION_1 for offset, _ in first[WRITE]] == in_member(of_first)
    assert [offset for offset, _ in second[WRITE]] == in_member(of_second)
    assert (len(first[READ]), len(second[READ])) == (48, 41)


def in_member(offsets: list[int]) -> list[int]:
    """Where an array of two members with chunks of 64 KiB puts these places."""
    return [offset // 131072 * 65536 + offset % 65536 for offset in offsets]


def recordings(job: Path, name: str) -> list[dict[int, list[tuple[int, int]]]]:
    """Places of the I/Os of each device of a capture, by operation, in the order of queueing."""
    lines = (job / f"{name}.json").read_text().splitlines()
    finished = json.loads(lines[-1])
    assert (finished["status"], finished["events_lost"]) == ("complete", 0), finished
    found = []
    for each in finished["recordings"]:
        path = job / f"{name}.rec" / Path(each["output"]).name
        manifest = json.loads((path / "manifest.json").read_text())
        stacked = each["device"].startswith(("dm-", "md"))
        assert manifest["absent_columns"] == (["submit_ns"] if stacked else []), manifest
        assert not manifest["dropped"], manifest["dropped"]
        codes = [warning["code"] for warning in manifest["warnings"]]
        assert codes == (["no_issue_events"] if stacked else []), manifest["warnings"]
        rows = duckdb.sql(
            "select opcode, offset_bytes, length_bytes, latency_ns, status"
            f" from '{path}/ios/*.parquet' order by intended_ns"
        ).fetchall()
        # Every I/O completed, and those that were queued were not counted twice.
        assert all(latency_ns > 0 and status == 0 for *_, latency_ns, status in rows)
        places: dict[int, list[tuple[int, int]]] = {opcode: [] for opcode in range(5)}
        for opcode, offset, length, _, _ in rows:
            places[opcode].append((offset, length))
        found.append(places)
    return found
