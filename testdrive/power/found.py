"""Which meters this host has, for `testdrive power list` and for whoever looks at a host before a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testdrive.power import hwmon, nvme, rapl
from testdrive.power.meter import Of


@dataclass(frozen=True)
class Found:
    """A meter of this host.

    Attributes
    ----------
    address : str
        What `--power` takes.
    title : str
        What it is, for people.
    of : str
        ``drive`` or ``host``: what it may be taken to measure, which nobody but the user can know.
    obstacle : str or None
        What stands against reading it now.
    tells_power : bool or None
        Whether it tells power; None where only a reading says so, as of a drive's own log.
    """

    address: str
    title: str
    of: Of
    obstacle: str | None = None
    tells_power: bool | None = True


def found(root: Path | None = None) -> list[Found]:
    """Look for the meters of this host, without opening anything that answers slowly.

    Parameters
    ----------
    root : pathlib.Path, optional
        What stands for sysfs, to look at another host's.
    """
    every: list[Found] = []
    for channel in hwmon.channels(root):
        label = f", {channel.label}" if channel.label else ""
        every.append(
            Found(channel.address, f"{channel.driver} ({channel.chip.name}{label})", channel.of, None)
        )
    for controller in nvme.controllers(root):
        obstacle = None if os.access(controller, os.R_OK) else f"{controller} cannot be read; run as root"
        title = "the drive's own log: temperature, SMART and, since NVMe 2.3, its own word for its power"
        every.append(Found(f"nvme:{controller}", title, "drive", obstacle, None))
    packages = rapl.packages(root)
    if packages:
        obstacle = None
        try:
            (packages[0] / "energy_uj").read_text(encoding="ascii")
        except OSError as error:
            obstacle = f"{packages[0] / 'energy_uj'}: {error.strerror}; run as root"
        every.append(Found("rapl", "the host's processors by their own counters", "host", obstacle))
    return every
