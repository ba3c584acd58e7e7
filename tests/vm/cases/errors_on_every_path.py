"""Blocks that the emulated drive cannot read or write fail on every path, and nothing else does: with the
drive's own status where that is seen, with what the kernel makes of it on the block path. A long I/O over one
of them is split, and has the status of its part. The conformance tests send I/Os beyond the end, which no job
does.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import duckdb
from guest import nvme

#: In units of 512 bytes.
BAD_READ, BAD_WRITE = 40_960, 49_152
GUEST = dataclasses.replace(
    nvme("64M", mdts="3"),
    modules=("vfio-pci", "vfio_iommu_type1"),
    iommu=True,
    faults={
        "disk0": f"""
[inject-error]
event = "none"
iotype = "read"
errno = "5"
sector = "{BAD_READ}"

[inject-error]
event = "none"
iotype = "write"
errno = "5"
sector = "{BAD_WRITE}"
"""
    },
)

SCRIPT = f"""
set -eu
cat >/tmp/workload.csv <<END
time_ms,op,offset_bytes,length_bytes
0,write,{BAD_READ * 512},4096
1,read,{BAD_READ * 512},4096
2,read,{BAD_READ * 512 + 4096},4096
3,read,{BAD_READ * 512 - 65536},131072
4,write,{BAD_WRITE * 512},4096
5,write,{BAD_WRITE * 512 - 4096},4096
6,read,{BAD_WRITE * 512},4096
END
testdrive-engine import /tmp/workload.csv -o /tmp/workload.rec >/dev/null
address=$(address_of VM0)
run() {{ # NAME URI ON-ERROR
    echo '{{"version": 1, "drive": {{"uri": "'$2'", "erase": "VM0"}}, "output": "/tmp/'$1'.rec",
      "on_error": "'$3'", "phases": [
        {{"kind": "replay", "recording": "/tmp/workload.rec", "pace": "asap", "depth": 1}}]}}' >/tmp/job.json
    testdrive-engine run --job /tmp/job.json >/job/$1.json
}}
node=/dev/nvme0n1
for path in block=$node threads=$node?engine=sync passthrough=/dev/ng0n1 userspace=pci:$address; do
    name=${{path%%=*}}; uri=${{path#*=}}
    run $name $uri continue
    cp -r /tmp/$name.rec /job/
    status=0; run $name-first $uri stop || status=$?
    [ $status -eq 4 ]
done
"""

#: With the bit that says that they are NVMe's.
UNRECOVERED_READ, WRITE_FAULT = 0x10281, 0x10280
#: What the kernel makes of both: ENODATA, for an error of the medium.
MEDIUM = 61


def check(job: Path) -> None:
    """Code and type of each status are the drive's; the message of a run that stops has them in words."""
    for path in ("block", "threads", "passthrough", "userspace"):
        by_kernel = path in ("block", "threads")
        read, write = (MEDIUM, MEDIUM) if by_kernel else (UNRECOVERED_READ, WRITE_FAULT)
        rows = duckdb.sql(
            f"select status from '{job}/{path}.rec/ios/*.parquet' order by submit_ns"
        ).fetchall()
        # "Do not retry" and "more" are the drive's business.
        statuses = [status & ~0x7800 for (status,) in rows]
        assert statuses == [0, read, 0, read, write, 0, 0], (path, [hex(status) for (status,) in rows])
        finished = json.loads((job / f"{path}-first.json").read_text().splitlines()[-1])
        words = "No data available" if by_kernel else "unrecovered read error (NVMe status 0x"
        assert words in finished["reason"], (path, finished)
