"""The processors' own counters of energy (RAPL), for the host as context: /sys/class/powercap/intel-rapl:*.

Each package counts microjoules in ``energy_uj`` and begins again at 0 after ``max_energy_range_uj``. What is
recorded is each package's counter made continuous, then added up, so that nobody has to unwrap it again: at
the slowest rate that is allowed a counter would have to wrap twice between two readings to deceive it.
"""

from __future__ import annotations

import re
from pathlib import Path

from testdrive.power.choice import Choice
from testdrive.power.meter import Source, Values, integer_of, read_integer, sysfs, text_of

_PACKAGE = re.compile(r"(intel|amd)-rapl:(\d+)")


def packages(root: Path | None = None) -> list[Path]:
    """The packages of this host, in the order of their numbers; what is within a package is counted in it.

    `root` stands for sysfs, where it is another's.
    """
    folder = (root or sysfs()) / "class" / "powercap"
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _PACKAGE.fullmatch(path.name)]
    # `psys` is the whole platform and holds the packages; `dram` alone is none of them.
    named = [path for path in found if (text_of(path / "name") or "").startswith("package")]
    return sorted(named or found, key=lambda path: (len(path.name), path.name))


class RaplMeter:
    """The counters of all packages together."""

    def __init__(self, chosen: list[Path], choice: Choice) -> None:
        self._counters = [path / "energy_uj" for path in chosen]
        self._ranges_uj = [integer_of(path / "max_energy_range_uj") for path in chosen]
        self._last_uj = [read_integer(path) for path in self._counters]
        self._total_uj = 0
        names = ", ".join(text_of(path / "name") or path.name for path in chosen)
        self.source = Source(
            name=choice.name,
            kind="rapl",
            of="host",
            title=f"the host's processors ({names}) by their own counters",
            interval_ns=choice.interval_ns,
            uncertainty="not stated by the processor; it is the host's, and none of it is the drive's",
            details={"packages": [path.name for path in chosen]},
        )

    def read(self) -> Values:
        """Read the energy since the meter was opened, over all packages."""
        now_uj = [read_integer(path) for path in self._counters]
        for before, after, range_uj in zip(self._last_uj, now_uj, self._ranges_uj, strict=True):
            grown = after - before
            if grown < 0:
                if range_uj is None:
                    self._last_uj = now_uj
                    raise OSError("the counter of energy was set back, and does not tell where it wraps")
                grown += range_uj
            self._total_uj += grown
        self._last_uj = now_uj
        return {"energy_uj": self._total_uj}

    def close(self) -> None:
        """Nothing is kept open."""


def open_meter(choice: Choice) -> RaplMeter:
    """Open all packages, or with ``rapl:N`` that of a number.

    Raises
    ------
    UsageError
        There is none, or it cannot be read, which takes root on most hosts.
    """
    if choice.of == "drive":
        raise choice.error("the processors' energy is the host's and never a drive's; leave of=drive out")
    chosen = [path for path in packages() if choice.place in ("", path.name, path.name.rpartition(":")[2])]
    if not chosen:
        have = ", ".join(path.name for path in packages()) or "none"
        raise choice.error(f"this host has no such counter of its processors' energy; it has {have}")
    try:
        return RaplMeter(chosen, choice)
    except PermissionError as error:
        raise choice.error(f"{error.filename} can be read by root only; run as root") from None
    except OSError as error:
        raise choice.error(f"cannot be read: {error}") from None
