"""What every test can use: the checkout's own package and the builders, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

_TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(_TESTS.parent), str(_TESTS / "python")]


# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    # Ibis calls a function of DuckDB that DuckDB renamed; nothing here can change that.
    config.addinivalue_line("filterwarnings", "ignore:fetch_arrow_table:DeprecationWarning:ibis")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from support import pytest_terminal_summary as count_missing

    count_missing(terminalreporter)
