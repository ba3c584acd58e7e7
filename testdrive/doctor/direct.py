"""The paths to NVMe drives that leave out the block layer, or the kernel: which can be used on this host."""

from __future__ import annotations

from collections.abc import Iterator

from testdrive.doctor.finding import Finding
from testdrive.doctor.host import Host
from testdrive.doctor.passthrough import passthrough
from testdrive.doctor.user_space import user_space_driver, without_iommu


def findings(host: Host) -> Iterator[Finding]:
    """Every finding about the direct paths; none is more than a piece of information."""
    yield passthrough(host)
    yield user_space_driver(host)
    yield without_iommu(host)
