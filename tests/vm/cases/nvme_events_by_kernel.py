"""What the kernel's driver does to a controller while a run goes on is recorded, by passthrough and by the
block path alike, and said first: resets, and the loss of the drive. A namespace with metadata is refused
before anything is sent to it, also where no IOMMU would keep the drive from writing beyond its buffers.
"""

from __future__ import annotations

import json
from pathlib import Path

from guest import Guest

from testdrive.metrics import summarize
from testdrive.recording import Recording

GUEST = Guest(
    disks={"disk0": "64M", "disk1": "64M", "disk2": "64M"},
    devices=(
        "pcie-root-port,id=rp0,chassis=8,slot=8",
        "nvme,serial=VM0,bus=rp0,id=hot0,drive=disk0",
        "pcie-root-port,id=rp1,chassis=9,slot=9",
        "nvme,serial=VM1,bus=rp1,id=hot1,drive=disk1",
        "nvme,serial=VM2,id=meta",
        "nvme-ns,drive=disk2,bus=meta,ms=8",
    ),
    # The usual kernel does not survive that a drive is unplugged.
    newer_kernel=True,
)

SCRIPT = """
set -eu
of() { basename $(ls -d /sys/bus/pci/devices/$(address_of $1)/nvme/nvme*); }
job() { # NAME URI
    echo '{"version": 1, "drive": {"uri": "'$2'"}, "output": "/tmp/'$1'.rec", "on_error": "continue",
      "phases": [{"kind": "synthetic", "depth": 8, "duration_ns": 600000000000}]}' >/tmp/$1.json
}
is_live() { [ "$(cat /sys/class/nvme/$1/state)" = live ]; }
meta=$(of VM2)
job meta /dev/ng${meta#nvme}n1
status=0; testdrive-engine run --job /tmp/meta.json >/job/meta.json || status=$?
echo $status >/job/meta.status
for number in 0 1; do
    controller=$(of VM$number)
    uri=/dev/${controller}n1; [ $number = 1 ] || uri=/dev/ng${controller#nvme}n1
    job $number $uri
    testdrive-engine run --job /tmp/$number.json >/job/$number.json &
    run=$!
    wait_until tells /job/$number.json progress
    # One that is over between two looks of 20 ms is not seen.
    for turn in $(seq 20); do
        echo 1 >/sys/class/nvme/$controller/reset_controller
        wait_until is_live $controller
    done
    echo '{"execute": "device_del", "arguments": {"id": "hot'$number'"}}' >/job/monitor.del$number.part
    mv /job/monitor.del$number.part /job/monitor.del$number
    status=0; wait $run || status=$?
    echo $status >/job/$number.status
    cp -r /tmp/$number.rec /job/
done
"""


def check(job: Path) -> None:
    """Each run ended with the loss of its drive, and its recording has that and the resets before."""
    assert (job / "meta.status").read_text().strip() == "2"
    assert "metadata" in (job / "meta.json").read_text()
    for number in ("0", "1"):
        assert (job / f"{number}.status").read_text().strip() == "4", (job / f"{number}.json").read_text()
        lines = (job / f"{number}.rec" / "drive_events.jsonl").read_text().splitlines()
        kinds = [json.loads(line)["kind"] for line in lines]
        assert kinds.count("controller_gone") == 1, kinds
        assert "controller_reset" in kinds, kinds
        with Recording.open(job / f"{number}.rec") as recording:
            summary = summarize(recording)
        warnings = {each["code"]: each["message"] for each in summary["warnings"]}
        assert "was gone before the run was over" in warnings["drive_lost"], warnings
        assert "the controller was reset" in warnings["controller_reset"], warnings
