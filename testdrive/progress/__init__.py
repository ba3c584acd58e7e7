"""Showing where a run stands: a live view on a terminal, a line now and then in a log.

Everything goes to standard error, so that standard output holds nothing but data.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from rich.console import Console

from testdrive.events import Event
from testdrive.progress.lines import LineDisplay
from testdrive.progress.live import LiveDisplay

__all__ = ["Display", "LineDisplay", "LiveDisplay", "display"]


class Display(Protocol):
    """Where progress goes. Called with each event; used as a context manager around the run."""

    def __call__(self, event: Event) -> None:
        """Show one event."""

    def __enter__(self) -> Display:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""


def display(console: Console, title: str) -> Display:
    """The display that suits the console: live on a terminal that can redraw, lines elsewhere.

    Parameters
    ----------
    console : rich.console.Console
        Of standard error.
    title : str
        What is being run, such as the drive.
    """
    live = console.is_terminal and not console.is_dumb_terminal
    return LiveDisplay(console, title) if live else LineDisplay(console, title)
