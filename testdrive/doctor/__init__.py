"""`testdrive doctor`: is this host, and this drive in it, fit to be measured with?

Each check looks at one thing, and says what it means for results and what to do. What the kernel shows is
read below a root that tests lay out by hand; what the engine does here and now is measured.

What other parts call::

    examine(Host(), ["/dev/nvme0n1"], Path("."))    # list of testdrive.doctor.finding.Finding
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from testdrive.doctor import cpu, direct, drive, kernel, place, selfcheck
from testdrive.doctor.finding import Finding
from testdrive.doctor.host import Host

__all__ = ["Finding", "Host", "examine"]

ListDrives = Callable[[], Sequence[dict[str, Any]]]


def examine(
    host: Host,
    drives: Sequence[str],
    directory: Path,
    *,
    list_drives: ListDrives,
    measure: bool = True,
) -> Iterator[Finding]:
    """Every finding, as it is made.

    Parameters
    ----------
    host : Host
        Where to look.
    drives : sequence of str
        Drives as ``--drive`` has them: also these are looked at.
    directory : pathlib.Path
        Where recordings would be made.
    list_drives : callable
        The block devices of the host, as ``testdrive-engine drives`` lists them.
    measure : bool
        Whether the engine is run for two seconds to measure what it costs here.
    """
    yield from cpu.findings(host)
    yield from kernel.findings(host)
    yield from direct.findings(host)
    if drives:
        listed = {str(entry.get("uri")): entry for entry in list_drives()}
        for uri in drives:
            yield from drive.findings(host, uri, listed)
    yield from place.findings(host, directory, drives)
    if measure:
        yield from selfcheck.findings(directory)
