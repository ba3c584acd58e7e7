"""A browser for the pages: Debian's Chromium, driven by Playwright, which downloads none.

Where it is missing the tests are skipped in sight; with `CI=true` in the environment that is a failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent
for directory in (TESTS, TESTS / "report", TESTS / "browser"):
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))

CHROMIUM = Path(os.environ.get("TESTDRIVE_CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HANGING_MS = 120_000
READY = "html[data-ready=true]"


def missing(what: str) -> None:
    """Skip, or fail where everything has to be there."""
    message = f"{what} is missing, so the pages were not opened; install chromium and the dev extra"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module", autouse=True)
def pages_alone() -> Iterator[None]:
    """A browser shows none of the images beside a page."""
    from support import no_images

    with no_images():
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser itself, started once."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    if not CHROMIUM.exists():
        missing(str(CHROMIUM))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield started
        started.close()


class Faults(list[str]):
    """What a page must not do: console errors, exceptions, and requests for anything but itself."""


@pytest.fixture(scope="session")
def open_page(browser: Any) -> Callable[..., Any]:
    """Open a page until its plots are drawn; on leaving, fail if it did anything that it must not."""

    @contextmanager
    def opened(path: Path, *, width: int = 1400, height: int = 1000, scheme: str = "light") -> Iterator[Any]:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        # Only what hangs is ended: how long a page takes says how busy the machine is.
        context.set_default_timeout(HANGING_MS)
        page = context.new_page()
        faults = Faults()
        own = path.resolve().as_uri()

        def said(message: Any) -> None:
            if message.type in ("error", "warning"):
                faults.append(f"console {message.type}: {message.text}")

        def requested(request: Any) -> None:
            if request.url.split("#")[0] != own and not request.url.startswith(("data:", "blob:")):
                faults.append(f"request: {request.url}")

        page.on("console", said)
        page.on("pageerror", lambda error: faults.append(f"exception: {error}"))
        page.on("request", requested)
        page.faults = faults
        try:
            page.goto(own)
            page.wait_for_selector(READY, state="attached")
            yield page
            assert not faults, faults
        finally:
            context.close()

    return opened
