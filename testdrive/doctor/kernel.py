"""The kernel: io_uring, memory, tracing, and what it is a guest of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from testdrive import power
from testdrive.doctor.finding import Finding, info, ok, problem, warning
from testdrive.doctor.host import Host
from testdrive.report import units

_DEFERRED_SINCE = "6.1"
_OLDEST = (5, 10)
#: What the buffers of a deep queue come to.
MEMORY_LOCK_BYTES_MIN = 256 << 20


def findings(host: Host) -> Iterator[Finding]:
    """Every finding about the kernel."""
    yield version(host)
    yield io_uring(host)
    yield memory_lock(host)
    yield huge_pages(host)
    yield tracing(host)
    yield power_sources(host)
    yield virtual(host)


def version(host: Host) -> Finding:
    """How old the kernel is."""
    release = host.read("proc/sys/kernel/osrelease") or "not known"
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers and (int(numbers[1]), int(numbers[2])) >= _OLDEST:
        return ok("kernel", release)
    return warning(
        "kernel",
        release,
        "io_uring of so old a kernel lacks what the engine uses: runs go through threads",
        f"boot a kernel of {_DEFERRED_SINCE} or newer",
    )


def io_uring(host: Host) -> Finding:
    """Whether I/O can go through io_uring, and with deferred task work."""
    ring = host.probe_ring()
    if ring.deferred:
        return ok("io_uring", "available, with deferred task work")
    if ring.available:
        return warning(
            "io_uring",
            "available, without deferred task work",
            "completions interrupt the submitting thread: an I/O costs more, and some are late",
            f"boot a kernel of {_DEFERRED_SINCE} or newer",
        )
    switch = host.number("proc/sys/kernel/io_uring_disabled")
    remedy = "allow io_uring_setup in the container's seccomp profile"
    if switch:
        remedy = "sysctl kernel.io_uring_disabled=0"
    return problem(
        "io_uring",
        "switched off" if switch else "not available",
        "runs go through threads that block: an I/O costs ten times as much, and depth costs threads",
        remedy,
    )


def memory_lock(host: Host) -> Finding:
    """Whether buffers may be registered with the kernel."""
    limit_bytes = host.memory_lock_limit_bytes()
    if limit_bytes is None or limit_bytes >= MEMORY_LOCK_BYTES_MIN:
        shown = "no limit for this user" if limit_bytes is None else units.size(limit_bytes)
        return ok("memory_lock", shown)
    return warning(
        "memory_lock",
        units.size(limit_bytes),
        "buffers of deep queues cannot be registered: each I/O then costs the mapping of its pages",
        "ulimit -l unlimited (as root; or 'memlock' in /etc/security/limits.conf)",
    )


def huge_pages(host: Host) -> Finding:
    """How many huge pages are set aside: only the user-space driver without an IOMMU needs them."""
    values = _meminfo(host)
    total, free = values.get("HugePages_Total", 0), values.get("HugePages_Free", 0)
    if not total:
        return ok("huge_pages", "none set aside: only the user-space driver without an IOMMU needs them")
    return ok(
        "huge_pages",
        f"{units.count(total)} of {units.size(values.get('Hugepagesize', 0) * 1024)}, {free} free",
    )


def _meminfo(host: Host) -> dict[str, int]:
    found = {}
    for line in (host.read("proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[name] = int(words[0])
    return found


def tracing(host: Host) -> Finding:
    """Whether `testdrive capture` can work here."""
    lockdown = host.read("sys/kernel/security/lockdown") or ""
    if "[confidentiality]" in lockdown:
        return info(
            "tracing",
            "locked down (confidentiality)",
            "testdrive capture is not possible; runs are not affected",
            "boot with lockdown=integrity or less",
        )
    mounted = [line.split() for line in (host.read("proc/self/mounts") or "").splitlines()]
    places = [words[1] for words in mounted if len(words) > 2 and words[2] == "tracefs"]
    if not places:
        return info(
            "tracing",
            "tracefs is not mounted",
            "testdrive capture is not possible; runs are not affected",
            "mount -t tracefs tracefs /sys/kernel/tracing",
        )
    if not any(host.exists(f"{place}/events/block") for place in places):
        return info(
            "tracing",
            f"{places[0]} shows no block events",
            "testdrive capture needs root, and a kernel that has them; runs are not affected",
            "sudo testdrive doctor",
        )
    return ok("tracing", f"tracefs at {places[0]}, with block events")


def power_sources(host: Host) -> Finding:
    """What could measure power here. A drive's own log may: only reading it tells."""
    meters = power.found(host.path("sys"))
    shown = [
        f"{meter.address} (the host)"
        if meter.of == "host"
        else meter.address
        if meter.tells_power
        else f"{meter.address} (if the drive tells its power)"
        for meter in meters
    ]
    if any(meter.of == "drive" and meter.tells_power for meter in meters):
        return ok("power_sources", "; ".join(shown))
    return warning(
        "power_sources",
        "; ".join([*shown, "none that surely measures the drive"]) if shown else "none",
        "watts of a real drive are not measured; everything else is",
        "put a power meter before the drive, and see `testdrive power list`; or attach its log after the run",
    )


def virtual(host: Host) -> Finding:
    """Whether this is a guest."""
    flagged = any(
        line.partition(":")[0].strip() == "flags" and "hypervisor" in line.split()
        for line in (host.read("proc/cpuinfo") or "").splitlines()
    )
    product = host.read("sys/class/dmi/id/product_name")
    if not flagged:
        return ok("virtual", product or "bare metal, as far as the processor says")
    return warning(
        "virtual",
        f"a guest ({product})" if product else "a guest",
        "drives are behind the hypervisor, which adds latency and may cache; other guests share the host",
        "measure on bare metal, or hand the drive through to this guest (PCI passthrough)",
    )
