"""NVMe passthrough: the drive's own commands, sent to the character device of a namespace."""

from __future__ import annotations

import re

from testdrive.doctor.block_devices import logical_block_bytes, wanting_of_namespace
from testdrive.doctor.finding import Finding, ok
from testdrive.doctor.host import Host
from testdrive.doctor.privileges import may_administer
from testdrive.doctor.wanting import Wanting, judged
from testdrive.report import units, words

#: Of Linux: commands by io_uring at all, and with buffers that are registered once.
_SINCE, _BUFFERS_SINCE = (5, 19), (6, 1)
#: As the engine has it (docs/direct-paths.md).
_POLLS_SINCE = (6, 16)
_PATH = "/dev/ngXnY (NVMe passthrough)"
_NODE = re.compile(r"ng\d+n\d+")


def passthrough(host: Host) -> Finding:
    """Whether NVMe drives can be reached past the block layer here."""
    if not host.all("sys/class/nvme/nvme[0-9]*"):
        return ok("passthrough", "no NVMe drive is here that it could reach")
    nodes = sum(_NODE.fullmatch(path.name) is not None for path in host.all("dev/ng*"))
    wanting = _of_host(host)
    if not nodes:
        wanting.append(Wanting("no namespace has a character device", "boot Linux 5.19 or newer"))
    return judged("passthrough", _PATH, f"usable, {words.plural(nodes, 'namespace')}{_note(host)}", wanting)


def of_drive(host: Host, subject: str, disk: str, *, is_chosen: bool = False) -> Finding:
    """Whether this namespace can be reached past the block layer.

    `is_chosen` says that the drive was named so.
    """
    node = f"/dev/{disk.replace('nvme', 'ng', 1)}"
    wanting = _of_host(host)
    if not host.exists(node):
        wanting.append(Wanting(f"there is no {node}", "boot Linux 5.19 or newer"))
    wanting += wanting_of_namespace(host, disk)
    block = logical_block_bytes(host, disk)
    usable = f"{node} is usable, in blocks of {units.count(block)} bytes{_note(host)}"
    return judged("passthrough", node, usable, wanting, subject=subject, is_chosen=is_chosen)


def polls_soundly(host: Host) -> bool:
    """Whether the kernel polls for commands of passthrough without a risk to the host."""
    return _release(host) >= _POLLS_SINCE


def _of_host(host: Host) -> list[Wanting]:
    found = []
    if _release(host) < _SINCE:
        found.append(Wanting("the kernel is older than 5.19", "boot Linux 5.19 or newer"))
    if not host.probe_ring().available:
        found.append(Wanting("there is no io_uring", "allow io_uring (see io uring above)"))
    if not may_administer(host):
        found.append(Wanting("this user may not send commands", "run as root"))
    return found


def _note(host: Host) -> str:
    return "" if _release(host) >= _BUFFERS_SINCE else "; without registered buffers, which Linux 6.1 has"


def _release(host: Host) -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", host.read("proc/sys/kernel/osrelease") or "")
    # A kernel that does not tell is not found wanting.
    return (int(numbers[1]), int(numbers[2])) if numbers else _BUFFERS_SINCE
