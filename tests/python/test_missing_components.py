"""What is missing is counted once, wherever the tests ran that missed it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parents[1]
TESTS = """
import pytest
from support import require

@pytest.mark.parametrize("at", range(6))
def test_needs(at):
    require("no-such-program" if at % 3 else "no-other-program")
"""


@pytest.mark.parametrize(("ci", "end"), [("false", "6 skipped"), ("true", "6 failed")])
def test_what_was_missing_is_counted_over_all_processes(tmp_path: Path, ci: str, end: str) -> None:
    (tmp_path / "test_needs.py").write_text(TESTS)
    # What a test uses is beside the suite's own files, which are found from where the link leads.
    (tmp_path / "conftest.py").symlink_to(SUITE / "conftest.py")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--numprocesses", "2"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        env={**environment, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == (ci == "true"), done.stdout + done.stderr
    assert "the program no-such-program: 4 tests not run" in done.stdout
    assert "the program no-other-program: 2 tests not run" in done.stdout
    assert end in done.stdout.splitlines()[-1]
