"""What the doctor says of the paths to drives that a kernel shows: IOMMU groups, namespaces, controllers, and
what it says when VFIO is missing or has a drive. Its other tests lay such trees out by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

from guest import Guest
from python_files import ENVIRONMENT

GUEST = Guest(
    disks={"one": "32M", "two": "32M", "shared": "32M"},
    devices=(
        "nvme,serial=VM0,id=both",
        "nvme-ns,drive=one,bus=both,nsid=1,logical_block_size=4096,physical_block_size=4096",
        "nvme-ns,drive=two,bus=both,nsid=2",
        "nvme-subsys,id=subsystem,nqn=testdrive",
        "nvme,id=left,serial=VM1,subsys=subsystem",
        "nvme,id=right,serial=VM1,subsys=subsystem",
        "nvme-ns,drive=shared,nsid=1,shared=on,bus=left",
    ),
    modules=("vfio-pci", "vfio_iommu_type1"),
    python=("testdrive.doctor.direct", "testdrive.doctor.drive"),
    iommu=True,
)

SCRIPT = f"""
set -eu
{ENVIRONMENT}
cat >/tmp/look.py <<END
import json, sys
from testdrive.doctor import direct, drive
from testdrive.doctor.host import Host

with open("/tmp/listed.json") as input:
    listed = json.load(input)
by_uri = {{entry["uri"]: entry for entry in listed}}
found = {{"host": list(direct.findings(Host()))}}
for uri in sys.argv[2:]:
    found[uri] = list(drive.findings(Host(), uri, by_uri))
told = {{
    uri: {{each.code: [each.severity, each.found] for each in findings}} for uri, findings in found.items()
}}
with open(sys.argv[1], "w") as output:
    json.dump(told, output)
END
address=$(address_of VM0)
one=/dev/$(basename $(ls -d /sys/bus/pci/devices/$address/nvme/nvme*/nvme*n1))
shared=/dev/$(basename $(ls -d /sys/devices/virtual/nvme-subsystem/*/nvme*n1))
echo $address $one $(address_of VM1) $shared >/job/names
testdrive-engine drives >/tmp/listed.json
python3 -S /tmp/look.py /job/all.json $one $(echo $one | sed s/nvme/ng/) pci:$address $shared
echo vfio-pci >/sys/bus/pci/devices/$address/driver_override
echo $address >/sys/bus/pci/drivers/nvme/unbind
echo $address >/sys/bus/pci/drivers_probe
python3 -S /tmp/look.py /job/bound.json pci:$address
testdrive-engine drives --release $address
rmmod vfio-pci
python3 -S /tmp/look.py /job/without.json pci:$address
"""


def check(job: Path) -> None:
    """Each path is usable where it is, and what is wanting is named where it is not."""
    address, one, _, shared = (job / "names").read_text().split()
    told = json.loads((job / "all.json").read_text())
    assert told["host"]["passthrough"] == ["ok", "usable, 3 namespaces"], told["host"]
    severity, found = told["host"]["user_space_driver"]
    assert severity == "ok", found
    assert found.endswith(" IOMMU groups, vfio-pci loaded"), found
    assert told["host"]["without_iommu"][1].startswith("not needed")
    passthrough = one.replace("nvme", "ng")
    for name in (one, passthrough, f"pci:{address}"):
        severity, found = told[name]["user_space_driver"]
        assert severity == "ok", (name, found)
        assert found.startswith(f"pci:{address} is usable: alone in IOMMU group "), found
        assert found.endswith(
            ", in blocks of 512 and 4,096 bytes; choose one of its 2 namespaces with ?namespace=N"
        ), found
    for name in (one, passthrough):
        assert told[name]["passthrough"] == ["ok", f"{passthrough} is usable, in blocks of 4,096 bytes"]
        assert told[name]["block_size"] == ["ok", "4,096 bytes"]
        assert told[name]["drive_in_use"][0] == "ok"
    severity, found = told[shared]["user_space_driver"]
    assert severity == "info"
    assert found.endswith(" reaches the same drive"), found
    bound = json.loads((job / "bound.json").read_text())[f"pci:{address}"]
    assert bound["drive_in_use"][1].startswith("it is with vfio-pci")
    without = json.loads((job / "without.json").read_text())
    assert without[f"pci:{address}"]["user_space_driver"] == [
        "problem",
        "not usable: vfio-pci is not loaded",
    ]
    assert without["host"]["user_space_driver"][0] == "info"
