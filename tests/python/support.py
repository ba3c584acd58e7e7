"""Components that tests need from outside: present, or a counted skip; in continuous integration, a failure.

from support import require

def test_agrees_with_blkparse():
    blkparse = require("blkparse")
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import Any

import pytest

#: What was missing, and for how many tests.
_missing: Counter[str] = Counter()


def require(program: str) -> str:
    """The path of a program, or the end of this test: skipped and counted, with ``CI=true`` failed."""
    path = shutil.which(program)
    if path is None:
        missing(f"the program {program}")
    assert path is not None
    return path


def missing(what: str) -> None:
    """End this test because a component that it needs is not there."""
    _missing[what] += 1
    if in_ci():
        pytest.fail(f"{what} is missing; .ci/packages.txt has what the tests need", pytrace=False)
    pytest.skip(f"{what} is missing")


def in_ci() -> bool:
    """Whether this is continuous integration, where nothing may be missing."""
    return os.environ.get("CI", "").lower() in ("1", "true")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count what was missing, so that a run without it is not taken for a whole one. Used by conftest.py."""
    if _missing:
        terminalreporter.section("missing components")
        for what, tests in sorted(_missing.items()):
            terminalreporter.line(f"{what}: {tests} {'test' if tests == 1 else 'tests'} not run")
