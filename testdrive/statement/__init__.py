"""The workload statement: what a workload is and asks of a drive, for one recording or two beside each
other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testdrive.statement.page import PAGE_NAME, draw_statement, write_statement

__all__ = ["PAGE_NAME", "draw_statement", "write_statement"]


def __getattr__(name: str) -> Any:
    # Only when asked for: the terminal needs the sentences, but not what draws a page, whose imports are
    # slow.
    if name in __all__:
        from testdrive.statement import page

        return getattr(page, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
