"""What was measured on: the facts without which figures mean nothing."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import child
from benchmarks.errors import BenchmarkError

FIO = "fio"


@dataclass(frozen=True)
class Machine:
    """The host and the programs compared."""

    cpu_model: str
    cpus: int
    memory_bytes: int
    kernel: str
    fio_version: str
    engine_version: str

    def json(self) -> dict[str, object]:
        return asdict(self)

    def sentence(self) -> str:
        return (
            f"{self.cpus} CPUs ({self.cpu_model}), {self.memory_bytes / 2**30:.0f} GiB,"
            f" Linux {self.kernel}, {self.fio_version}, {self.engine_version}"
        )


def look(engine: Path) -> Machine:
    """The facts of this host.

    Raises
    ------
    BenchmarkError
        There is no fio to compare with.
    """
    if shutil.which(FIO) is None:
        raise BenchmarkError(
            "fio is not installed, and every figure stands beside fio's; install the package fio"
        )
    return Machine(
        cpu_model=_cpu_model(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        kernel=platform.release(),
        fio_version=child.run([FIO, "--version"], timeout_s=120).output.strip(),
        engine_version=child.run([engine, "--version"], timeout_s=120).output.strip(),
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


class Noise:
    """What else the machine did meanwhile: other programs, and what a hypervisor kept of the CPU time."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._stolen_s, self._used_s = _cpu_seconds()
        self._own_s = _own_cpu_seconds()

    def json(self) -> dict[str, float]:
        """The time since the start, and shares of the whole machine's CPU time in it.

        Others are whatever is not a child of this process, such as the kernel's threads of a loop device.
        """
        elapsed_s = time.monotonic() - self._began_s
        stolen_s, used_s = _cpu_seconds()
        stolen_s, used_s = stolen_s - self._stolen_s, used_s - self._used_s
        others_s = max(used_s - (_own_cpu_seconds() - self._own_s), 0.0)
        whole_s = max(elapsed_s * (os.cpu_count() or 1), 1e-9)
        return {
            "elapsed_s": elapsed_s,
            "others_share": others_s / whole_s,
            "stolen_share": stolen_s / whole_s,
        }


def _own_cpu_seconds() -> float:
    """Of this process and the children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _cpu_seconds() -> tuple[float, float]:
    """Stolen and used since boot, over all CPUs."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, interrupts, soft, stolen = ticks[:8]
    hertz = os.sysconf("SC_CLK_TCK")
    return stolen / hertz, (user + nice + system + interrupts + soft) / hertz
