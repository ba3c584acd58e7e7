"""Where the recording goes: its file system, its room, and whether it shares the drive under test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from testdrive.doctor.block_devices import disk_of_node, disks_beneath
from testdrive.doctor.finding import Finding, ok, problem, warning
from testdrive.doctor.host import Host
from testdrive.report import units

#: What a row takes on the disk, about (docs/benchmarks.md), and what a run holds back for a full disk.
_ROW_BYTES = 10
ROOM_BYTES_MIN = 1 << 30
_RESERVE_BYTES = 32 << 20
#: File systems whose writes go over a network or into memory.
_MEMORY = {"tmpfs", "ramfs"}
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "fuse.sshfs"}


class Mount(NamedTuple):
    """A mounted file system."""

    place: Path
    kind: str
    source: str
    device: str


def findings(host: Host, directory: Path, drives: Sequence[str]) -> Iterator[Finding]:
    """Every finding about the directory for recordings."""
    yield room(directory)
    yield from beneath(host, directory, drives)


def room(directory: Path) -> Finding:
    """Whether a recording can be made there, and how long it may get."""
    subject = str(directory)
    if not os.access(directory, os.W_OK | os.X_OK):
        return problem(
            "recording_room",
            "no recording can be made there",
            "every run needs a place for its recording",
            "give another place with -o, or doctor another with --directory",
            subject=subject,
            prevents_runs=True,
        )
    told = os.statvfs(directory)
    return room_of(subject, told.f_bavail * told.f_frsize)


def room_of(subject: str, free_bytes: int) -> Finding:
    """What so many free bytes are enough for."""
    shown = f"{units.size(free_bytes)} free, for about {units.number(free_bytes // _ROW_BYTES, 2)} I/Os"
    if free_bytes >= ROOM_BYTES_MIN:
        return ok("recording_room", shown, subject=subject)
    meaning = "a run ends when the disk is full; what was recorded until then is kept"
    remedy = "make room, give another place with -o, or run with --keep slowest"
    if free_bytes < _RESERVE_BYTES:
        return problem(
            "recording_room", shown, f"no run starts: {meaning}", remedy, subject=subject, prevents_runs=True
        )
    return warning("recording_room", shown, meaning, remedy, subject=subject)


def beneath(host: Host, directory: Path, drives: Sequence[str]) -> Iterator[Finding]:
    """What the recording would be written to."""
    subject = str(directory)
    mount = mount_of(host, directory.absolute())
    if mount is None:
        yield ok("recording_place", "its file system is not known", subject=subject)
        return
    own = _disks(host, mount)
    for uri in drives:
        place = uri.partition("?")[0]
        if _is_beside(host, place, mount, own):
            # Of a file it is known that it shares a disk with other files.
            make = warning if place.startswith("file:") else problem
            yield make(
                "recording_place",
                f"{mount.kind} on the drive under test, {place}",
                "the recording's own writes go to the drive that is measured",
                "give a place on another drive with -o",
                subject=subject,
            )
            return
    if mount.kind in _MEMORY:
        yield warning(
            "recording_place",
            mount.kind,
            "a long recording fills the memory, and is gone with the host's power",
            "give a place on a disk with -o",
            subject=subject,
        )
    elif mount.kind in _NETWORK:
        yield warning(
            "recording_place",
            mount.kind,
            "a network that is slow for a while keeps the recorder waiting, and submission with it",
            "give a place on a local disk with -o",
            subject=subject,
        )
    else:
        yield ok("recording_place", f"{mount.kind} on {mount.source}", subject=subject)


def mount_of(host: Host, path: Path) -> Mount | None:
    """The file system that a path is on, of the mounts as they are now."""
    best: Mount | None = None
    for line in (host.read("proc/self/mountinfo") or "").splitlines():
        words = line.split()
        if "-" not in words:
            continue
        after = words.index("-")
        place = Path(words[4].replace("\\040", " "))
        # The last of several at one place covers the others.
        if path.is_relative_to(place) and (best is None or len(place.parts) >= len(best.place.parts)):
            best = Mount(place, words[after + 1], words[after + 2], words[2])
    return best


def _disks(host: Host, mount: Mount) -> set[str]:
    """The disks under a file system: by its number, or where that is its own (btrfs), by its source."""
    by_number = host.path(f"sys/dev/block/{mount.device}")
    name = by_number.resolve().name if by_number.exists() else Path(mount.source).name
    return disks_beneath(host, name)


def _is_beside(host: Host, place: str, mount: Mount, own: set[str]) -> bool:
    """Whether a drive under test is under the recording, too."""
    kind, _, rest = place.partition(":")
    if kind == "file":
        other = mount_of(host, Path(rest).absolute().parent)
        return other is not None and mount.kind not in _MEMORY and bool(_disks(host, other) & own)
    disk = None if kind in ("sim", "null") else disk_of_node(host, place)
    return disk is not None and disk in own
