"""Where the engine's binary is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from testdrive.errors import EngineError

BINARY_NAME = "testdrive-engine"
ENVIRONMENT_VARIABLE = "TESTDRIVE_ENGINE"


def find_engine() -> Path:
    """The engine's binary.

    In this order: what ``TESTDRIVE_ENGINE`` says, beside the running Python (where an installation puts it),
    the release build of the checkout that this package stands in, and ``PATH``.

    Raises
    ------
    EngineError
        It is in none of these places, or ``TESTDRIVE_ENGINE`` names something that cannot be run.
    """
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        if not _can_run(Path(chosen)):
            raise EngineError(
                f"{ENVIRONMENT_VARIABLE} is {chosen!r}, which is not a program; name the binary, or unset it"
            )
        return Path(chosen)
    for candidate in _usual_places():
        if _can_run(candidate):
            return candidate
    on_path = shutil.which(BINARY_NAME)
    if on_path:
        return Path(on_path)
    raise EngineError(
        f"the program {BINARY_NAME} was not found; in a checkout run `make install`,"
        f" elsewhere name it in {ENVIRONMENT_VARIABLE}"
    )


def _usual_places() -> Iterator[Path]:
    yield Path(sys.executable).parent / BINARY_NAME
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "Cargo.toml").is_file():
        target = os.environ.get("CARGO_TARGET_DIR") or "target"
        yield checkout / target / "release" / BINARY_NAME


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
