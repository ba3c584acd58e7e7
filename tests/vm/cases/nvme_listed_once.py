"""Each NVMe drive is listed once, with every path to it, also where two controllers lead to one namespace;
its identity is the same by the block path and by passthrough.
"""

from __future__ import annotations

import json
from pathlib import Path

from guest import Guest

GUEST = Guest(
    disks={"shared": "64M", "large": "64M"},
    devices=(
        "nvme-subsys,id=subsystem,nqn=testdrive",
        "nvme,id=first,serial=VM0,subsys=subsystem",
        "nvme,id=second,serial=VM0,subsys=subsystem",
        "nvme-ns,drive=shared,nsid=1,shared=on,bus=first",
        "nvme,serial=VM1,id=other",
        "nvme-ns,drive=large,bus=other,logical_block_size=4096,physical_block_size=4096",
    ),
)

SCRIPT = """
set -eu
testdrive-engine drives >/job/drives.json
for path in $(ls /dev/nvme*n1 /dev/ng*n1); do
    name=$(basename $path)
    echo '{"version": 1, "drive": {"uri": "'$path'"}, "output": "/tmp/'$name'.rec",
      "phases": [{"kind": "synthetic", "ios": 100}]}' >/tmp/job.json
    testdrive-engine run --job /tmp/job.json >/dev/null
    cp /tmp/$name.rec/manifest.json /job/$name.manifest
done
"""

_IDENTITY = ("model", "serial", "firmware", "capacity_bytes", "logical_block_bytes", "physical_block_bytes")


def check(job: Path) -> None:
    """One entry for each drive; each of its kernel paths was opened and told the same identity."""
    listed = json.loads((job / "drives.json").read_text())
    drives = {drive["serial"]: drive for drive in listed}
    assert sorted(drive["serial"] for drive in listed) == ["VM0", "VM1"], listed
    ways = {serial: [path["path"] for path in drive["paths"]] for serial, drive in drives.items()}
    assert ways["VM0"] == ["block", "nvme_passthrough", "userspace", "userspace"], ways
    assert ways["VM1"] == ["block", "nvme_passthrough", "userspace"], ways
    for drive in drives.values():
        for path in drive["paths"][:2]:
            manifest = json.loads((job / f"{Path(path['uri']).name}.manifest").read_text())
            for key in _IDENTITY:
                assert manifest["drive"][key] == drive[key], (path, key)
            assert manifest["drive"]["path"] == path["path"].replace("block", "io_uring")
    assert drives["VM1"]["logical_block_bytes"] == 4096
