"""Components that tests need from outside: present, or a counted skip; in continuous integration, a failure.

from support import require

def test_agrees_with_blkparse():
    blkparse = require("blkparse")
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from testdrive.plans import Plan

#: What was missing, and for how many tests.
missed: Counter[str] = Counter()


def require(program: str) -> str:
    """The path of a program, or the end of this test: skipped and counted, with ``CI=true`` failed."""
    path = shutil.which(program)
    if path is None:
        missing(f"the program {program}")
    assert path is not None
    return path


def run_testdrive(*arguments: str | Path, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """Run the installed command with the real engine, as a user does; without them the test is skipped."""
    from testdrive.engine import find_engine
    from testdrive.errors import EngineError

    command = Path(sys.executable).parent / "testdrive"
    if not command.is_file():
        missing("the installed command testdrive")
    try:
        find_engine()
    except EngineError:
        missing("the engine's release build")
    said = [os.fspath(command), *map(os.fspath, arguments)]
    return subprocess.run(said, capture_output=True, text=True, check=False, timeout=timeout_s)


@contextmanager
def loop_device(image: Path, size_bytes: int) -> Iterator[Path]:
    """A loop device over a new file of this size; where there is none to be had, the test is skipped."""
    losetup = require("losetup")
    with image.open("wb") as file:
        file.truncate(size_bytes)
    made = subprocess.run([losetup, "-f", "--show", image], capture_output=True, text=True, check=False)
    if made.returncode:
        missing("the right to set up a loop device")
    device = made.stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run([losetup, "-d", device], check=True)


#: Where the images beside pages are made, which takes most of the time of a page.
_IMAGES = (
    "testdrive.compare.comparison.write_figures",
    "testdrive.methods.page.write_images",
    "testdrive.report.single.write_figures",
    "testdrive.statement.page.write_figures",
)


@contextmanager
def no_images() -> Iterator[None]:
    """Pages that are written in this process get no images, which other tests draw of the same content."""
    with pytest.MonkeyPatch.context() as patch:
        for function in _IMAGES:
            patch.setattr(function, lambda *_: [])
        yield


def run_without_images(*arguments: str | Path) -> int:
    """The command in this process, with the real engine: the exit status. Its pages get no images."""
    from testdrive.cli import main

    with no_images():
        return main([os.fspath(each) for each in arguments])


def needed_values(plan: Plan) -> dict[str, str]:
    """A value for each parameter that a built-in plan must be given."""
    # Any text is a path, and 1 a number; rules have a language of their own.
    wanted = {"rules": "p99.9<1ms"}
    return {key: wanted.get(key, "1") for key, one in plan.parameters.items() if one.required}


def missing(what: str) -> None:
    """End this test because a component that it needs is not there."""
    missed[what] += 1
    if in_ci():
        pytest.fail(f"{what} is missing; .ci/packages.txt has what the tests need", pytrace=False)
    pytest.skip(f"{what} is missing")


def in_ci() -> bool:
    """Whether this is continuous integration, where nothing may be missing."""
    return os.environ.get("CI", "").lower() in ("1", "true")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count what was missing, so that a run without it is not taken for a whole one. Used by conftest.py."""
    if missed:
        terminalreporter.section("missing components")
        for what, tests in sorted(missed.items()):
            terminalreporter.line(f"{what}: {tests} {'test' if tests == 1 else 'tests'} not run")
