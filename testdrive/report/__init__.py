"""One recording as a page that people can read, with its figures as PNG and CSV files beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testdrive.report.single import REPORT_NAME, write_report

__all__ = ["REPORT_NAME", "write_report"]


def __getattr__(name: str) -> Any:
    # Only when asked for: every command prints units and words, but few draw a page, whose imports are slow.
    if name in __all__:
        from testdrive.report import single

        return getattr(single, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
