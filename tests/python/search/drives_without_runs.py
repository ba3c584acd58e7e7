"""What a search is given where only its plans are looked at: a run that begins all the same fails a test."""

from __future__ import annotations

from typing import NoReturn

from testdrive.search.trials import Trial


def no_display(title: str) -> NoReturn:
    """Stand in for a display of a run."""
    raise AssertionError(f"no run was to begin: {title}")


def no_word(name: str, load: str, trial: Trial) -> NoReturn:
    """Stand in for who is told of a trial."""
    raise AssertionError(f"no trial was to end: {name} at {load}: {trial}")
