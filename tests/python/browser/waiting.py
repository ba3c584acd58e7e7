"""Waiting for what a page's script does."""

from __future__ import annotations

import time
from typing import Any


def until(page: Any, predicate: str, arg: object = None) -> None:
    """Wait for a predicate. Playwright's own waiting needs eval, which the page's security policy forbids."""
    deadline = time.monotonic() + 120
    while not page.evaluate(predicate, arg):
        assert time.monotonic() < deadline, predicate
        page.wait_for_timeout(50)
