"""Opening files of a recording, which may be anything by now."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import IO


def open_text(path: Path) -> IO[str]:
    """Open a file of UTF-8 text for reading, and nothing but a file: a pipe could be waited for without end.

    Raises
    ------
    OSError
        It is not a file, or the system refuses. ``strerror`` says what is so.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory, not a file", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.open(encoding="utf-8")


def read_text(path: Path) -> str:
    """The whole of a file of UTF-8 text; raises as :func:`open_text` does."""
    with open_text(path) as file:
        return file.read()
