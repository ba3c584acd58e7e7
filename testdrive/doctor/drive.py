"""A drive: may it be written, and what stands between it and its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testdrive.doctor import link, passthrough, user_space
from testdrive.doctor.block_devices import (
    controller,
    disk_of_node,
    logical_block_bytes,
    namespaces_of,
    pci_address,
)
from testdrive.doctor.finding import Finding, info, ok, problem, warning
from testdrive.doctor.host import Host
from testdrive.report import units

#: So near to the temperature at which it complains a drive may throttle within a run.
MARGIN_MC_MIN = 10_000
_WITHOUT_DEVICE = {
    "sim": "a model in virtual time: nothing of this host changes its figures",
    "null": "completes everything at once: it measures testdrive itself",
}

Listed = Mapping[str, Mapping[str, Any]]


def findings(host: Host, uri: str, listed: Listed) -> Iterator[Finding]:
    """Every finding about a drive.

    Parameters
    ----------
    host : Host
        Where to look.
    uri : str
        The drive as ``--drive`` has it.
    listed : mapping
        What the engine lists, by URI.
    """
    kind, _, rest = uri.partition(":")
    place = uri.partition("?")[0]
    if kind in _WITHOUT_DEVICE:
        yield ok("drive", _WITHOUT_DEVICE[kind], subject=place)
        return
    if kind == "file":
        yield in_a_file(host, place, Path(rest.partition("?")[0]))
        return
    if kind == "pci":
        yield from at_an_address(host, uri, listed)
        return
    disk = disk_of_node(host, place)
    if disk is None:
        yield problem(
            "drive",
            "there is no such block device",
            "it cannot be tested",
            "testdrive drives lists those that there are",
            subject=place,
            prevents_runs=True,
        )
        return
    yield may_be_written(place, disk, listed)
    yield block_size(host, place, disk)
    yield scheduler(host, place, disk)
    yield write_cache(host, place, disk)
    if controller(host, disk) is not None:
        yield link.finding(host, place, disk)
        is_passthrough = re.fullmatch(r"ng\d+n\d+", Path(place).name) is not None
        yield polling(host, place, disk, is_passthrough=is_passthrough)
        yield passthrough.of_drive(host, place, disk, is_chosen=is_passthrough)
        address = pci_address(host, disk)
        if address is not None:
            yield user_space.of_drive(host, place, address, listed)
    yield temperature(host, place, disk)


def at_an_address(host: Host, uri: str, listed: Listed) -> Iterator[Finding]:
    """Every finding about a drive that is named by its PCI address, for the user-space driver."""
    place, _, options = uri.partition("?")
    address = user_space.address_of(place)
    is_there = address is not None and host.exists(f"sys/bus/pci/devices/{address}")
    if address is None or not user_space.is_nvme(host, address):
        yield problem(
            "drive",
            "it is no NVMe controller" if is_there else "there is no such PCI device",
            "it cannot be tested",
            "testdrive drives lists those that there are, with their addresses",
            subject=place,
            prevents_runs=True,
        )
        return
    driver = host.path(f"sys/bus/pci/devices/{address}/driver")
    if driver.exists() and driver.resolve().name == "vfio-pci":
        yield warning(
            "drive_in_use",
            "it is with vfio-pci, so that nothing can be looked at",
            "a run goes on with it only if a killed run left it there",
            f"testdrive drives --release {address}, unless a run has it",
            subject=place,
        )
    for disk in namespaces_of(host, address):
        node = f"/dev/{disk}"
        yield may_be_written(node, disk, listed)
        yield block_size(host, node, disk)
        yield write_cache(host, node, disk)
        yield link.finding(host, node, disk)
        yield temperature(host, node, disk)
    noiommu = "noiommu=yes" in options.split("&")
    yield user_space.of_drive(host, place, address, listed, is_chosen=True, noiommu=noiommu)


def in_a_file(host: Host, subject: str, path: Path) -> Finding:
    """A file is not a drive: what is measured is the file system with it."""
    from testdrive.doctor.place import mount_of

    mount = mount_of(host, path.absolute().parent)
    kind = mount.kind if mount else "a file system not known"
    if kind in ("tmpfs", "ramfs", "overlay", "nfs", "nfs4", "fuse"):
        return warning(
            "drive",
            f"a file on {kind}",
            "direct I/O may not be possible there: what is measured may be memory",
            "use a block device, or a file on ext4, xfs or btrfs",
            subject=subject,
        )
    return ok("drive", f"a file on {kind}: figures are the file system's and its drive's", subject=subject)


def may_be_written(subject: str, disk: str, listed: Listed) -> Finding:
    """What the guard says of it, before anything is tried."""
    entry = listed.get(subject) or listed.get(f"/dev/{disk}")
    if entry is None:
        return problem(
            "drive_in_use",
            "the engine does not list it",
            "whether it may be written cannot be told",
            "testdrive drives",
            subject=subject,
            prevents_runs=True,
        )
    if entry.get("erasable"):
        return ok("drive_in_use", f"not in use; --erase {entry.get('erase_name')} consents", subject=subject)
    reasons = "; ".join(str(each) for each in entry.get("refusals") or []) or "refused without a reason"
    used = any(entry.get(key) for key in ("mounted", "holders", "swap", "read_only"))
    if used:
        return problem(
            "drive_in_use",
            reasons,
            "no run that writes is started on it",
            f"unmount it and stop what uses it (lsblk /dev/{disk} shows what does)",
            subject=subject,
            prevents_runs=True,
        )
    return warning(
        "drive_in_use",
        reasons,
        "a run that writes needs the second consent as well, and everything on the drive goes",
        f"--erase {entry.get('erase_name')} --erase-signatures, once nobody needs what is on it",
        subject=subject,
    )


def block_size(host: Host, subject: str, disk: str) -> Finding:
    """The smallest unit that can be addressed, and the one that is written without a read first."""
    logical = logical_block_bytes(host, disk)
    physical = host.number(f"sys/class/block/{disk}/queue/physical_block_size") or logical
    shown = f"{units.count(logical)} bytes"
    if physical > logical:
        shown += f", in physical blocks of {units.count(physical)}: smaller writes may cost a read"
    return ok("block_size", shown, subject=subject)


def scheduler(host: Host, subject: str, disk: str) -> Finding:
    """Whether the kernel orders I/Os itself before the drive sees them."""
    text = host.read(f"sys/class/block/{disk}/queue/scheduler")
    if text is None:
        return ok("io_scheduler", "none (the device takes I/Os as they come)", subject=subject)
    chosen = text.partition("[")[2].partition("]")[0] or text
    if chosen == "none":
        return ok("io_scheduler", "none", subject=subject)
    return warning(
        "io_scheduler",
        chosen,
        "the kernel delays, merges and reorders I/Os: the drive gets another workload than was issued",
        f"echo none > /sys/block/{disk}/queue/scheduler",
        subject=subject,
    )


def write_cache(host: Host, subject: str, disk: str) -> Finding:
    """Whether the drive's volatile write cache is on."""
    text = host.read(f"sys/class/block/{disk}/queue/write_cache") or "not known"
    is_ata = disk.startswith("sd")
    if text == "write back":
        return ok("write_cache", "write back: writes end in the drive's volatile cache", subject=subject)
    if text == "write through" and is_ata:
        return warning(
            "write_cache",
            "write through",
            "if the drive has a cache, it is off: writes take much longer than the drive's data sheet says",
            f"hdparm -W1 /dev/{disk} (hdparm -W /dev/{disk} tells)",
            subject=subject,
        )
    found = "write through: no volatile cache is in use" if text == "write through" else text
    return ok("write_cache", found, subject=subject)


def polling(host: Host, subject: str, disk: str, *, is_passthrough: bool = False) -> Finding:
    """Whether completions can be polled for, without interrupts, by the path of the drive's name."""
    queues = host.number("sys/module/nvme/parameters/poll_queues")
    has_queues = host.read(f"sys/class/block/{disk}/queue/io_poll") == "1"
    if has_queues and is_passthrough and not passthrough.polls_soundly(host):
        return info(
            "poll_queues",
            f"{queues or 'some'}, left alone by passthrough: polling can end a host before Linux 6.16",
            "completions come by interrupt: some microseconds more at depth 1",
            f"boot Linux 6.16 or newer, or name the drive /dev/{disk}: the block path polls on any kernel",
            subject=subject,
        )
    if has_queues:
        return ok("poll_queues", f"{queues or 'some'}: completions can be polled", subject=subject)
    return info(
        "poll_queues",
        "none",
        "completions come by interrupt, as they do for most applications: some microseconds more at depth 1",
        "boot with nvme.poll_queues=4 (or: modprobe -r nvme && modprobe nvme poll_queues=4)",
        subject=subject,
    )


def temperature(host: Host, subject: str, disk: str) -> Finding:
    """How far the drive is from the temperature at which it throttles."""
    directory = _sensor(host, disk)
    value_mc = host.number(directory / "temp1_input") if directory else None
    if directory is None or value_mc is None:
        return ok("temperature", "not known: the drive has no sensor that the kernel shows", subject=subject)
    limit_mc = host.number(directory / "temp1_max")
    shown = f"{value_mc / 1000:.0f} °C"
    if limit_mc is None or value_mc < limit_mc - MARGIN_MC_MIN:
        limit = "" if limit_mc is None else f" (it warns at {limit_mc / 1000:.0f} °C)"
        return ok("temperature", f"{shown}{limit}", subject=subject)
    make, nearness = (problem, "at or above") if value_mc >= limit_mc else (warning, "near")
    return make(
        "temperature",
        f"{shown}, {nearness} the {limit_mc / 1000:.0f} °C at which it warns",
        "it slows itself down: what is measured is the cooling",
        "let it cool down, and give it air as in the place where it will work",
        subject=subject,
    )


def _sensor(host: Host, disk: str) -> Path | None:
    device = controller(host, disk) or host.path(f"sys/class/block/{disk}/device")
    found = sorted([*device.glob("hwmon[0-9]*/temp1_input"), *device.glob("hwmon/hwmon*/temp1_input")])
    return found[0].parent if found else None
