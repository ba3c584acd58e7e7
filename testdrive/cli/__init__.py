"""The command line: a file for each command.

What a command needs is imported when it runs, so that every one starts fast.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

from testdrive.errors import DriveFailure, Interrupted, TestdriveError

#: A defect of testdrive itself: none of the documented ends of a run, and not to be taken for one.
DEFECT_STATUS = 70
#: What to do where a disk, and not what was asked, is at fault: by the system's number.
_OF_DISKS = {
    errno.ENOSPC: "free some space on that disk, or give a place on another",
    errno.EDQUOT: "free some space of this user's there, or give a place elsewhere",
    errno.EIO: "that disk does not read or write: see the kernel's log",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status; what went wrong is one message on standard error.

    With ``TESTDRIVE_DEBUG=1`` the message is preceded by its traceback.
    """
    try:
        status = _run(sys.argv[1:] if arguments is None else list(arguments))
    except BrokenPipeError:
        # Whoever read our output has enough of it, as `| head` has. Nothing more can be said on that pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _run(arguments: list[str]) -> int:
    try:
        status = _invoke(arguments)
        # A full disk under a redirected output shows only now.
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("TESTDRIVE_DEBUG"):
            traceback.print_exc()
        message, status = _end(error)
        print(f"error: {message}", file=sys.stderr)
        return status


def _end(error: BaseException) -> tuple[str, int]:
    """What is said of an exception, and the status to end with."""
    if isinstance(error, TestdriveError):
        return str(error), error.exit_status
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", Interrupted.exit_status
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        remedy = _OF_DISKS.get(error.errno or 0)
        told = f"{place}{error.strerror or error}" + (f"; {remedy}" if remedy else "")
        return told, DriveFailure.exit_status if remedy else TestdriveError.exit_status
    # Errors of usage are the framework's own classes, in some of its versions private ones.
    if hasattr(error, "format_message"):
        return _usage_message(error), TestdriveError.exit_status
    what = f"{type(error).__name__}: {error}"
    return f"{what}; this is a defect of testdrive, TESTDRIVE_DEBUG=1 shows where", DEFECT_STATUS


def _invoke(arguments: list[str]) -> int:
    """Parse and run, without the framework's own `main`, which would answer errors in its way."""
    import typer

    from testdrive.cli.application import app

    command = typer.main.get_command(app)
    try:
        with command.make_context("testdrive", arguments) as context:
            returned = command.invoke(context)
    except typer.Exit as exit_:
        return exit_.exit_code
    return returned if isinstance(returned, int) else 0


def _usage_message(error: BaseException) -> str:
    message = str(error.format_message()).rstrip(".") if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    return f"{message}; see `{context.command_path if context else 'testdrive'} --help`"
