"""Makes the shared builders of recordings importable from here."""

import sys
from pathlib import Path

for directory in (Path(__file__).parent, Path(__file__).parent.parent):
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
