"""The command line: a file for each command.

What a command needs is imported when it runs, so that every one starts fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from testdrive.errors import Interrupted, TestdriveError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status; what went wrong is one message on standard error.

    With ``TESTDRIVE_DEBUG=1`` an error is raised with its traceback instead.
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
    debugging = bool(os.environ.get("TESTDRIVE_DEBUG"))
    try:
        return _invoke(arguments)
    except TestdriveError as error:
        if debugging:
            raise
        return _fail(str(error), error.exit_status)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _fail("interrupted", Interrupted.exit_status)
    except OSError as error:
        if debugging:
            raise
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}", TestdriveError.exit_status)
    except Exception as error:
        # Errors of usage are the framework's own classes, in some of its versions private ones.
        if debugging or not hasattr(error, "format_message"):
            raise
        return _fail(_usage_message(error), TestdriveError.exit_status)


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


def _usage_message(error: Exception) -> str:
    message = str(error.format_message()).rstrip(".") if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    return f"{message}; see `{context.command_path if context else 'testdrive'} --help`"


def _fail(message: str, status: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return status
