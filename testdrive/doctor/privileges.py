"""What this process may do, as the kernel has it."""

from __future__ import annotations

from testdrive.doctor.host import Host

_CAP_SYS_ADMIN = 21


def may_administer(host: Host) -> bool:
    """Whether this process may administer (CAP_SYS_ADMIN), which root in a container may lack.

    Where the kernel does not tell, it is taken to have it: nothing is found wanting then that is not.
    """
    for line in (host.read("proc/self/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> _CAP_SYS_ADMIN & 1)
    return True


def sysfs_is_writable(host: Host) -> bool:
    """Whether drivers can be bound by way of sysfs, which containers see read-only."""
    for line in (host.read("proc/self/mounts") or "").splitlines():
        words = line.split()
        if len(words) > 3 and words[1] == "/sys" and words[2] == "sysfs":
            return "ro" not in words[3].split(",")
    return True
