"""The command line: a file for each command.

What a command needs is imported when it runs, so that every one starts fast.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from testdrive.errors import Interrupted, TestdriveError

#: A defect of testdrive itself: none of the documented ends of a run, and not to be taken for one.
DEFECT_STATUS = 70


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status; what went wrong is one message on standard error.

    With ``TESTDRIVE_DEBUG=1`` the message is preceded by its traceback.
    """
    try:
        status = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough of it, as `| head` has. Nothing more can be said on that pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _run(arguments: list[str]) -> int:
    try:
        return _invoke(arguments)
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
        return f"{place}{error.strerror or error}", TestdriveError.exit_status
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
