"""What every test can use: the checkout's own package and the builders, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(_TESTS.parent), str(_TESTS / "python")]
