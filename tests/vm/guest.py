"""A throw-away Linux guest, emulated in software: what it has, and one run of a script in it."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from monitor import Monitor

QEMU = "qemu-system-x86_64"
#: What makes the emulated kernel start fast, keep its clock, and end at once if it meets a defect of its own.
KERNEL_ARGUMENTS = (
    "console=ttyS0 panic=-1 oops=panic quiet loglevel=4 mitigations=off tsc=reliable nokaslr no_timer_check"
    " cryptomgr.notests random.trust_cpu=on rcupdate.rcu_expedited=1 audit=0"
)
_CONSOLE_LINES = 60
#: What every script may call. An emulated processor on a busy machine takes its time.
PRELUDE = """
wait_until() { # COMMAND...
    n=0
    until "$@"; do
        n=$((n + 1)); [ $n -lt 900 ] || { echo "not reached in 90 s: $*"; exit 1; }
        sleep 0.1
    done
}
address_of() { # SERIAL
    for each in /sys/class/nvme/nvme*; do
        [ "$(tr -d ' ' <$each/serial)" != $1 ] || cat $each/address
    done | head -n 1
}
tells() { grep -qs "\\"$2\\"" "$1"; } # FILE EVENT
"""


@dataclass(frozen=True)
class Guest:
    """What a case needs.

    ``disks`` are raw images by name with their size, for QEMU's ``-device`` arguments in ``devices`` to name;
    ``programs`` are taken from this machine with their libraries, or from the packages in ``packages``, which
    are downloaded and not installed. ``python`` are modules that scripts of the guest's ``python3`` import:
    this interpreter's own, with what they need. ``iommu`` is Intel's, so that VFIO can be used. ``traces``
    are events of QEMU's own, which it writes into ``qemu.log`` of the job's folder.
    """

    disks: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[str] = ()
    modules: Sequence[str] = ()
    programs: Sequence[str] = ()
    packages: Sequence[str] = ()
    python: Sequence[str] = ()
    cpus: int = 2
    memory_mib: int = 768
    limit_s: float = 300.0
    kernel_arguments: str = ""
    iommu: bool = False
    traces: Sequence[str] = ()
    #: Whether the kernel's VFIO is built so that it can do without an IOMMU.
    unsafe_vfio: bool = False
    #: Whether it boots the newer of the two kernels (``image.NEWER_KERNEL_PACKAGE``).
    newer_kernel: bool = False
    #: Whether the disks' images are left in the job's folder, as ``NAME.img``, to be looked at afterwards.
    keeps_images: bool = False
    #: Whether its figures are worth less with another guest beside it.
    alone: bool = False
    #: Of a disk by name: what fails of it, as QEMU's blkdebug has it in its configuration files.
    faults: Mapping[str, str] = field(default_factory=dict)


def nvme(*sizes: str, **properties: str) -> Guest:
    """A guest with plain NVMe drives of these sizes, with serials ``VM0``, ``VM1`` and so on."""
    disks = {f"disk{number}": size for number, size in enumerate(sizes)}
    more = "".join(f",{key}={value}" for key, value in properties.items())
    devices = [f"nvme,serial=VM{number},drive={name}{more}" for number, name in enumerate(disks)]
    return Guest(disks=disks, devices=devices)


class GuestError(Exception):
    """The guest gave no result."""


@dataclass(frozen=True)
class Result:
    """The exit status of the case's script and what it printed."""

    status: int
    output: str
    elapsed_s: float


def run(guest: Guest, kernel: Path, initramfs: Path, job: Path, script: str) -> Result:
    """Boot, run ``script`` with the folder ``job`` shared as ``/job``, and wait for its end.

    Raises
    ------
    GuestError
        QEMU failed, or the guest ended or was ended without a result.
    """
    (job / "case.sh").write_text(PRELUDE + script)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="testdrive-vm-") as folder:
        console = Path(folder) / "console"
        command = _command(guest, kernel, initramfs, job, Path(folder), console)
        try:
            with Monitor(Path(folder) / "monitor", job):
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=guest.limit_s
                )
            why = f"QEMU ended with status {done.returncode}: {done.stderr.strip()}"
        except subprocess.TimeoutExpired:
            why = f"it was ended after {guest.limit_s:.0f} s"
        lines = console.read_text(errors="replace").splitlines() if console.is_file() else []
    output, status = job / "output", job / "status"
    said = output.read_text(errors="replace") if output.is_file() else ""
    if not status.is_file():
        console_end = "\n".join(lines[-_CONSOLE_LINES:])
        raise GuestError(f"the guest gave no result, {why}\n{said}\nits console:\n{console_end}")
    return Result(int(status.read_text()), said, time.monotonic() - began_s)


def _command(
    guest: Guest, kernel: Path, initramfs: Path, job: Path, folder: Path, console: Path
) -> list[str]:
    command = [
        *(QEMU, "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-machine", "q35"),
        *("-qmp", f"unix:{folder}/monitor,server=on,wait=off"),
        *("-smp", str(guest.cpus), "-m", str(guest.memory_mib)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-serial", f"file:{console}", "-kernel", str(kernel), "-initrd", str(initramfs)),
        *("-append", " ".join([KERNEL_ARGUMENTS, *_iommu_arguments(guest), guest.kernel_arguments])),
        # The guest sees this folder of the machine and nothing else.
        *("-fsdev", f"local,id=job,path={job},security_model=none"),
        *("-device", "virtio-9p-pci,fsdev=job,mount_tag=job"),
    ]
    if guest.iommu:
        # Before the drives, which are then behind it.
        command += ["-device", "intel-iommu,intremap=on,caching-mode=on"]
    if guest.traces:
        command += ["-D", str(job / "qemu.log")]
    for event in guest.traces:
        command += ["-trace", event]
    for name, size in guest.disks.items():
        image = (job if guest.keeps_images else folder) / f"{name}.img"
        with image.open("wb") as made:
            made.truncate(_bytes(size))
        file = str(image)
        if name in guest.faults:
            faults = folder / f"{name}.faults"
            faults.write_text(guest.faults[name])
            file = f"blkdebug:{faults}:{image}"
        options = "if=none,format=raw,cache=unsafe,discard=unmap,detect-zeroes=off"
        command += ["-drive", f"file={file},id={name},{options}"]
    for device in guest.devices:
        command += ["-device", device]
    return command


def _iommu_arguments(guest: Guest) -> list[str]:
    return ["intel_iommu=on", "iommu=nopt"] if guest.iommu else []


def _bytes(size: str) -> int:
    units = {"M": 1 << 20, "G": 1 << 30}
    return int(size[:-1]) * units[size[-1]]
