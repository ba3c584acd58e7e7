"""The exceptions of testdrive and the exit status that each one ends the command with.

Exit statuses: 0 done, 1 the test ran and its verdict is fail, 2 usage, 3 refused for safety, 4 the drive
failed, 5 interrupted (what was recorded is kept and marked).
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class TestdriveError(Exception):
    """Root of every exception that testdrive raises on purpose.

    The message says what failed, the value that made it fail and what to do now, so that the command line can
    print it as it stands. ``exit_status`` is what the process ends with.
    """

    # pytest collects classes by the prefix "Test"; this one is not a test.
    __test__: ClassVar[bool] = False
    exit_status: ClassVar[int] = 2


class UsageError(TestdriveError):
    """The request cannot be carried out as it was given: a bad option, value or combination."""


class RecordingError(TestdriveError):
    """A recording cannot be opened or read.

    Attributes
    ----------
    path : pathlib.Path
        The file or directory that is at fault.
    """

    def __init__(self, path: Path | str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = Path(path)


class SafetyRefusal(TestdriveError):  # noqa: N818 - a refusal is not an error of the program
    """The engine or a check before it refused to touch a drive that may hold somebody's data."""

    exit_status: ClassVar[int] = 3


class DriveFailure(TestdriveError):  # noqa: N818 - the drive failed, not the program
    """The drive returned errors, stopped answering or disappeared; what was recorded is kept."""

    exit_status: ClassVar[int] = 4


class Interrupted(TestdriveError):  # noqa: N818 - somebody asked for it
    """The run was stopped by a signal; what was recorded is kept and marked."""

    exit_status: ClassVar[int] = 5


class EngineError(TestdriveError):
    """The engine process cannot be found or started, or broke its contract.

    It has the exit status of a failed drive: the run did not happen, through no fault of the request.
    """

    exit_status: ClassVar[int] = 4
