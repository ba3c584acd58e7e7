"""What every test can use: the checkout's own package and the builders, installed or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

_TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(_TESTS.parent), str(_TESTS / "python")]


# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def without_images() -> Iterator[None]:
    """For tests of a page's text: nothing is drawn beside it."""
    from support import no_images

    with no_images():
        yield


def pytest_configure(config: pytest.Config) -> None:
    # Ibis calls a function of DuckDB that DuckDB renamed; nothing here can change that.
    config.addinivalue_line("filterwarnings", "ignore:fetch_arrow_table:DeprecationWarning:ibis")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    # Where tests run in several processes, each tells the one that writes the summary what it missed.
    from support import missed

    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["missing"] = dict(missed)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    from support import missed

    missed.update(getattr(node, "workeroutput", {}).get("missing", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from support import pytest_terminal_summary as count_missing

    count_missing(terminalreporter)
