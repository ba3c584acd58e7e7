"""Several recordings of one workload side by side: which drive handles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testdrive.compare.comparison import (
        COMPARISON_NAME,
        Comparison,
        comparison_rows,
        write_comparison,
    )

__all__ = ["COMPARISON_NAME", "Comparison", "comparison_rows", "write_comparison"]


def __getattr__(name: str) -> Any:
    # Only when asked for, as in testdrive.report.
    if name in __all__:
        from testdrive.compare import comparison

        return getattr(comparison, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
