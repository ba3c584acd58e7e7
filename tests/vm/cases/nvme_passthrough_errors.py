"""Blocks that the emulated drive cannot read or write fail with the drive's own status, and nothing else
does. A long I/O over one of them is split, and has the status of its part.
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
run() {{
    echo '{{"version": 1, "drive": {{"uri": "/dev/ng0n1", "erase": "VM0"}}, "output": "/tmp/'$1'.rec",
      "on_error": "'$2'", "phases": [
        {{"kind": "replay", "recording": "/tmp/workload.rec", "pace": "asap", "depth": 1}}]}}' >/tmp/job.json
    testdrive-engine run --job /tmp/job.json >/job/$1.json
}}
run all continue || true
cp -r /tmp/all.rec /job/
status=0; run first stop || status=$?
[ $status -eq 4 ]
"""

UNRECOVERED_READ, WRITE_FAULT = 0x281, 0x280


def check(job: Path) -> None:
    """Code and type of each status are the drive's; the message of a run that stops has them in words."""
    rows = duckdb.sql(f"select status from '{job}/all.rec/ios/*.parquet' order by submit_ns").fetchall()
    # Bit 16 says that it is NVMe's; "do not retry" and "more" are the drive's business.
    statuses = [status and status & ~0x7800 for (status,) in rows]
    assert statuses == [
        0,
        0x10000 | UNRECOVERED_READ,
        0,
        0x10000 | UNRECOVERED_READ,
        0x10000 | WRITE_FAULT,
        0,
        0,
    ], [hex(status) for (status,) in rows]
    finished = json.loads((job / "first.json").read_text().splitlines()[-1])
    assert "unrecovered read error (NVMe status 0x" in finished["reason"], finished
