"""The PCIe link of an NVMe drive: does it run at the width and generation that the drive can?"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from testdrive.doctor.block_devices import pci_device
from testdrive.doctor.finding import Finding, ok, warning
from testdrive.doctor.host import Host
from testdrive.report import units

#: Bytes per second and lane: 8b/10b coding up to 5 GT/s, 128b/130b above. What packets' heads take comes off.
_BYTES_PER_S_AND_LANE = {2.5: 250e6, 5.0: 500e6, 8.0: 985e6, 16.0: 1969e6, 32.0: 3938e6, 64.0: 7563e6}
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


class Link(NamedTuple):
    """Speed of a lane, and lanes."""

    gt_per_s: float
    lanes: int

    def __str__(self) -> str:
        generation = _GENERATIONS.get(self.gt_per_s)
        speed = f"generation {generation}" if generation else f"{self.gt_per_s:g} GT/s"
        return f"x{self.lanes}, {speed}"

    @property
    def bytes_per_s(self) -> float | None:
        """What it carries at most; None for a speed that is not known."""
        each = _BYTES_PER_S_AND_LANE.get(self.gt_per_s)
        return None if each is None else each * self.lanes


def finding(host: Host, subject: str, disk: str) -> Finding:
    """The link as it is beside what the drive, and the slot that it is in, can."""
    device = pci_device(host, disk)
    now = None if device is None else _link(host, device, "current")
    if device is None or now is None:
        return ok("pcie_link", "not known: the drive's link is not shown here", subject=subject)
    able = _link(host, device, "max")
    top = "" if now.bytes_per_s is None else f", at most {units.rate(now.bytes_per_s)}"
    if able is None or (now.gt_per_s >= able.gt_per_s and now.lanes >= able.lanes):
        return ok("pcie_link", f"{now}{top}", subject=subject)
    slot = _link(host, device.parent, "max")
    slot_is_less = slot is not None and (slot.gt_per_s < able.gt_per_s or slot.lanes < able.lanes)
    remedy = (
        f"the slot is {slot}: put the drive into one that is {able}"
        if slot_is_less
        else f"the slot could do more: reseat the drive or its cable (lspci -vv -s {device.name}, LnkSta)"
    )
    return warning(
        "pcie_link",
        f"{now}, of a drive that can {able}",
        f"the link is narrower than the drive{top}: throughput is the link's",
        remedy,
        subject=subject,
    )


def _link(host: Host, device: Path, which: str) -> Link | None:
    speed, width = host.read(device / f"{which}_link_speed"), host.number(device / f"{which}_link_width")
    try:
        return Link(float((speed or "").split()[0]), width) if width else None
    except (IndexError, ValueError):
        return None
