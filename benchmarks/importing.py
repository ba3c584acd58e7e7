"""(import) How fast foreign traces become recordings, with the tools beside it that read the same files."""

from __future__ import annotations

from pathlib import Path

from benchmarks import importing_blktrace, importing_msr
from benchmarks.section import Section
from benchmarks.sizes import Sizes


def measure(sizes: Sizes, scratch: Path) -> Section:
    """One format after the other."""
    section = Section("import", "Import of traces", [])
    importing_blktrace.measure(sizes, scratch, section)
    importing_msr.measure(sizes, scratch, section)
    return section
