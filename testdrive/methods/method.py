"""What a method is, and where the methods are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testdrive.methods.drawing import Findings
from testdrive.methods.runs import Run


@dataclass(frozen=True)
class Method:
    """A standard test's way of looking at its runs.

    Attributes
    ----------
    name : str
        As plans name it in their ``figures``.
    title : str
        For people.
    reading : str
        How its figures are read: one paragraph.
    look : callable
        Takes the runs, of one drive or several, and returns figures and tables on the same scales. A run that
        did not get as far as it should have is shown as far as it got.
    settles : tuple of str
        Parameters that a search settles for each drive: that they differ is its result.
    """

    name: str
    title: str
    reading: str
    look: Callable[[Sequence[Run]], Findings]
    settles: tuple[str, ...] = ()


@cache
def all_methods() -> dict[str, Method]:
    """Every method by its name: each module of this package that has a ``METHOD``."""
    package = __package__ or "testdrive.methods"
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    methods = [module.METHOD for module in modules if hasattr(module, "METHOD")]
    return {method.name: method for method in methods}
