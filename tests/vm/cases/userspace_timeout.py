"""A drive whose medium stops answering: its commands time out, are aborted in vain, and the controller is
reset. All of that is recorded, the run goes on where it was told to, and the kernel's driver reads the drive
afterwards.

The medium is made to stop from outside, by QEMU's throttle of its image; a reset lets go of what waits there.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from guest import Guest

GUEST = Guest(
    disks={"disk0": "64M"},
    devices=("nvme,serial=VM0,drive=disk0",),
    modules=("vfio-pci", "vfio_iommu_type1"),
    programs=("dd",),
    iommu=True,
)

SCRIPT = """
set -eu
address=$(cat /sys/class/nvme/nvme0/address)
monitor() { echo "$2" >/job/monitor.$1.part; mv /job/monitor.$1.part /job/monitor.$1; }
asked() {
    wait_until [ -e /job/monitor.$1.done ]
    cat /job/monitor.$1.done
}
throttle() {
    limits='"bps": '$2', "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0'
    monitor $1 '{"execute": "block_set_io_throttle", "arguments": {"device": "disk0", '"$limits"'}}'
    asked $1
}
for on_error in continue stop; do
    cat >/tmp/job.json <<END
{"version": 1, "drive": {"uri": "pci:$address"}, "output": "/tmp/$on_error.rec", "io_timeout_s": 2,
 "on_error": "$on_error", "phases": [{"kind": "synthetic", "depth": 4, "duration_ns": 15000000000}]}
END
    testdrive-engine run --job /tmp/job.json >/job/$on_error.json &
    run=$!
    wait_until tells /job/$on_error.json progress
    throttle stop-$on_error 1
    sleep 4
    throttle go-$on_error 0
    status=0; wait $run || status=$?
    echo $status >/job/$on_error.status
    [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=64k iflag=direct 2>/dev/null
    cp -r /tmp/$on_error.rec /job/
done
"""

TIMED_OUT = 110


def check(job: Path) -> None:
    """What timed out is there, with what was done about it; and I/Os before and, where it goes on, after."""
    for on_error, status in (("continue", 0), ("stop", 4)):
        assert (job / f"{on_error}.status").read_text().strip() == str(status), (
            job / f"{on_error}.json"
        ).read_text()
        recording = job / f"{on_error}.rec"
        lines = (recording / "drive_events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        kinds = [event["kind"] for event in events]
        assert kinds.count("command_timeout") == kinds.count("command_abort") >= 1, kinds
        assert "controller_reset" in kinds, kinds
        reset = next(event for event in events if event["kind"] == "controller_reset")
        rows = duckdb.sql(
            f"select submit_ns, latency_ns, status from '{recording}/ios/*.parquet' order by submit_ns"
        ).fetchall()
        failed = [row for row in rows if row[2] != 0]
        assert failed, "no I/O timed out"
        assert {row[2] for row in failed} <= {TIMED_OUT, 125}, {row[2] for row in failed}
        assert any(row[2] == TIMED_OUT and row[1] >= 2_000_000_000 for row in failed), failed
        good = [submit for submit, _, status in rows if status == 0]
        assert min(good) < reset["start_ns"]
        assert (max(good) > reset["end_ns"]) == (on_error == "continue")
