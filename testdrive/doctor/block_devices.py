"""Block devices as sysfs has them: which disk something is on, and the PCI device under a disk."""

from __future__ import annotations

import re
from pathlib import Path

from testdrive.doctor.host import Host


def disk_of(host: Host, name: str) -> str | None:
    """The whole disk of a block device's name: ``nvme0n1`` of ``nvme0n1p2``; None where there is none."""
    directory = host.path(f"sys/class/block/{name}")
    if not directory.exists():
        return None
    if not (directory / "partition").exists():
        return name
    return directory.resolve().parent.name


def disk_of_node(host: Host, uri: str) -> str | None:
    """The whole disk of a path such as ``/dev/disk/by-id/...``; None where it is no block device.

    The character device of an NVMe namespace stands for the block device with its numbers.
    """
    node = host.path(uri)
    name = node.resolve().name if node.exists() else Path(uri).name
    return disk_of(host, re.sub(r"^ng(\d+n\d+)$", r"nvme\1", name))


def disks_beneath(host: Host, name: str) -> set[str]:
    """The disks that a device stands on: itself, or those below a volume, an array or a partition."""
    disk = disk_of(host, name)
    if disk is None:
        return set()
    below = host.all(f"sys/class/block/{name}/slaves/*") or host.all(f"sys/class/block/{disk}/slaves/*")
    found: set[str] = set()
    for each in below:
        found |= disks_beneath(host, each.name)
    return found or {disk}


def controller(host: Host, disk: str) -> Path | None:
    """The directory of the NVMe controller of a disk; of one of them, where it has several paths."""
    device = host.path(f"sys/class/block/{disk}/device")
    if not disk.startswith("nvme") or not device.exists():
        return None
    if (device / "transport").exists() or (device / "address").exists():
        return device
    paths = sorted(path for path in device.glob("nvme[0-9]*") if (path / "transport").exists())
    return paths[0] if paths else device


def pci_device(host: Host, disk: str) -> Path | None:
    """The PCI device of an NVMe disk; None for another bus or transport."""
    found = controller(host, disk)
    if found is None:
        return None
    device = (found / "device").resolve()
    return device if (device / "current_link_speed").exists() else None
