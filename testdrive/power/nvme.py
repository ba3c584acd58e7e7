"""The SMART log of an NVMe drive as a meter, by an admin command on the controller's character device.

Get Log Page (opcode 02h) through NVME_IOCTL_ADMIN_CMD of linux/nvme_ioctl.h. It reads only, and takes root.
It is a command to the drive all the same, which some firmware answers slowly or with a hiccup of the I/Os
beside it: it is sent seldom, once before the run and once after it in any case.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
from pathlib import Path

from testdrive.power import smart
from testdrive.power.choice import Choice
from testdrive.power.meter import Source, Values, sysfs, text_of

_GET_LOG_PAGE = 0x02
_ALL_NAMESPACES = 0xFFFF_FFFF
_CONTROLLER = re.compile(r"nvme\d+")
_NAMESPACE = re.compile(r"(nvme\d+)(c\d+)?n\d+(p\d+)?")
#: A drive that does not answer within this is not answering.
_TIMEOUT_MS = 2000


class AdminCommand(ctypes.Structure):
    """``struct nvme_passthru_cmd`` of linux/nvme_ioctl.h."""

    _fields_ = (
        ("opcode", ctypes.c_uint8),
        ("flags", ctypes.c_uint8),
        ("rsvd1", ctypes.c_uint16),
        ("nsid", ctypes.c_uint32),
        ("cdw2", ctypes.c_uint32),
        ("cdw3", ctypes.c_uint32),
        ("metadata", ctypes.c_uint64),
        ("addr", ctypes.c_uint64),
        ("metadata_len", ctypes.c_uint32),
        ("data_len", ctypes.c_uint32),
        ("cdw10", ctypes.c_uint32),
        ("cdw11", ctypes.c_uint32),
        ("cdw12", ctypes.c_uint32),
        ("cdw13", ctypes.c_uint32),
        ("cdw14", ctypes.c_uint32),
        ("cdw15", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
        ("result", ctypes.c_uint32),
    )


#: _IOWR('N', 0x41, struct nvme_passthru_cmd)
ADMIN_COMMAND_IOCTL = 0xC000_0000 | ctypes.sizeof(AdminCommand) << 16 | ord("N") << 8 | 0x41


def get_log_page(descriptor: int, log_id: int, length_bytes: int) -> bytes:
    """Read a log page of the whole controller.

    Raises
    ------
    OSError
        The kernel or the drive refused the command.
    """
    buffer = ctypes.create_string_buffer(length_bytes)
    dwords = length_bytes // 4 - 1
    command = AdminCommand(
        opcode=_GET_LOG_PAGE,
        nsid=_ALL_NAMESPACES,
        addr=ctypes.addressof(buffer),
        data_len=length_bytes,
        cdw10=log_id | (dwords & 0xFFFF) << 16,
        cdw11=dwords >> 16,
        timeout_ms=_TIMEOUT_MS,
    )
    status = fcntl.ioctl(descriptor, ADMIN_COMMAND_IOCTL, command)
    if status:
        raise OSError(f"the drive refused log page {log_id:#04x} with status {status:#x}")
    return buffer.raw


class NvmeMeter:
    """A drive's SMART log; closed and opened again by whoever makes a new one."""

    def __init__(self, device: Path, choice: Choice) -> None:
        self._descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        self._open = True
        folder = sysfs() / "class" / "nvme" / device.name
        model, serial = text_of(folder / "model"), text_of(folder / "serial")
        self.source = Source(
            name=choice.name,
            kind="nvme",
            of="drive",
            title=f"the SMART log of {model or device.name}",
            interval_ns=choice.interval_ns,
            uncertainty="not stated by the drive",
            details={"device": str(device), "model": model, "serial": serial},
        )

    def read(self) -> Values:
        """Read the log."""
        return smart.decode(get_log_page(self._descriptor, smart.LOG_ID, smart.LOG_BYTES))

    def close(self) -> None:
        """Close the device."""
        if self._open:
            self._open = False
            with contextlib.suppress(OSError):
                os.close(self._descriptor)


def controllers(root: Path | None = None) -> list[Path]:
    """The character devices of this host's NVMe controllers.

    `root` stands for sysfs, where it is another's.
    """
    folder = (root or sysfs()) / "class" / "nvme"
    if not folder.is_dir():
        return []
    names = [path.name for path in folder.iterdir() if _CONTROLLER.fullmatch(path.name)]
    return [Path("/dev") / name for name in sorted(names, key=lambda name: (len(name), name))]


def controller_of(text: str) -> Path | None:
    """The character device of the controller that a path or a drive's URI means; None if it is no NVMe drive.

    With native multipath the kernel's `nvme0n1` may be reached by several controllers: the one of its number
    is asked, which has the same log.
    """
    # The character device of a namespace has the numbers of its block device.
    name = re.sub(r"^ng(\d+n\d+)$", r"nvme\1", Path(text.partition("?")[0]).name)
    match = _NAMESPACE.fullmatch(name)
    if match:
        parent = sysfs() / "class" / "block" / name / "device"
        controller = parent.resolve().name if parent.exists() else match[1]
        return Path("/dev") / (controller if _CONTROLLER.fullmatch(controller) else match[1])
    return Path("/dev") / name if _CONTROLLER.fullmatch(name) else None


def open_meter(choice: Choice) -> NvmeMeter:
    """Open ``nvme:DEVICE``, a controller or a namespace of it.

    Raises
    ------
    UsageError
        It is no NVMe drive, is not there, or its log cannot be read.
    """
    device = controller_of(choice.place)
    if device is None:
        raise choice.error(f"{choice.place!r} is no NVMe drive; give one such as nvme:/dev/nvme0n1")
    if choice.of == "host":
        raise choice.error("a drive's log is the drive's; leave of=host out")
    try:
        meter = NvmeMeter(device, choice)
    except OSError as error:
        raise choice.error(f"{device} cannot be opened: {error.strerror}; run as root") from None
    try:
        meter.read()
    except (OSError, ValueError) as error:
        meter.close()
        raise choice.error(f"the SMART log of {device} cannot be read: {error}") from None
    return meter
