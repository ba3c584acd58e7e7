"""A drive that is taken out of its slot in order during a run: the run ends and lets go of the drive, so that
the kernel does not have to wait for it."""

from __future__ import annotations

import json
from pathlib import Path

from guest import Guest

GUEST = Guest(
    disks={"disk0": "64M"},
    devices=(
        "pcie-root-port,id=rp,chassis=9,slot=9",
        "nvme,serial=VM0,bus=rp,id=hot,drive=disk0",
    ),
    modules=("vfio-pci", "vfio_iommu_type1"),
    iommu=True,
)

SCRIPT = """
set -eu
address=$(cat /sys/class/nvme/nvme0/address)
cat >/tmp/job.json <<END
{"version": 1, "drive": {"uri": "pci:$address"}, "output": "/tmp/gone.rec",
 "phases": [{"kind": "synthetic", "duration_ns": 600000000000}]}
END
testdrive-engine run --job /tmp/job.json >/job/gone.json &
run=$!
wait_until tells /job/gone.json progress
echo '{"execute": "device_del", "arguments": {"id": "hot"}}' >/job/monitor.del.part
mv /job/monitor.del.part /job/monitor.del
wait $run || true
wait_until [ ! -e /sys/bus/pci/devices/$address ]
dmesg | grep -c "blocked until released" >/job/blocked || true
cp -r /tmp/gone.rec /job/
"""


def check(job: Path) -> None:
    """The run failed since the drive went, and said so; the kernel did not wait for it in vain."""
    finished = json.loads((job / "gone.json").read_text().splitlines()[-1])
    assert (finished["event"], finished["status"]) == ("finished", "failed")
    assert "the drive is gone" in finished["reason"]
    assert (job / "blocked").read_text().strip() == "0"
    manifest = json.loads((job / "gone.rec" / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert manifest["counts"]["ios"] > 0
    lines = (job / "gone.rec" / "drive_events.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["controller_gone"]
