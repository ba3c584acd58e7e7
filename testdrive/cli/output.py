"""Where output goes: data on standard output, everything else on standard error."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from typing import Any

from rich.console import Console

from testdrive.progress import Display, display


def print_json(content: Any) -> None:
    """Print data as JSON on standard output."""
    json.dump(content, sys.stdout, indent=2, allow_nan=False, default=str)
    sys.stdout.write("\n")


def stdout_console() -> Console:
    """The console for what people read. Where it is no terminal, lines are 100 columns wide."""
    return Console(width=None if sys.stdout.isatty() else 100, highlight=False)


def stderr_console() -> Console:
    """The console for progress and logs."""
    return Console(stderr=True, highlight=False)


def note(message: str) -> None:
    """Say something on standard error that is neither data nor an error.

    A terminal would break a line that is too long within words; in a log it stays one line.
    """
    if sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        message = "\n".join(_wrapped(line, columns) for line in message.splitlines())
    print(message, file=sys.stderr)


def _wrapped(line: str, columns: int) -> str:
    # What may be copied, a path or a command's option, is not divided.
    return textwrap.fill(
        line, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def show_on_stderr(title: str) -> Display:
    """The display of a run's progress, on standard error."""
    return display(stderr_console(), title)
