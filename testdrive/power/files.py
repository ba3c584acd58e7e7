"""The files under a recording's ``meters/``: written line by line, so that a crash keeps every whole line."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from testdrive.errors import RecordingError
from testdrive.power.clock import Tie
from testdrive.power.meter import Source
from testdrive.regular_files import open_text, read_text

FORMAT = "testdrive-meters"
VERSION = 1
FOLDER = "meters"
LIVE_NAME = "live.jsonl"
WARNINGS_NAME = "warnings.jsonl"
#: What is kept in memory of a run whose recording does not exist yet: hours, at the usual rate.
_WAITING_MAX = 500_000


class MeterWriter:
    """Appends to ``meters/live.jsonl`` from several threads. Until :meth:`begin` it keeps lines in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._folder: Path | None = None
        self._file: IO[str] | None = None
        self.failure: OSError | None = None
        self._append({"format": FORMAT, "version": VERSION})

    def begin(self, recording: Path) -> None:
        """Make the file in a recording that exists by now, and write what has waited."""
        with self._lock:
            if self._folder is not None:
                return
            self._folder = recording / FOLDER
            try:
                self._folder.mkdir(exist_ok=True)
                self._file = _free(self._folder).open("x", encoding="utf-8")
                self._file.write("".join(self._waiting))
                self._file.flush()
            except OSError as error:
                self._fail(error)
            self._waiting = []

    def source(self, number: int, source: Source) -> None:
        """Write what a meter says of itself."""
        self._append({"source": number, **asdict(source)})

    def sample(self, number: int, monotonic_ns: int, values: Mapping[str, int]) -> None:
        """Write one reading."""
        self._append({"monotonic_ns": monotonic_ns, "source": number, **values})

    def tie(self, tie: Tie) -> None:
        """Write how the clocks stand to one another."""
        self._append(asdict(tie))

    def warning(self, code: str, message: str, remedy: str) -> None:
        """Write a warning beside the samples."""
        if self._folder is None:
            return
        line = json.dumps({"code": code, "message": message, "remedy": remedy})
        try:
            with (self._folder / WARNINGS_NAME).open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self.failure = self.failure or error

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _append(self, content: Mapping[str, Any]) -> None:
        line = json.dumps(content, separators=(",", ":")) + "\n"
        with self._lock:
            if self._folder is None:
                if len(self._waiting) < _WAITING_MAX:
                    self._waiting.append(line)
            elif self._file is not None:
                try:
                    self._file.write(line)
                    self._file.flush()
                except OSError as error:
                    self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or error
        if self._file is not None:
            file, self._file = self._file, None
            # It may have something left to write, and the disk is what failed.
            with contextlib.suppress(OSError):
                file.close()


def _free(folder: Path) -> Path:
    """The name for what is read now: a run that is resumed adds a file to those of the runs before."""
    first = folder / LIVE_NAME
    number = 1
    path = first
    while path.exists():
        number += 1
        path = first.with_stem(f"{first.stem}-{number}")
    return path


def live_files(recording: Path) -> list[Path]:
    """The files of meters that were read beside the run, one for each part of it, in order."""
    folder = recording / FOLDER
    found = [path for path in folder.glob("live*.jsonl") if is_live(path)] if folder.is_dir() else []
    return sorted(found, key=lambda path: (len(path.name), path.name))


def is_live(path: Path) -> bool:
    """Whether a file is of meters that were read beside the run."""
    return path.stem == "live" or path.stem.startswith("live-")


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of meters, without a last one that was torn by a crash.

    Raises
    ------
    RecordingError
        It cannot be read, is damaged, or its version is newer than this one.
    """
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith("\n"):
                    return
                content = _checked(path, number, line)
                if number == 1:
                    _check_head(path, content)
                else:
                    yield content
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}; restore it from a copy") from error
    except UnicodeDecodeError as error:
        raise RecordingError(path, f"is not text ({error}); restore it from a copy") from error


def _checked(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
        if not isinstance(content, dict):
            raise ValueError(f"{line.strip()[:40]!r} is no JSON object")
    except (ValueError, RecursionError) as error:
        raise RecordingError(
            path, f"is damaged in line {number}: {error}; restore it from a copy, or remove it"
        ) from error
    return content


def _check_head(path: Path, head: Mapping[str, Any]) -> None:
    version = head.get("version")
    if head.get("format") != FORMAT or not isinstance(version, int):
        raise RecordingError(path, f"is not of meters (format {head.get('format')!r}); remove it")
    if version > VERSION:
        raise RecordingError(
            path, f"has version {version}, newer than the {VERSION} read here; open it with a newer testdrive"
        )


def read_warnings(recording: Path) -> list[dict[str, str]]:
    """The warnings that the sampler left in a recording; what is torn or damaged of them is passed over."""
    path = recording / FOLDER / WARNINGS_NAME
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for line in lines:
        try:
            content = json.loads(line)
            found.append({key: str(content[key]) for key in ("code", "message", "remedy")})
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found
