"""Block devices as sysfs has them: which disk something is on, and the PCI device under a disk."""

from __future__ import annotations

import re
from pathlib import Path

from testdrive.doctor.host import Host
from testdrive.doctor.wanting import Wanting


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


def pci_address(host: Host, disk: str) -> str | None:
    """The PCI address of the controller of an NVMe disk; None for another bus or transport."""
    found = controller(host, disk)
    if found is None or host.read(found / "transport") not in ("pcie", None):
        return None
    device = (found / "device").resolve()
    return (
        device.name if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", device.name) else None
    )


def logical_block_bytes(host: Host, disk: str) -> int:
    """The smallest unit that can be addressed; 512 where the kernel does not tell."""
    return host.number(f"sys/class/block/{disk}/queue/logical_block_size") or 512


def wanting_of_namespace(host: Host, disk: str) -> list[Wanting]:
    """What keeps a namespace from being driven by NVMe commands of ours, whose blocks are plain."""
    found = []
    if (host.number(f"sys/class/block/{disk}/metadata_bytes") or 0) > 0:
        remedy = "format it without metadata, or use the block path"
        found.append(Wanting(f"the blocks of {disk} have metadata", remedy))
    if (host.read(f"sys/class/block/{disk}/queue/zoned") or "none") != "none":
        found.append(Wanting(f"{disk} is zoned", "use the block path"))
    return found


def namespaces_of(host: Host, address: str) -> list[str]:
    """The block devices of the NVMe controller at a PCI address, by the names of those that can be opened."""
    controllers = host.all(f"sys/bus/pci/devices/{address}/nvme/nvme[0-9]*")
    names = [path.name for controller in controllers for path in sorted(controller.glob("nvme*n*"))]
    # One of several paths to a namespace, nvme0c1n1, is hidden behind nvme0n1.
    return sorted({re.sub(r"c\d+(?=n)", "", name) for name in names})


def controllers_beside(host: Host, address: str) -> list[str]:
    """Other controllers of the subsystem of the one at a PCI address."""
    own = {path.name for path in host.all(f"sys/bus/pci/devices/{address}/nvme/nvme[0-9]*")}
    for subsystem in host.all("sys/class/nvme-subsystem/*"):
        members = {path.name for path in subsystem.glob("nvme*") if re.fullmatch(r"nvme\d+", path.name)}
        if members & own:
            return sorted(members - own)
    return []
