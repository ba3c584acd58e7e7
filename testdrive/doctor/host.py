"""Where a host shows what it is: the kernel's file systems below a root, and what only calls can tell."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

#: Of io_uring_setup(2).
_SETUP_CALL = 425
_PARAMETERS_BYTES = 120
_FLAGS_OFFSET_BYTES = 8
_SINGLE_ISSUER = 1 << 12
_DEFER_TASKRUN = 1 << 13
_SAMPLE_S = 0.5


class Ring(NamedTuple):
    """Whether a ring can be had, and one with deferred task work."""

    available: bool
    deferred: bool


def probe_ring() -> Ring:
    """Ask the kernel for a ring, with the flags that the engine wants most and without."""
    deferred = _sets_up(_SINGLE_ISSUER | _DEFER_TASKRUN)
    return Ring(deferred or _sets_up(0), deferred)


def _sets_up(flags: int) -> bool:
    parameters = (ctypes.c_uint32 * (_PARAMETERS_BYTES // 4))()
    parameters[_FLAGS_OFFSET_BYTES // 4] = flags
    handle = ctypes.CDLL(None, use_errno=True).syscall(_SETUP_CALL, 1, parameters)
    if handle < 0:
        return False
    os.close(handle)
    return True


def _memory_lock_limit_bytes() -> int | None:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return None if limit == resource.RLIM_INFINITY or os.geteuid() == 0 else limit


def _wait() -> None:
    time.sleep(_SAMPLE_S)


@dataclass(frozen=True)
class Host:
    """A host to look at.

    Attributes
    ----------
    root : pathlib.Path
        Above ``sys``, ``proc`` and ``dev``.
    probe_ring : callable
        What io_uring can do.
    memory_lock_limit_bytes : callable
        How much memory may be locked; None without a limit.
    wait : callable
        Passes the time between two looks at a counter.
    """

    root: Path = Path("/")
    probe_ring: Callable[[], Ring] = probe_ring
    memory_lock_limit_bytes: Callable[[], int | None] = _memory_lock_limit_bytes
    wait: Callable[[], None] = field(default=_wait)

    def path(self, name: str) -> Path:
        """A path below the root."""
        return self.root / name.lstrip("/")

    def read(self, name: str | Path) -> str | None:
        """The text of a file without its line end; None where it is missing or cannot be read."""
        path = self.path(name) if isinstance(name, str) else name
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def number(self, name: str | Path) -> int | None:
        """The whole number in a file; None where there is none."""
        try:
            return int(self.read(name) or "")
        except ValueError:
            return None

    def all(self, pattern: str) -> list[Path]:
        """Paths below the root that fit a pattern, sorted."""
        return sorted(self.root.glob(pattern.lstrip("/")))

    def exists(self, name: str) -> bool:
        """Whether a path is there."""
        return self.path(name).exists()
