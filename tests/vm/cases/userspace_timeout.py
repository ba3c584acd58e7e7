"""A drive whose medium stops answering, and one that is reset behind the driver's back and answers nothing
any more: commands time out, are aborted in vain, and the controller is reset, for two threads at once. That
is recorded and is what the recording says first; the run goes on where it was told to, and the kernel's
driver reads the drive afterwards.

The medium is made to stop from outside, by QEMU's throttle of its image; a reset lets go of what waits there.
It goes on once the run has told of a failure. The run has its I/Os to do, however long that takes: their rate
keeps it from being done before its drive stops.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from guest import Guest

from testdrive.metrics import summarize
from testdrive.recording import Recording

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
silence() { # NAME
    if [ $1 = mute ]; then
        echo 1 >/sys/bus/pci/devices/$address/reset
        return
    fi
    throttle stop-$1 1
    wait_until has_failed $1
    throttle go-$1 0
}
has_failed() { grep -q '"errors":[1-9]' /job/$1.json; } # NAME
for name in continue stop mute; do
    on_error=continue; [ $name != stop ] || on_error=stop
    cat >/tmp/job.json <<END
{"version": 1, "drive": {"uri": "pci:$address"}, "output": "/tmp/$name.rec", "io_timeout_s": 5,
 "on_error": "$on_error",
 "phases": [{"kind": "synthetic", "threads": 2, "depth": 16, "ios": 2000, "rate_limit_iops": 200}]}
END
    testdrive-engine run --job /tmp/job.json >/job/$name.json &
    run=$!
    wait_until tells /job/$name.json progress
    silence $name
    status=0; wait $run || status=$?
    echo $status >/job/$name.status
    [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=64k iflag=direct 2>/dev/null
    cp -r /tmp/$name.rec /job/
done
"""

TIMED_OUT, CANCELLED = 110, 125
TIMEOUT_NS = 5_000_000_000


def check(job: Path) -> None:
    """What timed out is there, with what was done about it; and I/Os before and, where it goes on, after."""
    for name, status in (("continue", 0), ("stop", 4), ("mute", 0)):
        assert (job / f"{name}.status").read_text().strip() == str(status), (job / f"{name}.json").read_text()
        recording = job / f"{name}.rec"
        lines = (recording / "drive_events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        kinds = [event["kind"] for event in events]
        # A thread whose commands went with the other's reset just then has nothing to abort any more.
        assert kinds.count("command_timeout") >= kinds.count("command_abort") >= 1, kinds
        resets = [event for event in events if event["kind"] == "controller_reset"]
        assert resets, kinds
        rows = duckdb.sql(
            f"select submit_ns, latency_ns, status from '{recording}/ios/*.parquet' order by submit_ns"
        ).fetchall()
        failed = [row for row in rows if row[2] != 0]
        assert failed, "no I/O timed out"
        assert {row[2] for row in failed} <= {TIMED_OUT, CANCELLED}, {row[2] for row in failed}
        # Each I/O is one command. What waits at the throttle is let go of by the reset, and some of it, but
        # not the last, in time to be answered; a drive that is mute answers none of either thread's.
        assert sum(reset["amount"] for reset in resets) == len(failed), (resets, failed)
        if name == "mute":
            assert len(failed) >= 4, failed
            assert any(row[2] == TIMED_OUT and row[1] >= TIMEOUT_NS for row in failed), failed
        good = [submit for submit, _, status in rows if status == 0]
        assert min(good) < resets[0]["start_ns"]
        if name != "stop":
            assert max(good) > resets[-1]["end_ns"]
        says_so(recording, [row[1] for row in failed])


def says_so(path: Path, lost_ns: list[int]) -> None:
    """What is said of it first, and that the worst case knows of what was lost, and how long that took."""
    with Recording.open(path) as recording:
        summary = summarize(recording)
    warnings = {each["code"]: each["message"] for each in summary["warnings"]}
    assert "did not answer" in warnings["command_timeout"], warnings
    assert "the controller was reset" in warnings["controller_reset"], warnings
    assert summary["lost_ios"]["ios"] == len(lost_ns), summary["lost_ios"]
    assert summary["lost_ios"]["percentiles_at_least_ns"]["max"] >= max(lost_ns), summary["lost_ios"]
