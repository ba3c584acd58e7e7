"""testdrive's own NVMe driver: what it needs of this host, with an IOMMU and without, and of a drive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from testdrive.doctor.block_devices import (
    controllers_beside,
    logical_block_bytes,
    namespaces_of,
    wanting_of_namespace,
)
from testdrive.doctor.finding import Finding, ok
from testdrive.doctor.host import Host
from testdrive.doctor.privileges import may_administer, sysfs_is_writable
from testdrive.doctor.wanting import Wanting, judged
from testdrive.report import units, words

_NVME_CLASS = "0x010802"
_BRIDGE_CLASS = "0x0604"
#: Drivers that let the rest of an IOMMU group be.
_HARMLESS_DRIVERS = ("vfio-pci", "pci-stub")
_NOIOMMU = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
#: What the driver takes for one submitter, in pages of 2 MiB.
HUGE_PAGES_MIN = 20
_PATH = "pci:ADDRESS (the user-space driver)"
_PATH_WITHOUT = "pci:ADDRESS?noiommu=yes (only where nothing matters)"

Listed = Mapping[str, Mapping[str, Any]]


def user_space_driver(host: Host) -> Finding:
    """Whether the driver can be used here, behind an IOMMU."""
    if not _nvme_functions(host):
        return ok("user_space_driver", "no NVMe drive is on this host's PCI bus")
    groups = len(host.all("sys/kernel/iommu_groups/[0-9]*"))
    wanting = [] if groups else [_no_iommu(host, "there is no IOMMU")]
    wanting += _of_host(host)
    usable = f"usable: {words.plural(groups, 'IOMMU group')}, vfio-pci loaded"
    return judged("user_space_driver", _PATH, usable, wanting)


def without_iommu(host: Host) -> Finding:
    """Whether the driver can do without an IOMMU here: for machines on which nothing matters."""
    if not _nvme_functions(host):
        return ok("without_iommu", "no NVMe drive is on this host's PCI bus")
    if host.all("sys/kernel/iommu_groups/[0-9]*"):
        return ok("without_iommu", "not needed: there is an IOMMU, which is safer")
    usable = "usable with noiommu=yes: nothing keeps a drive from writing anywhere in memory"
    return judged("without_iommu", _PATH_WITHOUT, usable, [*_of_host(host), *_of_noiommu(host)])


def of_drive(
    host: Host, subject: str, address: str, listed: Listed, *, is_chosen: bool = False, noiommu: bool = False
) -> Finding:
    """Whether the driver can have the controller at this address.

    `is_chosen` says that the drive was named by its address, `noiommu` that it was with ``noiommu=yes``.
    """
    code, path = "user_space_driver", f"pci:{address}"
    group = host.path(f"sys/bus/pci/devices/{address}/iommu_group")
    wanting = _of_host(host)
    if noiommu and group.exists():
        wanting.append(Wanting("it is behind an IOMMU, which is safer", "leave noiommu=yes out"))
    elif noiommu:
        wanting += _of_noiommu(host)
    elif not group.exists():
        wanting.append(_no_iommu(host, "it has no IOMMU group"))
    else:
        wanting += _others_in_group(host, address, group.resolve().name)
    disks = namespaces_of(host, address)
    for disk in disks:
        wanting += _in_use(listed, disk)
        wanting += wanting_of_namespace(host, disk)
    others = controllers_beside(host, address)
    if others:
        shown = f"{', '.join(others)} reaches the same drive"
        wanting.append(Wanting(shown, "detach the other controller of its subsystem"))
    isolation = f"alone in IOMMU group {group.resolve().name}" if group.exists() else "without an IOMMU"
    blocks = {logical_block_bytes(host, disk) for disk in disks}
    sizes = f", in blocks of {' and '.join(map(units.count, sorted(blocks)))} bytes" if blocks else ""
    choice = f"; choose one of its {len(disks)} namespaces with ?namespace=N" if len(disks) > 1 else ""
    usable = f"{path} is usable: {isolation}{sizes}{choice}"
    return judged(code, path, usable, wanting, subject=subject, is_chosen=is_chosen)


def is_nvme(host: Host, address: str) -> bool:
    """Whether an NVMe controller is at a PCI address."""
    return host.read(f"sys/bus/pci/devices/{address}/class") == _NVME_CLASS


def _nvme_functions(host: Host) -> list[str]:
    addresses = [path.name for path in host.all("sys/bus/pci/devices/*")]
    return [address for address in addresses if is_nvme(host, address)]


def _of_host(host: Host) -> list[Wanting]:
    """What binding a drive to VFIO takes, with an IOMMU and without."""
    found = []
    if not host.exists("sys/bus/pci/drivers/vfio-pci"):
        release = host.read("proc/sys/kernel/osrelease")
        modules = host.read(f"lib/modules/{release}/modules.dep")
        if modules is not None and "/vfio-pci.ko" not in modules:
            found.append(Wanting("the kernel has no vfio-pci", "install a kernel with CONFIG_VFIO_PCI"))
        else:
            found.append(Wanting("vfio-pci is not loaded", "modprobe vfio-pci"))
    if not may_administer(host):
        found.append(Wanting("this user may not bind drivers", "run as root"))
    elif not sysfs_is_writable(host):
        found.append(Wanting("/sys is read-only", "run on the host, or in a privileged container"))
    return found


def _no_iommu(host: Host, what: str) -> Wanting:
    vendor = host.read("proc/cpuinfo") or ""
    if "GenuineIntel" in vendor:
        return Wanting(what, "switch VT-d on in the firmware's setup and boot with intel_iommu=on")
    if "AuthenticAMD" in vendor:
        return Wanting(what, "switch the IOMMU (AMD-Vi) on in the firmware's setup")
    return Wanting(what, "switch the IOMMU on in the firmware's setup")


def _of_noiommu(host: Host) -> list[Wanting]:
    found = []
    allowed = host.read(_NOIOMMU)
    if host.exists("sys/module/vfio") and allowed is None:
        found.append(
            Wanting("the kernel does not let VFIO do without one", "boot a kernel with CONFIG_VFIO_NOIOMMU")
        )
    elif allowed not in ("Y", "1"):
        found.append(Wanting("VFIO may not do without one", f"echo Y > /{_NOIOMMU}"))
    free = host.number("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") or 0
    if free < HUGE_PAGES_MIN:
        shown = f"{free} huge pages of 2 MiB are free, of {HUGE_PAGES_MIN} for each submitter"
        found.append(Wanting(shown, "sysctl vm.nr_hugepages=64"))
    return found


def _others_in_group(host: Host, address: str, group: str) -> list[Wanting]:
    """Devices with drivers that the whole group would have to be taken from."""
    found = []
    for device in host.all(f"sys/bus/pci/devices/{address}/iommu_group/devices/*"):
        driver = device / "driver"
        is_bridge = (host.read(device / "class") or "").startswith(_BRIDGE_CLASS)
        if device.name == address or is_bridge or not driver.exists():
            continue
        if driver.resolve().name not in _HARMLESS_DRIVERS:
            found.append(f"{device.name} ({driver.resolve().name})")
    if not found:
        return []
    remedy = "give the drive a slot whose group it has to itself, or bind the others to vfio-pci"
    return [Wanting(f"in its IOMMU group {group} is also {', '.join(found)}", remedy)]


def _in_use(listed: Listed, disk: str) -> list[Wanting]:
    entry = listed.get(f"/dev/{disk}") or {}
    if any(entry.get(key) for key in ("mounted", "holders", "swap")):
        return [Wanting(f"{disk} is in use", f"stop what uses it (lsblk /dev/{disk} shows what does)")]
    return []


def address_of(uri: str) -> str | None:
    """The address in ``pci:ADDRESS``, as sysfs has it; None where it is none."""
    place = uri.partition("?")[0].lower()
    match = re.fullmatch(r"pci:(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])", place)
    return f"{match[1] or '0000'}:{match[2]}" if match else None
